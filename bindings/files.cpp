// For Python: grammars as they lie in files, packed and compact.
#include <nanobind/stl/pair.h>

#include "arrays.hpp"
#include "compact.hpp"
#include "packed.hpp"

namespace laconic {
namespace {

// Packed grammars that NumPy holds, whose offsets have been checked.
struct PackedGrammars {
    Array<Symbol> letters;
    Array<std::int64_t> letter_offsets;
    Array<Symbol> left, right;
    Array<std::int64_t> rule_offsets;
    Array<Symbol> sequence;
    Array<std::int64_t> sequence_offsets;

    std::size_t count() const { return rule_offsets.shape(0) - 1; }
    PackedView operator[](std::size_t i) const {
        return {part(view(letters), letter_offsets, i), part(view(left), rule_offsets, i),
                part(view(right), rule_offsets, i), part(view(sequence), sequence_offsets, i)};
    }
};

// Packed grammars as they are written, and where each ends.
struct GrammarPacking {
    Packed packed;
    Buffer<std::int64_t> letter_offsets, rule_offsets, sequence_offsets;

    GrammarPacking() { end(); }
    void end() {
        letter_offsets.push_back(static_cast<std::int64_t>(packed.letters.size()));
        rule_offsets.push_back(static_cast<std::int64_t>(packed.left.size()));
        sequence_offsets.push_back(static_cast<std::int64_t>(packed.sequence.size()));
    }
    PackedGrammars to_python() {
        return {field(std::move(packed.letters)),  field(std::move(letter_offsets)), field(std::move(packed.left)),
                field(std::move(packed.right)),    field(std::move(rule_offsets)),   field(std::move(packed.sequence)),
                field(std::move(sequence_offsets))};
    }
};

PackedGrammars pack(const Grammars& grammars, bool sort) {
    GrammarPacking packing;
    without_gil([&] {
        Packer packer;
        packing.packed.left.reserve(grammars.rules.shape(0));
        packing.packed.right.reserve(grammars.rules.shape(0));
        packing.packed.sequence.reserve(grammars.sequence.shape(0));
        for (std::size_t i = 0; i < grammars.count(); ++i) {
            packer.pack(grammars[i], sort, packing.packed);
            packing.end();
        }
    });
    return packing.to_python();
}

Grammars unpack_all(const PackedGrammars& packed, Symbol alphabet_size, std::shared_ptr<Rulebook> rulebook) {
    const Symbol letters = rulebook ? rulebook->symbols() : alphabet_size;
    Output out;
    without_gil([&] {
        out.rules.reserve(2 * packed.left.shape(0));
        out.sequence.reserve(packed.sequence.shape(0));
        for_each_document(packed.count(), [&](std::size_t i) { unpack(packed[i], letters, out); });
    });
    return {alphabet_size,           field_of_pairs(std::move(out.rules)),
            packed.rule_offsets,     field(std::move(out.sequence)),
            packed.sequence_offsets, std::move(rulebook)};
}

// The numbers that make a CompactModel.
Array<std::uint16_t> learn_compact(const PackedGrammars& packed, Symbol alphabet_size,
                                   const std::shared_ptr<Rulebook>& book) {
    Buffer<std::uint16_t> numbers;
    without_gil([&] {
        std::vector<PackedView> documents;
        for (std::size_t i = 0; i < packed.count(); ++i) documents.push_back(packed[i]);
        for (std::uint16_t number : CompactModel::learn(alphabet_size, documents, book.get()).numbers())
            numbers.push_back(number);
    });
    return to_numpy(std::move(numbers));
}

auto encode_compact(const PackedGrammars& packed, Symbol alphabet_size, const Array<std::uint16_t>& model,
                    const std::shared_ptr<Rulebook>& book) {
    Buffer<std::uint8_t> codes;
    Buffer<std::int64_t> offsets;
    without_gil([&] {
        const CompactModel known = CompactModel::from_numbers(alphabet_size, view(model), book.get());
        CompactCoder coder(known);
        offsets.push_back(0);
        for_each_document(packed.count(), [&](std::size_t i) {
            coder.encode(packed[i], codes);
            offsets.push_back(static_cast<std::int64_t>(codes.size()));
        });
    });
    return std::pair(to_numpy(std::move(codes)), to_numpy(std::move(offsets)));
}

PackedGrammars decode_compact(const Array<std::uint8_t>& codes, const Array<std::int64_t>& offsets,
                              Symbol alphabet_size, const Array<std::uint16_t>& model,
                              const std::shared_ptr<Rulebook>& book) {
    GrammarPacking packing;
    without_gil([&] {
        const CompactModel known = CompactModel::from_numbers(alphabet_size, view(model), book.get());
        CompactCoder coder(known);
        for_each_document(offsets.shape(0) - 1, [&](std::size_t i) {
            coder.decode(part(view(codes), offsets, i), packing.packed);
            packing.end();
        });
    });
    return packing.to_python();
}

}  // namespace

void bind_files(nb::module_& m) {
    nb::class_<PackedGrammars>(m, "PackedGrammars",
                               "Grammars of many documents as they lie in files, laid end to end. Offsets are trusted.")
        .def(nb::init<Array<Symbol>, Array<std::int64_t>, Array<Symbol>, Array<Symbol>, Array<std::int64_t>,
                      Array<Symbol>, Array<std::int64_t>>(),
             "letters"_a, "letter_offsets"_a, "left"_a, "right"_a, "rule_offsets"_a, "sequence"_a, "sequence_offsets"_a)
        .def_ro("letters", &PackedGrammars::letters)
        .def_ro("letter_offsets", &PackedGrammars::letter_offsets)
        .def_ro("left", &PackedGrammars::left)
        .def_ro("right", &PackedGrammars::right)
        .def_ro("rule_offsets", &PackedGrammars::rule_offsets)
        .def_ro("sequence", &PackedGrammars::sequence)
        .def_ro("sequence_offsets", &PackedGrammars::sequence_offsets);
    m.def("pack", pack, "grammars"_a, "sort"_a);
    m.def("unpack", unpack_all, "packed"_a, "alphabet_size"_a, "rulebook"_a.none());
    const auto rulebook = "rulebook"_a.none() = nb::none();
    m.def("learn_compact", learn_compact, "packed"_a, "alphabet_size"_a, rulebook);
    m.def("encode_compact", encode_compact, "packed"_a, "alphabet_size"_a, "model"_a, rulebook);
    m.def("decode_compact", decode_compact, "codes"_a, "offsets"_a, "alphabet_size"_a, "model"_a, rulebook);
}

}  // namespace laconic
