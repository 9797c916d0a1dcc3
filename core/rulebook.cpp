#include "rulebook.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <utility>

namespace laconic {

Rulebook::Rulebook(Symbol alphabet_size, std::span<const Symbol> rules, std::size_t within,
                   std::span<const WordKind> kinds)
    : alphabet_size_(alphabet_size), within_(within) {
    check({alphabet_size, rules, {}});
    if (within > rules.size() / 2) throw GrammarError("there are fewer rules than shall keep within words");
    if (within > 0 && kinds.size() != static_cast<std::size_t>(alphabet_size))
        throw GrammarError("there must be a kind for each terminal");
    rules_.append(rules.data(), rules.size());
    kinds_.append(kinds.data(), kinds.size());
    pairs_.reset(2 * size());
    for (std::size_t k = 0; k < size(); ++k) {
        std::uint32_t& rule =
            pairs_.at(static_cast<std::uint32_t>(rules[2 * k]) + 1, static_cast<std::uint32_t>(rules[2 * k + 1]));
        if (rule != 0)
            throw GrammarError("rule " + std::to_string(k) + " is rule " + std::to_string(rule - 1) + " again");
        rule = static_cast<std::uint32_t>(k + 1);
        pairs_.added();
    }
}

template <class Terminal>
void Parser::parse(std::span<const Terminal> text, Buffer<Symbol>& out) {
    check_length(text.size());
    while (first_.size() < book_->size()) first_.push_back(0);
    cells_.reset(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) cells_.set(i + 1, static_cast<Symbol>(text[i]) + 1);
    replace_all();
    for (std::size_t p = 1; p + 1 < cells_.size(); p = cells_.next(p)) out.push_back(cells_[p] - 1);
}

// Notes which rule the pair that starts in a cell is, if any.
void Parser::meet(std::size_t p) {
    const Symbol left = cells_[p], right = cells_[cells_.next(p)];
    const std::uint32_t rule = left == 0 || right == 0 ? 0 : book_->find(left - 1, right - 1);
    const bool is_mine = from_ < rule && rule <= to_;
    cells_.pair(p) = is_mine ? rule : 0;
    if (!is_mine) return;
    std::uint32_t& first = first_[rule - 1];
    if (first == 0) {
        waiting_.push_back(rule - 1);
        std::push_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    }
    places_.push_back({static_cast<std::uint32_t>(p), first});
    first = static_cast<std::uint32_t>(places_.size());
}

// A replacement makes only pairs of later rules, so that each rule comes up once and no place of it is missed.
void Parser::replace_all() {
    places_.clear();
    for (std::size_t p = 1; p + 1 < cells_.size(); ++p) meet(p);
    while (waiting_.size() > 0) {
        std::pop_heap(waiting_.begin(), waiting_.end(), std::greater<>());
        const std::size_t rule = waiting_[waiting_.size() - 1];
        waiting_.resize(waiting_.size() - 1);
        sorted_.clear();
        for (std::uint32_t at = std::exchange(first_[rule], 0); at != 0; at = places_[at - 1].next)
            sorted_.push_back(places_[at - 1].cell);
        // Only places of a pair aa can overlap: there the order matters.
        if (book_->rules()[2 * rule] == book_->rules()[2 * rule + 1]) std::sort(sorted_.begin(), sorted_.end());
        const Symbol symbol = book_->alphabet_size() + static_cast<Symbol>(rule) + 1;
        for (const std::uint32_t p : sorted_) {
            if (cells_.pair(p) != rule + 1) continue;
            const std::size_t q = cells_.next(p);
            cells_.pair(q) = 0;
            cells_.join(p, q, cells_.next(q), symbol);
            meet(cells_.previous(p));
            meet(p);
        }
    }
}

template void Parser::parse(std::span<const std::uint8_t>, Buffer<Symbol>&);
template void Parser::parse(std::span<const std::uint16_t>, Buffer<Symbol>&);
template void Parser::parse(std::span<const std::int32_t>, Buffer<Symbol>&);

namespace {

// Parses texts word by word, and keeps what short words became: most of a text are words seen before.
template <class Terminal>
class WordCache {
public:
    void parse(std::span<const Terminal> text, const Rulebook& book, Parser& parser, Buffer<Symbol>& out) {
        for (std::size_t begin = 0, end; begin < text.size(); begin = end) {
            end = end_of_word(text, begin, book.kinds());
            const auto word = text.subspan(begin, end - begin);
            if (word.size() > kLongest || words_.size() >= kMost) {
                parser.parse(word, out);
                continue;
            }
            const std::uint32_t number = words_.number(word);
            if (number + 1 == ends_.size()) {
                parser.parse(word, symbols_);
                ends_.push_back(symbols_.size());
            }
            out.append(symbols_.data() + ends_[number], ends_[number + 1] - ends_[number]);
        }
    }

private:
    static constexpr std::size_t kLongest = 64, kMost = 1 << 18;
    WordTable<Terminal> words_;
    Buffer<Symbol> symbols_;
    Buffer<std::size_t> ends_ = [] {
        Buffer<std::size_t> ends;
        ends.push_back(0);
        return ends;
    }();
};

class Parsing final : public Compressor {
public:
    Parsing(std::shared_ptr<const Rulebook> book, std::unique_ptr<Compressor> inner)
        : book_(std::move(book)),
          inner_(std::move(inner)),
          words_(*book_, 0, book_->within()),
          texts_(*book_, book_->within(), book_->size()) {}

    void compress(std::span<const std::uint8_t> text, Symbol, Output& out) override { parsed(text, out); }
    void compress(std::span<const std::uint16_t> text, Symbol, Output& out) override { parsed(text, out); }
    void compress(std::span<const std::int32_t> text, Symbol, Output& out) override { parsed(text, out); }

private:
    template <class Terminal>
    void parsed(std::span<const Terminal> text, Output& out) {
        symbols_.clear();
        if (book_->within() == 0) {
            texts_.parse(text, symbols_);
        } else {
            std::get<WordCache<Terminal>>(caches_).parse(text, *book_, words_, symbols_);
            if (book_->within() < book_->size()) {
                std::swap(symbols_, of_words_);
                symbols_.clear();
                texts_.parse(std::span<const Symbol>(of_words_.data(), of_words_.size()), symbols_);
            }
        }
        inner_->compress(std::span<const Symbol>(symbols_.data(), symbols_.size()), book_->symbols(), out);
    }

    std::shared_ptr<const Rulebook> book_;
    std::unique_ptr<Compressor> inner_;
    Parser words_, texts_;
    std::tuple<WordCache<std::uint8_t>, WordCache<std::uint16_t>, WordCache<std::int32_t>> caches_;
    Buffer<Symbol> symbols_, of_words_;
};

}  // namespace

std::unique_ptr<Compressor> under_rulebook(std::shared_ptr<const Rulebook> book, std::unique_ptr<Compressor> inner) {
    return std::make_unique<Parsing>(std::move(book), std::move(inner));
}

}  // namespace laconic
