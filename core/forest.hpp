// The rules of a batch of documents as one forest: equal rules are one node, and each level is one contiguous slice.
#pragma once

#include <cstdint>
#include <span>

#include "buffer.hpp"
#include "edges.hpp"
#include "grammar.hpp"
#include "rulebook.hpp"

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
    Buffer<std::int32_t> shared;   // by node: the rule of the rulebook that has the same operands, or -1
};

class Planter {
public:
    // Rules that no sequence needs are left out. With `merge` equal rules of all documents are one node; without, each
    // rule of a document is. Documents must have passed check(). With `book`, they are over its symbols, terminals and
    // shared ones alike, and each shared rule that they need is one node. O(alphabet_size + rules + symbols).
    void plant(Symbol alphabet_size, std::span<const GrammarView> documents, bool merge, Forest& out,
               const Rulebook* book = nullptr);

private:
    void find_needed(const GrammarView& document);
    void add_shared(std::span<const GrammarView> documents);
    void add_document(const GrammarView& document, bool merge);
    Symbol add_node(Symbol left, Symbol right, bool merge);
    Symbol node(Symbol symbol) const {
        return symbol < alphabet_size_ ? symbol : nodes_[static_cast<std::size_t>(symbol - alphabet_size_)];
    }
    Symbol shared_symbol(Symbol node) const;
    void sort_by_level(Forest& out);

    Edges edges_;                  // (left + 1, right) -> node
    Buffer<Symbol> children_;      // of nodes as they are found
    Buffer<std::int32_t> levels_;  // of those
    Buffer<std::int32_t> shared_;  // of those
    Buffer<std::uint8_t> needed_;  // by rule: the rulebook's, then a document's
    Buffer<Symbol> nodes_;         // by rule, likewise
    Buffer<Symbol> sequence_;
    Buffer<Symbol> final_;  // by node as found: its number in the end
    Buffer<std::uint64_t> fingerprints_;
    Symbol alphabet_size_ = 0;
    const Rulebook* book_ = nullptr;
    std::size_t shared_rules_ = 0;
};

}  // namespace laconic
