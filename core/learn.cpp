#include "learn.hpp"

#include <queue>
#include <vector>

#include "cells.hpp"
#include "edges.hpp"
#include "pieces.hpp"

namespace laconic {
namespace {

// As in Re-Pair of one document (repair.cpp), each cell carries the number of the pair that starts in it, 0 where that
// one is not frequent or overlaps itself; pairs are numbered in the order in which ties are broken; and a pair's count
// never rises. Here cells have weights, pieces end in cells that hold 0, and the rules wanted are few: pairs wait in a
// heap by counts that may be out of date, and no gap is ever closed, so that a cell tells its piece.
class Learner {
public:
    Learner(Symbol alphabet_size, std::span<const Symbol> rules, const LearnOptions& options)
        : options_(options), alphabet_size_(alphabet_size), earlier_(rules) {}

    template <class Terminal>
    Buffer<Symbol> learn(const Pieces<Terminal>& pieces, std::size_t documents, const std::function<void()>& poll) {
        weights_ = {pieces.weights.data(), pieces.weights.size()};
        documents_ = {pieces.documents.data(), pieces.documents.size()};
        document_offsets_ = {pieces.document_offsets.data(), pieces.document_offsets.size()};
        stamps_.assign(options_.min_documents > 1 ? documents : 0, 0);
        read(pieces.texts);
        number_first_pairs();
        std::size_t read_since = 0;
        while (rules_.size() / 2 < options_.max_rules) {
            const Id id = most_frequent();
            if (id == 0) break;
            read_since += pairs_[id].size;
            if (in_enough_documents(id))
                replace(id);
            else
                forget(id);
            if (read_since > kPoll) {
                read_since = 0;
                poll();
            }
        }
        return std::move(rules_);
    }

private:
    using Id = std::uint32_t;
    struct Pair {
        Symbol left, right;
        std::uint64_t begin;  // of its list of places
        std::uint32_t size;   // of that: the cells it is in, or was; of a pair aa, those that it is not counted in, too
        std::uint32_t count;  // the sum of the weights of the cells that carry its number
    };
    struct Known {
        std::uint32_t length;  // how many terminals it stands for
        Id before, after;      // its pairs with the newest symbol; 0 between replacements
    };

    static std::size_t at(Symbol symbol) { return static_cast<std::size_t>(symbol); }

    // ---- pieces to cells ----------------------------------------------------------------------------------

    template <class Texts>
    void read(const Texts& texts) {
        std::size_t length = 0;
        for (const auto& text : texts) length += text.size() + 1;
        check_length(length);
        cells_.reset(length);
        std::size_t p = 1;
        for (std::size_t i = 0; i < texts.size(); ++i) {
            begins_.push_back(static_cast<std::uint32_t>(p));
            for (const auto terminal : texts[i]) put(p++, static_cast<Symbol>(terminal) + 1, i);
            put(p++, 0, i);
        }
        begins_.push_back(static_cast<std::uint32_t>(p));
        known_.resize(at(alphabet_size_) + 1);
        for (Known& known : known_) known = {1, 0, 0};
        std::size_t next = known_.size() - earlier_.size() / 2;
        for (std::size_t i = 0; i < earlier_.size(); i += 2)
            known_[next++].length = length_of(earlier_[i] + 1, earlier_[i + 1] + 1);
    }
    // Of a pair, of symbols plus 1: how many terminals it stands for, at most 2^32 - 1.
    std::uint32_t length_of(Symbol left, Symbol right) const {
        return static_cast<std::uint32_t>(
            std::min<std::uint64_t>(std::uint64_t{known_[at(left)].length} + known_[at(right)].length, 0xFFFFFFFF));
    }
    void put(std::size_t p, Symbol symbol, std::size_t piece) {
        cells_.set(p, symbol);
        cells_.pair(p) = 0;
        if (p / kBlock == blocks_.size()) blocks_.push_back(static_cast<std::uint32_t>(piece));
    }
    std::size_t piece_of(std::size_t p) const {
        std::size_t piece = blocks_[p / kBlock];
        while (begins_[piece + 1] <= p) ++piece;
        return piece;
    }
    std::uint32_t weight(std::size_t p) const { return weights_[piece_of(p)]; }

