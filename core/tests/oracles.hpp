// The definitions of the codecs, as slow as they are plain: what the tests hold the core to.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lzd.hpp"
#include "repair.hpp"
#include "texts.hpp"

namespace laconic::test {

struct Plain {
    std::vector<Symbol> rules, sequence;
    bool operator==(const Plain&) const = default;
};

inline GrammarView view(const Plain& grammar, Symbol alphabet_size) {
    return {alphabet_size, grammar.rules, grammar.sequence};
}

inline std::string shown(const Plain& grammar) {
    return "rules " + shown(grammar.rules) + " sequence " + shown(grammar.sequence);
}

// The terminals that the sequence stands for.
inline Text expanded(const Plain& grammar, Symbol alphabet_size) {
    Text text;
    std::vector<Symbol> pending(grammar.sequence.rbegin(), grammar.sequence.rend());
    while (!pending.empty()) {
        const Symbol symbol = pending.back();
        pending.pop_back();
        if (symbol < alphabet_size) {
            text.push_back(symbol);
        } else {
            const auto k = static_cast<std::size_t>(symbol - alphabet_size);
            pending.push_back(grammar.rules[2 * k + 1]);
            pending.push_back(grammar.rules[2 * k]);
        }
    }
    return text;
}

using SymbolPair = std::pair<Symbol, Symbol>;

inline Text replaced(const Text& sequence, SymbolPair pair, Symbol symbol) {
    Text result;
    for (std::size_t i = 0; i < sequence.size(); ++i) {
        const bool here = i + 1 < sequence.size() && sequence[i] == pair.first && sequence[i + 1] == pair.second;
        result.push_back(here ? symbol : sequence[i]);
        i += here;
    }
    return result;
}

inline Plain repair_by_definition(const Text& text, Symbol alphabet_size, const RepairOptions& options) {
    struct Count {
        std::uint64_t count = 0;
        std::size_t free = 0;  // where the next occurrence can start without overlapping the last
    };
    Plain grammar{{}, text};
    std::map<SymbolPair, std::size_t> order;  // when each pair was first seen
    std::map<Symbol, std::uint64_t> lengths;
    const auto length = [&](Symbol symbol) { return symbol < alphabet_size ? 1 : lengths[symbol]; };
    while (grammar.rules.size() / 2 < options.max_rules) {
        std::map<SymbolPair, Count> counts;
        for (std::size_t i = 0; i + 1 < grammar.sequence.size(); ++i) {
            const SymbolPair pair{grammar.sequence[i], grammar.sequence[i + 1]};
            order.try_emplace(pair, order.size());
            Count& count = counts[pair];
            if (i < count.free) continue;
            ++count.count;
            count.free = i + 2;
        }
        SymbolPair best{-1, -1};
        for (const auto& [pair, count] : counts) {
            if (count.count < options.min_count) continue;
            if (length(pair.first) + length(pair.second) > options.max_expansion) continue;
            const bool better = best.first < 0 || count.count > counts[best].count ||
                                (count.count == counts[best].count && order[pair] < order[best]);
            if (better) best = pair;
        }
        if (best.first < 0) break;
        const Symbol symbol = alphabet_size + static_cast<Symbol>(grammar.rules.size() / 2);
        lengths[symbol] = length(best.first) + length(best.second);
        grammar.rules.insert(grammar.rules.end(), {best.first, best.second});
        grammar.sequence = replaced(grammar.sequence, best, symbol);
    }
    return grammar;
}

// The same for long texts: every rule still counts the whole sequence afresh, but cells remember the number
// of their pair, so that the count is an array's, not a map's. Numbers are given in the order of first sight.
class LinearRepair {
public:
    static Plain compress(const Text& text, Symbol alphabet_size, const RepairOptions& options) {
        LinearRepair repair(text, alphabet_size, options);
        while (repair.grammar_.rules.size() / 2 < options.max_rules && repair.add_rule()) {
        }
        return repair.grammar_;
    }

private:
    struct Pair {
        Symbol left, right;
        std::uint64_t length;
        std::uint64_t count = 0;
        std::size_t free = 0;
    };

    LinearRepair(const Text& text, Symbol alphabet_size, const RepairOptions& options)
        : alphabet_size_(alphabet_size), options_(options), grammar_{{}, text} {
        for (std::size_t i = 0; i + 1 < text.size(); ++i) cells_.push_back(number(text[i], text[i + 1]));
    }

    std::uint64_t length(Symbol symbol) const {
        return symbol < alphabet_size_ ? 1 : lengths_[static_cast<std::size_t>(symbol - alphabet_size_)];
    }

    std::uint32_t number(Symbol left, Symbol right) {
        const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
        const auto [entry, fresh] = numbers_.try_emplace(key, static_cast<std::uint32_t>(pairs_.size()));
        if (fresh) pairs_.push_back({left, right, length(left) + length(right)});
        return entry->second;
    }

