// Phrases of documents: runs of neighbours in their sequences, known by what they stand for.
#pragma once

#include <cstdint>
#include <span>

#include "buffer.hpp"
#include "ngrams.hpp"

namespace laconic {

// Runs of 1 to `most` symbols that stand for `shortest` to `longest` terminals, which are less than 2^31.
struct PhraseOptions {
    unsigned most;
    std::uint32_t shortest, longest;
    std::uint32_t columns;  // 1 at least
};

// Columns are those of hashes of what phrases stand for, however they are split.
SparseCounts count_phrases(const PhraseOptions& options, std::span<const GrammarView> documents, const Labour& labour);

// Different phrases: their columns, how often they occur, and their terminals, laid end to end.
struct NamedPhrases {
    Buffer<std::int32_t> columns;
    Buffer<std::int64_t> occurrences;
    Buffer<Symbol> terminals;
    Buffer<std::int64_t> offsets;
};

// Which phrases of all documents together are counted in some columns, which ascend. On one thread; no more than
// these phrases is expanded.
NamedPhrases name_phrases(const PhraseOptions& options, std::span<const GrammarView> documents,
                          std::span<const std::int64_t> columns, const Labour& labour);

}  // namespace laconic
