// Compresses many documents on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "codecs.hpp"
#include "grammar.hpp"

namespace laconic {

// The grammars of many documents: document i has rules [rule_offsets[i], rule_offsets[i+1]) and likewise
// for the sequence; offsets count rules, not symbols of rules.
struct Batch {
    Buffer<Symbol> rules, sequence;
    Buffer<std::int64_t> rule_offsets, sequence_offsets;
};

using MakeCompressor = std::function<std::unique_ptr<Compressor>()>;  // one for each thread

// Documents are text[offsets[i], offsets[i+1]). The result does not depend on `threads`, which is at least 1.
// `poll` is called now and then from the calling thread and may throw, which stops the work.
// Throws GrammarError for offsets that do not fit the text and terminals that do not fit the alphabet.
template <class Terminal>
Batch compress_many(std::span<const Terminal> text, std::span<const std::int64_t> offsets, Symbol alphabet_size,
                    const MakeCompressor& make, unsigned threads, const std::function<void()>& poll);

}  // namespace laconic
