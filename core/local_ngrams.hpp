// Where the n-grams of documents stand: at the one join that each of them straddles, of a node or of a sequence.
#pragma once

#include <cstdint>
#include <span>

#include "buffer.hpp"
#include "grammar.hpp"

namespace laconic {

// Entries, each an n-gram hashed to a bucket. A node has those that lie across its two operands (a letter has itself),
// so that all n-grams of what a node stands for are its own and its operands'. A place of a sequence has those that end
// in its symbol and begin before it: they and its node's are all n-grams that end there.
struct Placed {
    Buffer<Symbol> nodes;  // ascending
    Buffer<std::int32_t> node_buckets;
    Buffer<std::int64_t> places;  // the position in its document times the number of documents, plus the document
    Buffer<std::int32_t> place_buckets;
};

class LocalReader {
public:
    // N-grams of 1 to `letters` letters. `children` are a forest's (forest.hpp), `sequence` the documents' over its
    // nodes, end to end, document d from offsets[d] to offsets[d + 1]. O(letters² · (nodes + symbols)).
    void read(Symbol alphabet_size, std::span<const Symbol> children, std::span<const Symbol> sequence,
              std::span<const std::int64_t> offsets, unsigned letters, std::uint32_t buckets, Placed& out);

private:
    Buffer<Symbol> edges_;          // of each node that is no letter: its first letters, then its last, all but one
    Buffer<std::uint8_t> lengths_;  // of each: its letters, or as many as those
};

inline constexpr unsigned kLongestLocalNgram = 64;

}  // namespace laconic
