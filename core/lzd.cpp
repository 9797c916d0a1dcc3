#include "lzd.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace laconic {
namespace {

// How many terminals at a and b agree, at most `limit`.
template <class Name>
std::size_t common_prefix(const Name* a, const Name* b, std::size_t limit) {
    std::size_t k = 0;
    if constexpr (sizeof(Name) == 1 && std::endian::native == std::endian::little) {
        for (; k + 8 <= limit; k += 8) {
            std::uint64_t x, y;
            std::memcpy(&x, a + k, 8);
            std::memcpy(&y, b + k, 8);
            if (x != y) return k + static_cast<std::size_t>(std::countr_zero(x ^ y)) / 8;
        }
    }
    while (k < limit && a[k] == b[k]) ++k;
    return k;
}

// Whether the first `length` terminals at a and b agree; b comes after a, and the text ends at `end`.
template <class Name>
bool agree(const Name* a, const Name* b, std::size_t length, const Name* end) {
    if constexpr (sizeof(Name) == 1 && std::endian::native == std::endian::little) {
        if (length < 8 && end - b >= 8) {  // most often so, and then one comparison does
            std::uint64_t x, y;
            std::memcpy(&x, a, 8);
            std::memcpy(&y, b, 8);
            return ((x ^ y) & ((std::uint64_t{1} << 8 * length) - 1)) == 0;
        }
    }
    return common_prefix(a, b, length) == length;
}

}  // namespace

template <class Terminal>
void Lzd::compress(std::span<const Terminal> text, Symbol alphabet_size, LzdLetters letters, Output& out) {
    check_length(text.size());
    terminals_.with_names(text, alphabet_size, [&](auto names) {
        edges_.reset(names.size());
        nodes_.renew(1 + terminals_.count());
        nodes_[0] = {0, 0, -1};
        for (std::size_t name = 0; name < terminals_.count(); ++name)
            nodes_[1 + name] = {0, 1, letters == LzdLetters::known ? terminals_[name] : -1};
        parse(names, alphabet_size, out);
    });
}

template <class Name>
void Lzd::parse(std::span<const Name> text, Symbol alphabet_size, Output& out) {
    Symbol next = alphabet_size;
    for (std::size_t start = 0; start < text.size();) {
        const auto [first, reached] = longest_phrase(text, start);
        if (first == 0) {  // a terminal that was never a phrase is one now
            const Symbol terminal = terminals_[text[start]];
            nodes_[1 + std::size_t{text[start]}].symbol = terminal;
            out.sequence.push_back(terminal);
            ++start;
            continue;
        }
        const std::size_t middle = start + nodes_[first].depth;
        if (middle == text.size()) {
            out.sequence.push_back(nodes_[first].symbol);
            break;
        }
        const std::uint32_t second = longest_phrase(text, middle).phrase;
        const std::size_t end = middle + (second == 0 ? 1 : nodes_[second].depth);
        if (next == kMaxSymbol) throw GrammarError("the alphabet leaves no room for so many rules");
        out.add_rule(nodes_[first].symbol, second == 0 ? terminals_[text[middle]] : nodes_[second].symbol);
        out.sequence.push_back(next);
        add_phrase(text, start, end - start, start + nodes_[reached].depth <= end ? reached : first, next++);
        start = end;
    }
}

template <class Name>
Lzd::Match Lzd::longest_phrase(std::span<const Name> text, std::size_t start) const {
    auto node = static_cast<std::uint32_t>(1 + std::size_t{text[start]});
    std::uint32_t phrase = nodes_[node].symbol >= 0 ? node : 0;
    const std::size_t rest = text.size() - start;
    for (std::size_t depth = 1; depth < rest; depth = nodes_[node].depth) {
        const std::uint32_t child = edges_.find(node, text[start + depth]);
        if (child == 0) break;
        const Node& next = nodes_[child];
        if (next.depth > rest) break;
        const Name* const label = text.data() + next.where + depth + 1;
        const Name* const unread = text.data() + start + depth + 1;
        if (!agree(label, unread, next.depth - depth - 1, text.data() + text.size())) break;
        node = child;
        phrase = next.symbol >= 0 ? node : phrase;
    }
    return {phrase, node};
}

// Makes text[start, start + length) a phrase. `node` is a prefix of it.
template <class Name>
void Lzd::add_phrase(std::span<const Name> text, std::size_t start, std::size_t length, std::uint32_t node,
                     Symbol symbol) {
    for (std::size_t depth = nodes_[node].depth; depth < length; depth = nodes_[node].depth) {
        std::uint32_t& edge = edges_.at(node, text[start + depth]);
        if (edge == 0) {
            edge = add_node(start, length, symbol);
            edges_.added();
            return;
        }
        const std::uint32_t child = edge;
        const Node below = nodes_[child];
        const std::size_t limit = std::min<std::size_t>(below.depth, length) - depth - 1;
        const std::size_t parting =
            depth + 1 + common_prefix(text.data() + below.where + depth + 1, text.data() + start + depth + 1, limit);
        if (parting == below.depth) {
            node = child;
            continue;
        }
        // The two part inside the edge: put a node there.
        node = add_node(start, parting, -1);
        edge = node;
        edges_.at(node, text[below.where + parting]) = child;
        edges_.added();
    }
    nodes_[node].symbol = symbol;
}

template void Lzd::compress(std::span<const std::uint8_t>, Symbol, LzdLetters, Output&);
template void Lzd::compress(std::span<const std::uint16_t>, Symbol, LzdLetters, Output&);
template void Lzd::compress(std::span<const std::int32_t>, Symbol, LzdLetters, Output&);

}  // namespace laconic
