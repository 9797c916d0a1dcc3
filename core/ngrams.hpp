// Counts of all n-grams of many documents, from their grammars.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "buffer.hpp"
#include "grammar.hpp"
#include "windows.hpp"

namespace laconic {

inline constexpr unsigned kLongestNgram = 64;

// What is counted: n-grams of `low` to `high` letters, 1 <= low <= high <= kLongestNgram.
struct NgramOptions {
    LetterTable table;  // of somebody else, who keeps it
    unsigned low = 1, high = 1;
};

// How work is spread: the result does not depend on `threads`, at least 1. `poll` is called now and then from the
// calling thread and may throw, which stops the work.
struct Labour {
    unsigned threads;
    const std::function<void()>& poll;
};

// A sparse matrix: row i has data[indptr[i]] … data[indptr[i+1]-1] in the columns of the same part of indices, which
// ascend.
struct SparseCounts {
    Buffer<std::int64_t> indptr;
    Buffer<std::int32_t> indices;
    Buffer<std::int64_t> data;
};

// N-grams laid end to end.
struct Spelled {
    Buffer<std::uint32_t> points;
    Buffer<std::int64_t> offsets;
};

// Learns which n-grams there are. Grammars and options must have been checked.
class NgramCounter {
public:
    // With `keep` it remembers what matrix() needs of every document.
    NgramCounter(const NgramOptions& options, bool keep);
    ~NgramCounter();

    // Throws GrammarError, with the number of the document in this batch, for one of too many letters to count, and
    // for all together.
    void add(std::span<const GrammarView> documents, const Labour& labour);

    // To be called once, when all is added, and before what follows. N-grams are then numbered in the order of their
    // code points.
    void finish(const Labour& labour);

    std::span<const std::int64_t> frequencies() const;  // by n-gram: documents that it occurs in
    std::span<const std::int64_t> totals() const;       // by n-gram: its occurrences
    Spelled spelled(std::span<const std::int64_t> ngrams) const;
    // The counts of the documents added, in their order. `columns` gives each n-gram's, from 0 on without gaps, or -1.
    // Can be called once.
    SparseCounts matrix(std::span<const std::int32_t> columns, const Labour& labour);

    struct Implementation;

private:
    std::unique_ptr<Implementation> implementation_;
};

// Columns are those of the hashes of n-grams in UTF-8, as in scikit-learn: MurmurHash3, whose sign, if
// `alternate_sign`, is the count's. Counts in one column are summed, and stay if that gives 0.
SparseCounts count_hashed(const NgramOptions& options, std::span<const GrammarView> documents, std::uint32_t columns,
                          bool alternate_sign, const Labour& labour);

// Counts n-grams spelled in letters, vocabulary[offsets[k], offsets[k+1]), each in column k. Letter 0 is one that no
// document has.
SparseCounts count_known(const NgramOptions& options, std::span<const GrammarView> documents,
                         std::span<const std::uint32_t> vocabulary, std::span<const std::int64_t> offsets,
                         const Labour& labour);

}  // namespace laconic
