#include "check.hpp"
#include "lz78.hpp"
#include "lzd.hpp"
#include "oracles.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

constexpr LzdLetters kModes[] = {LzdLetters::known, LzdLetters::seen};

// One workspace each for every text of the run: what a document leaves behind must not show in the next.
Lz78 lz78;
Lzd lzd;

Plain taken(const Output& out) {
    return {{out.rules.begin(), out.rules.end()}, {out.sequence.begin(), out.sequence.end()}};
}

template <class Terminal>
Plain lz78_of(const Text& text, Symbol alphabet_size) {
    const std::vector<Terminal> terminals = as<Terminal>(text);
    Output out;
    lz78.compress(std::span<const Terminal>(terminals), alphabet_size, out);
    return taken(out);
}

template <class Terminal>
Plain lzd_of(const Text& text, Symbol alphabet_size, LzdLetters mode) {
    const std::vector<Terminal> terminals = as<Terminal>(text);
    Output out;
    lzd.compress(std::span<const Terminal>(terminals), alphabet_size, mode, out);
    return taken(out);
}

template <class Terminal>
void check_text_as(const Text& text, Symbol alphabet_size, const Plain& expected_lz78, const Plain (&expected_lzd)[2]) {
    const auto input = [&] {
        return std::to_string(sizeof(Terminal)) + " bytes a terminal, alphabet_size " + std::to_string(alphabet_size) +
               ", " + shown(text);
    };
    CHECK(lz78_of<Terminal>(text, alphabet_size) == expected_lz78, input());
    CHECK(lzd_of<Terminal>(text, alphabet_size, LzdLetters::known) == expected_lzd[0], input());
    CHECK(lzd_of<Terminal>(text, alphabet_size, LzdLetters::seen) == expected_lzd[1], input());
}

void check_text(const Text& text, Symbol alphabet_size) {
    const Plain expected_lz78 = lz78_by_definition(text, alphabet_size);
    const Plain expected_lzd[] = {lzd_by_definition(text, alphabet_size, kModes[0]),
                                  lzd_by_definition(text, alphabet_size, kModes[1])};
    if (alphabet_size <= 1 << 8) check_text_as<std::uint8_t>(text, alphabet_size, expected_lz78, expected_lzd);
    if (alphabet_size <= 1 << 16) check_text_as<std::uint16_t>(text, alphabet_size, expected_lz78, expected_lzd);
    check_text_as<std::int32_t>(text, alphabet_size, expected_lz78, expected_lzd);
    CHECK(expanded(expected_lz78, alphabet_size) == text, shown(text));
    CHECK(expanded(expected_lzd[0], alphabet_size) == text, shown(text));
    CHECK(expanded(expected_lzd[1], alphabet_size) == text, shown(text));
}

// ---- short texts: the definitions ------------------------------------------------------------------------------

void check_every_text(Symbol terminals, std::size_t length) {
    Text text(length, 0);
    while (true) {
        check_text(text, terminals);
        std::size_t i = 0;
        while (i < length && ++text[i] == terminals) text[i++] = 0;
        if (i == length) return;
    }
}

void check_short_texts() {
    // 2^21 is where terminals are sorted instead of looked up.
    constexpr Symbol kSizes[] = {1, 2, 3, 4, 26, 256, 65536, 1 << 21, (1 << 21) + 1, kMaxSymbol / 2};
    Random random(1);
    for (std::uint32_t round = 0; round < 1500; ++round) {
        const auto kind = static_cast<Kind>(round % static_cast<std::uint32_t>(Kind::count));
        const Symbol alphabet_size = kSizes[random.below(10)];
        Text text =
            make_text(kind, random, random.below(1u << random.between(1, 8)), std::min<Symbol>(alphabet_size, 300));
        if (random.below(2))  // the largest terminals rather than the smallest
            for (Symbol& terminal : text) terminal = alphabet_size - 1 - terminal;
        check_text(text, alphabet_size);
    }
}

// An alphabet may be larger than the width of its terminals holds.
void check_bytes_of_a_large_alphabet() {
    Random random(3);
    for (Symbol alphabet_size : {257, 300, 70000, 256, 4}) {
        const Text text = copies(random, 200, 4);
        const Plain expected_lzd[] = {lzd_by_definition(text, alphabet_size, kModes[0]),
                                      lzd_by_definition(text, alphabet_size, kModes[1])};
        check_text_as<std::uint8_t>(text, alphabet_size, lz78_by_definition(text, alphabet_size), expected_lzd);
    }
}

void check_worked_example() {  // Sasaki et al. 2020: aababcababcabcd
    const Text text{0, 0, 1, 0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2, 3};
    CHECK((lz78_of<std::uint8_t>(text, 4) == Plain{{0, 1, 4, 2, 4, 0, 5, 3}, {0, 4, 5, 6, 1, 2, 7}}), shown(text));
    CHECK((lzd_of<std::uint8_t>(text, 4, LzdLetters::seen) == Plain{{0, 1, 4, 2, 4, 5, 5, 3}, {0, 4, 5, 6, 7}}),
          shown(text));
}

