#include "compact.hpp"

#include <array>

#include "check.hpp"
#include "oracles.hpp"
#include "repair.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

constexpr Symbol kSizes[] = {1, 2, 4, 71, 256};

// One packed grammar, as plain as can be.
struct Row {
    std::vector<Symbol> letters, left, right, sequence;
    bool operator==(const Row&) const = default;
};

PackedView view(const Row& row) { return {row.letters, row.left, row.right, row.sequence}; }

using test::shown;

std::string shown(const Row& row) {
    return "letters " + shown(row.letters) + " left " + shown(row.left) + " right " + shown(row.right) + " sequence " +
           shown(row.sequence);
}

std::vector<Symbol> since(const Buffer<Symbol>& buffer, std::size_t begin) {
    return {buffer.begin() + begin, buffer.end()};
}

Row packed(const GrammarView& grammar, bool sort) {
    Packer packer;
    Packed out;
    packer.pack(grammar, sort, out);
    return {since(out.letters, 0), since(out.left, 0), since(out.right, 0), since(out.sequence, 0)};
}

Row repaired(const Text& text, Symbol alphabet_size, bool sort = true) {
    Repair repair;
    Output out;
    const std::vector<std::uint8_t> letters = as<std::uint8_t>(text);
    repair.compress<std::uint8_t>(letters, alphabet_size, {}, out);
    return packed({alphabet_size, {out.rules.data(), out.rules.size()}, {out.sequence.data(), out.sequence.size()}},
                  sort);
}

CompactModel learned(Symbol alphabet_size, const std::vector<Row>& rows) {
    std::vector<PackedView> views;
    for (const Row& row : rows) views.push_back(view(row));
    return CompactModel::learn(alphabet_size, views);
}

using Code = std::vector<std::uint8_t>;

Code encoded(const CompactModel& model, const Row& row) {
    Buffer<std::uint8_t> out;
    out.push_back(77);  // what is there already stays
    CompactCoder(model).encode(view(row), out);
    CHECK(out[0] == 77, shown(row));
    return {out.begin() + 1, out.end()};
}

Row decoded(const CompactModel& model, const Code& code) {
    Packed out;
    for (Buffer<Symbol>* buffer : {&out.letters, &out.left, &out.right, &out.sequence}) buffer->push_back(-7);
    CompactCoder(model).decode(code, out);
    for (Buffer<Symbol>* buffer : {&out.letters, &out.left, &out.right, &out.sequence})
        CHECK((*buffer)[0] == -7, "what is there already stays");
    return {since(out.letters, 1), since(out.left, 1), since(out.right, 1), since(out.sequence, 1)};
}

std::size_t check_round_trip(const CompactModel& model, const Row& row) {
    const Code code = encoded(model, row);
    CHECK(decoded(model, code) == row, shown(row));
    return code.size();
}

// ---- the model -------------------------------------------------------------------------------------------------

bool adds_up(const CompactModel& model) {
    for (const Frequencies& table : model.tables)
        for (std::size_t row = 0; row < table.rows(); ++row) {
            const std::uint32_t* const ends = table.row(row);
            if (ends[0] != 0 || ends[table.size()] != Frequencies::kRowTotal) return false;
            for (std::size_t i = 0; i < table.size(); ++i)
                if (ends[i] >= ends[i + 1]) return false;
        }
    return true;
}

bool equal(const CompactModel& one, const CompactModel& other) {
    if (one.alphabet_size() != other.alphabet_size() || one.tables.size() != other.tables.size()) return false;
    for (std::size_t i = 0; i < one.tables.size(); ++i) {
        const Frequencies &a = one.tables[i], &b = other.tables[i];
        if (a.rows() != b.rows() || a.size() != b.size()) return false;
        if (!std::equal(a.row(0), a.row(0) + a.rows() * (a.size() + 1), b.row(0))) return false;
    }
    return true;
}

void check_model(const CompactModel& model, const std::string& name) {
    CHECK(adds_up(model), name);
    const std::vector<std::uint16_t> numbers = model.numbers();
    const CompactModel again = CompactModel::from_numbers(model.alphabet_size(), numbers);
    CHECK(equal(again, model) && again.numbers() == numbers, name);
}

