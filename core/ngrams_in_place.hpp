// Where the n-grams of documents stand: at the one join that each of them straddles, of a node or of a sequence.
#pragma once

#include <cstdint>
#include <span>

#include "buffer.hpp"
#include "grammar.hpp"

namespace laconic {

// Entries, each an n-gram hashed to a bucket. A node has those that lie across its two operands (a terminal has
// itself), so that all n-grams of what a node stands for are its own and its operands'. A place of a sequence has those
// that end in its symbol and begin before it: they and its node's are all n-grams that end there.
struct PlacedNgrams {
    Buffer<Symbol> nodes;  // ascending
    Buffer<std::int32_t> node_buckets;
    Buffer<std::int64_t> places;  // the position in its document times the number of documents, plus the document
    Buffer<std::int32_t> place_buckets;
};

class PlaceReader {
public:
    // N-grams of 1 to `longest` terminals. `children` are a forest's (forest.hpp), `sequence` the documents' over its
    // nodes, end to end, document d from offsets[d] to offsets[d + 1]. O(longest² · (nodes + symbols)).
    void read(Symbol alphabet_size, std::span<const Symbol> children, std::span<const Symbol> sequence,
              std::span<const std::int64_t> offsets, unsigned longest, std::uint32_t buckets, PlacedNgrams& out);

private:
    Buffer<Symbol> edges_;          // of each node above terminals: its first, then its last, `longest` - 1 at most
    Buffer<std::uint8_t> lengths_;  // of each: its terminals, or as many as those
};

inline constexpr unsigned kLongestInPlace = 64;

}  // namespace laconic
