#include "repair.hpp"

#include <algorithm>
#include <utility>

#include "letters.hpp"
#include "scan.hpp"

namespace laconic {
namespace {

// Names below: a *cell* is a place of the sequence, 1 … cells_-2, with a guard at either end. When a pair is
// replaced its first cell takes the new symbol and the rest become a gap: both ends of a gap hold minus its
// length, so a neighbour is one addition away in either direction. `pair_[p]` numbers the pair that starts in
// cell p, 0 where that pair is not frequent or, in a run like aaaa, where it overlaps the one before. A pair's
// count is thus always the number of cells that carry its number, and it never rises again once the pair is
// there. Two things follow. No queue is needed: pairs are numbered as they come to be, so a sweep over the
// counts finds the most frequent pair and breaks ties. And no hash table: after the first pass new pairs all
// contain the newest symbol, so a table over the other symbol tells them apart.
//
// Where a pair's cells are is found by scanning `pair_` while documents are long and counts are high, and in
// lists of places (each pair's a slice of `places_`) otherwise. Lists may hold cells that have since changed.
template <class Sym, class Id>
class RepairOf {
public:
    // Letters, rules and pairs are at most one and a half times as many as cells, and must fit Sym and Id.
    static constexpr std::size_t kMaxLength = sizeof(Id) == 2 ? 20000 : kMaxDocument;

    template <class Letter>
    void compress(std::span<const Letter> text, Symbol alphabet_size, const RepairOptions& options, Output& out) {
        options_ = options;
        out_ = &out;
        alphabet_size_ = alphabet_size;
        rule_count_ = 0;
        read(text);
        if (options.max_expansion >= 2 && text.size() >= 4 && number_first_pairs()) replace_all();
        write_sequence();
    }

private:
    struct Known {
        Symbol spelling;       // its name in the grammar
        std::uint32_t length;  // how many letters it stands for
        Id before, after;      // its pairs with the newest symbol; 0 between replacements
    };

    struct Pair {
        Sym left, right;
        std::uint32_t start;  // the first cell the pair can be in, or its slice of places_
    };

    static std::size_t at(Sym symbol) { return static_cast<std::size_t>(symbol); }

    // ---- the sequence -------------------------------------------------------------------------------------

    // One past the gap if the neighbour is one; no processor could predict which.
    static std::size_t step(std::int64_t neighbour) {
        return static_cast<std::size_t>(1 - (neighbour & (neighbour >> 63)));
    }
    std::size_t next(std::size_t p) const { return p + step(symbol_[p + 1]); }
    std::size_t previous(std::size_t p) const { return p - step(symbol_[p - 1]); }

    template <class Letter>
    void read(std::span<const Letter> text) {
        cells_ = text.size() + 2;
        gaps_ = 0;
        symbol_.renew(cells_);
        pair_.renew(cells_ + kScanSlack);
        letters_.rename(text, alphabet_size_, [&](std::size_t i, std::uint32_t name) {
            symbol_[i + 1] = static_cast<Sym>(name + 1);
        });
        symbol_[0] = symbol_[cells_ - 1] = 0;
        known_.clear();
        known_.push_back({0, 0, 0, 0});
        for (std::size_t name = 0; name < letters_.count(); ++name) known_.push_back({letters_[name], 1, 0, 0});
    }

    void write_sequence() {
        Buffer<Symbol>& sequence = out_->sequence;
        std::size_t size = sequence.size();
        sequence.reserve(size + cells_ - 1);
        for (std::size_t p = 1; p + 1 < cells_; ++p) {
            sequence[size] = known_[symbol_[p] < 0 ? 0 : at(symbol_[p])].spelling;
            size += symbol_[p] >= 0;
        }
        sequence.resize(size);
    }

    // ---- pairs --------------------------------------------------------------------------------------------

