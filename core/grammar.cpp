#include "grammar.hpp"

#include <algorithm>

namespace laconic {
namespace {

constexpr std::int64_t kMaxLength = std::numeric_limits<std::int64_t>::max();

std::int64_t add(std::int64_t a, std::int64_t b) { return a > kMaxLength - b ? kMaxLength : a + b; }

std::string quoted(const char* what, std::size_t number, Symbol symbol) {
    return std::string(what) + " " + std::to_string(number) + " uses symbol " + std::to_string(symbol);
}

}  // namespace

void check_length(std::size_t length) {
    if (length > kMaxDocument)
        throw GrammarError("a document of " + std::to_string(length) +
                           " terminals is too long to compress as one (at most " + std::to_string(kMaxDocument) +
                           "); split it");
}

void check(const GrammarView& grammar) {
    if (grammar.alphabet_size < 1) throw GrammarError("alphabet_size must be at least 1");
    if (grammar.rules.size() % 2 != 0) throw GrammarError("a rule has two symbols, the last has one");
    if (grammar.rule_count() > static_cast<std::size_t>(kMaxSymbol - grammar.alphabet_size))
        throw GrammarError("alphabet_size and the number of rules together exceed 2^31 - 1");
    const Symbol end = grammar.alphabet_size + static_cast<Symbol>(grammar.rule_count());
    for (std::size_t i = 0; i < grammar.rules.size(); ++i) {
        const Symbol symbol = grammar.rules[i];
        const Symbol defined = grammar.alphabet_size + static_cast<Symbol>(i / 2);
        if (symbol >= 0 && symbol < defined) continue;
        if (symbol >= 0 && symbol < end)
            throw GrammarError(quoted("rule", i / 2, symbol) + ", which is not defined before it");
        throw GrammarError(quoted("rule", i / 2, symbol) + ", which is outside 0 … " + std::to_string(end - 1));
    }
    for (std::size_t i = 0; i < grammar.sequence.size(); ++i) {
        const Symbol symbol = grammar.sequence[i];
        if (symbol < 0 || symbol >= end)
            throw GrammarError(quoted("sequence position", i, symbol) + ", which is outside 0 … " +
                               std::to_string(end - 1));
    }
}

void expanded_lengths(const GrammarView& grammar, std::int64_t* lengths) {
    const auto length = [&](Symbol symbol) {
        return symbol < grammar.alphabet_size ? 1 : lengths[symbol - grammar.alphabet_size];
    };
    for (std::size_t k = 0; k < grammar.rule_count(); ++k)
        lengths[k] = add(length(grammar.rules[2 * k]), length(grammar.rules[2 * k + 1]));
}

void starts(const GrammarView& grammar, const std::int64_t* lengths, std::int64_t* starts) {
    std::int64_t total = 0;
    starts[0] = 0;
    for (std::size_t i = 0; i < grammar.sequence.size(); ++i) {
        const Symbol symbol = grammar.sequence[i];
        total = add(total, symbol < grammar.alphabet_size ? 1 : lengths[symbol - grammar.alphabet_size]);
        starts[i + 1] = total;
    }
    if (total == kMaxLength) throw GrammarError("the expansion is longer than 2^63 - 2 terminals");
}

void depths(const GrammarView& grammar, std::int32_t* depths) {
    const auto depth = [&](Symbol symbol) {
        return symbol < grammar.alphabet_size ? 0 : depths[symbol - grammar.alphabet_size];
    };
    for (std::size_t k = 0; k < grammar.rule_count(); ++k)
        depths[k] = 1 + std::max(depth(grammar.rules[2 * k]), depth(grammar.rules[2 * k + 1]));
}

void occurrences(const GrammarView& grammar, std::int64_t* counts) {
    std::fill(counts, counts + grammar.rule_count(), 0);
    const auto count = [&](Symbol symbol, std::int64_t times) {
        if (symbol < grammar.alphabet_size) return;
        std::int64_t& total = counts[symbol - grammar.alphabet_size];
        total = add(total, times);
    };
    for (Symbol symbol : grammar.sequence) count(symbol, 1);
    for (std::size_t k = grammar.rule_count(); k-- > 0;) {
        count(grammar.rules[2 * k], counts[k]);
        count(grammar.rules[2 * k + 1], counts[k]);
    }
}

template <class Terminal>
void expand(const GrammarView& grammar, const std::int64_t* lengths, const std::int64_t* starts, std::int64_t begin,
            std::int64_t end, Terminal* out) {
    if (begin >= end) return;
    const std::int64_t* const ends = starts + 1;
    auto i = static_cast<std::size_t>(std::upper_bound(ends, ends + grammar.sequence.size(), begin) - ends);
    std::int64_t skip = begin - starts[i];
    Buffer<Symbol> pending;  // as deep as the grammar at most
    for (Terminal* const stop = out + (end - begin); out < stop;) {
        Symbol symbol;
        if (pending.size() > 0) {
            symbol = pending[pending.size() - 1];
            pending.resize(pending.size() - 1);
        } else {
            symbol = grammar.sequence[i++];
        }
        while (symbol >= grammar.alphabet_size) {
            const auto k = static_cast<std::size_t>(symbol - grammar.alphabet_size);
            if (skip >= lengths[k]) break;
            pending.push_back(grammar.rules[2 * k + 1]);
            symbol = grammar.rules[2 * k];
        }
        if (skip > 0)
            skip -= symbol < grammar.alphabet_size ? 1 : lengths[symbol - grammar.alphabet_size];
        else
            *out++ = static_cast<Terminal>(symbol);
    }
}

template void expand(const GrammarView&, const std::int64_t*, const std::int64_t*, std::int64_t, std::int64_t,
                     std::uint8_t*);
template void expand(const GrammarView&, const std::int64_t*, const std::int64_t*, std::int64_t, std::int64_t,
                     std::uint16_t*);
template void expand(const GrammarView&, const std::int64_t*, const std::int64_t*, std::int64_t, std::int64_t,
                     std::int32_t*);

}  // namespace laconic
