// Learning a rulebook: Re-Pair over many documents at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "buffer.hpp"
#include "grammar.hpp"
#include "words.hpp"

namespace laconic {

struct LearnOptions {
    std::uint32_t max_rules = 4096;
    std::uint32_t min_documents = 2;           // a pair is replaced only if it occurs in so many
    std::uint32_t max_expansion = 0xFFFFFFFF;  // no rule stands for more terminals than this
};

// The definition the tests hold this to (oracle.py): documents, or with `kinds` their words (words.hpp), one after the
// other, pairs never across. A pair's count is the number of its occurrences that do not overlap, found from left to
// right. The most frequent of those that occur twice at least, in min_documents documents, is replaced; ties go to the
// pair that came to be first, and of those that came to be by the same replacement, to the leftmost. Returns rules,
// left, right, left, right, …, rule k defining alphabet_size + k. The result does not depend on `threads`.
// `known` are rules that come first, and the text is what they left of documents: its terminals are their symbols, too,
// alphabet_size counts them, no rule is one of them again, and max_expansion is of the terminals beneath.
// About 20 bytes of memory a terminal for English bytes without kinds; O(n) time on real text.
template <class Terminal>
Buffer<Symbol> learn_rules(std::span<const Terminal> text, std::span<const std::int64_t> offsets, Symbol alphabet_size,
                           std::span<const Symbol> known, std::span<const WordKind> kinds, const LearnOptions& options,
                           unsigned threads, const std::function<void()>& poll);

}  // namespace laconic