    // ---- the pairs of the text ----------------------------------------------------------------------------

    void number_first_pairs() {
        Edges numbers;
        numbers.reset(cells_.size());
        pairs_.push_back({0, 0, 0, 0, 0});
        for_each_first([&](std::size_t p, bool counted) {
            Id& number = numbers.at(static_cast<Id>(cells_[p]), static_cast<Id>(cells_[p + 1]));
            const Id id = number == 0 ? static_cast<Id>(pairs_.size()) : number;
            if (number == 0) {
                pairs_.push_back({cells_[p], cells_[p + 1], 0, 0, 0});
                number = id;
                numbers.added();
            }
            cells_.pair(p) = id;
            ++pairs_[id].size;
            if (counted) pairs_[id].count += weight(p);
        });
        for (std::size_t i = 0; i < earlier_.size(); i += 2)
            pairs_[numbers.find(static_cast<Id>(earlier_[i] + 1), static_cast<Id>(earlier_[i + 1] + 1))].count = 0;
        keep_frequent(1);
        for_each_first([&](std::size_t p, bool counted) {
            const Id id = renumbered_[cells_.pair(p) - 1];
            list(id, p);
            cells_.pair(p) = counted ? id : 0;
        });
        close_lists(1);
    }

    // Calls work(p, counted) for all pairs, where `counted` is whether it does not overlap the same one counted before.
    template <class Work>
    void for_each_first(Work work) {
        bool counted = false;
        for (std::size_t p = 1; p + 2 < cells_.size(); ++p) {
            const Symbol symbol = cells_[p];
            if (symbol == 0 || cells_[p + 1] == 0) continue;
            counted = symbol != cells_[p + 1] || symbol != cells_[p - 1] || !counted;
            work(p, counted);
        }
    }

    // Of the pairs from `first` on, keeps those that may be replaced, with room for their places, and lets them wait.
    // Afterwards renumbered_[old number - first] is the new one, or 0.
    void keep_frequent(std::size_t first) {
        renumbered_.renew(pairs_.size() - first);
        std::size_t kept = first;
        for (std::size_t id = first; id < pairs_.size(); ++id) {
            const Pair pair = pairs_[id];
            const bool stays = pair.count >= 2 && length_of(pair.left, pair.right) <= options_.max_expansion;
            renumbered_[id - first] = stays ? static_cast<Id>(kept) : 0;
            if (!stays) continue;
            pairs_[kept] = pair;
            pairs_[kept].begin = places_.size();
            places_.resize(places_.size() + pair.size);
            waiting_.push(waiting(static_cast<Id>(kept), pair.count));
            ++kept;
        }
        pairs_.resize(kept);
    }
    void list(Id id, std::size_t p) {
        if (id != 0) places_[pairs_[id].begin++] = static_cast<std::uint32_t>(p);
    }
    void close_lists(std::size_t first) {
        for (std::size_t id = first; id < pairs_.size(); ++id) pairs_[id].begin -= pairs_[id].size;
    }

    // ---- the order of replacement -------------------------------------------------------------------------

    // The largest is the most frequent, and of those the first.
    static std::uint64_t waiting(Id id, std::uint32_t count) { return std::uint64_t{count} << 32 | (0xFFFFFFFF - id); }

    Id most_frequent() {
        while (!waiting_.empty()) {
            const std::uint64_t top = waiting_.top();
            waiting_.pop();
            const Id id = 0xFFFFFFFF - static_cast<Id>(top);
            const std::uint32_t count = pairs_[id].count;
            if (count == top >> 32) return id;
            if (count >= 2) waiting_.push(waiting(id, count));
        }
        return 0;
    }

