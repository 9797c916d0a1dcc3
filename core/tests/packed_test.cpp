#include "packed.hpp"

#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include "check.hpp"
#include "lz78.hpp"
#include "lzd.hpp"
#include "oracles.hpp"
#include "repair.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

constexpr Symbol kSizes[] = {1, 2, 5, 256, 300, 1 << 14, (1 << 14) + 1, 20000, 100000};

// One packed grammar, as plain as can be.
struct Row {
    std::vector<Symbol> letters, left, right, sequence;
    bool operator==(const Row&) const = default;
};

using test::shown;

std::string shown(const Row& row) {
    return "letters " + shown(row.letters) + " left " + shown(row.left) + " right " + shown(row.right) + " sequence " +
           shown(row.sequence);
}

std::vector<Symbol> since(const Buffer<Symbol>& buffer, std::size_t begin) {
    return {buffer.begin() + begin, buffer.end()};
}

// What pack() appends behind what was there before.
Row packed(Packer& packer, const GrammarView& grammar, bool sort, Packed& out) {
    const std::size_t letters = out.letters.size(), left = out.left.size(), right = out.right.size(),
                      sequence = out.sequence.size();
    packer.pack(grammar, sort, out);
    return {since(out.letters, letters), since(out.left, left), since(out.right, right), since(out.sequence, sequence)};
}

Row packed(const GrammarView& grammar, bool sort) {
    Packer packer;
    Packed out;
    return packed(packer, grammar, sort, out);
}

Plain unpacked(const Row& row, Symbol alphabet_size) {
    Output out;
    unpack({row.letters, row.left, row.right, row.sequence}, alphabet_size, out);
    return {since(out.rules, 0), since(out.sequence, 0)};
}

// ---- the definitions -------------------------------------------------------------------------------------------

// The level of each rule, by its operands.
std::vector<int> levels_of(const std::vector<Symbol>& left, const std::vector<Symbol>& right, Symbol first) {
    std::vector<int> levels;
    const auto level = [&](Symbol symbol) {
        return symbol < first ? 0 : levels[static_cast<std::size_t>(symbol - first)];
    };
    for (std::size_t k = 0; k < left.size(); ++k) levels.push_back(1 + std::max(level(left[k]), level(right[k])));
    return levels;
}

// Names a rule once its operands have names: level by level, the smallest (right, left, number) of a level first.
Row packed_by_definition(const Plain& plain, Symbol alphabet_size, bool sort) {
    Row row;
    std::set<Symbol> letters;
    for (const auto* symbols : {&plain.rules, &plain.sequence})
        for (Symbol symbol : *symbols)
            if (symbol < alphabet_size) letters.insert(symbol);
    row.letters.assign(letters.begin(), letters.end());
    const auto first = static_cast<Symbol>(row.letters.size());
    std::map<Symbol, Symbol> names;
    for (Symbol i = 0; i < first; ++i) names[row.letters[static_cast<std::size_t>(i)]] = i;

    std::vector<Symbol> left, right;
    for (std::size_t k = 0; k < plain.rules.size(); k += 2) {
        left.push_back(plain.rules[k]);
        right.push_back(plain.rules[k + 1]);
    }
    const std::vector<int> levels = levels_of(left, right, alphabet_size);
    std::map<int, std::vector<std::size_t>> by_level;  // without `sort`, each rule is a level of its own
    for (std::size_t k = 0; k < left.size(); ++k) by_level[sort ? levels[k] : static_cast<int>(k)].push_back(k);
    for (const auto& [level, rules] : by_level) {
        std::set<std::tuple<Symbol, Symbol, std::size_t>> order;
        for (std::size_t k : rules) order.insert({names.at(right[k]), names.at(left[k]), k});
        for (const auto& [second, one, k] : order) {
            names[alphabet_size + static_cast<Symbol>(k)] = first + static_cast<Symbol>(row.left.size());
            row.left.push_back(one);
            row.right.push_back(second);
        }
    }
    for (Symbol symbol : plain.sequence) row.sequence.push_back(names.at(symbol));
    return row;
}

