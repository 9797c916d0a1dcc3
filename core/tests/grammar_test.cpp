#include "grammar.hpp"

#include "check.hpp"
#include "oracles.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// What is asked of a grammar, in one place.
struct Measured {
    explicit Measured(const GrammarView& grammar)
        : lengths(grammar.rule_count()),
          begins(grammar.sequence.size() + 1),
          counts(grammar.rule_count()),
          heights(grammar.rule_count()) {
        expanded_lengths(grammar, lengths.data());
        starts(grammar, lengths.data(), begins.data());
        occurrences(grammar, counts.data());
        depths(grammar, heights.data());
    }
    std::vector<std::int64_t> lengths, begins, counts;
    std::vector<std::int32_t> heights;
};

template <class Terminal>
std::vector<Terminal> range(const GrammarView& grammar, const Measured& measured, std::int64_t begin,
                            std::int64_t end) {
    std::vector<Terminal> terminals(static_cast<std::size_t>(std::max<std::int64_t>(0, end - begin)));
    expand(grammar, measured.lengths.data(), measured.begins.data(), begin, end, terminals.data());
    return terminals;
}

// ---- check() ---------------------------------------------------------------------------------------------------

void check_errors() {
    const auto checked = [](Symbol alphabet_size, std::vector<Symbol> rules, std::vector<Symbol> sequence) {
        check(GrammarView{alphabet_size, rules, sequence});
    };
    checked(1, {}, {});
    checked(2, {0, 1, 2, 2}, {3, 0, 3});
    checked(kMaxSymbol, {}, {kMaxSymbol - 1});
    checked(kMaxSymbol - 1, {0, kMaxSymbol - 2}, {kMaxSymbol - 1});
    CHECK_THROWS(checked(0, {}, {}), GrammarError, "alphabet_size must be at least 1");
    CHECK_THROWS(checked(-5, {}, {}), GrammarError, "alphabet_size must be at least 1");
    CHECK_THROWS((checked(kMaxSymbol, {0, 0}, {})), GrammarError, "together exceed 2^31 - 1");
    CHECK_THROWS((checked(kMaxSymbol - 1, {0, 0, 0, 0}, {})), GrammarError, "together exceed 2^31 - 1");
    CHECK_THROWS((checked(2, {2, 0}, {})), GrammarError, "rule 0 uses symbol 2, which is not defined before it");
    CHECK_THROWS((checked(2, {0, 1, 0, 3}, {})), GrammarError, "rule 1 uses symbol 3, which is not defined before it");
    CHECK_THROWS((checked(2, {0, 3, 0, 1}, {})), GrammarError, "rule 0 uses symbol 3, which is not defined before it");
    CHECK_THROWS((checked(2, {0, 1, 4, 1}, {})), GrammarError, "rule 1 uses symbol 4, which is outside 0 … 3");
    CHECK_THROWS((checked(2, {0, 1, 1, -1}, {})), GrammarError, "rule 1 uses symbol -1, which is outside 0 … 3");
    CHECK_THROWS((checked(2, {0, 1}, {0, 3})), GrammarError,
                 "sequence position 1 uses symbol 3, which is outside 0 … 2");
    CHECK_THROWS((checked(2, {0, 1}, {-7})), GrammarError,
                 "sequence position 0 uses symbol -7, which is outside 0 … 2");
    CHECK_THROWS((checked(1, {}, {1})), GrammarError, "sequence position 0 uses symbol 1, which is outside 0 … 0");
    check_length(kMaxDocument);
    CHECK_THROWS(check_length(kMaxDocument + 1), GrammarError, "a document of 4294967041 terminals is too long");
}

void check_that_errors_name_documents() {
    const auto fail = [] { throw GrammarError("it is bad"); };
    for (const std::optional<std::size_t> document : {std::optional<std::size_t>(17), {}}) {
        try {
            in_document(document, fail);
        } catch (const GrammarError& error) {
            CHECK(error.document() == document, error.what());
            CHECK(error.reason() == "it is bad", error.what());
            CHECK(error.what() == (document ? std::string("document 17: it is bad") : "it is bad"), error.what());
            continue;
        }
        CHECK(false, "nothing was thrown");
    }
    in_document(0, [] {});
}

// ---- lengths that no machine holds -----------------------------------------------------------------------------