// Symbols end at 2^31 - 1, so the largest alphabets leave room for few rules.
void check_alphabets_that_leave_little_room() {
    const Text text{0, 0, 0, 0, 0, 0, 0, 0, 0, 0};  // four phrases, three of them rules
    CHECK(lz78_of<std::int32_t>(text, kMaxSymbol - 3) == lz78_by_definition(text, kMaxSymbol - 3), shown(text));
    CHECK_THROWS(lz78_of<std::int32_t>(text, kMaxSymbol - 2), GrammarError, "no room");
    const Text other{0, 0, 0, 0, 0, 0, 0};  // aa, aaaa, a
    CHECK(lzd_of<std::int32_t>(other, kMaxSymbol - 2, LzdLetters::known) ==
              lzd_by_definition(other, kMaxSymbol - 2, LzdLetters::known),
          shown(other));
    CHECK_THROWS(lzd_of<std::int32_t>(other, kMaxSymbol - 1, LzdLetters::known), GrammarError, "no room");
    // A document that failed leaves nothing behind.
    check_text(text, 1);
}

// ---- long texts: there and back --------------------------------------------------------------------------------

// Every phrase but the last is new, which a text read wrongly would hardly keep to.
bool all_different(std::span<const Symbol> rules) {
    std::vector<std::pair<Symbol, Symbol>> pairs;
    for (std::size_t k = 0; k + 1 < rules.size(); k += 2) pairs.emplace_back(rules[k], rules[k + 1]);
    std::sort(pairs.begin(), pairs.end());
    return std::adjacent_find(pairs.begin(), pairs.end()) == pairs.end();
}

void check_round_trip(const Plain& grammar, const Text& text, Symbol alphabet_size, const std::string& name) {
    bool sound = true;
    try {
        check(view(grammar, alphabet_size));
    } catch (const GrammarError& error) {
        sound = false;
        CHECK(sound, name + ": " + error.what());
    }
    if (!sound) return;
    CHECK(expanded(grammar, alphabet_size) == text, name);
    CHECK(all_different(grammar.rules), name);
}

void check_long_texts() {
    constexpr std::size_t kLength = 1000000;
    Random random(2);
    const auto all = [&](const Text& text, Symbol alphabet_size, const std::string& name) {
        const Plain as_bytes = lz78_of<std::uint8_t>(text, alphabet_size);
        check_round_trip(as_bytes, text, alphabet_size, "lz78 of " + name);
        CHECK(as_bytes == lz78_of<std::int32_t>(text, alphabet_size), "lz78 of " + name);
        for (LzdLetters mode : kModes) {
            const Plain bytes = lzd_of<std::uint8_t>(text, alphabet_size, mode);
            check_round_trip(bytes, text, alphabet_size, "lzd of " + name);
            CHECK(bytes == lzd_of<std::uint16_t>(text, alphabet_size, mode), "lzd of " + name);
        }
    };
    all(uniform(random, kLength, 2), 2, "random bits");
    all(uniform(random, kLength, 256), 256, "random bytes");
    for (Kind kind : {Kind::runs, Kind::mutated, Kind::copies, Kind::fibonacci})
        all(make_text(kind, random, kLength, 4), 4, name_of(kind));
}

// The longest phrases there can be.
void check_one_terminal() {
    for (std::size_t length : {1, 2, 3, 1000, 999999, 1000000}) {
        const Text text(length, 0);
        const std::string name = "a^" + std::to_string(length);
        const Plain found = lz78_of<std::uint8_t>(text, 1);
        check_round_trip(found, text, 1, "lz78 of " + name);
        std::size_t phrases = 0;  // of 1, 2, 3, … terminals
        for (std::size_t covered = 0; covered < length; covered += ++phrases) {
        }
        CHECK(found.sequence.size() == phrases, "lz78 of " + name);
        for (LzdLetters mode : kModes) {
            const Plain doubling = lzd_of<std::uint8_t>(text, 1, mode);
            check_round_trip(doubling, text, 1, "lzd of " + name);
            CHECK(doubling.sequence.size() <= 40, "lzd of " + name);
        }
    }
}

void check_documents_too_long() {
    const std::uint8_t terminal = 0;
    const std::span<const std::uint8_t> text(&terminal, kMaxDocument + 1);  // refused before any terminal is read
    Output out;
    CHECK_THROWS(lz78.compress(text, 1, out), GrammarError, "too long to compress as one");
    CHECK_THROWS(lzd.compress(text, 1, LzdLetters::known, out), GrammarError, "too long to compress as one");
}

}  // namespace
}  // namespace laconic::test

int main() {
    using namespace laconic::test;
    for (std::size_t length = 0; length <= 10; ++length) check_every_text(2, length);
    for (std::size_t length = 0; length <= 6; ++length) check_every_text(3, length);
    check_short_texts();
    check_bytes_of_a_large_alphabet();
    check_worked_example();
    check_alphabets_that_leave_little_room();
    check_long_texts();
    check_one_terminal();
    check_documents_too_long();
    return report("lz");
}
