#include "repair.hpp"

#include "check.hpp"
#include "oracles.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

std::string shown(const RepairOptions& options) {
    return "min_count " + std::to_string(options.min_count) + ", max_rules " + std::to_string(options.max_rules) +
           ", max_expansion " + std::to_string(options.max_expansion);
}

enum class Width { byte, two_bytes, four_bytes };

class Tested {
public:
    Plain compress(const Text& text, Symbol alphabet_size, const RepairOptions& options, Width width) {
        // Grammars are laid end to end, so the output never starts empty here.
        out_.rules.clear();
        out_.sequence.clear();
        out_.rules.append(kBefore, 2);
        out_.sequence.append(kBefore, 2);
        switch (width) {
            case Width::byte:
                compress_as<std::uint8_t>(text, alphabet_size, options);
                break;
            case Width::two_bytes:
                compress_as<std::uint16_t>(text, alphabet_size, options);
                break;
            case Width::four_bytes:
                compress_as<std::int32_t>(text, alphabet_size, options);
                break;
        }
        const bool kept = std::equal(kBefore, kBefore + 2, out_.rules.begin()) &&
                          std::equal(kBefore, kBefore + 2, out_.sequence.begin());
        CHECK(kept, "what stood in the output before " + test::shown(text));
        return {{out_.rules.begin() + 2, out_.rules.end()}, {out_.sequence.begin() + 2, out_.sequence.end()}};
    }

private:
    template <class Terminal>
    void compress_as(const Text& text, Symbol alphabet_size, const RepairOptions& options) {
        const std::vector<Terminal> terminals = as<Terminal>(text);
        repair_.compress(std::span<const Terminal>(terminals), alphabet_size, options, out_);
    }

    static constexpr Symbol kBefore[] = {-7, -8};
    Repair repair_;
    Output out_;
};

// One workspace for nearly every text here: what a document leaves behind must not show in the next.
Tested tested;

Width narrowest(Symbol terminals) {
    return terminals <= 1 << 8 ? Width::byte : terminals <= 1 << 16 ? Width::two_bytes : Width::four_bytes;
}

// Any width that holds the terminals, by turns.
Width some_width(Random& random, Symbol terminals) {
    const auto least = static_cast<std::uint32_t>(narrowest(terminals));
    return static_cast<Width>(random.between(least, 2));
}

RepairOptions some_options(Random& random) {
    RepairOptions options;
    if (random.below(3) == 0) options.min_count = random.between(2, 6);
    if (random.below(4) == 0) options.max_rules = random.below(12);
    if (random.below(3) == 0) options.max_expansion = random.below(12);
    return options;
}

// ---- short texts: the definition itself -----------------------------------------------------------------------

// Every text of `length` terminals: nothing about short runs and ties is left to luck.
void check_every_text(Symbol terminals, std::size_t length) {
    Text text(length, 0);
    while (true) {
        const Plain expected = repair_by_definition(text, terminals, {});
        CHECK(tested.compress(text, terminals, {}, Width::byte) == expected, test::shown(text));
        std::size_t i = 0;
        while (i < length && ++text[i] == terminals) text[i++] = 0;
        if (i == length) return;
    }
}

void check_short_texts() {
    constexpr Symbol kTerminals[] = {1, 2, 2, 3, 4, 5, 26, 256, 1000, 70000};
    Random random(1);
    for (int round = 0; round < 10000; ++round) {
        const auto kind = static_cast<Kind>(random.below(static_cast<std::uint32_t>(Kind::count)));
        const Symbol terminals = kTerminals[random.below(10)];
        const Text text = make_text(kind, random, random.below(1u << random.between(1, 8)), terminals);
        const RepairOptions options = some_options(random);
        // An alphabet may be larger than the terminals that occur, and than their width holds.
        const Symbol alphabet_size =
            random.below(4) ? terminals : terminals + static_cast<Symbol>(random.below(3000000));
        const Plain expected = repair_by_definition(text, alphabet_size, options);
        const auto input = [&] {
            return std::string(name_of(kind)) + ", " + shown(options) + ", " + test::shown(text);
        };
        CHECK(LinearRepair::compress(text, alphabet_size, options) == expected, "the other oracle: " + input());
        CHECK(tested.compress(text, alphabet_size, options, some_width(random, terminals)) == expected, input());
        CHECK(expanded(expected, alphabet_size) == text, input());
    }
}

// ---- longer texts: the linear oracle --------------------------------------------------------------------------

void check_text(const Text& text, Symbol alphabet_size, const RepairOptions& options, Width width,
                const std::string& name, Tested& workspace = tested) {
    const Plain expected = LinearRepair::compress(text, alphabet_size, options);
    const Plain found = workspace.compress(text, alphabet_size, options, width);
    if (found == expected) {
        CHECK(true, name);
        return;
    }
    const auto [theirs, ours] =
        std::mismatch(found.rules.begin(), found.rules.end(), expected.rules.begin(), expected.rules.end());
    (void)ours;
    CHECK(found == expected, name + ", " + shown(options) + ", first differing rule " +
                                 std::to_string((theirs - found.rules.begin()) / 2) + ", " + test::shown(text));
}