Plain unpacked_by_definition(const Row& row, Symbol alphabet_size) {
    std::vector<Symbol> spelled = row.letters;
    for (std::size_t k = 0; k < row.left.size(); ++k) spelled.push_back(alphabet_size + static_cast<Symbol>(k));
    Plain plain;
    for (std::size_t k = 0; k < row.left.size(); ++k)
        for (Symbol symbol : {row.left[k], row.right[k]})
            plain.rules.push_back(spelled[static_cast<std::size_t>(symbol)]);
    for (Symbol symbol : row.sequence) plain.sequence.push_back(spelled[static_cast<std::size_t>(symbol)]);
    return plain;
}

bool ordered(const Row& row) {
    const std::vector<int> levels = levels_of(row.left, row.right, static_cast<Symbol>(row.letters.size()));
    for (std::size_t k = 1; k < levels.size(); ++k)
        if (std::tuple(levels[k - 1], row.right[k - 1], row.left[k - 1]) >
            std::tuple(levels[k], row.right[k], row.left[k]))
            return false;
    return true;
}

// ---- grammars --------------------------------------------------------------------------------------------------

// Deep or flat, over few or many of the letters, with rules that are equal and rules that nobody uses.
Plain random_grammar(Random& random, Symbol alphabet_size, std::uint32_t rules, std::uint32_t length) {
    Plain plain;
    const Symbol used = 1 + random.terminal(std::min<Symbol>(alphabet_size, random.below(2) ? 3 : alphabet_size));
    const Symbol step = alphabet_size / used;
    const std::uint32_t recent = 1 + random.below(4), deep = random.below(5);
    const auto symbol = [&](std::uint32_t defined) {
        const bool rule = defined > 0 && random.below(4) < deep;
        if (!rule) return random.terminal(used) * step;
        const std::uint32_t back = random.below(random.below(2) ? std::min(defined, recent) : defined);
        return alphabet_size + static_cast<Symbol>(defined - 1 - back);
    };
    for (std::uint32_t k = 0; k < rules; ++k) {
        const bool again = k > 0 && random.below(5) == 0;
        const std::size_t old = again ? 2 * random.below(k) : 0;
        const Symbol left = again ? plain.rules[old] : symbol(k), right = again ? plain.rules[old + 1] : symbol(k);
        plain.rules.insert(plain.rules.end(), {left, right});
    }
    for (; length > 0; --length) plain.sequence.push_back(symbol(rules));
    return plain;
}

Plain taken(const Output& out) { return {since(out.rules, 0), since(out.sequence, 0)}; }

std::vector<Plain> made_by_codecs(const Text& text, Symbol alphabet_size) {
    Output repair, lz78, known, seen;
    const std::span<const Symbol> letters = text;
    Repair().compress(letters, alphabet_size, {}, repair);
    Lz78().compress(letters, alphabet_size, lz78);
    Lzd().compress(letters, alphabet_size, LzdLetters::known, known);
    Lzd().compress(letters, alphabet_size, LzdLetters::seen, seen);
    return {taken(repair), taken(lz78), taken(known), taken(seen), {{}, text}};
}

// ---- pack() and unpack() ---------------------------------------------------------------------------------------

// Packers that have packed all grammars before this one, of any alphabet, behind each other.
struct Worn {
    Packer packer;
    Packed out;
};

void check_grammar(const Plain& plain, Symbol alphabet_size, Worn& worn, bool expand) {
    const GrammarView grammar = view(plain, alphabet_size);
    const auto input = [&] { return std::to_string(alphabet_size) + " letters, " + shown(plain); };
    check(grammar);
    for (bool sort : {false, true}) {
        const Row row = packed(grammar, sort);
        CHECK(row == packed_by_definition(plain, alphabet_size, sort), input() + " packed: " + shown(row));
        CHECK(packed(worn.packer, grammar, sort, worn.out) == row, "a packer used before: " + input());
        CHECK(!sort || ordered(row), input() + " packed: " + shown(row));

        const Plain back = unpacked(row, alphabet_size);
        CHECK(back == unpacked_by_definition(row, alphabet_size), input());
        CHECK(sort || back == plain, input());
        check(view(back, alphabet_size));
        CHECK(packed(view(back, alphabet_size), sort) == row, "packed again: " + input());
        if (expand) CHECK(expanded(back, alphabet_size) == expanded(plain, alphabet_size), input());
    }
}