    // Counts documents only until there are enough, of a pair that is about to be replaced: then its places are read
    // anyway.
    bool in_enough_documents(Id id) {
        if (options_.min_documents <= 1) return true;
        ++stamp_;
        std::uint32_t found = 0;
        std::size_t last = weights_.size();
        for (std::size_t i = 0; i < pairs_[id].size; ++i) {
            const std::size_t p = places_[pairs_[id].begin + i];
            if (cells_.pair(p) != id) continue;
            const std::size_t piece = piece_of(p);
            if (piece == last) continue;
            last = piece;
            for (std::size_t k = document_offsets_[piece]; k < document_offsets_[piece + 1]; ++k) {
                if (stamps_[documents_[k]] == stamp_) continue;
                stamps_[documents_[k]] = stamp_;
                if (++found == options_.min_documents) return true;
            }
        }
        return false;
    }

    // A pair of too few documents will not be in more.
    void forget(Id id) {
        for (std::size_t i = 0; i < pairs_[id].size; ++i) {
            const std::size_t p = places_[pairs_[id].begin + i];
            if (cells_.pair(p) == id) cells_.pair(p) = 0;
        }
        pairs_[id].count = 0;
    }

    // ---- one replacement ----------------------------------------------------------------------------------

    void replace(Id id) {
        const Symbol left = pairs_[id].left, right = pairs_[id].right, symbol = static_cast<Symbol>(known_.size());
        const Symbol rule[] = {left - 1, right - 1};
        rules_.append(rule, 2);
        known_.push_back({length_of(left, right), 0, 0});
        const std::uint64_t begin = pairs_[id].begin;
        std::size_t count = 0;
        for (std::size_t i = 0; i < pairs_[id].size; ++i) {
            prefetch(begin + std::min<std::size_t>(i + kAhead, pairs_[id].size - 1));
            const std::uint32_t p = places_[begin + i];
            if (cells_.pair(p) != id) continue;
            substitute(p, symbol, left, right);
            places_[begin + count++] = p;
        }
        pairs_[id].count = 0;
        meet_neighbours(begin, count, symbol);
    }

    // Writes `symbol` over the pair at p and takes the two pairs this breaks off their counts.
    void substitute(std::size_t p, Symbol symbol, Symbol left, Symbol right) {
        const std::uint32_t times = weight(p);
        const std::size_t q = cells_.next(p), after = cells_.next(q), before = cells_.previous(p);
        pairs_[cells_.pair(before)].count -= times;
        if (cells_[after] == right && left != right && cells_.pair(q) != 0) [[unlikely]]
            shorten_run(cells_.pair(q), after, right, times);
        else
            pairs_[cells_.pair(q)].count -= times;
        cells_.pair(before) = cells_.pair(p) = cells_.pair(q) = 0;
        cells_.join(p, q, after, symbol);
    }

    // A run aaaa… has lost its first symbol to the left. Its pairs are counted from its start, so all move.
    void shorten_run(Id id, std::size_t start, Symbol symbol, std::uint32_t times) {
        bool counted = true;
        for (std::size_t p = start, q = cells_.next(p); cells_[q] == symbol; p = q, q = cells_.next(q)) {
            cells_.pair(p) = counted ? id : 0;
            counted = !counted;
        }
        if (counted) pairs_[id].count -= times;
    }

    // Numbers the pairs that the new symbol makes with its neighbours, in their order, and lists where they are.
    void meet_neighbours(std::uint64_t begin, std::size_t count, Symbol symbol) {
        const std::size_t first = pairs_.size();
        const auto meet = [&](Id& number, Symbol left, Symbol right, std::uint32_t times) {
            if (number == 0) {
                number = static_cast<Id>(pairs_.size());
                pairs_.push_back({left, right, 0, 0, 0});
            }
            ++pairs_[number].size;
            pairs_[number].count += times;
        };
        for_each_neighbour(begin, count, symbol,
                           [&](Id& number, std::size_t, Symbol left, Symbol right, bool counted, std::size_t place) {
                               meet(number, left, right, counted ? weight(place) : 0);
                           });
        const std::size_t end = pairs_.size();
        met_.clear();
        for (std::size_t id = first; id < end; ++id)
            met_.push_back(pairs_[id].left == symbol ? pairs_[id].right : pairs_[id].left);
        keep_frequent(first);
        if (pairs_.size() > first)
            for_each_neighbour(begin, count, symbol,
                               [&](Id& number, std::size_t p, Symbol, Symbol, bool counted, std::size_t) {
                                   const Id id = renumbered_[number - first];
                                   list(id, p);
                                   if (counted) cells_.pair(p) = id;
                               });
        close_lists(first);
        for (const Symbol other : met_) known_[at(other)].before = known_[at(other)].after = 0;
    }

