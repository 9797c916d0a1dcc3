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

// Rule k defines symbol alphabet_size + k by two smaller ones. No two rules are alike.
class Rulebook {
public:
    // `kinds` are of terminals, or empty: then rules may cross words. Throws GrammarError for rules that are none.
    Rulebook(Symbol alphabet_size, std::span<const Symbol> rules, std::span<const WordKind> kinds);

    Symbol alphabet_size() const { return alphabet_size_; }
    std::size_t size() const { return rules_.size() / 2; }
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
    Buffer<Symbol> rules_;
    Buffer<WordKind> kinds_;
    Edges pairs_;  // (left + 1, right) -> rule + 1
};

// Replaces pairs rule by rule, each wherever it is found from left to right, as Re-Pair did when it learned them.
class Parser {
public:
    explicit Parser(const Rulebook& book) : book_(&book) {}

    // Appends the symbols of a word (words.hpp) to `out`. O(n log n) at worst.
    template <class Terminal>
    void parse(std::span<const Terminal> word, Buffer<Symbol>& out);

private:
    void replace_all();
    void meet(std::size_t p);

    struct Place {
        std::uint32_t cell, next;  // the next of the same rule, plus 1
    };

    const Rulebook* book_;
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
