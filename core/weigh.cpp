#include "weigh.hpp"

#include <array>
#include <bit>
#include <cmath>

#include "ngram_work.hpp"

namespace laconic {
namespace {

// Most counts are small, and a logarithm takes longer than all else.
class Logarithms {
public:
    Logarithms() {
        for (std::size_t i = 0; i < few_.size(); ++i) few_[i] = std::log(static_cast<double>(i)) + 1.0;
    }
    double operator()(std::int64_t count) const {
        if (count >= 0 && static_cast<std::size_t>(count) < few_.size()) return few_[static_cast<std::size_t>(count)];
        return std::log(static_cast<double>(count)) + 1.0;
    }

private:
    std::array<double, 256> few_;
};

}  // namespace

void weigh(std::span<const std::int64_t> indptr, std::span<const std::int32_t> indices, std::span<std::int64_t> data,
           const Weighing& weighing, const Labour& labour) {
    using Norm = Weighing::Norm;
    constexpr std::size_t kRows = 128;
    const Logarithms logarithms;
    const bool whole = !indptr.empty() && indptr.front() == 0 && std::is_sorted(indptr.begin(), indptr.end()) &&
                       indptr.back() == static_cast<std::int64_t>(data.size()) && indices.size() == data.size();
    if (!whole) throw GrammarError("indptr must rise from 0 to the number of counts, each with a column");
    const std::size_t rows = indptr.size() - 1;
    const auto weigh_row = [&](std::size_t begin, std::size_t end) {
        double size = 0;
        for (std::size_t i = begin; i < end; ++i) {
            const std::int64_t count = weighing.binary ? 1 : data[i];
            double weight = weighing.sublinear ? logarithms(count) : static_cast<double>(count);
            if (!weighing.idf.empty()) {
                const auto column = static_cast<std::size_t>(indices[i]);  // far too large if it is below 0
                if (column >= weighing.idf.size())
                    throw GrammarError("column " + std::to_string(indices[i]) + " has no idf");
                weight *= weighing.idf[column];
            }
            size += weighing.norm == Norm::l1 ? std::abs(weight) : weight * weight;
            data[i] = std::bit_cast<std::int64_t>(weight);
        }
        if (weighing.norm == Norm::none || size == 0) return;
        if (weighing.norm == Norm::l2) size = std::sqrt(size);
        for (std::size_t i = begin; i < end; ++i)
            data[i] = std::bit_cast<std::int64_t>(std::bit_cast<double>(data[i]) / size);
    };
    std::atomic<bool> stop = false;
    share_out((rows + kRows - 1) / kRows, labour, stop, [&](std::size_t share, std::size_t) {
        if (stop.load(std::memory_order_relaxed)) throw Stopped();
        for (std::size_t row = share * kRows; row < std::min(rows, (share + 1) * kRows); ++row)
            weigh_row(static_cast<std::size_t>(indptr[row]), static_cast<std::size_t>(indptr[row + 1]));
    });
}

}  // namespace laconic