// Rule k stands for 2^(k+1) terminals, as far as 63 bits go.
void check_saturation() {
    std::vector<Symbol> rules{0, 0};
    for (Symbol k = 1; k < 70; ++k) rules.insert(rules.end(), {k, k});
    std::vector<Symbol> sequence{70};
    const GrammarView grammar{1, rules, sequence};
    std::vector<std::int64_t> lengths(70), counts(70), begins(10);
    expanded_lengths(grammar, lengths.data());
    for (std::size_t k = 0; k < 70; ++k)
        CHECK(lengths[k] == (k < 62 ? std::int64_t{1} << (k + 1) : kMost), "the length of rule " + std::to_string(k));
    occurrences(grammar, counts.data());
    for (std::size_t k = 0; k < 70; ++k)
        CHECK(counts[k] == (k > 6 ? std::int64_t{1} << (69 - k) : kMost),
              "the occurrences of rule " + std::to_string(k));
    CHECK_THROWS(starts(grammar, lengths.data(), begins.data()), GrammarError, "longer than 2^63 - 2");

    // 2^62 + 2^61 + … + 2 = 2^63 - 2 terminals are the most that pass; one terminal more does not.
    std::vector<Symbol> most;
    for (Symbol k = 62; k >= 1; --k) most.push_back(k);
    begins.resize(most.size() + 2);
    starts({1, rules, most}, lengths.data(), begins.data());
    CHECK(begins[most.size()] == kMost - 1, "2^63 - 2 terminals");
    std::uint8_t last[3] = {9, 9, 9};
    expand({1, rules, most}, lengths.data(), begins.data(), kMost - 4, kMost - 1, last);
    CHECK(last[0] == 0 && last[1] == 0 && last[2] == 0, "the last of 2^63 - 2 terminals");
    most.push_back(0);
    CHECK_THROWS(starts({1, rules, most}, lengths.data(), begins.data()), GrammarError, "longer than 2^63 - 2");
    most.back() = 70;
    CHECK_THROWS(starts({1, rules, most}, lengths.data(), begins.data()), GrammarError, "longer than 2^63 - 2");
}

// ---- random grammars against plain expansion -------------------------------------------------------------------

// Sometimes deep (operands are recent rules), sometimes flat, sometimes with rules nobody uses.
Plain random_grammar(Random& random, Symbol alphabet_size, std::uint32_t rules) {
    Plain grammar;
    const auto symbol = [&](std::uint32_t defined) {
        const std::uint32_t recent = std::min(defined, 3u);
        if (random.below(2))
            return alphabet_size + static_cast<Symbol>(defined) - 1 - static_cast<Symbol>(random.below(recent + 1));
        return random.terminal(alphabet_size + static_cast<Symbol>(defined));
    };
    for (std::uint32_t k = 0; k < rules; ++k)
        for (int side = 0; side < 2; ++side) grammar.rules.push_back(symbol(k));
    for (std::uint32_t length = random.below(8); length > 0; --length) grammar.sequence.push_back(symbol(rules));
    return grammar;
}

template <class Terminal>
void check_ranges(Random& random, const Plain& plain, Symbol alphabet_size, const Text& text) {
    const GrammarView grammar = view(plain, alphabet_size);
    const Measured measured(grammar);
    const std::vector<Terminal> terminals = as<Terminal>(text);
    const auto size = static_cast<std::uint32_t>(terminals.size());
    for (std::uint32_t trial = 0; trial < 40; ++trial) {
        // The whole, the ends and single terminals first, then any range.
        std::uint32_t begin = trial == 0 || size == 0 ? 0 : random.below(size + 1);
        std::uint32_t end = trial == 0 ? size : trial < 10 ? std::min(size, begin + 1) : random.between(begin, size);
        if (trial % 7 == 6) end = size;
        const std::vector<Terminal> expected(terminals.begin() + begin, terminals.begin() + end);
        CHECK(range<Terminal>(grammar, measured, begin, end) == expected,
              "[" + std::to_string(begin) + ", " + std::to_string(end) + ") of " + shown(plain));
    }
}

