// Texts to test codecs on: the same ones in every run and on every machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "grammar.hpp"

namespace laconic::test {

using Text = std::vector<Symbol>;

// mt19937 is the same everywhere; the standard distributions are not.
class Random {
public:
    explicit Random(std::uint32_t seed) : engine_(seed) {}
    std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
    std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
    Symbol terminal(Symbol terminals) { return static_cast<Symbol>(below(static_cast<std::uint32_t>(terminals))); }

private:
    std::mt19937 engine_;
};

enum class Kind {
    uniform,
    one_terminal,
    runs,
    doubled,
    period,
    alternating,
    blocks,
    copies,
    mutated,
    fibonacci,
    count
};

inline const char* name_of(Kind kind) {
    constexpr const char* kNames[] = {"uniform",     "one_terminal", "runs",   "doubled", "period",
                                      "alternating", "blocks",       "copies", "mutated", "fibonacci"};
    return kNames[static_cast<std::size_t>(kind)];
}

inline Text uniform(Random& random, std::size_t length, Symbol terminals) {
    Text text(length);
    for (Symbol& terminal : text) terminal = random.terminal(terminals);
    return text;
}

// aaaabbbaacc…: every run is short or long at random, so that odd, even, split and merged runs all occur.
inline Text runs(Random& random, std::size_t length, Symbol terminals) {
    Text text;
    while (text.size() < length) {
        const std::uint32_t longest = 1u << random.below(length > 1000 ? 10 : 5);
        text.insert(text.end(), random.between(1, longest), random.terminal(terminals));
    }
    return text;
}

inline Text doubled(Random& random, std::size_t length, Symbol terminals) {
    Text text;
    while (text.size() < length) text.insert(text.end(), 2, random.terminal(terminals));
    return text;
}

inline Text period(Random& random, std::size_t length, Symbol terminals) {
    const Text word = uniform(random, random.between(1, 12), terminals);
    Text text(length);
    for (std::size_t i = 0; i < length; ++i) text[i] = word[i % word.size()];
    return text;
}

// (ab)^i a^j (abc)^k …: runs of the symbols that replace pairs, of every length.
inline Text alternating(Random& random, std::size_t length, Symbol terminals) {
    Text text;
    while (text.size() < length) {
        const Text word = uniform(random, random.between(1, 3), terminals);
        for (std::uint32_t times = random.between(1, 1u << random.below(8)); times > 0; --times)
            text.insert(text.end(), word.begin(), word.end());
    }
    return text;
}

inline Text blocks(Random& random, std::size_t length, Symbol terminals) {
    std::vector<Text> words;
    for (int i = 0; i < 5; ++i) words.push_back(uniform(random, random.between(1, 40), terminals));
    Text text;
    while (text.size() < length) {
        const Text& word = words[random.below(5)];
        text.insert(text.end(), word.begin(), word.end());
    }
    return text;
}

// Grows by copies of pieces of itself, as versions of a document do.
inline Text copies(Random& random, std::size_t length, Symbol terminals) {
    Text text = uniform(random, 3, terminals);
    while (text.size() < length) {
        const std::size_t begin = random.below(static_cast<std::uint32_t>(text.size()));
        const std::size_t end = std::min(text.size(), begin + random.between(1, 60));
        const Text piece(text.begin() + static_cast<std::ptrdiff_t>(begin),
                         text.begin() + static_cast<std::ptrdiff_t>(end));
        text.insert(text.end(), piece.begin(), piece.end());
        if (random.below(4) == 0) text.push_back(random.terminal(terminals));
    }
    return text;
}

// One word again and again, with an error in every hundredth terminal.
inline Text mutated(Random& random, std::size_t length, Symbol terminals) {
    const Text word = uniform(random, std::max<std::size_t>(1, std::min<std::size_t>(length / 4, 700)), terminals);
    Text text(length);
    for (std::size_t i = 0; i < length; ++i)
        text[i] = random.below(100) == 0 ? random.terminal(terminals) : word[i % word.size()];
    return text;
}

// `times` copies of a block of distinct terminals, each ended by a terminal of its own, then more terminals that occur
// once: every pair of the block occurs `times` times, and so do those that replacing it makes.
inline Text versions(std::size_t block, std::size_t times, std::size_t others) {
    Text text;
    auto unique = static_cast<Symbol>(block);
    for (std::size_t copy = 0; copy < times; ++copy) {
        for (std::size_t i = 0; i < block; ++i) text.push_back(static_cast<Symbol>(i));
        text.push_back(unique++);
    }
    for (std::size_t i = 0; i < others; ++i) text.push_back(unique++);
    return text;
}

inline Text fibonacci(std::size_t length, Symbol terminals) {
    Text before{terminals > 1 ? 1 : 0}, text{0};
    while (text.size() < length) {
        Text longer = text;
        longer.insert(longer.end(), before.begin(), before.end());
        before = std::exchange(text, std::move(longer));
    }
    return text;
}

inline Text make_text(Kind kind, Random& random, std::size_t length, Symbol terminals) {
    Text text;
    switch (kind) {
        case Kind::uniform:
            text = uniform(random, length, terminals);
            break;
        case Kind::one_terminal:
            text.assign(length, random.terminal(terminals));
            break;
        case Kind::runs:
            text = runs(random, length, terminals);
            break;
        case Kind::doubled:
            text = doubled(random, length, terminals);
            break;
        case Kind::period:
            text = period(random, length, terminals);
            break;
        case Kind::alternating:
            text = alternating(random, length, terminals);
            break;
        case Kind::blocks:
            text = blocks(random, length, terminals);
            break;
        case Kind::copies:
            text = copies(random, length, terminals);
            break;
        case Kind::mutated:
            text = mutated(random, length, terminals);
            break;
        case Kind::fibonacci:
            text = fibonacci(length, terminals);
            break;
        case Kind::count:
            break;
    }
    text.resize(length);
    return text;
}

template <class Terminal>
std::vector<Terminal> as(const Text& text) {
    std::vector<Terminal> terminals;
    terminals.reserve(text.size());
    for (Symbol symbol : text) terminals.push_back(static_cast<Terminal>(symbol));
    return terminals;
}

// For the message of a failed check: the whole text if it is short.
// Grammars as their codecs left them, for what reads many.
inline std::vector<GrammarView> views_of(Symbol terminals, const std::vector<Output>& outputs) {
    std::vector<GrammarView> views;
    for (const Output& out : outputs)
        views.push_back({terminals, {out.rules.data(), out.rules.size()}, {out.sequence.data(), out.sequence.size()}});
    return views;
}

inline std::string shown(const Text& text) {
    std::string words = std::to_string(text.size()) + " terminals:";
    for (std::size_t i = 0; i < std::min<std::size_t>(text.size(), 300); ++i) words += " " + std::to_string(text[i]);
    return text.size() <= 300 ? words : words + " …";
}

}  // namespace laconic::test
