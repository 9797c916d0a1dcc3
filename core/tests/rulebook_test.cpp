#include "rulebook.hpp"

#include "check.hpp"
#include "compact.hpp"
#include "learn.hpp"
#include "oracles.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

void do_nothing() {}

Text learned(const std::vector<std::uint8_t>& text, const std::vector<std::int64_t>& offsets, Symbol alphabet_size,
             const std::vector<WordKind>& kinds, const LearnOptions& options, unsigned threads) {
    const Buffer<Symbol> rules = learn_rules(std::span<const std::uint8_t>(text), std::span(offsets), alphabet_size, {},
                                             std::span(kinds), options, threads, do_nothing);
    return {rules.begin(), rules.end()};
}

// Of one document without words, a rulebook is what Re-Pair makes; parsing leaves what Re-Pair left.
void check_one_document(const Text& text, Symbol alphabet_size, const std::string& input) {
    const RepairOptions repair{2, 50, 40};
    const Plain expected = repair_by_definition(text, alphabet_size, repair);
    const std::vector<std::uint8_t> terminals = as<std::uint8_t>(text);
    const std::vector<std::int64_t> offsets{0, static_cast<std::int64_t>(text.size())};
    const Text rules = learned(terminals, offsets, alphabet_size, {}, {50, 1, 40}, 1);
    CHECK(rules == expected.rules, input);
    const Rulebook book(alphabet_size, rules, 0, {});
    Buffer<Symbol> parsed;
    Parser(book, 0, book.size()).parse(std::span<const std::uint8_t>(terminals), parsed);
    CHECK((Text{parsed.begin(), parsed.end()} == expected.sequence), input);
}

// Cut into documents and words: as many threads as there may be learn the same, and all come back.
void check_words(const Text& text, Symbol alphabet_size, const std::string& input) {
    const std::vector<std::uint8_t> terminals = as<std::uint8_t>(text);
    std::vector<std::int64_t> offsets{0};
    while (offsets.back() < static_cast<std::int64_t>(text.size()))
        offsets.push_back(std::min(offsets.back() + 97, static_cast<std::int64_t>(text.size())));
    std::vector<WordKind> kinds(static_cast<std::size_t>(alphabet_size), WordKind::letter);
    kinds[0] = WordKind::blank;
    const Text rules = learned(terminals, offsets, alphabet_size, kinds, {200, 2, 40}, 1);
    CHECK(learned(terminals, offsets, alphabet_size, kinds, {200, 2, 40}, 3) == rules, input);
    const std::size_t within = rules.size() / 2 * (text.size() % 3) / 2;  // none, half or all of them
    const auto book = std::make_shared<const Rulebook>(alphabet_size, rules, within, kinds);
    const auto compressor = under_rulebook(book, codec_named("none").make({}));
    Output out;
    compressor->compress(std::span<const std::uint8_t>(terminals), alphabet_size, out);
    CHECK(expanded({rules, {out.sequence.begin(), out.sequence.end()}}, alphabet_size) == text, input);
}

// Codes of compact columns: what is coded comes back, and bytes that are no code are refused or stand for something.
void check_compact(const Text& text, Symbol alphabet_size, Random& random, const std::string& input) {
    const std::vector<std::uint8_t> terminals = as<std::uint8_t>(text);
    const std::vector<std::int64_t> offsets{0, static_cast<std::int64_t>(text.size())};
    const Text rules = learned(terminals, offsets, alphabet_size, {}, {random.below(20), 1, 9}, 1);
    const auto book = std::make_shared<const Rulebook>(alphabet_size, rules, 0, std::span<const WordKind>());
    const auto compressor = under_rulebook(book, codec_named("repair").make({}));
    Output out;
    compressor->compress(std::span<const std::uint8_t>(terminals), alphabet_size, out);
    Packed packed;
    Packer().pack({book->symbols(), {out.rules.data(), out.rules.size()}, {out.sequence.data(), out.sequence.size()}},
                  true, packed);
    const auto seen = [](const Buffer<Symbol>& values) { return std::span(values.data(), values.size()); };
    const PackedView document{seen(packed.letters), seen(packed.left), seen(packed.right), seen(packed.sequence)};
    const auto equal = [](std::span<const Symbol> one, const Buffer<Symbol>& other) {
        return std::ranges::equal(one, std::span(other.data(), other.size()));
    };
    for (const CompactModel& model : {CompactModel::learn(alphabet_size, std::span(&document, 1), book.get()),
                                      CompactModel::learn(alphabet_size, {}, book.get())}) {
        const std::vector<std::uint16_t> numbers = model.numbers();
        const CompactModel again = CompactModel::from_numbers(alphabet_size, numbers, book.get());
        Buffer<std::uint8_t> code;
        CompactCoder(again).encode(document, code);
        Packed back;
        CompactCoder(model).decode({code.data(), code.size()}, back);
        CHECK(equal(document.letters, back.letters) && equal(document.left, back.left), input);
        CHECK(equal(document.right, back.right) && equal(document.sequence, back.sequence), input);
        for (std::size_t i = 0; i < code.size(); i += 7) code[i] = static_cast<std::uint8_t>(random.below(256));
        Packed other;
        try {
            CompactCoder(model).decode({code.data(), code.size()}, other);
        } catch (const GrammarError&) {
            continue;
        }
        Output unpacked;
        unpack({seen(other.letters), seen(other.left), seen(other.right), seen(other.sequence)}, book->symbols(),
               unpacked);
        CHECK(unpacked.sequence.size() == other.sequence.size(), input);
    }
}

}  // namespace
}  // namespace laconic::test

int main() {
    using laconic::GrammarError, laconic::Rulebook, laconic::Symbol;
    using namespace laconic::test;
    Random random(18);
    for (std::uint32_t i = 0; i < 600; ++i) {
        const auto kind = static_cast<Kind>(i % static_cast<std::uint32_t>(Kind::count));
        const auto size = static_cast<Symbol>(random.between(2, 6));
        const Text text = make_text(kind, random, random.below(400), size);
        const std::string input = std::string(name_of(kind)) + " " + shown(text);
        check_one_document(text, size, input);
        check_words(text, size, input);
        check_compact(text, size, random, input);
    }
    const Symbol twice[] = {0, 1, 0, 1}, later[] = {0, 2};
    CHECK_THROWS(Rulebook(2, twice, 0, {}), GrammarError, "rule 1 is rule 0 again");
    CHECK_THROWS(Rulebook(2, later, 0, {}), GrammarError, "not defined before it");
    CHECK_THROWS(Rulebook(2, std::span(twice, 2), 2, {}), GrammarError, "fewer rules than");
    CHECK_THROWS(Rulebook(2, std::span(twice, 2), 1, {}), GrammarError, "a kind for each terminal");
    return report("rulebook");
}