void check_random_grammars(Worn& worn) {
    Random random(1);
    for (int round = 0; round < 1500; ++round) {
        const Symbol alphabet_size = kSizes[random.below(std::size(kSizes))];
        const bool small = round % 10 != 0;  // the others have levels both much wider and much smaller than the symbols
        const Plain plain = random_grammar(random, alphabet_size, random.below(small ? 18 : 600), random.below(9));
        check_grammar(plain, alphabet_size, worn, small);
    }
}

void check_codecs(Worn& worn) {
    Random random(2);
    for (int kind = 0; kind < static_cast<int>(Kind::count); ++kind)
        for (Symbol alphabet_size : kSizes)
            for (std::size_t length :
                 {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{40}, std::size_t{1500}}) {
                const Text text = make_text(static_cast<Kind>(kind), random, length, alphabet_size);
                for (const Plain& plain : made_by_codecs(text, alphabet_size))
                    check_grammar(plain, alphabet_size, worn, true);
            }
}

// Every level has one rule, or one level has all of them.
void check_extremes(Worn& worn) {
    constexpr Symbol kRules = 50000;
    for (Symbol alphabet_size : {2, 20000})
        for (bool to_left : {true, false}) {
            Plain chain{{0, 1}, {1, alphabet_size + kRules - 1}};
            for (Symbol k = 1; k < kRules; ++k) {
                const Symbol before = alphabet_size + k - 1;
                chain.rules.insert(chain.rules.end(), {to_left ? before : 1, to_left ? 1 : before});
            }
            check_grammar(chain, alphabet_size, worn, true);
        }
    Plain wide{{}, {}};
    for (Symbol k = 0; k < kRules; ++k) {
        wide.rules.insert(wide.rules.end(), {(k * 7919) % 256, (k * 31337) % 251});
        if (k % 3 == 0) wide.sequence.push_back(256 + kRules - 1 - k);
    }
    check_grammar(wide, 256, worn, true);
    check_grammar({std::vector<Symbol>(2 * 1000, 0), {1000, 1}}, 1, worn, true);  // one rule, a thousand times
    check_grammar({{}, {kMaxSymbol - 1, 0}}, kMaxSymbol, worn, true);
    check_grammar({{0, kMaxSymbol - 2}, {kMaxSymbol - 1}}, kMaxSymbol - 1, worn, true);
}

// By hand: the paper's example, whose letters a … d are 97 … 100.
void check_example() {
    const Plain plain{{97, 98, 256, 99}, {97, 256, 257, 256, 257, 257, 100}};
    const Row expected{{97, 98, 99, 100}, {0, 4}, {1, 2}, {0, 4, 5, 4, 5, 5, 3}};
    CHECK(packed(view(plain, 256), true) == expected, shown(packed(view(plain, 256), true)));
    CHECK(packed(view(plain, 256), false) == expected, shown(packed(view(plain, 256), false)));
    CHECK(unpacked(expected, 256) == plain, shown(unpacked(expected, 256)));

    // ba, (ba)c, ab, cb over a, b, c: level 1 by right, then left is ba, ab, cb, and (ba)c comes last.
    const Plain mixed{{1, 0, 3, 2, 0, 1, 2, 1}, {6, 5, 4, 3}};
    const Row sorted{{0, 1, 2}, {1, 0, 2, 3}, {0, 1, 1, 2}, {5, 4, 6, 3}};
    CHECK(packed(view(mixed, 3), true) == sorted, shown(packed(view(mixed, 3), true)));

    const Row empty = packed({7, {}, {}}, true);
    CHECK(empty == Row{}, shown(empty));
    CHECK(unpacked({}, 7) == Plain{}, "the empty grammar");
}

// ---- what unpack() accepts and refuses -------------------------------------------------------------------------

