// The pairs that Re-Pair may still replace, numbered from 1 in the order they came to be: counts and places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "buffer.hpp"

namespace laconic {

template <class Sym, class Id>
class Pairs {
public:
    using Start = std::conditional_t<sizeof(Id) == 2, std::uint32_t, std::uint64_t>;
    struct Pair {
        Sym left, right;
        Start start;  // the first cell it can be in or, once there are lists, where its list starts
    };

    // Pair 0 is no pair; its count may be changed and means nothing. The counts past size() are 0.
    std::size_t size() const { return size_; }
    Pair& operator[](std::size_t id) { return pairs_[id]; }
    const Pair& operator[](std::size_t id) const { return pairs_[id]; }
    Id& count(std::size_t id) { return counts_[id]; }
    Id count(std::size_t id) const { return counts_[id]; }
    const Id* counts() const { return counts_.data(); }

    void clear() {
        for (std::size_t id = 0; id < size_; ++id) counts_[id] = 0;
        size_ = 1;
    }

    void reserve(std::size_t more) {
        const std::size_t wanted = size_ + more + 2;
        if (wanted <= counts_.size()) return;
        const std::size_t room = wanted + wanted / 4;
        pairs_.reserve(room);
        renumbered_.reserve(room);
        counts_.reserve(room);
        while (counts_.size() < room) counts_.push_back(0);
    }

    Id add(const Pair& pair, Id count) {
        pairs_[size_] = pair;
        counts_[size_] = count;
        return static_cast<Id>(size_++);
    }

    // Counts pairs as they are met. Works on copies of the pointers, which then stay in registers.
    class Roll {
    public:
        explicit Roll(Pairs& pairs) : pairs_(pairs.pairs_.data()), counts_(pairs.counts_.data()), size_(pairs.size_) {}

        // `number` is where the caller keeps the number of this pair; 0 if it has not been met yet. No branch:
        // which pairs are new is as good as random.
        Id meet(Id& number, Sym left, Sym right, std::size_t p) {
            const bool fresh = number == 0;
            const Id id = fresh ? static_cast<Id>(size_) : number;
            pairs_[size_] = {left, right, static_cast<Start>(p)};
            size_ += fresh;
            number = id;
            ++counts_[id];
            return id;
        }
        void uncount(Id id) { --counts_[id]; }
        std::size_t size() const { return size_; }

    private:
        Pair* pairs_;
        Id* counts_;
        std::size_t size_;
    };

    // Takes over what a roll has met.
    void add(const Roll& roll) { size_ = roll.size(); }

    // Forgets pairs from `first` on unless keep(pair, count), and closes up; calls renumber(id, pair, new id or 0).
    template <class Keep, class Renumber>
    void filter(std::size_t first, Keep keep, Renumber renumber) {
        std::size_t kept = first;
        for (std::size_t id = first; id < size_; ++id) {
            const Pair pair = pairs_[id];
            const Id count = std::exchange(counts_[id], Id{0});
            const bool stays = keep(pair, count);
            renumber(id, pair, stays ? static_cast<Id>(kept) : Id{0});
            pairs_[kept] = pair;
            counts_[kept] = count;
            kept += stays;
        }
        counts_[kept] = 0;
        size_ = kept;
    }

    // As filter, for all pairs; afterwards renumbered(old id) is the new one.
    void keep_frequent(std::size_t min_count) {
        renumbered_[0] = 0;
        filter(
            1, [&](const Pair&, Id count) { return count >= min_count; },
            [&](std::size_t id, const Pair&, Id now) { renumbered_[id] = now; });
    }
    Id renumbered(std::size_t id) const { return renumbered_[id]; }

    // ---- lists of the cells that pairs are in, one after the other ----------------------------------------

    // Forgets all lists and makes room for those of the pairs there are and for `more` entries.
    void reset_lists(std::size_t more) {
        top_ = 0;
        for (std::size_t id = 1; id < size_; ++id) open_list(id);
        pairs_[0].start = static_cast<Start>(top_);
        if (places_.size() < top_ + more + 1) places_.renew(top_ + more + 1);
    }
    bool has_room(std::size_t more) const { return top_ + more < places_.size(); }

    // Makes the lists of the pairs from `first` on, which are the last. Between open_lists and close_lists each
    // `start` moves along as its list is written.
    void open_lists(std::size_t first) {
        for (std::size_t id = first; id < size_; ++id) open_list(id);
        pairs_[0].start = static_cast<Start>(top_);
    }
    // Pair 0 writes to a place it never leaves: whether a pair is frequent is a coin toss, so this has no branch.
    void list(std::size_t id, std::size_t p) {
        places_[pairs_[id].start] = static_cast<Id>(p);
        pairs_[id].start += id != 0;
    }
    void close_lists(std::size_t first) {
        std::size_t end = top_;
        for (std::size_t id = size_; id-- > first;) {
            while (pairs_[id].start < end) list(id, 0);  // a cell that no pair is in
            pairs_[id].start -= static_cast<Start>(list_size(id));
            end = pairs_[id].start;
        }
    }

    Id add_listed(Sym left, Sym right, std::size_t p, std::size_t q) {
        const Id id = add({left, right, static_cast<Start>(top_)}, 2);
        places_[top_++] = static_cast<Id>(p);
        places_[top_++] = static_cast<Id>(q);
        return id;
    }

    Id* list_of(std::size_t id) { return places_.data() + pairs_[id].start; }
    // What a list will come to soon; past its end, some other listed cell.
    Id place_ahead(const Id* place, std::size_t distance) const {
        return places_[std::min(static_cast<std::size_t>(place - places_.data()) + distance, top_ - 1)];
    }

private:
    void open_list(std::size_t id) {
        pairs_[id].start = static_cast<Start>(top_);
        top_ += list_size(id);
    }

    // A pair aa also lists the cells it is not counted in, which change roles when a run loses its first terminal.
    std::size_t list_size(std::size_t id) const {
        return std::size_t{counts_[id]} << (pairs_[id].left == pairs_[id].right);
    }

    Buffer<Pair> pairs_;
    Buffer<Id> counts_, renumbered_;
    std::size_t size_ = 0;
    Buffer<Id> places_;
    std::size_t top_ = 0;  // places in use
};

}  // namespace laconic
