#include "repair.hpp"

#include <algorithm>

#include "cells.hpp"
#include "first_pairs.hpp"
#include "pairs.hpp"
#include "terminal_names.hpp"

namespace laconic {
namespace {

// How this works. Each cell carries the number of the pair that starts in it: 0 where that pair is not frequent or,
// in a run like aaaa, where it overlaps the one before. A pair's count is thus always the number of cells that
// carry its number, and it never rises again once the pair is there. Two things follow. No queue is needed: pairs
// are numbered as they come to be, so a sweep over the counts finds the most frequent pair and breaks ties. And no
// hash table: after the first pass new pairs all contain the newest symbol, so a table over the other symbol tells
// them apart.
//
// Which cells carry a number is found by scanning them all while a document is long and counts are high; after
// that, or from the beginning if it is short, in lists, which may hold cells that have since changed.
template <class Sym, class Id>
class RepairOf {
public:
    // Symbols number at most one and a half times the cells, pairs about two and a half times: they fit Sym and Id.
    static constexpr std::size_t kMaxLength = sizeof(Id) == 2 ? 20000 : kMaxDocument;

    template <class Terminal>
    void compress(std::span<const Terminal> text, Symbol alphabet_size, const RepairOptions& options, Output& out) {
        options_ = options;
        options_.min_count = std::max(options.min_count, 2u);  // a rule for a pair that occurs once only adds
        options_.max_rules = std::min(options.max_rules, static_cast<std::uint32_t>(kMaxSymbol - alphabet_size));
        out_ = &out;
        alphabet_size_ = alphabet_size;
        rule_count_ = 0;
        read(text);
        if (options.max_expansion >= 2 && text.size() >= 4) {
            number_first_pairs();
            replace_all();
        }
        write_sequence();
    }

private:
    using PairTable = Pairs<Sym, Id>;
    using Pair = typename PairTable::Pair;
    using Start = typename PairTable::Start;
    using Roll = typename PairTable::Roll;

    struct Known {
        Symbol name;           // in the grammar
        std::uint32_t length;  // how many terminals it stands for
        Id before, after;      // its pairs with the newest symbol; 0 between replacements
    };

    static std::size_t at(Sym symbol) { return static_cast<std::size_t>(symbol); }

    // ---- the document in, the sequence out ----------------------------------------------------------------

    template <class Terminal>
    void read(std::span<const Terminal> text) {
        cells_.reset(text.size());
        terminals_.rename(text, alphabet_size_,
                          [&](std::size_t i, std::uint32_t name) { cells_.set(i + 1, static_cast<Sym>(name + 1)); });
        known_.clear();
        known_.push_back({0, 0, 0, 0});
        for (std::size_t name = 0; name < terminals_.count(); ++name) known_.push_back({terminals_[name], 1, 0, 0});
    }

    void write_sequence() {
        Buffer<Symbol>& sequence = out_->sequence;
        std::size_t size = sequence.size();
        sequence.reserve(size + cells_.size() - 1);
        for (std::size_t p = 1; p + 1 < cells_.size(); ++p) {
            sequence[size] = known_[cells_[p] < 0 ? 0 : at(cells_[p])].name;
            size += cells_[p] >= 0;
        }
        sequence.resize(size);
    }

    // ---- the pairs of the text ----------------------------------------------------------------------------

    void number_first_pairs() {
        first_pairs_.number(cells_, terminals_.count(), pairs_);
        pairs_.keep_frequent(options_.min_count);
        for (std::size_t p = 1; p + 2 < cells_.size(); ++p) cells_.pair(p) = pairs_.renumbered(cells_.pair(p));
        listed_ = short_document();
        if (listed_) list_places(0);
    }

    // ---- the order of replacement -------------------------------------------------------------------------

    void replace_all() {
        if (pairs_.size() == 1) return;
        std::size_t level = *std::max_element(pairs_.counts() + 1, pairs_.counts() + pairs_.size());
        while (level >= options_.min_count && rule_count_ < options_.max_rules) {
            if (!listed_ && level * kScanShare < cells_.size()) rebuild(true, level);
            level = replace_band(level);
        }
    }

