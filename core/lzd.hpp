// LZD (Goto, Bannai, Inenaga and Takeda 2015): each phrase is the longest known phrase, twice.
#pragma once

#include <cstdint>
#include <span>

#include "edges.hpp"
#include "grammar.hpp"
#include "terminal_names.hpp"

namespace laconic {

enum class LzdLetters {
    known,  // every terminal is a phrase from the start, as in Goto et al.
    seen,   // a terminal is a phrase once it has been one, as in the example of Sasaki et al. 2020
};

class Lzd {
public:
    // Appends the grammar of `text`, whose terminals are 0 … alphabet_size-1, to `out`. O(n) on real text.
    template <class Terminal>
    void compress(std::span<const Terminal> text, Symbol alphabet_size, LzdLetters letters, Output& out);

private:
    // A compact trie of the phrases: a node's string is text[where, where + depth). Node 1 + name is a terminal.
    struct Node {
        std::uint32_t where, depth;
        Symbol symbol;  // -1 if its string is no phrase
    };
    struct Match {
        std::uint32_t phrase;   // the longest phrase that the text goes on with, 0 if there is none
        std::uint32_t reached;  // the last node that the text passes
    };

    template <class Name>
    void parse(std::span<const Name> text, Symbol alphabet_size, Output& out);
    template <class Name>
    Match longest_phrase(std::span<const Name> text, std::size_t start) const;
    template <class Name>
    void add_phrase(std::span<const Name> text, std::size_t start, std::size_t length, std::uint32_t node,
                    Symbol symbol);
    std::uint32_t add_node(std::size_t where, std::size_t depth, Symbol symbol) {
        nodes_.push_back({static_cast<std::uint32_t>(where), static_cast<std::uint32_t>(depth), symbol});
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    }

    TerminalNames terminals_;
    Edges edges_;
    Buffer<Node> nodes_;
};

}  // namespace laconic