    // Room for `more` pairs. The counts of pairs that are not there yet are 0.
    void reserve_pairs(std::size_t more) {
        const std::size_t wanted = pairs_ + more + 2;
        if (wanted <= count_.size()) return;
        const std::size_t room = wanted + wanted / 4;
        pair_list_.reserve(room);
        final_.reserve(room);
        count_.reserve(room);
        while (count_.size() < room) count_.push_back(0);
    }

    // Gives pairs numbers in the order in which they are first met; which of them are frequent shows later.
    struct Roll {
        Pair* pairs;
        Id* counts;
        std::size_t size;

        Id meet(Id& number, Sym left, Sym right, std::size_t p) {
            const bool fresh = number == 0;
            const Id id = fresh ? static_cast<Id>(size) : number;
            pairs[size] = {left, right, static_cast<std::uint32_t>(p)};
            size += fresh;
            number = id;
            ++counts[id];
            return id;
        }
    };
    Roll roll() { return {pair_list_.data(), count_.data(), pairs_}; }

    // Forgets the pairs that are not frequent and renumbers the others; final_[old] is the new number.
    void keep_frequent() {
        std::size_t kept = 1;
        final_[0] = 0;
        for (std::size_t id = 1; id < pairs_; ++id) {
            const bool stays = count_[id] >= options_.min_count;
            final_[id] = stays ? static_cast<Id>(kept) : Id{0};
            pair_list_[kept] = pair_list_[id];
            count_[kept] = std::exchange(count_[id], Id{0});
            kept += stays;
        }
        count_[kept] = 0;
        pairs_ = kept;
    }

    // Numbers the pairs of the text. False if none is frequent.
    bool number_first_pairs() {
        const std::size_t stride = letters_.count() + 1;
        if (stride * stride <= std::max<std::size_t>(cells_ / 2, 1 << 16)) {
            meet_first_pairs(stride * stride, [&](std::size_t p) {
                return at(symbol_[p]) * stride + at(symbol_[p + 1]);
            });
        } else {
            // Too many letters for a square table: sort the cells by pair, and a pair's slot is its rank.
            order_.renew(cells_ - 1);
            slots_.renew(cells_ - 1);
            for (std::size_t p = 0; p < order_.size(); ++p) order_[p] = static_cast<std::uint32_t>(p);
            std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
                return symbol_[a] != symbol_[b] ? symbol_[a] < symbol_[b] : symbol_[a + 1] < symbol_[b + 1];
            });
            std::size_t slots = 0;
            for (std::size_t i = 0; i < order_.size(); ++i) {
                const std::size_t p = order_[i], q = order_[i == 0 ? 0 : i - 1];
                slots += symbol_[p] != symbol_[q] || symbol_[p + 1] != symbol_[q + 1];
                slots_[p] = static_cast<std::uint32_t>(slots);
            }
            meet_first_pairs(slots + 1, [&](std::size_t p) { return std::size_t{slots_[p]}; });
        }
        keep_frequent();
        for (std::size_t p = 1; p + 2 < cells_; ++p) pair_[p] = final_[pair_[p]];
        listed_ = cells_ <= kListedFromStart;
        if (listed_) list_places(0);
        return pairs_ > 1;
    }

    template <class SlotOf>
    void meet_first_pairs(std::size_t slots, SlotOf slot_of) {
        for (std::size_t slot = table_.size(); slot < slots; ++slot) table_.push_back(0);
        std::fill(count_.begin(), count_.begin() + pairs_, Id{0});
        pairs_ = 1;
        reserve_pairs(std::min(slots, cells_));
        Roll roll = this->roll();
        bool overlaps = false;  // whether cell p starts a pair that overlaps the same pair counted at p - 1
        for (std::size_t p = 1; p + 2 < cells_; ++p) {
            const Sym left = symbol_[p], right = symbol_[p + 1];
            overlaps = left == right && left == symbol_[p - 1] && !overlaps;
            if (overlaps) [[unlikely]]
                pair_[p] = 0;
            else
                pair_[p] = roll.meet(table_[slot_of(p)], left, right, p);
        }
        pair_[0] = pair_[cells_ - 2] = pair_[cells_ - 1] = 0;
        pairs_ = roll.size;
        // Wiping what was used is cheaper than wiping the table, and leaves it ready for the next document.
        for (std::size_t id = 1; id < pairs_; ++id) table_[slot_of(pair_list_[id].start)] = 0;
    }