void check_random_grammars() {
    Random random(1);
    for (int round = 0; round < 400; ++round) {
        constexpr Symbol kSizes[] = {1, 2, 5, 256, 300, 100000};
        const Symbol alphabet_size = kSizes[random.below(6)];
        const Plain plain = random_grammar(random, alphabet_size, random.below(18));
        const GrammarView grammar = view(plain, alphabet_size);
        check(grammar);
        const Measured measured(grammar);

        const Text text = expanded(plain, alphabet_size);
        CHECK(measured.begins.back() == static_cast<std::int64_t>(text.size()), shown(plain));
        for (std::size_t i = 0; i < plain.sequence.size(); ++i) {
            const Text part = expanded({plain.rules, {plain.sequence[i]}}, alphabet_size);
            CHECK(measured.begins[i + 1] - measured.begins[i] == static_cast<std::int64_t>(part.size()), shown(plain));
        }
        if (alphabet_size <= 1 << 8) check_ranges<std::uint8_t>(random, plain, alphabet_size, text);
        if (alphabet_size <= 1 << 16) check_ranges<std::uint16_t>(random, plain, alphabet_size, text);
        check_ranges<std::int32_t>(random, plain, alphabet_size, text);

        // Every symbol of the derivation, counted one by one, and the height of each rule by walking it.
        std::vector<std::int64_t> counts(grammar.rule_count());
        std::vector<Symbol> pending = plain.sequence;
        while (!pending.empty()) {
            const Symbol symbol = pending.back() - alphabet_size;
            pending.pop_back();
            if (symbol < 0) continue;
            const auto k = static_cast<std::size_t>(symbol);
            ++counts[k];
            pending.insert(pending.end(), {plain.rules[2 * k], plain.rules[2 * k + 1]});
        }
        CHECK(measured.counts == counts, shown(plain));
        for (std::size_t k = 0; k < grammar.rule_count(); ++k) {
            const Symbol self = alphabet_size + static_cast<Symbol>(k);
            CHECK(
                measured.lengths[k] == static_cast<std::int64_t>(expanded({plain.rules, {self}}, alphabet_size).size()),
                shown(plain));
            std::int32_t height = 0;
            std::vector<std::pair<Symbol, std::int32_t>> below{{self, 0}};
            while (!below.empty()) {
                const auto [symbol, depth] = below.back();
                below.pop_back();
                height = std::max(height, depth);
                if (symbol < alphabet_size) continue;
                const auto child = static_cast<std::size_t>(symbol - alphabet_size);
                below.insert(below.end(),
                             {{plain.rules[2 * child], depth + 1}, {plain.rules[2 * child + 1], depth + 1}});
            }
            CHECK(measured.heights[k] == height, shown(plain));
        }
    }
}

// ---- a chain as deep as a grammar can be -----------------------------------------------------------------------

// S1 -> ab, S2 -> S1 b or b S1, …: a stack frame per rule would overflow.
void check_chain(bool left) {
    constexpr Symbol kRules = 1000000;
    std::vector<Symbol> rules{0, 1};
    for (Symbol k = 1; k < kRules; ++k) {
        const Symbol before = 2 + k - 1;
        rules.insert(rules.end(), {left ? before : 1, left ? 1 : before});
    }
    const std::vector<Symbol> sequence{1, 2 + kRules - 1, 0};
    const GrammarView grammar{2, rules, sequence};
    check(grammar);
    const Measured measured(grammar);
    const std::string name = left ? "a chain to the left" : "a chain to the right";
    CHECK(measured.heights.back() == kRules && measured.lengths.back() == kRules + 1, name);
    CHECK(measured.counts.front() == 1 && measured.counts.back() == 1, name);
    CHECK(measured.begins == std::vector<std::int64_t>({0, 1, kRules + 2, kRules + 3}), name);

    std::vector<std::uint8_t> expected(kRules + 3, 1);
    expected[left ? 1 : kRules] = 0;
    expected.back() = 0;
    CHECK(range<std::uint8_t>(grammar, measured, 0, kRules + 3) == expected, name);
    for (std::int64_t begin : {0, 1, 2, 3, 500000, kRules - 1, kRules, kRules + 1, kRules + 2}) {
        const std::int64_t end = std::min<std::int64_t>(begin + 3, kRules + 3);
        const std::vector<std::uint8_t> part(expected.begin() + begin, expected.begin() + end);
        CHECK(range<std::uint8_t>(grammar, measured, begin, end) == part,
              name + " from " + std::to_string(begin) + " on");
    }
}

void check_empty() {
    const GrammarView empty{3, {}, {}};
    check(empty);
    const Measured measured(empty);
    CHECK(measured.begins == std::vector<std::int64_t>{0}, "the empty grammar");
    CHECK(range<std::uint8_t>(empty, measured, 0, 0).empty(), "nothing of the empty grammar");
    const std::vector<Symbol> sequence{1, 0};
    const GrammarView two{2, {}, sequence};
    CHECK(range<std::uint8_t>(two, Measured(two), 2, 2).empty(), "nothing at the end");
    CHECK((range<std::uint8_t>(two, Measured(two), 1, 2) == std::vector<std::uint8_t>{0}), "the last terminal");
}

}  // namespace
}  // namespace laconic::test

int main() {
    using namespace laconic::test;
    check_errors();
    check_that_errors_name_documents();
    check_saturation();
    check_random_grammars();
    check_chain(true);
    check_chain(false);
    check_empty();
    return report("grammar");
}