// Long and short by turns: tables must come back clean from a long document. More than 255 terminals are sorted.
void check_middling_texts() {
    constexpr Symbol kTerminals[] = {2, 3, 20, 254, 255, 256, 400, 3000, 100000, 3000000};
    Random random(2);
    for (std::uint32_t round = 0; round < 300; ++round) {
        const auto kind = static_cast<Kind>(round % static_cast<std::uint32_t>(Kind::count));
        const Symbol terminals = kTerminals[random.below(10)];
        const std::size_t length = random.below(2) ? random.between(300, 4000) : random.below(40);
        const Text text = make_text(kind, random, length, terminals);
        const RepairOptions options = random.below(2) ? RepairOptions{} : some_options(random);
        check_text(text, terminals, options, some_width(random, terminals), std::string("middling ") + name_of(kind));
    }
}

// Where documents change from 16 to 32 bits, and from lists to scanning.
constexpr std::size_t kThresholds[] = {20000, 20001, 65533, 65534, 65535, 65536, 65537, 65540, 100000, 150000};

// Texts that few rules make short, so that the oracle can follow them to the end.
void check_repetitive_texts_at_thresholds() {
    constexpr Kind kKinds[] = {Kind::one_terminal, Kind::runs,   Kind::period,
                               Kind::alternating,  Kind::blocks, Kind::fibonacci};
    Random random(3);
    for (std::size_t length : kThresholds)
        for (Kind kind : kKinds) {
            const Symbol terminals = static_cast<Symbol>(random.between(2, 4));
            const Text text = make_text(kind, random, length, terminals);
            check_text(text, terminals, {}, some_width(random, terminals), std::string("whole ") + name_of(kind));
        }
}

// The most frequent pairs of texts that compress badly: limits keep the oracle quick.
void check_first_rules_at_thresholds() {
    constexpr Symbol kTerminals[] = {2, 4, 20, 200, 300, 2000};
    Random random(4);
    for (std::size_t length : kThresholds)
        for (Kind kind : {Kind::uniform, Kind::runs, Kind::doubled, Kind::copies, Kind::mutated}) {
            const Symbol terminals = kTerminals[random.below(6)];
            const Text text = make_text(kind, random, length, terminals);
            RepairOptions options{.min_count = random.between(2, 5), .max_rules = random.between(15, 60)};
            if (random.below(3) == 0) options.max_expansion = random.between(2, 40);
            check_text(text, terminals, options, some_width(random, terminals),
                       std::string("first rules of ") + name_of(kind));
        }
}

// ---- the edges of what fits ------------------------------------------------------------------------------------

// Lists of places are made with some room to grow and made anew when it runs out. Terminals that occur once take
// room and leave lists as they are, so that one of these texts ends with each amount of room left. An old
// workspace has more room than that, so each text gets a new one.
void check_lists_that_just_fit() {
    for (std::size_t block = 3; block <= 30; ++block)
        for (std::size_t others = 0; others <= 3 * block; ++others)
            for (std::size_t times : {2, 3}) {
                const Text text = versions(block, times, others);
                Tested fresh;
                check_text(text, 1000, {}, Width::two_bytes, "versions of " + std::to_string(block), fresh);
            }
    // The same in 32 bits, where lists are read ahead: once, past the end of the last. Too long for the oracle.
    for (std::size_t others = 10930; others <= 10960; ++others) {
        const Text text = versions(5500, 2, others);
        const Plain found = Tested().compress(text, 1 << 16, {}, Width::two_bytes);
        CHECK(expanded(found, 1 << 16) == text, "versions of 5500 and " + std::to_string(others) + " other terminals");
    }
    // Beyond 65536 cells there is less room from the start, and where there is enough, gaps are closed instead.
    for (std::uint32_t times : {60, 100, 200}) {
        const Text text = versions(70000 / times, times, 0);
        const RepairOptions options{.max_rules = 22000 / times};
        Tested fresh;
        check_text(text, 1 << 16, options, Width::two_bytes, std::to_string(times) + " versions", fresh);
        check_text(text, 1 << 16, options, Width::two_bytes, std::to_string(times) + " versions again");
    }
}

// Symbols end at 2^31 - 1, so a large alphabet leaves room for few rules or none.
void check_alphabets_that_leave_little_room() {
    Random random(5);
    const Text shape = runs(random, 200, 5);
    for (Symbol room = 0; room <= 4; ++room) {
        const Symbol alphabet_size = kMaxSymbol - room;
        Text text;
        for (Symbol terminal : shape) text.push_back(alphabet_size - 1 - terminal);
        const Plain found = tested.compress(text, alphabet_size, {}, Width::four_bytes);
        const RepairOptions limit{.max_rules = static_cast<std::uint32_t>(room)};
        CHECK(found == repair_by_definition(text, alphabet_size, limit),
              "alphabet_size 2^31 - 1 - " + std::to_string(room));
    }
}

void check_documents_too_long() {
    const std::uint8_t terminal = 0;
    Repair repair;
    Output out;
    // The length is refused before any terminal is read.
    CHECK_THROWS(repair.compress(std::span<const std::uint8_t>(&terminal, kMaxDocument + 1), 1, {}, out), GrammarError,
                 "too long to compress as one");
}

}  // namespace
}  // namespace laconic::test

int main() {
    using namespace laconic::test;
    for (std::size_t length = 0; length <= 12; ++length) check_every_text(2, length);
    for (std::size_t length = 0; length <= 8; ++length) check_every_text(3, length);
    check_short_texts();
    check_middling_texts();
    check_repetitive_texts_at_thresholds();
    check_first_rules_at_thresholds();
    check_lists_that_just_fit();
    check_alphabets_that_leave_little_room();
    check_documents_too_long();
    return report("repair");
}