void check_frequencies() {
    Random random(4);
    for (int round = 0; round < 300; ++round) {
        const std::size_t size = random.between(1, round % 2 ? 5 : 256);
        Frequencies table(2, size);
        std::vector<std::uint32_t> counts(size);
        for (std::uint32_t& count : counts)
            count = random.below(3) == 0 ? 0 : random.below(4) == 0 ? 0xFFFFFFFFu : random.below(1000);
        table.learn(1, counts);
        const std::uint32_t* const ends = table.row(1);
        CHECK(ends[0] == 0 && ends[size] == Frequencies::kRowTotal, "a row of " + std::to_string(size));
        for (std::size_t i = 0; i < size; ++i) CHECK(ends[i] < ends[i + 1], "a row of " + std::to_string(size));
    }
    Frequencies table(1, 3);
    table.set(0, std::array<std::uint16_t, 3>{1, 2, 32765});
    CHECK(table.row(0)[1] == 1 && table.row(0)[2] == 3 && table.row(0)[3] == 32768, "a row that is set");
    CHECK_THROWS((table.set(0, std::array<std::uint16_t, 3>{0, 3, 32765})), GrammarError,
                 "the model has a frequency of 0");
    CHECK_THROWS((table.set(0, std::array<std::uint16_t, 3>{1, 3, 32765})), GrammarError,
                 "the model has frequencies that do not add up");
    CHECK_THROWS((table.set(0, std::array<std::uint16_t, 3>{65535, 65535, 65535})), GrammarError, "do not add up");
}

void check_models() {
    check_frequencies();
    for (Symbol size : kSizes) {
        const CompactModel nothing = CompactModel::learn(size, {});
        check_model(nothing, "a model of no documents");
        check_model(learned(size, {{}, {}}), "a model of empty documents");
        check_round_trip(nothing, {});
        std::vector<std::uint16_t> numbers = nothing.numbers();
        const auto made = [&](std::vector<std::uint16_t> from) { CompactModel::from_numbers(size, from); };
        made(numbers);
        std::vector<std::uint16_t> other = numbers;
        other.pop_back();
        CHECK_THROWS(
            made(other), GrammarError,
            "the model has " + std::to_string(other.size()) + " frequencies, not " + std::to_string(numbers.size()));
        other = numbers;
        other.push_back(1);
        CHECK_THROWS(made(other), GrammarError, "frequencies, not " + std::to_string(numbers.size()));
        CHECK_THROWS(made({}), GrammarError, "the model has 0 frequencies, not ");
        for (std::size_t i : {std::size_t{0}, std::size_t{1}, numbers.size() / 2, numbers.size() - 1}) {
            other = numbers;
            other[i] = 0;
            CHECK_THROWS(made(other), GrammarError, "the model has a frequency of 0");
            other[i] = static_cast<std::uint16_t>(numbers[i] + 1);
            CHECK_THROWS(made(other), GrammarError, "the model has frequencies that do not add up");
        }
        CHECK_THROWS(CompactModel::from_numbers(size == 256 ? 255 : size + 1, numbers), GrammarError,
                     "frequencies, not ");
    }
    for (Symbol size : {Symbol{0}, Symbol{-1}, Symbol{257}, kMaxSymbol}) {
        CHECK_THROWS(CompactModel::learn(size, {}), GrammarError, "alphabets of 1 to 256 letters");
        CHECK_THROWS(CompactModel::from_numbers(size, {}), GrammarError, "alphabets of 1 to 256 letters");
    }
}

// ---- documents -------------------------------------------------------------------------------------------------

std::vector<Row> documents(Random& random, Symbol alphabet_size, bool sort = true) {
    std::vector<Row> rows{{}};
    for (int kind = 0; kind < static_cast<int>(Kind::count); ++kind)
        for (std::size_t length : {1u, 2u, 3u, 30u, 400u, 3000u})
            rows.push_back(
                repaired(make_text(static_cast<Kind>(kind), random, length, alphabet_size), alphabet_size, sort));
    return rows;
}

void check_documents() {
    Random random(5);
    for (Symbol size : kSizes) {
        const std::vector<Row> rows = documents(random, size), unsorted = documents(random, size, false);
        // Of them, of quite others, of nothing, and of one document only: anything can be coded with any.
        std::vector<Row> others;
        for (std::size_t length : {5u, 500u}) others.push_back(repaired(Text(length, size - 1), size));
        const CompactModel own = learned(size, rows), other = learned(size, others),
                           none = CompactModel::learn(size, {});
        check_model(own, "a model of documents");
        check_model(other, "a model of other documents");
        std::size_t with_own = 0, with_none = 0;
        for (const Row& row : rows) {
            with_own += check_round_trip(own, row);
            check_round_trip(other, row);
            with_none += check_round_trip(none, row);
        }
        CHECK(with_own <= with_none, "a model of " + std::to_string(size) + " letters is of use");
        for (const Row& row : unsorted) {
            check_round_trip(own, row);
            check_round_trip(other, row);
        }
        check_round_trip(learned(size, unsorted), unsorted.back());
        for (Symbol letter = 0; letter < size; letter += std::max(1, size / 8))
            check_round_trip(own, {{letter}, {}, {}, {0}});
        // A letter that is named but not used, and rules that nobody uses.
        check_round_trip(own, {{0}, {}, {}, {}});
        check_round_trip(own, {{0}, {0, 1, 0}, {0, 0, 2}, {}});
    }
}

