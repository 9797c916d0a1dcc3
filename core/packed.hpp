// How grammars lie in a file (FORMAT.md): each over the letters that occur in it, its rules in two columns.
#pragma once

#include <span>

#include "buffer.hpp"
#include "grammar.hpp"

namespace laconic {

// Packed grammars, end to end. Symbols 0 … L-1 of a document are its L letters, ascending; L + k is its rule k.
struct Packed {
    Buffer<Symbol> letters, left, right, sequence;
};

// One packed grammar that somebody else holds.
struct PackedView {
    std::span<const Symbol> letters, left, right, sequence;
};

class Packer {
public:
    // Appends the grammar, which must have passed check(), to `out`. The order of rules is free as long as operands
    // come first: with `sort` they are put in order of level, then right, then left, which general compressors like.
    void pack(const GrammarView& grammar, bool sort, Packed& out);

private:
    void find_letters(const GrammarView& grammar);
    void sort_by_depth(const GrammarView& grammar);
    void sort_level(Symbol defined);
    template <class Name>
    void order_rules(const GrammarView& grammar, bool sort, Symbol* names, Name name);
    template <class Name>
    void write(const GrammarView& grammar, Packed& out, Name name) const;

    struct Rule {
        Symbol left, right, number;
    };
    Buffer<std::uint8_t> seen_;           // by letter, if the alphabet is small; all 0 between documents
    Buffer<Symbol> letters_;              // that occur, ascending
    Buffer<Symbol> names_;                // by symbol, if the alphabet is small, else by rule: its packed symbol
    Buffer<std::int32_t> depths_, ends_;  // by rule; by depth
    Buffer<Symbol> order_;                // rules, as they are packed
    Buffer<Rule> level_, sorted_;         // the rules of one level
    Buffer<std::uint32_t> counts_;        // by symbol
};

// Appends the grammar to `out`. Throws GrammarError for what is none over 0 … alphabet_size-1.
void unpack(const PackedView& packed, Symbol alphabet_size, Output& out);

}  // namespace laconic