    // Replaces the pairs whose counts lie in the upper half of 1 … level, which keeps each sweep over them
    // linear: no more than cells / count pairs can have that count. Returns the count to go on with.
    std::size_t replace_band(std::size_t level) {
        const std::size_t floor = std::max<std::size_t>(options_.min_count, level / 2 + 1);
        band_.renew(pairs_.size());
        std::size_t size = 0;
        for (std::size_t id = 1; id < pairs_.size(); ++id) {
            band_[size] = static_cast<Id>(id);
            size += pairs_.count(id) >= floor;
        }
        while (level >= floor) {
            std::size_t lower = floor - 1, kept = 0;
            for (std::size_t k = 0; k < size; ++k) {
                const Id id = band_[k];
                const std::size_t count = pairs_.count(id);
                if (count == level) {
                    if (rule_count_ == options_.max_rules) return 0;
                    if (crowded(count)) {
                        rebuild(listed_, level);
                        return level;  // pairs have new numbers; those still to be replaced kept their count
                    }
                    const std::size_t first_new = pairs_.size();
                    replace(id);
                    band_.resize(size + pairs_.size() - first_new);
                    for (std::size_t fresh = first_new; fresh < pairs_.size(); ++fresh) {
                        band_[size] = static_cast<Id>(fresh);
                        size += pairs_.count(fresh) >= floor;
                    }
                } else if (count >= floor) {
                    lower = std::max(lower, count);
                    band_[kept++] = id;
                }
            }
            size = kept;
            level = lower;
        }
        return floor - 1;
    }

    // ---- one replacement ----------------------------------------------------------------------------------

    void replace(Id id) {
        const Sym left = pairs_[id].left, right = pairs_[id].right;
        const std::size_t count = pairs_.count(id);
        const Id* places = find(id, count);
        pairs_.count(id) = 0;

        const auto symbol = static_cast<Sym>(known_.size());
        out_->add_rule(known_[at(left)].name, known_[at(right)].name);
        known_.push_back({alphabet_size_ + static_cast<Symbol>(rule_count_++),
                          known_[at(left)].length + known_[at(right)].length, 0, 0});

        pairs_.reserve(std::min(2 * count, 2 * known_.size()));
        if (count == 2 && listed_)
            replace_two(places[0], places[1], symbol, left, right);
        else
            replace_many(places, count, symbol, left, right);
    }

    // The cells of a pair, in order.
    const Id* find(Id id, std::size_t count) {
        if (!listed_) {
            found_.renew(count);
            cells_.find(id, pairs_[id].start, count, found_.data());
            return found_.data();
        }
        Id* const places = pairs_.list_of(id);
        for (std::size_t i = 0, kept = 0; kept < count; ++i) {
            if constexpr (kLarge) prefetch(cells_.data() + pairs_.place_ahead(places + i, kAhead));
            const Id p = places[i];
            places[kept] = p;
            kept += cells_.pair(p) == id;
        }
        return places;
    }

    struct Neighbours {
        std::size_t before, after;
    };

    // Writes `symbol` over the pair at p and takes the two pairs this breaks off their counts.
    Neighbours substitute(std::size_t p, Sym symbol, Sym left, Sym right) {
        const std::size_t q = cells_.next(p), after = cells_.next(q), before = cells_.previous(p);
        --pairs_.count(cells_.pair(before));
        if (cells_[after] == right && left != right && cells_.pair(q) != 0) [[unlikely]]
            shorten_run(cells_.pair(q), after, right);
        else
            --pairs_.count(cells_.pair(q));
        cells_.pair(before) = cells_.pair(p) = cells_.pair(q) = 0;
        cells_.join(p, q, after, symbol);
        return {before, after};
    }

    // A run aaaa… has lost its first terminal to the left. Its pairs are counted from its start, so all move.
    // This stays linear: aa, being allowed, occurs no more often than the pair that is being replaced.
    void shorten_run(Id id, std::size_t start, Sym terminal) {
        bool counted = true;
        for (std::size_t p = start, q = cells_.next(p); cells_[q] == terminal; p = q, q = cells_.next(q)) {
            cells_.pair(p) = counted ? id : Id{0};
            counted = !counted;
        }
        pairs_.count(id) -= counted;
    }

