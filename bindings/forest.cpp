// For Python: forests, and n-grams in their places.
#include "forest.hpp"

#include "arrays.hpp"
#include "ngrams_in_place.hpp"

namespace laconic {
namespace {

struct ForestArrays {
    ForestArrays(const Grammars& grammars, bool merge)
        : alphabet_size(grammars.alphabet_size), sequence_offsets(grammars.sequence_offsets) {
        Forest forest;
        without_gil([&] {
            thread_local Planter planter;
            planter.plant(alphabet_size, grammars.written(), merge, forest, grammars.rulebook.get());
        });
        children = field_of_pairs(std::move(forest.children));
        level_offsets = field(std::move(forest.level_offsets));
        sequence = field(std::move(forest.sequence));
        lengths = field(std::move(forest.lengths));
        hashes = field(std::move(forest.hashes));
        shared = field(std::move(forest.shared));
    }

    Symbol alphabet_size;
    SymbolPairs children;
    Array<std::int64_t> level_offsets;
    Array<Symbol> sequence;
    Array<std::int64_t> sequence_offsets, lengths;
    Array<std::uint64_t> hashes;
    Array<std::int32_t> shared;
};

struct PlacedArrays {
    Array<Symbol> nodes;
    Array<std::int32_t> node_buckets;
    Array<std::int64_t> places;
    Array<std::int32_t> place_buckets;
};

PlacedArrays place_ngrams(const ForestArrays& forest, unsigned longest, std::uint32_t buckets) {
    PlacedNgrams found;
    without_gil([&] {
        thread_local PlaceReader reader;
        reader.read(forest.alphabet_size, view(forest.children), view(forest.sequence), view(forest.sequence_offsets),
                    longest, buckets, found);
    });
    return {field(std::move(found.nodes)), field(std::move(found.node_buckets)), field(std::move(found.places)),
            field(std::move(found.place_buckets))};
}

}  // namespace

void bind_forest(nb::module_& m) {
    nb::class_<ForestArrays>(m, "Forest", "The arrays of a laconic.forest.Forest, which has more to say of them.")
        .def(nb::init<const Grammars&, bool>(), "grammars"_a, "merge"_a)
        .def_ro("alphabet_size", &ForestArrays::alphabet_size)
        .def_ro("children", &ForestArrays::children)
        .def_ro("level_offsets", &ForestArrays::level_offsets)
        .def_ro("sequence", &ForestArrays::sequence)
        .def_ro("sequence_offsets", &ForestArrays::sequence_offsets)
        .def_ro("lengths", &ForestArrays::lengths)
        .def_ro("hashes", &ForestArrays::hashes)
        .def_ro("shared", &ForestArrays::shared);

    nb::class_<PlacedArrays>(m, "PlacedNgrams",
                             R"(N-grams of a forest's documents, hashed to buckets: entries of nodes, and of places.

A node has those that straddle its two operands, a terminal itself: with its operands' they are
all that it stands for. A place of a sequence has those that begin before it and end in its
symbol. Place t of document d is numbered t * documents + d.)")
        .def_ro("nodes", &PlacedArrays::nodes, "int32 [K], ascending.")
        .def_ro("node_buckets", &PlacedArrays::node_buckets, "int32 [K].")
        .def_ro("places", &PlacedArrays::places, "int64 [L].")
        .def_ro("place_buckets", &PlacedArrays::place_buckets, "int32 [L].");
    m.def("place_ngrams", place_ngrams, "forest"_a, "longest"_a, "buckets"_a);
}

}  // namespace laconic
