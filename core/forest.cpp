#include "forest.hpp"

#include <algorithm>
#include <utility>

#include "hashes.hpp"

namespace laconic {

// Marks the rules that a document needs, of those of the rulebook only what it names itself.
void Planter::find_needed(const GrammarView& document) {
    const std::size_t rules = document.rule_count();
    needed_.resize(shared_rules_ + rules);
    std::fill(needed_.begin() + shared_rules_, needed_.end(), std::uint8_t{0});
    const auto need = [&](Symbol symbol) {
        if (symbol >= alphabet_size_) needed_[static_cast<std::size_t>(symbol - alphabet_size_)] = 1;
    };
    std::for_each(document.sequence.begin(), document.sequence.end(), need);
    for (std::size_t k = rules; k-- > 0;) {
        if (needed_[shared_rules_ + k] == 0) continue;
        need(document.rules[2 * k]);
        need(document.rules[2 * k + 1]);
    }
}

// The rule of the rulebook that a node is, as a symbol; a terminal is itself; -1 of what is neither.
Symbol Planter::shared_symbol(Symbol node) const {
    if (node < alphabet_size_) return node;
    const std::int32_t rule = shared_[static_cast<std::size_t>(node - alphabet_size_)];
    return rule < 0 ? -1 : alphabet_size_ + rule;
}

Symbol Planter::add_node(Symbol left, Symbol right, bool merge) {
    const auto fresh = static_cast<std::size_t>(alphabet_size_) + levels_.size();
    if (merge) {
        std::uint32_t& found = edges_.at(static_cast<std::uint32_t>(left) + 1, static_cast<std::uint32_t>(right));
        if (found != 0) return static_cast<Symbol>(found);
        found = static_cast<std::uint32_t>(fresh);
        edges_.added();
    }
    if (fresh >= static_cast<std::size_t>(kMaxSymbol)) throw GrammarError("the batch has too many rules");
    const auto level = [&](Symbol of) {
        return of < alphabet_size_ ? -1 : levels_[static_cast<std::size_t>(of - alphabet_size_)];
    };
    const Symbol pair[] = {left, right};
    children_.append(pair, 2);
    levels_.push_back(1 + std::max(level(left), level(right)));
    // By its operands, not by where it was found: a document's own rule may be like a shared one, and what a node is
    // must not depend on the other documents of a batch.
    const Symbol a = shared_symbol(left), b = shared_symbol(right);
    shared_.push_back(book_ == nullptr || a < 0 || b < 0 ? -1 : static_cast<std::int32_t>(book_->find(a, b)) - 1);
    return static_cast<Symbol>(fresh);
}

void Planter::add_shared(std::span<const GrammarView> documents) {
    needed_.renew(shared_rules_);
    nodes_.renew(shared_rules_);
    std::fill(needed_.begin(), needed_.end(), std::uint8_t{0});
    for (const GrammarView& document : documents) find_needed(document);
    const Symbol* const rules = book_->rules().data();
    const auto need = [&](Symbol symbol) {
        if (symbol >= alphabet_size_) needed_[static_cast<std::size_t>(symbol - alphabet_size_)] = 1;
    };
    for (std::size_t k = shared_rules_; k-- > 0;) {
        if (needed_[k] == 0) continue;
        need(rules[2 * k]);
        need(rules[2 * k + 1]);
    }
    for (std::size_t k = 0; k < shared_rules_; ++k)
        if (needed_[k] != 0) nodes_[k] = add_node(node(rules[2 * k]), node(rules[2 * k + 1]), true);
}

void Planter::add_document(const GrammarView& document, bool merge) {
    find_needed(document);
    nodes_.resize(shared_rules_ + document.rule_count());
    for (std::size_t k = 0; k < document.rule_count(); ++k)
        if (needed_[shared_rules_ + k] != 0)
            nodes_[shared_rules_ + k] = add_node(node(document.rules[2 * k]), node(document.rules[2 * k + 1]), merge);
    const std::size_t begin = sequence_.size();
    sequence_.resize(begin + document.sequence.size());
    std::transform(document.sequence.begin(), document.sequence.end(), sequence_.begin() + begin,
                   [&](Symbol symbol) { return node(symbol); });
}

void Planter::sort_by_level(Forest& out) {
    const Symbol alphabet_size = alphabet_size_;
    const std::size_t count = levels_.size();
    Buffer<std::int64_t>& ends = out.level_offsets;  // level l ends at ends[l + 1]
    ends.clear();
    ends.push_back(0);
    const auto after = [](std::int32_t level) { return static_cast<std::size_t>(level) + 1; };
    for (std::int32_t level : levels_) {
        while (ends.size() <= after(level)) ends.push_back(0);
        ++ends[after(level)];
    }
    std::int64_t total = 0;
    for (std::int64_t& end : ends) total += std::exchange(end, total);  // where levels begin, for now
    final_.renew(count);
    for (std::size_t i = 0; i < count; ++i) final_[i] = alphabet_size + static_cast<Symbol>(ends[after(levels_[i])]++);
    const auto number = [&](Symbol node) {
        return node < alphabet_size ? node : final_[static_cast<std::size_t>(node - alphabet_size)];
    };
    out.children.renew(2 * count);
    out.shared.renew(static_cast<std::size_t>(alphabet_size) + count);
    std::fill_n(out.shared.begin(), alphabet_size, -1);
    for (std::size_t i = 0; i < count; ++i) {
        const auto at = 2 * static_cast<std::size_t>(final_[i] - alphabet_size);
        out.children[at] = number(children_[2 * i]);
        out.children[at + 1] = number(children_[2 * i + 1]);
        out.shared[static_cast<std::size_t>(final_[i])] = shared_[i];
    }
    out.sequence.renew(sequence_.size());
    std::transform(sequence_.begin(), sequence_.end(), out.sequence.begin(), number);
}

void Planter::plant(Symbol alphabet_size, std::span<const GrammarView> documents, bool merge, Forest& out,
                    const Rulebook* book) {
    alphabet_size_ = alphabet_size;
    book_ = book;
    shared_rules_ = book == nullptr ? 0 : book->size();
    children_.clear();
    levels_.clear();
    shared_.clear();
    sequence_.clear();
    std::size_t rules = 0;
    for (const GrammarView& document : documents) rules += document.rule_count();
    edges_.reset(shared_rules_ + (merge ? rules : 0));
    if (book != nullptr) add_shared(documents);
    for (const GrammarView& document : documents) add_document(document, merge);
    sort_by_level(out);

    const std::size_t count = levels_.size();
    const auto terminals = static_cast<std::size_t>(alphabet_size);
    out.lengths.renew(terminals + count);
    out.hashes.renew(terminals + count);
    for (std::size_t i = 0; i < terminals; ++i) {
        out.lengths[i] = 1;
        out.hashes[i] = mixed(Fingerprint::of_terminal(static_cast<Symbol>(i)).hash);
    }
    const GrammarView nodes{alphabet_size, {out.children.data(), out.children.size()}, {}};
    expanded_lengths(nodes, out.lengths.data() + terminals);
    fingerprints_.renew(2 * count);
    const auto fingerprint = [&](Symbol node) -> Fingerprint {
        if (node < alphabet_size) return Fingerprint::of_terminal(node);
        const auto i = 2 * static_cast<std::size_t>(node - alphabet_size);
        return {fingerprints_[i], fingerprints_[i + 1]};
    };
    for (std::size_t i = 0; i < count; ++i) {
        const Fingerprint both = joined(fingerprint(out.children[2 * i]), fingerprint(out.children[2 * i + 1]));
        fingerprints_[2 * i] = both.hash;
        fingerprints_[2 * i + 1] = both.power;
        out.hashes[terminals + i] = mixed(both.hash);
    }
}

}  // namespace laconic