    // Most pairs occur twice. Their neighbours make a frequent pair only if they are the same at both places, which
    // they are not if the places touch, or at either end of the document.
    void replace_two(std::size_t p, std::size_t q, Sym symbol, Sym left, Sym right) {
        const Neighbours first = substitute(p, symbol, left, right);
        const Neighbours second = substitute(q, symbol, left, right);
        const Sym before = cells_[first.before], after = cells_[first.after];
        if (before == cells_[second.before] && fits(before, symbol))
            cells_.pair(first.before) = cells_.pair(second.before) =
                pairs_.add_listed(before, symbol, first.before, second.before);
        if (after == cells_[second.after] && fits(symbol, after))
            cells_.pair(p) = cells_.pair(q) = pairs_.add_listed(symbol, after, p, q);
    }

    void replace_many(const Id* places, std::size_t count, Sym symbol, Sym left, Sym right) {
        const std::size_t first = pairs_.size();
        Roll roll(pairs_);
        Id twin = 0;           // the pair (symbol, symbol), where places are adjacent
        bool counted = false;  // whether the last place was counted as a twin
        std::size_t last = cells_.size(), last_after = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if constexpr (kLarge) prefetch_neighbours(places, i, count);
            const std::size_t p = places[i];
            const auto [before, after] = substitute(p, symbol, left, right);
            if (before == last) [[unlikely]] {
                counted = !counted;
                roll.meet(twin, symbol, symbol, last);
                if (!counted) roll.uncount(twin);
            } else {
                if (i != 0) roll.meet(known_[at(cells_[last_after])].after, symbol, cells_[last_after], last);
                roll.meet(known_[at(cells_[before])].before, cells_[before], symbol, before);
                counted = false;
            }
            last = p;
            last_after = after;
        }
        roll.meet(known_[at(cells_[last_after])].after, symbol, cells_[last_after], last);
        pairs_.add(roll);
        pairs_.filter(
            first,
            [&](const Pair& pair, Id times) {
                return (times >= options_.min_count) & (pair.left != 0) & (pair.right != 0) &
                       fits(pair.left, pair.right);
            },
            [&](std::size_t, const Pair& pair, Id now) {
                known_[at(pair.left)].before = known_[at(pair.right)].after = now;
            });
        if (pairs_.size() > first) settle(places, count, symbol, first);
        known_[at(symbol)].before = known_[at(symbol)].after = 0;
    }

    // Gives the cells around each place the numbers of their pairs, which `before` and `after` hold, and lists them.
    void settle(const Id* places, std::size_t count, Sym symbol, std::size_t first) {
        Id twin = 0;
        for (std::size_t id = first; id < pairs_.size(); ++id)
            if (pairs_[id].left == pairs_[id].right) [[unlikely]]
                twin = static_cast<Id>(id);
        if (listed_) pairs_.open_lists(first);
        bool counted = false;
        std::size_t last = cells_.size();
        for (std::size_t i = 0; i < count; ++i) {
            if constexpr (kLarge) prefetch(cells_.data() + places[std::min(i + kAhead, count - 1)]);
            const std::size_t p = places[i], before = cells_.previous(p), after = cells_.next(p);
            if (before != last) {
                cells_.pair(before) = known_[at(cells_[before])].before;
                if (listed_) pairs_.list(cells_.pair(before), before);
                counted = false;
            }
            if (cells_[after] == symbol) [[unlikely]] {
                counted = !counted;
                cells_.pair(p) = counted ? twin : Id{0};
                if (listed_) pairs_.list(twin, p);
            } else {
                cells_.pair(p) = known_[at(cells_[after])].after;
                if (listed_) pairs_.list(cells_.pair(p), p);
            }
            last = p;
        }
        for (std::size_t id = first; id < pairs_.size(); ++id)
            known_[at(pairs_[id].left)].before = known_[at(pairs_[id].right)].after = 0;
        if (listed_) pairs_.close_lists(first);
    }

    bool fits(Sym left, Sym right) const {
        return known_[at(left)].length + known_[at(right)].length <= options_.max_expansion;
    }

    // ---- tidying ------------------------------------------------------------------------------------------

    bool short_document() const { return cells_.size() <= kShort; }

    bool crowded(std::size_t count) const {
        const bool gappy = cells_.gaps() > cells_.size() / 4 && !short_document();
        return gappy || (listed_ && !pairs_.has_room(2 * count));
    }

