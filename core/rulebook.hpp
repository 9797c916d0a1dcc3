// A rulebook: rules that documents share, and documents parsed with them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "buffer.hpp"
#include "cells.hpp"
#include "codecs.hpp"
#include "edges.hpp"
#include "grammar.hpp"
#include "words.hpp"

namespace laconic {

// Rule k defines symbol alphabet_size + k by two smaller ones. No two rules are alike. The first `within` keep within
// words, and are applied to all of them before the others, which may cross words.
class Rulebook {
public:
    // `kinds` are of terminals, and may be empty if `within` is 0. Throws GrammarError for rules that are none.
    Rulebook(Symbol alphabet_size, std::span<const Symbol> rules, std::size_t within, std::span<const WordKind> kinds);

    Symbol alphabet_size() const { return alphabet_size_; }
    std::size_t size() const { return rules_.size() / 2; }
    std::size_t within() const { return within_; }
    // How many there are, terminals and shared: the first private one.
    Symbol symbols() const { return alphabet_size_ + static_cast<Symbol>(size()); }
    std::span<const Symbol> rules() const { return {rules_.data(), rules_.size()}; }
    std::span<const WordKind> kinds() const { return {kinds_.data(), kinds_.size()}; }

    // The number of the rule that has these operands, plus 1; 0 if none has.
    std::uint32_t find(Symbol left, Symbol right) const {
        return pairs_.find(static_cast<std::uint32_t>(left) + 1, static_cast<std::uint32_t>(right));
    }

private:
    Symbol alphabet_size_;
    std::size_t within_;
    Buffer<Symbol> rules_;
    Buffer<WordKind> kinds_;
    Edges pairs_;  // (left + 1, right) -> rule + 1
};

// Replaces pairs by the rules from `first` up to `last`, each wherever it is found from left to right, as Re-Pair did
// when it learned them.
class Parser {
public:
    Parser(const Rulebook& book, std::size_t first, std::size_t last) : book_(&book), from_(first), to_(last) {}

    // Appends what is left of a text to `out`, which must be another. O(n log n) at worst.
    template <class Terminal>
    void parse(std::span<const Terminal> text, Buffer<Symbol>& out);

private:
    void replace_all();
    void meet(std::size_t p);

    struct Place {
        std::uint32_t cell, next;  // the next of the same rule, plus 1
    };

    const Rulebook* book_;
    std::size_t from_, to_;
    Cells<Symbol, std::uint32_t> cells_;  // symbols plus 1, and rules plus 1 of the pairs that start there
    Buffer<Place> places_;
    Buffer<std::uint32_t> first_;    // by rule: its first place, plus 1; all 0 between words
    Buffer<std::uint32_t> waiting_;  // rules that have places, a heap with the smallest on top
    Buffer<std::uint32_t> sorted_;
};

// A compressor of what is left of documents once they are parsed: to `inner`, the symbols of the rulebook are
// terminals.
std::unique_ptr<Compressor> under_rulebook(std::shared_ptr<const Rulebook> book, std::unique_ptr<Compressor> inner);

}  // namespace laconic