// Letters first, then rules over anything defined before, in no order: steps of right operands go back and far.
Row random_row(Random& random, Symbol alphabet_size, std::uint32_t rules, std::uint32_t symbols) {
    Row row;
    for (Symbol letter = 0; letter < alphabet_size; ++letter)
        if (random.below(2)) row.letters.push_back(letter);
    if (row.letters.empty()) row.letters.push_back(random.terminal(alphabet_size));
    const auto letters = static_cast<std::uint32_t>(row.letters.size());
    for (std::uint32_t k = 0; k < rules; ++k) {
        row.left.push_back(static_cast<Symbol>(random.below(letters + k)));
        row.right.push_back(static_cast<Symbol>(random.below(2) ? random.below(letters + k) : letters + k - 1));
    }
    for (std::uint32_t i = 0; i < symbols; ++i)
        row.sequence.push_back(static_cast<Symbol>(random.below(letters + rules)));
    return row;
}

void check_unsorted() {
    Random random(6);
    for (int round = 0; round < 200; ++round) {
        const Symbol size = kSizes[random.below(5)];
        const std::uint32_t most = round % 20 == 0 ? 5000 : 60;
        const Row row = random_row(random, size, random.below(most), random.below(most)),
                  other = random_row(random, size, random.below(60), random.below(60));
        check_round_trip(learned(size, {row}), row);
        check_round_trip(learned(size, {other}), row);
    }
    // Steps around the largest that is told as itself, ahead and from the start.
    for (Symbol step = 55; step < 70; ++step) {
        Row row{{0}, {}, {}, {0}};
        for (Symbol k = 0; k < 140; ++k) {
            row.left.push_back(0);
            row.right.push_back(k < 100 ? 0 : k % 3 == 0 ? 1 : k % 3 == 1 ? 1 + step : step);
        }
        check_round_trip(CompactModel::learn(1, {}), row);
    }
}

// More than 2^16 rules that end with one letter are told in blocks; around the edges of these, too.
void check_crowds() {
    for (std::size_t rules : {65535u, 65536u, 65537u, 65538u, 131072u, 131073u}) {
        Row row{{0, 3}, {}, {}, {}};
        for (std::size_t k = 0; k < rules; ++k) {
            row.left.push_back(k % 5 == 0 ? static_cast<Symbol>(1 + k) : static_cast<Symbol>(k % 2));
            row.right.push_back(1);
        }
        for (std::size_t place : {0u, 1u, 65534u, 65535u, 65536u, 65537u, 131071u, 131072u})
            if (place < rules) row.sequence.push_back(static_cast<Symbol>(2 + place));
        row.sequence.insert(row.sequence.end(), {0, 1, static_cast<Symbol>(1 + rules)});
        check_round_trip(CompactModel::learn(4, {}), row);
        check_round_trip(learned(4, {row}), row);
    }
    Random random(7);
    const Text text = uniform(random, 150000, 4);
    const Row row = repaired(text, 4);
    CHECK(row.left.size() > 3000, "thousands of rules: " + std::to_string(row.left.size()));
    const CompactModel model = learned(4, {row});
    const std::size_t size = check_round_trip(model, row);
    CHECK(size < 4 * (row.left.size() + row.sequence.size()), std::to_string(size) + " bytes");
}

// A long run without rules is nearly free, but the decoder believes at most 8 symbols a byte.
void check_padding() {
    for (std::size_t length : {7u, 8u, 9u, 15u, 16u, 17u, 1000u, 100000u}) {
        const Row run{{0}, {}, {}, std::vector<Symbol>(length, 0)};
        const CompactModel model = learned(1, {run});
        const Code code = encoded(model, run);
        CHECK((code.size() + 1) * 4 >= length && code.size() <= length / 4 + 8, "a run of " + std::to_string(length));
        CHECK(decoded(model, code) == run, "a run of " + std::to_string(length));
        check_round_trip(learned(256, {{{7}, {}, {}, run.sequence}}), {{7}, {}, {}, run.sequence});
        Code cut = code;
        while (!cut.empty() && (cut.size() + 1) * 4 >= length) cut.pop_back();
        if (length > 100) CHECK_THROWS(decoded(model, cut), GrammarError, "claims more symbols than it can hold");

        Row chain{{0}, {}, {}, {0}};
        chain.left.assign(length, 0);
        chain.right.assign(length, 0);
        check_round_trip(learned(1, {chain}), chain);
    }
}