void check_free_choices() {
    const Row unused_letter{{3, 8, 9}, {0}, {1}, {3, 1}};
    CHECK((unpacked(unused_letter, 10) == Plain{{3, 8}, {10, 8}}), shown(unused_letter));
    const Row any_order{{0, 1}, {1, 2, 0}, {0, 2, 0}, {4, 3, 2}};  // a rule of level 2 between two of level 1
    CHECK((unpacked(any_order, 2) == Plain{{1, 0, 2, 2, 0, 0}, {4, 3, 2}}), shown(any_order));
}

void check_errors() {
    const auto refused = [](Row row, Symbol alphabet_size) { unpacked(row, alphabet_size); };
    constexpr Symbol kLeast = std::numeric_limits<Symbol>::min();
    CHECK_THROWS((refused({{0}, {0}, {}, {}}, 2)), GrammarError, "more left operands than right ones, or fewer");
    CHECK_THROWS((refused({{0}, {}, {0}, {}}, 2)), GrammarError, "more left operands than right ones, or fewer");
    CHECK_THROWS((refused({{2}, {}, {}, {}}, 2)), GrammarError, "letter 2 is outside the alphabet 0 … 1");
    CHECK_THROWS((refused({{0, -1}, {}, {}, {}}, 2)), GrammarError, "letter -1 is outside the alphabet 0 … 1");
    CHECK_THROWS((refused({{0, kMaxSymbol}, {}, {}, {}}, kMaxSymbol)), GrammarError, "letter 2147483647 is outside");
    CHECK_THROWS((refused({{1, 0}, {}, {}, {}}, 2)), GrammarError, "letters do not ascend");
    CHECK_THROWS((refused({{1, 1}, {}, {}, {}}, 2)), GrammarError, "letters do not ascend");
    CHECK_THROWS((refused({{0}, {0}, {0}, {}}, kMaxSymbol)), GrammarError, "together exceed 2^31 - 1");
    CHECK_THROWS((refused({{0}, {0, 0}, {0, 0}, {}}, kMaxSymbol - 1)), GrammarError, "together exceed 2^31 - 1");
    CHECK((unpacked({{0}, {0}, {0}, {1}}, kMaxSymbol - 1) == Plain{{0, 0}, {kMaxSymbol - 1}}), "the largest symbol");

    CHECK_THROWS((refused({{}, {0}, {0}, {}}, 2)), GrammarError, "rule 0 uses symbol 0, but 0 are defined before it");
    CHECK_THROWS((refused({{0, 1}, {2}, {0}, {}}, 9)), GrammarError, "rule 0 uses symbol 2, but 2 are defined before");
    CHECK_THROWS((refused({{0, 1}, {0}, {2}, {}}, 9)), GrammarError, "rule 0 uses symbol 2, but 2 are defined before");
    CHECK_THROWS((refused({{0, 1}, {0, 3}, {1, 0}, {}}, 9)), GrammarError,
                 "rule 1 uses symbol 3, but 3 are defined before it");
    CHECK_THROWS((refused({{0, 1}, {0, 0}, {1, -1}, {}}, 9)), GrammarError,
                 "rule 1 uses symbol -1, but 3 are defined before it");
    CHECK_THROWS((refused({{0, 1}, {kLeast}, {1}, {}}, 9)), GrammarError,
                 "rule 0 uses symbol -2147483648, but 2 are defined before it");
    CHECK_THROWS((refused({{0, 1}, {kMaxSymbol}, {1}, {}}, 9)), GrammarError,
                 "rule 0 uses symbol 2147483647, but 2 are defined before it");
    // Of two bad operands the left one is named, whatever the compiler evaluates first.
    CHECK_THROWS((refused({{0, 1}, {-3}, {-5}, {}}, 9)), GrammarError, "rule 0 uses symbol -3, but 2");
    CHECK_THROWS((refused({{0, 1}, {0}, {1}, {0, 3}}, 9)), GrammarError,
                 "sequence position 1 uses symbol 3, but 3 are defined before it");
    CHECK_THROWS((refused({{0, 1}, {0}, {1}, {-7}}, 9)), GrammarError,
                 "sequence position 0 uses symbol -7, but 3 are defined before it");
    CHECK_THROWS((refused({{}, {}, {}, {0}}, 9)), GrammarError,
                 "sequence position 0 uses symbol 0, but 0 are defined before it");
}

