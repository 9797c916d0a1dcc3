// LZ78 (Ziv and Lempel 1978), in the compact form: phrases of one terminal are that terminal, the rest are rules.
#pragma once

#include <cstdint>
#include <span>

#include "edges.hpp"
#include "grammar.hpp"
#include "terminal_names.hpp"

namespace laconic {

// Each phrase is the longest phrase seen so far plus one terminal; the last may be a phrase seen before.
class Lz78 {
public:
    // Appends the grammar of `text`, whose terminals are 0 … alphabet_size-1, to `out`. O(n) time expected.
    template <class Terminal>
    void compress(std::span<const Terminal> text, Symbol alphabet_size, Output& out);

private:
    template <class Name>
    void parse(std::span<const Name> text, Symbol alphabet_size, Output& out);

    TerminalNames terminals_;
    Edges edges_;
    Buffer<Symbol> phrases_;  // by node: its symbol; node 1 + name is a terminal, -1 while not seen as a phrase
};

}  // namespace laconic
