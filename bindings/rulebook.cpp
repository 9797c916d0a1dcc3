// Rulebooks for Python: learning them; grammars.cpp has documents that are parsed with them.
#include "rulebook.hpp"

#include "arrays.hpp"
#include "learn.hpp"

namespace laconic {
namespace {

std::span<const WordKind> kinds_of(const Array<std::uint8_t>& kinds) {
    return {reinterpret_cast<const WordKind*>(kinds.data()), kinds.shape(0)};
}

SymbolPairs learned(const Terminals& text, const Array<std::int64_t>& offsets, Symbol alphabet_size,
                    const SymbolPairs& known, const Array<std::uint8_t>& kinds, std::uint32_t max_rules,
                    std::uint32_t min_documents, std::uint32_t max_expansion, unsigned threads) {
    const LearnOptions options{max_rules, min_documents, max_expansion};
    return field_of_pairs(with_terminals(text, [&](auto terminals) {
        return without_gil([&] {
            return learn_rules(terminals, view(offsets), alphabet_size, view(known), kinds_of(kinds), options, threads,
                               poll_signals);
        });
    }));
}

}  // namespace

void bind_rulebook(nb::module_& m) {
    nb::class_<Rulebook>(m, "Rulebook", "Shared rules, ready to parse with; laconic.Rulebook has more to say of them.")
        .def(
            "__init__",
            [](Rulebook* self, Symbol alphabet_size, const SymbolPairs& rules, std::size_t within,
               const Array<std::uint8_t>& kinds) {
                without_gil([&] { new (self) Rulebook(alphabet_size, view(rules), within, kinds_of(kinds)); });
            },
            "alphabet_size"_a, "rules"_a, "within"_a, "kinds"_a);
    m.def("learn_rules", learned, "text"_a, "offsets"_a, "alphabet_size"_a, "known"_a, "kinds"_a, "max_rules"_a,
          "min_documents"_a, "max_expansion"_a, "threads"_a);
}

}  // namespace laconic