    // ---- the order of replacement -------------------------------------------------------------------------

    void replace_all() {
        std::size_t level = *std::max_element(count_.data() + 1, count_.data() + pairs_);
        while (level >= options_.min_count && rule_count_ < options_.max_rules) {
            if (!listed_ && level * kScanShare < cells_) rebuild(true, level);
            level = replace_band(level);
        }
    }

    // Replaces the pairs whose counts lie in the upper half of 1 … level, which keeps each sweep over them
    // linear: no more than cells / count pairs can have that count. Returns the count to go on with.
    std::size_t replace_band(std::size_t level) {
        const std::size_t floor = std::max<std::size_t>(options_.min_count, level / 2 + 1);
        band_.renew(pairs_);
        std::size_t size = 0;
        for (std::size_t id = 1; id < pairs_; ++id) {
            band_[size] = static_cast<Id>(id);
            size += count_[id] >= floor;
        }
        while (level >= floor) {
            std::size_t lower = floor - 1, kept = 0;
            for (std::size_t k = 0; k < size; ++k) {
                const Id id = band_[k];
                const std::size_t count = count_[id];
                if (count == level) {
                    if (rule_count_ == options_.max_rules) return 0;
                    if (crowded(count)) {
                        rebuild(listed_, level);
                        return level;  // pairs have new numbers; those still to be replaced kept their count
                    }
                    const std::size_t first_new = pairs_;
                    replace(id);
                    band_.resize(size + pairs_ - first_new);
                    for (std::size_t fresh = first_new; fresh < pairs_; ++fresh) {
                        band_[size] = static_cast<Id>(fresh);
                        size += count_[fresh] >= floor;
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
        const auto [left, right, start] = pair_list_[id];
        const std::size_t count = count_[id];
        const Id* places = find(id, start, count);
        count_[id] = 0;
        gaps_ += count;

        const auto symbol = static_cast<Sym>(known_.size());
        const Symbol rule[] = {known_[at(left)].spelling, known_[at(right)].spelling};
        out_->rules.append(rule, 2);
        known_.push_back({alphabet_size_ + static_cast<Symbol>(rule_count_++),
                          known_[at(left)].length + known_[at(right)].length, 0, 0});

        reserve_pairs(std::min(2 * count, 2 * known_.size()));
        if (count == 2)
            replace_two(places[0], places[1], symbol, left, right);
        else
            replace_many(places, count, symbol, left, right);
    }

    // The cells of a pair, in order.
    const Id* find(Id id, std::size_t start, std::size_t count) {
        if (!listed_) {
            found_.renew(count);
            find_all(pair_.data(), start, id, count, found_.data());
            return found_.data();
        }
        Id* const places = places_.data() + start;
        for (std::size_t i = 0, kept = 0; kept < count; ++i) {
            if constexpr (kLarge) prefetch_pair(std::min<std::size_t>(places[i + kAhead], cells_));
            const Id p = places[i];
            places[kept] = p;
            kept += pair_[p] == id;
        }
        return places;
    }

    // Long documents do not fit the caches, and where the next cells lie is known ahead: first fetch the cells,
    // then, once they are there, what their neighbours are counted in.
    void prefetch_pair(std::size_t p) const { __builtin_prefetch(pair_.data() + p, 1); }
    void prefetch_cell(std::size_t p) const {
        __builtin_prefetch(symbol_.data() + p, 1);
        __builtin_prefetch(pair_.data() + p, 1);
    }
    void prefetch(const Id* places, std::size_t i, std::size_t count) const {
        prefetch_cell(places[std::min(i + 2 * kAhead, count - 1)]);
        const std::size_t p = places[std::min(i + kAhead, count - 1)];
        const std::size_t q = next(p), after = next(q), before = previous(p);
        __builtin_prefetch(count_.data() + pair_[before], 1);
        __builtin_prefetch(count_.data() + pair_[q], 1);
        __builtin_prefetch(known_.data() + at(symbol_[before]), 1);
        __builtin_prefetch(known_.data() + at(symbol_[after]), 1);
    }

    struct Neighbours {
        std::size_t before, after;
    };

    // Writes `symbol` over the pair at p and takes the two pairs this breaks off their counts.
    Neighbours substitute(std::size_t p, Sym symbol, Sym left, Sym right) {
        const std::size_t q = next(p), after = next(q), before = previous(p);
        --count_[pair_[before]];
        if (symbol_[after] == right && left != right && pair_[q] != 0) [[unlikely]]
            shorten_run(pair_[q], after, right);
        else
            --count_[pair_[q]];
        pair_[before] = pair_[p] = pair_[q] = 0;
        symbol_[p] = symbol;
        const auto gap = static_cast<Sym>(-static_cast<std::int64_t>(after - p - 1));
        symbol_[q] = gap;  // inside a gap any negative value will do
        symbol_[p + 1] = gap;
        symbol_[after - 1] = gap;
        return {before, after};
    }

    // A run aaaa… has lost its first letter to the left. Its pairs are counted from its start, so all move.
    // This stays linear: aa, being allowed, occurs no more often than the pair that is being replaced.
    void shorten_run(Id id, std::size_t start, Sym letter) {
        bool counted = true;
        for (std::size_t p = start, q = next(p); symbol_[q] == letter; p = q, q = next(q)) {
            pair_[p] = counted ? id : Id{0};
            counted = !counted;
        }
        count_[id] -= counted;
    }

    // Most pairs occur twice. Their neighbours make a frequent pair only if they are the same at both places.
    void replace_two(std::size_t p, std::size_t q, Sym symbol, Sym left, Sym right) {
        const Neighbours first = substitute(p, symbol, left, right);
        const Neighbours second = substitute(q, symbol, left, right);
        if (second.before == p) return;
        const Sym before = symbol_[first.before], after = symbol_[first.after];
        if (before == symbol_[second.before] && before != 0 && fits(before, symbol))
            add_pair_of_two(before, symbol, first.before, second.before);
        if (after == symbol_[second.after] && after != 0 && fits(symbol, after))
            add_pair_of_two(symbol, after, p, q);
    }

    void add_pair_of_two(Sym left, Sym right, std::size_t p, std::size_t q) {
        const auto id = static_cast<Id>(pairs_++);
        pair_list_[id] = {left, right, static_cast<std::uint32_t>(listed_ ? top_ : p)};
        count_[id] = 2;
        pair_[p] = pair_[q] = id;
        if (listed_) {
            places_[top_++] = static_cast<Id>(p);
            places_[top_++] = static_cast<Id>(q);
        }
    }

    void replace_many(const Id* places, std::size_t count, Sym symbol, Sym left, Sym right) {
        const std::size_t first = pairs_;
        Roll roll = this->roll();
        Id twin = 0;           // the pair (symbol, symbol), where places are adjacent
        bool counted = false;  // whether the last place was counted as a twin
        std::size_t last = cells_, last_after = cells_ - 1;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t p = places[i];
            if constexpr (kLarge) prefetch(places, i, count);
            const auto [before, after] = substitute(p, symbol, left, right);
            if (before == last) [[unlikely]] {
                counted = !counted;
                roll.meet(twin, symbol, symbol, last);
                roll.counts[twin] -= !counted;
            } else {
                if (i != 0) roll.meet(known_[at(symbol_[last_after])].after, symbol, symbol_[last_after], last);
                roll.meet(known_[at(symbol_[before])].before, symbol_[before], symbol, before);
                counted = false;
            }
            last = p;
            last_after = after;
        }
        roll.meet(known_[at(symbol_[last_after])].after, symbol, symbol_[last_after], last);
        pairs_ = roll.size;
        keep_new_pairs(first);
        if (pairs_ > first) settle(places, count, symbol, first);
        known_[at(symbol)].before = known_[at(symbol)].after = 0;
    }

    // Drops those of the pairs just met that are not frequent. `before` and `after` then hold final numbers.
    void keep_new_pairs(std::size_t first) {
        std::size_t kept = first;
        for (std::size_t id = first; id < pairs_; ++id) {
            const Pair pair = pair_list_[id];
            const bool stays = (count_[id] >= options_.min_count) & (pair.left != 0) & (pair.right != 0) &
                               fits(pair.left, pair.right);
            known_[at(pair.left)].before = known_[at(pair.right)].after = stays ? static_cast<Id>(kept) : Id{0};
            pair_list_[kept] = pair;
            count_[kept] = std::exchange(count_[id], Id{0});
            kept += stays;
        }
        count_[kept] = 0;
        pairs_ = kept;
    }

    // Gives the cells around each place the numbers of their pairs, and lists them.
    void settle(const Id* places, std::size_t count, Sym symbol, std::size_t first) {
        Id twin = 0;
        for (std::size_t id = first; id < pairs_; ++id) {
            if (pair_list_[id].left == pair_list_[id].right) [[unlikely]] twin = static_cast<Id>(id);
            if (!listed_) continue;
            pair_list_[id].start = static_cast<std::uint32_t>(top_);
            top_ += list_size(id);
        }
        pair_list_[0].start = static_cast<std::uint32_t>(top_);
        bool counted = false;
        std::size_t last = cells_;
        for (std::size_t i = 0; i < count; ++i) {
            if constexpr (kLarge) prefetch_cell(places[std::min(i + kAhead, count - 1)]);
            const std::size_t p = places[i], before = previous(p), after = next(p);
            if (before != last) {
                pair_[before] = known_[at(symbol_[before])].before;
                if (listed_) list(pair_[before], before);
                counted = false;
            }
            if (symbol_[after] == symbol) [[unlikely]] {
                counted = !counted;
                pair_[p] = counted ? twin : Id{0};
                if (listed_) list(twin, p);
            } else {
                pair_[p] = known_[at(symbol_[after])].after;
                if (listed_) list(pair_[p], p);
            }
            last = p;
        }
        std::size_t end = top_;
        for (std::size_t id = pairs_; id-- > first;) {
            known_[at(pair_list_[id].left)].before = known_[at(pair_list_[id].right)].after = 0;
            if (!listed_) continue;
            while (pair_list_[id].start < end) list(id, 0);
            pair_list_[id].start -= static_cast<std::uint32_t>(list_size(id));
            end = pair_list_[id].start;
        }
    }

    // Appends a cell to a pair's list, in which `start` moves along. Pair 0 writes to a place it never leaves:
    // whether a pair is frequent is a coin toss to the processor, so this must not branch.
    void list(std::size_t id, std::size_t p) {
        places_[pair_list_[id].start] = static_cast<Id>(p);
        pair_list_[id].start += id != 0;
    }

    bool fits(Sym left, Sym right) const { return known_[at(left)].length + known_[at(right)].length <= options_.max_expansion; }

    // ---- tidying ------------------------------------------------------------------------------------------

    bool crowded(std::size_t count) const {
        return (gaps_ > cells_ / 4 && cells_ > kListedFromStart) || (listed_ && top_ + 2 * count >= places_.size());
    }

    // Closes the gaps, forgets the pairs that are no longer frequent, and makes the lists if they are wanted.
    void rebuild(bool listed, std::size_t level) {
        keep_frequent();
        std::size_t size = 0;
        for (std::size_t p = 0; p < cells_; ++p) {
            symbol_[size] = symbol_[p];
            pair_[size] = final_[pair_[p]];
            size += symbol_[p] >= 0;
        }
        cells_ = size;
        gaps_ = 0;
        listed_ = listed;
        if (listed) {
            list_places(level);
            return;
        }
        for (std::size_t id = 0; id < pairs_; ++id) pair_list_[id].start = 0;
        for (std::size_t p = 1; p + 1 < cells_; ++p)
            if (pair_list_[pair_[p]].start == 0) pair_list_[pair_[p]].start = static_cast<std::uint32_t>(p);
    }

    void list_places(std::size_t level) {
        symbol_.resize(cells_);
        pair_.resize(cells_ + kScanSlack);
        if (cells_ > kListedFromStart) {
            symbol_.trim();
            pair_.trim();
        }
        top_ = 0;
        for (std::size_t id = 1; id < pairs_; ++id) {
            pair_list_[id].start = static_cast<std::uint32_t>(top_);
            top_ += list_size(id);
        }
        pair_list_[0].start = static_cast<std::uint32_t>(top_);
        const std::size_t wanted = top_ + 1 + kAhead + std::max(cells_ > kListedFromStart ? cells_ / 4 : cells_, 2 * level);
        if (places_.size() < wanted) places_.renew(wanted);
        std::size_t id = 0;
        for (std::size_t p = 1; p + 2 < cells_; ++p) {
            if (symbol_[p] == symbol_[p + 1] && symbol_[p] == symbol_[p - 1] && pair_[p] == 0) [[unlikely]] {
                list(id, p);
                id = 0;
                continue;
            }
            id = pair_[p];
            list(id, p);
        }
        std::size_t begin = 0;
        for (id = 1; id < pairs_; ++id) {
            const std::size_t end = begin + list_size(id);
            for (std::size_t i = pair_list_[id].start; i < end; ++i) places_[i] = 0;
            pair_list_[id].start = static_cast<std::uint32_t>(begin);
            begin = end;
        }
    }

    // A pair aa also lists the cells it is not counted in: when a run loses its first letter they change roles.
    std::size_t list_size(std::size_t id) const {
        return pair_list_[id].left == pair_list_[id].right ? 2 * std::size_t{count_[id]} : std::size_t{count_[id]};
    }

    static constexpr bool kLarge = sizeof(Id) == 4;
    static constexpr std::size_t kAhead = 12;
    static constexpr std::size_t kListedFromStart = 1 << 16;
    static constexpr std::size_t kScanShare = 256;

    RepairOptions options_;
    Output* out_ = nullptr;
    Symbol alphabet_size_ = 0;
    std::uint32_t rule_count_ = 0;
    Letters letters_;

    Buffer<Sym> symbol_;
    Buffer<Id> pair_;
    std::size_t cells_ = 0, gaps_ = 0;

    Buffer<Known> known_;  // by symbol

    std::size_t pairs_ = 0;
    Buffer<Pair> pair_list_;
    Buffer<Id> count_;
    Buffer<Id> final_, band_, found_;

    bool listed_ = false;
    Buffer<Id> places_;
    std::size_t top_ = 0;

    Buffer<Id> table_;
    Buffer<std::uint32_t> order_, slots_;
};

}  // namespace

struct Repair::Workspaces {
    RepairOf<std::int16_t, std::uint16_t> narrow;
    RepairOf<std::int32_t, std::uint32_t> wide;
};

Repair::Repair() : workspaces_(std::make_unique<Workspaces>()) {}
Repair::~Repair() = default;
Repair::Repair(Repair&&) noexcept = default;

template <class Letter>
void Repair::compress(std::span<const Letter> text, Symbol alphabet_size, const RepairOptions& options, Output& out) {
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