// ---- codes that are none ---------------------------------------------------------------------------------------

bool well_formed(const Row& row, Symbol alphabet_size) {
    if (row.left.size() != row.right.size()) return false;
    for (std::size_t i = 0; i < row.letters.size(); ++i)
        if (row.letters[i] < (i == 0 ? 0 : row.letters[i - 1] + 1) || row.letters[i] >= alphabet_size) return false;
    const auto letters = static_cast<Symbol>(row.letters.size());
    const auto rules = static_cast<Symbol>(row.left.size());
    for (Symbol k = 0; k < rules; ++k)
        for (Symbol symbol : {row.left[static_cast<std::size_t>(k)], row.right[static_cast<std::size_t>(k)]})
            if (symbol < 0 || symbol >= letters + k) return false;
    return std::all_of(row.sequence.begin(), row.sequence.end(),
                       [&](Symbol symbol) { return symbol >= 0 && symbol < letters + rules; });
}

// Whether it was a document; either way it must be well-formed or an error, of no more than the code can hold.
bool check_hostile(const CompactModel& model, const Code& code) {
    try {
        const Row row = decoded(model, code);
        CHECK(well_formed(row, model.alphabet_size()), shown(row));
        CHECK(row.left.size() + row.sequence.size() <= 4 * (code.size() + 1), shown(row));
        Output out;
        unpack(view(row), model.alphabet_size(), out);
        return true;
    } catch (const GrammarError& error) {
        CHECK(std::string(error.what()).find("its code ") == 0, error.what());
        return false;
    }
}

// A model that says that there are as many symbols, and as strange ones, as can be.
CompactModel boastful(Random& random, Symbol alphabet_size) {
    std::vector<std::uint16_t> numbers;
    const CompactModel plain(alphabet_size);
    for (const Frequencies& table : plain.tables)
        for (std::size_t row = 0; row < table.rows(); ++row) {
            std::vector<std::uint16_t> frequencies(table.size(), 1);
            const auto size = static_cast<std::uint32_t>(table.size());
            frequencies[random.below(3) == 0 ? size - 1 : random.below(size)] =
                static_cast<std::uint16_t>(Frequencies::kRowTotal - table.size() + 1);
            numbers.insert(numbers.end(), frequencies.begin(), frequencies.end());
        }
    return CompactModel::from_numbers(alphabet_size, numbers);
}

void check_hostile_codes() {
    Random random(8);
    for (Symbol size : kSizes) {
        const std::vector<Row> rows = documents(random, size);
        const CompactModel own = learned(size, rows), none = CompactModel::learn(size, {});
        std::size_t errors = 0, sound = 0;
        for (const CompactModel* model : {&own, &none}) {
            for (std::size_t i = 0; i < rows.size(); i += 3) {
                const Code code = encoded(*model, rows[i]);
                for (int trial = 0; trial < 12 && !code.empty(); ++trial) {
                    Code other = code;
                    const auto place = random.below(static_cast<std::uint32_t>(code.size()));
                    if (trial % 3 == 0) other.resize(place);
                    if (trial % 3 == 1) other[place] ^= static_cast<std::uint8_t>(1u << random.below(8));
                    if (trial % 3 == 2) other[random.below(std::min(4u, place + 1))] = 0xFF;
                    ++(check_hostile(*model, other) ? sound : errors);
                }
            }
        }
        CHECK(size == 1 || errors > 0, "codes over " + std::to_string(size) + " letters");
        CHECK(sound > 0, "codes over " + std::to_string(size) + " letters");
        for (int round = 0; round < 400; ++round) {
            Code code(random.below(round % 40 == 0 ? 5000 : 40));
            const std::uint32_t top = random.below(4) == 0 ? 2 : 256;
            for (std::uint8_t& byte : code) byte = static_cast<std::uint8_t>(256 - 1 - random.below(top));
            check_hostile(own, code);
            check_hostile(none, code);
            if (round % 4 == 0) check_hostile(boastful(random, size), code);
        }
        for (std::uint8_t byte : {0x00, 0x01, 0x7F, 0x80, 0xFF})
            for (std::size_t length : {0u, 1u, 4u, 5u, 3000u}) {
                check_hostile(own, Code(length, byte));
                check_hostile(none, Code(length, byte));
                for (int i = 0; i < 5; ++i) check_hostile(boastful(random, size), Code(length, byte));
            }
    }
}

}  // namespace
}  // namespace laconic::test

int main() {
    using namespace laconic::test;
    check_models();
    check_documents();
    check_unsorted();
    check_crowds();
    check_padding();
    check_hostile_codes();
    return report("compact");
}
