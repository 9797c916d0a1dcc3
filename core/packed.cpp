#include "packed.hpp"

#include <algorithm>

namespace laconic {
namespace {

constexpr Symbol kSmall = 1 << 14;  // alphabets up to this have tables

}  // namespace

void Packer::find_letters(const GrammarView& grammar) {
    letters_.clear();
    if (grammar.alphabet_size > kSmall) {
        const auto add = [&](Symbol symbol) {
            if (symbol < grammar.alphabet_size) letters_.push_back(symbol);
        };
        std::for_each(grammar.rules.begin(), grammar.rules.end(), add);
        std::for_each(grammar.sequence.begin(), grammar.sequence.end(), add);
        std::sort(letters_.begin(), letters_.end());
        letters_.resize(static_cast<std::size_t>(std::unique(letters_.begin(), letters_.end()) - letters_.begin()));
        return;
    }
    // Without branches: whether a symbol is a letter cannot be foretold.
    const auto size = static_cast<std::size_t>(grammar.alphabet_size);
    while (seen_.size() <= size) seen_.push_back(0);
    const auto mark = [&, seen = seen_.data()](Symbol symbol) {
        seen[std::min<Symbol>(symbol, grammar.alphabet_size)] = 1;
    };
    std::for_each(grammar.rules.begin(), grammar.rules.end(), mark);
    std::for_each(grammar.sequence.begin(), grammar.sequence.end(), mark);
    for (std::size_t letter = 0; letter < size; ++letter)
        if (seen_[letter] != 0) letters_.push_back(static_cast<Symbol>(letter));
    std::fill(seen_.begin(), seen_.begin() + size + 1, std::uint8_t{0});
}

// Fills order_ with the rules in order of depth, as they were within one.
void Packer::sort_by_depth(const GrammarView& grammar) {
    const std::size_t count = grammar.rule_count();
    depths_.renew(count);
    depths(grammar, depths_.data());
    ends_.clear();
    for (std::int32_t depth : depths_) {
        while (ends_.size() <= static_cast<std::size_t>(depth)) ends_.push_back(0);
        ++ends_[static_cast<std::size_t>(depth)];
    }
    for (std::size_t depth = 1; depth < ends_.size(); ++depth) ends_[depth] += ends_[depth - 1];
    for (std::size_t k = count; k-- > 0;)
        order_[static_cast<std::size_t>(--ends_[static_cast<std::size_t>(depths_[k])])] = static_cast<Symbol>(k);
}

// Sorts level_, whose operands are below `defined`, by right, then left, then number: one order on every platform.
void Packer::sort_level(Symbol defined) {
    const std::size_t count = level_.size(), symbols = static_cast<std::size_t>(defined);
    if (4 * count < symbols) {
        std::sort(level_.begin(), level_.end(), [](const Rule& a, const Rule& b) {
            return a.right != b.right ? a.right < b.right : a.left != b.left ? a.left < b.left : a.number < b.number;
        });
        return;
    }
    // They come by number; counting keeps that order among equals, and has no branches to foretell.
    sorted_.renew(count);
    const auto sort_by = [&](Symbol Rule::* operand) {
        counts_.renew(symbols + 1);
        std::fill(counts_.begin(), counts_.end(), 0u);
        for (const Rule& rule : level_) ++counts_[static_cast<std::size_t>(rule.*operand) + 1];
        for (std::size_t i = 1; i < symbols; ++i) counts_[i] += counts_[i - 1];
        for (const Rule& rule : level_) sorted_[counts_[static_cast<std::size_t>(rule.*operand)]++] = rule;
        std::swap(level_, sorted_);
    };
    sort_by(&Rule::left);
    sort_by(&Rule::right);
}

template <class Name>
void Packer::order_rules(const GrammarView& grammar, bool sort, Symbol* names, Name name) {
    const std::size_t count = grammar.rule_count();
    const auto first = static_cast<Symbol>(letters_.size());
    order_.renew(count);
    if (!sort) {
        for (std::size_t k = 0; k < count; ++k) {
            order_[k] = static_cast<Symbol>(k);
            names[k] = first + static_cast<Symbol>(k);
        }
        return;
    }
    sort_by_depth(grammar);
    for (std::size_t begin = 0, end; begin < count; begin = end) {
        const std::int32_t depth = depths_[static_cast<std::size_t>(order_[begin])];
        level_.clear();
        for (end = begin; end < count && depths_[static_cast<std::size_t>(order_[end])] == depth; ++end) {
            const Symbol* const rule = &grammar.rules[2 * static_cast<std::size_t>(order_[end])];
            level_.push_back({name(rule[0]), name(rule[1]), order_[end]});
        }
        sort_level(first + static_cast<Symbol>(begin));
        for (std::size_t i = begin; i < end; ++i) {
            order_[i] = level_[i - begin].number;
            names[order_[i]] = first + static_cast<Symbol>(i);
        }
    }
}

template <class Name>
void Packer::write(const GrammarView& grammar, Packed& out, Name name) const {
    const std::size_t count = order_.size(), rules = out.left.size(), symbols = out.sequence.size();
    out.letters.append(letters_.data(), letters_.size());
    out.left.resize(rules + count);
    out.right.resize(rules + count);
    for (std::size_t i = 0; i < count; ++i) {
        const Symbol* const rule = &grammar.rules[2 * static_cast<std::size_t>(order_[i])];
        out.left[rules + i] = name(rule[0]);
        out.right[rules + i] = name(rule[1]);
    }
    out.sequence.resize(symbols + grammar.sequence.size());
    std::transform(grammar.sequence.begin(), grammar.sequence.end(), out.sequence.begin() + symbols, name);
}

void Packer::pack(const GrammarView& grammar, bool sort, Packed& out) {
    find_letters(grammar);
    const auto with = [&](Symbol* rule_names, auto name) {
        order_rules(grammar, sort, rule_names, name);
        write(grammar, out, name);
    };
    const Symbol size = grammar.alphabet_size;
    if (size <= kSmall) {
        names_.renew(static_cast<std::size_t>(size) + grammar.rule_count());
        for (std::size_t i = 0; i < letters_.size(); ++i)
            names_[static_cast<std::size_t>(letters_[i])] = static_cast<Symbol>(i);
        with(names_.data() + size, [names = names_.data()](Symbol symbol) { return names[symbol]; });
    } else {
        names_.renew(grammar.rule_count());
        with(names_.data(), [this, size](Symbol symbol) {
            if (symbol >= size) return names_[static_cast<std::size_t>(symbol - size)];
            return static_cast<Symbol>(std::lower_bound(letters_.begin(), letters_.end(), symbol) - letters_.begin());
        });
    }
}

void unpack(const PackedView& packed, Symbol alphabet_size, Output& out) {
    const std::size_t count = packed.left.size();
    if (packed.right.size() != count) throw GrammarError("rules have more left operands than right ones, or fewer");
    for (std::size_t i = 0; i < packed.letters.size(); ++i) {
        const Symbol letter = packed.letters[i];
        if (letter < 0 || letter >= alphabet_size)
            throw GrammarError("letter " + std::to_string(letter) + " is outside the alphabet 0 … " +
                               std::to_string(alphabet_size - 1));
        if (i > 0 && letter <= packed.letters[i - 1]) throw GrammarError("letters do not ascend");
    }
    if (count > static_cast<std::size_t>(kMaxSymbol - alphabet_size))
        throw GrammarError("alphabet_size and the number of rules together exceed 2^31 - 1");
    const std::size_t letters = packed.letters.size();
    const auto symbol = [&](Symbol value, std::size_t rules, const char* what, std::size_t number) {
        const auto index = static_cast<std::size_t>(static_cast<std::uint32_t>(value));
        if (value < 0 || index >= letters + rules)
            throw GrammarError(std::string(what) + " " + std::to_string(number) + " uses symbol " +
                               std::to_string(value) + ", but " + std::to_string(letters + rules) +
                               " are defined before it");
        return index < letters ? packed.letters[index] : alphabet_size + static_cast<Symbol>(index - letters);
    };
    out.rules.reserve(out.rules.size() + 2 * count);
    for (std::size_t k = 0; k < count; ++k) {
        const Symbol left = symbol(packed.left[k], k, "rule", k);
        out.add_rule(left, symbol(packed.right[k], k, "rule", k));
    }
    out.sequence.reserve(out.sequence.size() + packed.sequence.size());
    for (std::size_t i = 0; i < packed.sequence.size(); ++i)
        out.sequence.push_back(symbol(packed.sequence[i], count, "sequence position", i));
}

}  // namespace laconic
