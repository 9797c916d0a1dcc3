// The rules of a batch of documents as one forest: equal rules are one node, and each level is one contiguous slice.
#pragma once

#include <cstdint>
#include <span>

#include "buffer.hpp"
#include "edges.hpp"
#include "grammar.hpp"

namespace laconic {

// Nodes 0 … alphabet_size-1 are the terminals; node alphabet_size + i has the operands children[2i] and children[2i+1],
// smaller nodes both. Level l has the nodes level_offsets[l] … level_offsets[l+1]-1, counted from the first that is no
// terminal; all its operands are terminals or of levels before it, one at least of the level before.
struct Forest {
    Buffer<Symbol> children;
    Buffer<std::int64_t> level_offsets;
    Buffer<Symbol> sequence;       // of all documents, end to end, in nodes
    Buffer<std::int64_t> lengths;  // by node: terminals that it stands for; 2^63 - 1 means more
    Buffer<std::uint64_t> hashes;  // by node: of those terminals alone, the same in every batch
};

class Planter {
public:
    // Rules that no sequence needs are left out. With `merge` equal rules of all documents are one node; without, each
    // rule is. Documents must have passed check(). O(alphabet_size + rules + symbols).
    void plant(Symbol alphabet_size, std::span<const GrammarView> documents, bool merge, Forest& out);

private:
    void add_document(const GrammarView& document, bool merge);
    void sort_by_level(Symbol alphabet_size, Forest& out);

    Edges edges_;                  // (left + 1, right) -> node
    Buffer<Symbol> children_;      // of nodes as they are found
    Buffer<std::int32_t> levels_;  // of those
    Buffer<std::uint8_t> needed_;  // by rule of a document
    Buffer<Symbol> nodes_;         // by rule of a document
    Buffer<Symbol> sequence_;
    Buffer<Symbol> final_;  // by node as found: its number in the end
    Buffer<std::uint64_t> fingerprints_;
    Symbol alphabet_size_ = 0;
};

}  // namespace laconic
