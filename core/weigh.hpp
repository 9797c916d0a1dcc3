// Counts of n-grams to the weights that models like: TF-IDF and its parts.
#pragma once

#include <cstdint>
#include <span>

#include "ngrams.hpp"

namespace laconic {

struct Weighing {
    enum class Norm { none, l1, l2 };
    bool binary = false;          // every count is 1
    bool sublinear = false;       // then 1 + log(count)
    std::span<const double> idf;  // then times the column's; empty: all 1
    Norm norm = Norm::none;       // then each row over its norm, if that is not 0
};

// Writes weights, as double, over the counts they are made from: there may be hundreds of millions, and memory that is
// touched for the first time costs more than the arithmetic. Throws GrammarError for
// an indptr that does not fit the data, and a column beyond idf; the counts are then lost.
void weigh(std::span<const std::int64_t> indptr, std::span<const std::int32_t> indices, std::span<std::int64_t> data,
           const Weighing& weighing, const Labour& labour);

}  // namespace laconic