    bool add_rule() {
        for (std::uint32_t id : cells_) pairs_[id].count = pairs_[id].free = 0;
        for (std::size_t i = 0; i < cells_.size(); ++i) {
            Pair& pair = pairs_[cells_[i]];
            if (i < pair.free) continue;
            ++pair.count;
            pair.free = i + 2;
        }
        std::uint64_t most = 0;
        std::uint32_t best = 0;
        for (std::uint32_t id : cells_) {
            const Pair& pair = pairs_[id];
            if (pair.count < most || pair.count < options_.min_count || pair.length > options_.max_expansion) continue;
            if (pair.count == most && id >= best) continue;
            most = pair.count;
            best = id;
        }
        if (most == 0) return false;
        replace(best, alphabet_size_ + static_cast<Symbol>(lengths_.size()));
        return true;
    }

    void replace(std::uint32_t best, Symbol symbol) {
        const Pair pair = pairs_[best];
        grammar_.rules.insert(grammar_.rules.end(), {pair.left, pair.right});
        lengths_.push_back(pair.length);
        Text& sequence = grammar_.sequence;
        std::size_t size = 0, end = sequence.size();
        // A cell's number moves with it; those beside a new symbol are looked up once it is all in place.
        for (std::size_t i = 0; i < end; ++i) {
            const bool here = i + 1 < end && cells_[i] == best;
            i += here;
            if (i + 1 < end) cells_[size] = cells_[i];
            sequence[size++] = here ? symbol : sequence[i];
        }
        sequence.resize(size);
        cells_.resize(size - 1);
        for (std::size_t i = 0; i + 1 < size; ++i)
            if (sequence[i] == symbol || sequence[i + 1] == symbol) cells_[i] = number(sequence[i], sequence[i + 1]);
    }

    const Symbol alphabet_size_;
    const RepairOptions options_;
    Plain grammar_;
    std::vector<std::uint32_t> cells_;  // by place: the number of the pair that starts there
    std::vector<Pair> pairs_;
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
    std::vector<std::uint64_t> lengths_;  // by rule
};

// Phrases are kept as they are spelled.
using Phrases = std::map<Text, Symbol>;

inline Text slice(const Text& text, std::size_t begin, std::size_t end) {
    return {text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end)};
}

inline Plain lz78_by_definition(const Text& text, Symbol alphabet_size) {
    Plain grammar;
    Phrases phrases;
    for (std::size_t begin = 0; begin < text.size();) {
        std::size_t end = begin;
        while (end < text.size() && phrases.contains(slice(text, begin, end + 1))) ++end;
        Symbol symbol = text[begin];
        if (end == text.size()) {  // nothing is left to make the last phrase new
            symbol = phrases[slice(text, begin, end)];
        } else if (end > begin) {
            symbol = alphabet_size + static_cast<Symbol>(grammar.rules.size() / 2);
            grammar.rules.insert(grammar.rules.end(), {phrases[slice(text, begin, end)], text[end]});
        }
        grammar.sequence.push_back(symbol);
        end = std::min(end + 1, text.size());
        phrases.try_emplace(slice(text, begin, end), symbol);
        begin = end;
    }
    return grammar;
}

inline Plain lzd_by_definition(const Text& text, Symbol alphabet_size, LzdLetters letters) {
    Plain grammar;
    Phrases phrases;
    if (letters == LzdLetters::known)
        for (Symbol terminal : text) phrases[{terminal}] = terminal;
    std::size_t longest_phrase = 1;
    const auto longest = [&](std::size_t begin) {  // where the longest phrase from `begin` ends
        for (std::size_t end = std::min(text.size(), begin + longest_phrase); end > begin; --end)
            if (phrases.contains(slice(text, begin, end))) return end;
        return begin;
    };
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t middle = longest(begin);
        if (middle == begin) {  // a terminal that was never a phrase is one now
            phrases[{text[begin]}] = text[begin];
            grammar.sequence.push_back(text[begin++]);
            continue;
        }
        const Symbol first = phrases[slice(text, begin, middle)];
        if (middle == text.size()) {  // nothing is left to pair the last phrase with
            grammar.sequence.push_back(first);
            break;
        }
        std::size_t end = longest(middle);
        const Symbol second = end == middle ? text[middle] : phrases[slice(text, middle, end)];
        end = std::max(end, middle + 1);
        const Symbol symbol = alphabet_size + static_cast<Symbol>(grammar.rules.size() / 2);
        grammar.rules.insert(grammar.rules.end(), {first, second});
        grammar.sequence.push_back(symbol);
        phrases[slice(text, begin, end)] = symbol;
        longest_phrase = std::max(longest_phrase, end - begin);
        begin = end;
    }
    return grammar;
}

}  // namespace laconic::test