// The first thing wrong with a row, found as FORMAT.md words it; nothing if it is sound.
std::optional<std::string> wrong(const Row& row, Symbol alphabet_size) {
    for (std::size_t i = 0; i < row.letters.size(); ++i) {
        if (row.letters[i] < 0 || row.letters[i] >= alphabet_size) return "letter " + std::to_string(row.letters[i]);
        if (i > 0 && row.letters[i - 1] >= row.letters[i]) return "letters do not ascend";
    }
    const auto sound = [&](Symbol symbol, std::size_t rules) {
        return symbol >= 0 && symbol < static_cast<Symbol>(row.letters.size() + rules);
    };
    for (std::size_t k = 0; k < row.left.size(); ++k)
        for (Symbol symbol : {row.left[k], row.right[k]})
            if (!sound(symbol, k)) return "rule " + std::to_string(k) + " uses symbol " + std::to_string(symbol) + ",";
    for (std::size_t i = 0; i < row.sequence.size(); ++i)
        if (!sound(row.sequence[i], row.left.size()))
            return "sequence position " + std::to_string(i) + " uses symbol " + std::to_string(row.sequence[i]) + ",";
    return {};
}

// Sound rows with one or two numbers changed: refused for the right reason, or still a grammar.
void check_damage() {
    Random random(3);
    std::size_t refusals = 0;
    constexpr int kRounds = 4000;
    for (int round = 0; round < kRounds; ++round) {
        const Symbol alphabet_size = kSizes[random.below(std::size(kSizes))];
        Row row = packed(
            view(random_grammar(random, alphabet_size, 1 + random.below(12), 1 + random.below(8)), alphabet_size),
            random.below(2) == 0);
        for (std::uint32_t changes = random.between(1, 2); changes > 0; --changes) {
            std::vector<Symbol>* const columns[] = {&row.letters, &row.left, &row.right, &row.sequence};
            std::vector<Symbol>& column = *columns[random.below(4)];
            Symbol& value = column[random.below(static_cast<std::uint32_t>(column.size()))];
            const Symbol values[] = {std::min(value, kMaxSymbol - 1) + 1, value - 1, random.terminal(24),
                                     -1 - random.terminal(99), kMaxSymbol};
            value = values[random.below(5)];
        }
        const std::optional<std::string> reason = wrong(row, alphabet_size);
        if (reason) {
            ++refusals;
            CHECK_THROWS(unpacked(row, alphabet_size), GrammarError, *reason);
        } else {
            const Plain plain = unpacked(row, alphabet_size);
            check(view(plain, alphabet_size));
            CHECK(plain == unpacked_by_definition(row, alphabet_size), shown(row));
        }
    }
    CHECK(refusals > kRounds / 4 && refusals < kRounds - kRounds / 20, std::to_string(refusals) + " refusals");
}

// unpack() appends: what was there stays, and names are of the document alone.
void check_appending() {
    Random random(4);
    for (int round = 0; round < 50; ++round) {
        const Symbol alphabet_size = kSizes[random.below(std::size(kSizes))];
        Output out;
        Plain all;
        for (int document = 0; document < 8; ++document) {
            const Plain plain = random_grammar(random, alphabet_size, random.below(9), random.below(5));
            const Row row = packed(view(plain, alphabet_size), false);
            unpack({row.letters, row.left, row.right, row.sequence}, alphabet_size, out);
            all.rules.insert(all.rules.end(), plain.rules.begin(), plain.rules.end());
            all.sequence.insert(all.sequence.end(), plain.sequence.begin(), plain.sequence.end());
        }
        CHECK(taken(out) == all, shown(all));
    }
}

}  // namespace
}  // namespace laconic::test

int main() {
    using namespace laconic::test;
    Worn worn;
    check_example();
    check_random_grammars(worn);
    check_codecs(worn);
    check_extremes(worn);
    check_random_grammars(worn);  // again, with a packer that has seen the largest
    check_free_choices();
    check_errors();
    check_damage();
    check_appending();
    return report("packed");
}
