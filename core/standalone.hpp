// Documents under a rulebook as grammars of their own: each with the shared rules that it needs among its rules.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "grammar.hpp"
#include "rulebook.hpp"

namespace laconic {

// What asks for no more than text, lengths and rules takes these, and knows nothing of rulebooks. The shared rules of a
// document come first, in their order, then its own.
class Standalone {
public:
    // Documents are over the symbols of `book` (terminals and shared ones alike); without one they are as they should
    // be already, and must outlive this. O(rules + sequence) each.
    Standalone(std::vector<GrammarView> documents, const Rulebook* book) : views_(std::move(documents)) {
        if (book == nullptr) return;
        names_.resize(static_cast<std::size_t>(book->symbols()));
        std::fill(names_.begin(), names_.end(), Symbol{kUnused});
        for (Symbol terminal = 0; terminal < book->alphabet_size(); ++terminal)
            names_[static_cast<std::size_t>(terminal)] = terminal;
        std::vector<std::pair<std::size_t, std::size_t>> begins{{0, 0}};
        for (const GrammarView& document : views_) {
            add(document, *book);
            begins.emplace_back(out_.rules.size(), out_.sequence.size());
        }
        const std::span<const Symbol> rules(out_.rules.data(), out_.rules.size());
        const std::span<const Symbol> sequence(out_.sequence.data(), out_.sequence.size());
        for (std::size_t i = 0; i < views_.size(); ++i)
            views_[i] = {book->alphabet_size(), rules.subspan(begins[i].first, begins[i + 1].first - begins[i].first),
                         sequence.subspan(begins[i].second, begins[i + 1].second - begins[i].second)};
    }

    std::span<const GrammarView> views() const { return views_; }

private:
    static constexpr Symbol kUnused = -1;

    void add(const GrammarView& document, const Rulebook& book) {
        needed_.clear();
        const auto need = [&](Symbol symbol) {
            if (symbol >= book.symbols() || names_[static_cast<std::size_t>(symbol)] != kUnused) return;
            names_[static_cast<std::size_t>(symbol)] = book.alphabet_size();  // until all are known
            needed_.push_back(symbol);
        };
        std::for_each(document.rules.begin(), document.rules.end(), need);
        std::for_each(document.sequence.begin(), document.sequence.end(), need);
        const auto rule_of = [&](Symbol symbol) {
            return book.rules().subspan(2 * static_cast<std::size_t>(symbol - book.alphabet_size()), 2);
        };
        for (std::size_t i = 0; i < needed_.size(); ++i) {
            const auto rule = rule_of(needed_[i]);
            need(rule[0]);
            need(rule[1]);
        }
        std::sort(needed_.begin(), needed_.end());
        for (std::size_t i = 0; i < needed_.size(); ++i)
            names_[static_cast<std::size_t>(needed_[i])] = book.alphabet_size() + static_cast<Symbol>(i);
        const Symbol moved = static_cast<Symbol>(needed_.size()) - static_cast<Symbol>(book.size());
        const auto name = [&](Symbol symbol) {
            return symbol < book.symbols() ? names_[static_cast<std::size_t>(symbol)] : symbol + moved;
        };
        for (const Symbol symbol : needed_) out_.add_rule(name(rule_of(symbol)[0]), name(rule_of(symbol)[1]));
        for (std::size_t k = 0; k < document.rule_count(); ++k)
            out_.add_rule(name(document.rules[2 * k]), name(document.rules[2 * k + 1]));
        const std::size_t begin = out_.sequence.size();
        out_.sequence.resize(begin + document.sequence.size());
        std::transform(document.sequence.begin(), document.sequence.end(), out_.sequence.begin() + begin, name);
        for (const Symbol symbol : needed_) names_[static_cast<std::size_t>(symbol)] = kUnused;
    }

    std::vector<GrammarView> views_;
    Output out_;
    Buffer<Symbol> names_;   // by symbol of the book: what it is called in a document; unused between documents
    Buffer<Symbol> needed_;  // shared symbols of a document
};

}  // namespace laconic
