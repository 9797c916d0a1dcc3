// Letters and copies (LZ77) to a grammar, without the text that they stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "buffer.hpp"
#include "checksums.hpp"
#include "edges.hpp"
#include "grammar.hpp"

namespace laconic {

// Every copy becomes one symbol of the sequence: what of its source is whole symbols is joined there too, so that the
// next copy finds one (Kempa and Langmead 2021 call this lazy); symbols at its edges are cut along their rules. Equal
// pairs are one rule. Joins take the lowest symbols first, and pairs that are rules already before all others. No rule
// is higher than 2 log2(length) + 6, so a token takes O(log n) time and memory, however long its copy is.
class LzToGrammar {
public:
    // Begins a document; `tokens` is about how many there will be.
    void start(Symbol alphabet_size, std::size_t tokens);

    // Both throw GrammarError for a document that is too long, letter() for one outside the alphabet.
    void letter(Symbol letter);
    void copy(std::uint32_t length, std::uint32_t distance);  // of what is there; 0 < distance < 2^16

    // How many terminals there are so far.
    std::size_t length();

    // The checksum (Crc32, Adler32) of all terminals from position `begin` on, which no later copy may reach across.
    template <class Sum>
    std::uint32_t checksum(std::size_t begin);

    // Appends the grammar of terminals [begin, end) to `out`.
    void write(std::size_t begin, std::size_t end, Output& out);

private:
    bool is_letter(Symbol symbol) const { return symbol < alphabet_size_; }
    const Symbol* rule(Symbol symbol) const {
        return rules_.data() + 2 * static_cast<std::size_t>(symbol - alphabet_size_);
    }
    std::uint32_t length_of(Symbol symbol) const { return lengths_[static_cast<std::size_t>(symbol)]; }
    int height_of(Symbol symbol) const { return heights_[static_cast<std::size_t>(symbol)]; }
    Symbol known_pair(Symbol left, Symbol right) const;  // 0 if there is none: no rule has the number of a letter
    Symbol pair(Symbol left, Symbol right);

    void append(Symbol symbol);
    bool goes_on(std::size_t length, std::size_t distance);
    void add_window(std::size_t begin, std::size_t length);
    void finish_copy();
    Symbol power(Symbol symbol, std::size_t times);
    Symbol phrase(std::size_t begin, std::size_t end);
    Symbol join();
    void join_lowest_first();
    void shorten(Buffer<Symbol>& symbols) const;
    void add_parts(Symbol symbol, std::uint32_t begin, std::uint32_t end);
    void add_low_parts(Symbol symbol, int most);

    std::size_t slot_at(std::size_t position);
    std::size_t end_of(std::size_t slot) const { return begins_[slot] + length_of(roots_[slot]); }
    std::size_t next_slot(std::size_t slot) const;
    void merge_roots(std::size_t first, std::size_t last, Symbol symbol);

    Symbol alphabet_size_ = 1;
    std::size_t size_ = 0;                             // terminals, without the copy that is not finished
    std::size_t copy_length_ = 0, copy_distance_ = 0;  // unfinished: copies from the same distance are one
    Buffer<Symbol> rules_;
    Buffer<std::uint32_t> lengths_;  // by symbol
    Buffer<std::uint8_t> heights_;
    Edges pairs_;  // (left + 1, right) -> symbol
    // The sequence: a slot for each token. Where symbols have been joined, the first slot has the new one, and the
    // others, below 0, say how many slots before them one is that knows more.
    Buffer<Symbol> roots_;
    Buffer<std::uint32_t> begins_;  // by slot: where its token began
    Buffer<Symbol> parts_, some_;
    Buffer<Crc32> crcs_;  // by rule, as far as they were asked for
    Buffer<Adler32> adlers_;
};

}  // namespace laconic