    // Lists where each pair is. The cells a pair aa is not counted in, because it overlaps itself, count too.
    void list_places(std::size_t level) {
        pairs_.reset_lists(std::max(short_document() ? cells_.size() : cells_.size() / 4, 2 * level));
        std::size_t id = 0;
        for (std::size_t p = 1; p + 2 < cells_.size(); ++p) {
            if (cells_[p] == cells_[p + 1] && cells_[p] == cells_[p - 1] && cells_.pair(p) == 0) [[unlikely]] {
                pairs_.list(id, p);
                id = 0;
            } else {
                id = cells_.pair(p);
                pairs_.list(id, p);
            }
        }
        pairs_.close_lists(1);
    }

    // Closes the gaps, forgets the pairs that are no longer frequent, and makes the lists if they are wanted.
    void rebuild(bool listed, std::size_t level) {
        pairs_.keep_frequent(options_.min_count);
        cells_.close_gaps([&](Id id) { return pairs_.renumbered(id); });
        listed_ = listed;
        if (listed) {
            cells_.trim();
            list_places(level);
            return;
        }
        for (std::size_t id = 0; id < pairs_.size(); ++id) pairs_[id].start = 0;
        for (std::size_t p = 1; p + 1 < cells_.size(); ++p)
            if (pairs_[cells_.pair(p)].start == 0) pairs_[cells_.pair(p)].start = static_cast<Start>(p);
    }

    // ---- long documents do not fit the caches -------------------------------------------------------------

    // Where the next cells lie is known ahead: first fetch them, then, once they are there, what is counted
    // for their neighbours.
    static void prefetch(const void* address) {
#if defined(__GNUC__)
        __builtin_prefetch(address, 1);
#else
        (void)address;
#endif
    }
    void prefetch_neighbours(const Id* places, std::size_t i, std::size_t count) const {
        prefetch(cells_.data() + places[std::min(i + 2 * kAhead, count - 1)]);
        const std::size_t p = places[std::min(i + kAhead, count - 1)];
        const std::size_t q = cells_.next(p), after = cells_.next(q), before = cells_.previous(p);
        prefetch(pairs_.counts() + cells_.pair(before));
        prefetch(pairs_.counts() + cells_.pair(q));
        prefetch(known_.data() + at(cells_[before]));
        prefetch(known_.data() + at(cells_[after]));
    }

    static constexpr bool kLarge = sizeof(Id) == 4;
    static constexpr std::size_t kAhead = 12;
    static constexpr std::size_t kShort = 1 << 16;  // cells up to which lists are made from the beginning
    static constexpr std::size_t kScanShare = 256;  // a pair is scanned for if at least one cell in so many is its

    RepairOptions options_;
    Output* out_ = nullptr;
    Symbol alphabet_size_ = 0;
    std::uint32_t rule_count_ = 0;

    TerminalNames terminals_;
    Cells<Sym, Id> cells_;
    PairTable pairs_;
    Buffer<Known> known_;  // by symbol
    Buffer<Id> band_, found_;

    FirstPairs<Sym, Id> first_pairs_;
    bool listed_ = false;
};

}  // namespace

struct Repair::Workspaces {
    RepairOf<std::int16_t, std::uint16_t> narrow;
    RepairOf<std::int32_t, std::uint32_t> wide;
};

Repair::Repair() : workspaces_(std::make_unique<Workspaces>()) {}
Repair::~Repair() = default;
Repair::Repair(Repair&&) noexcept = default;

template <class Terminal>
void Repair::compress(std::span<const Terminal> text, Symbol alphabet_size, const RepairOptions& options, Output& out) {
    check_length(text.size());
    if (text.size() <= workspaces_->narrow.kMaxLength)
        workspaces_->narrow.compress(text, alphabet_size, options, out);
    else
        workspaces_->wide.compress(text, alphabet_size, options, out);
}

template void Repair::compress(std::span<const std::uint8_t>, Symbol, const RepairOptions&, Output&);
template void Repair::compress(std::span<const std::uint16_t>, Symbol, const RepairOptions&, Output&);
template void Repair::compress(std::span<const std::int32_t>, Symbol, const RepairOptions&, Output&);

}  // namespace laconic