    // Calls work(number, p, left, right, counted, place) for the pairs, at p, that have the new symbol, written at some
    // places; `number` is where the number of the pair is kept.
    template <class Work>
    void for_each_neighbour(std::uint64_t begin, std::size_t count, Symbol symbol, Work work) {
        bool counted = false;  // whether the pair (symbol, symbol) that ends here is
        for (std::size_t i = 0; i < count; ++i) {
            prefetch(begin + std::min(i + kAhead, count - 1));
            const std::size_t p = places_[begin + i], before = cells_.previous(p), after = cells_.next(p);
            const Symbol left = cells_[before], right = cells_[after];
            if (left != symbol) {
                counted = false;
                if (left != 0) work(known_[at(left)].before, before, left, symbol, true, p);
            }
            if (right == symbol) counted = !counted;
            if (right != 0) work(known_[at(right)].after, p, symbol, right, right != symbol || counted, p);
        }
    }

    void prefetch([[maybe_unused]] std::uint64_t place) const {
#if defined(__GNUC__)
        __builtin_prefetch(cells_.data() + places_[place], 1);
#endif
    }

    static constexpr std::size_t kBlock = 64;  // cells of which the first's piece is noted
    static constexpr std::size_t kAhead = 16;
    static constexpr std::size_t kPoll = 1 << 20;  // places

    const LearnOptions options_;
    const Symbol alphabet_size_;
    const std::span<const Symbol> earlier_;  // rules that come first
    Buffer<Symbol> rules_;
    std::span<const std::uint32_t> weights_, documents_;
    std::span<const std::uint64_t> document_offsets_;

    Cells<Symbol, Id> cells_;                // symbols plus 1
    Buffer<std::uint32_t> begins_, blocks_;  // by piece: its first cell; by block of cells: its first piece
    Buffer<Pair> pairs_;                     // pair 0 is no pair, and its count means nothing
    Buffer<Known> known_;                    // by symbol plus 1
    Buffer<std::uint32_t> places_;           // lists, one after the other
    Buffer<Id> renumbered_;
    Buffer<Symbol> met_;
    std::priority_queue<std::uint64_t> waiting_;
    std::vector<std::uint32_t> stamps_;  // by document: when it was last counted
    std::uint32_t stamp_ = 0;
};

}  // namespace

template <class Terminal>
Buffer<Symbol> learn_rules(std::span<const Terminal> text, std::span<const std::int64_t> offsets, Symbol alphabet_size,
                           std::span<const Symbol> known, std::span<const WordKind> kinds, const LearnOptions& options,
                           unsigned threads, const std::function<void()>& poll) {
    check({alphabet_size - static_cast<Symbol>(known.size() / 2), known, {}});
    const auto pieces = pieces_of(text, offsets, kinds, options.min_documents, threads, poll);
    return Learner(alphabet_size, known, options).learn(pieces, offsets.size() - 1, poll);
}

template Buffer<Symbol> learn_rules(std::span<const std::uint8_t>, std::span<const std::int64_t>, Symbol,
                                    std::span<const Symbol>, std::span<const WordKind>, const LearnOptions&, unsigned,
                                    const std::function<void()>&);
template Buffer<Symbol> learn_rules(std::span<const std::uint16_t>, std::span<const std::int64_t>, Symbol,
                                    std::span<const Symbol>, std::span<const WordKind>, const LearnOptions&, unsigned,
                                    const std::function<void()>&);
template Buffer<Symbol> learn_rules(std::span<const std::int32_t>, std::span<const std::int64_t>, Symbol,
                                    std::span<const Symbol>, std::span<const WordKind>, const LearnOptions&, unsigned,
                                    const std::function<void()>&);

}  // namespace laconic
