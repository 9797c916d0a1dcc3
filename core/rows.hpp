// A sparse matrix of counts, of which each document is a row on its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <memory>
#include <vector>

#include "ngram_work.hpp"
#include "radix_sort.hpp"

namespace laconic {

// Rows as workers write them, to be put in order.
struct alignas(128) Rows {
    Buffer<std::int32_t> indices;
    Buffer<std::int64_t> data;
};

struct RowPlace {
    std::size_t worker, begin;
};

inline SparseCounts in_order(std::vector<Rows>& crew, const std::vector<RowPlace>& places, Buffer<std::int64_t>&& sizes,
                             const Labour& labour) {
    SparseCounts result;
    result.indptr = std::move(sizes);
    for (std::size_t i = 0; i < places.size(); ++i) result.indptr[i + 1] += result.indptr[i];
    if (crew.size() == 1) {  // what one worker wrote is in order already
        result.indices = std::move(crew[0].indices);
        result.data = std::move(crew[0].data);
        return result;
    }
    const auto size = static_cast<std::size_t>(result.indptr[places.size()]);
    result.indices.renew(size);
    result.data.renew(size);
    constexpr std::size_t kRows = 256;
    std::atomic<bool> stop = false;
    share_out((places.size() + kRows - 1) / kRows, labour, stop, [&](std::size_t share, std::size_t) {
        for (std::size_t i = share * kRows; i < std::min(places.size(), (share + 1) * kRows); ++i) {
            const auto begin = static_cast<std::size_t>(result.indptr[i]);
            const std::size_t count = static_cast<std::size_t>(result.indptr[i + 1]) - begin;
            const Rows& rows = crew[places[i].worker];
            std::copy_n(rows.indices.data() + places[i].begin, count, result.indices.data() + begin);
            std::copy_n(rows.data.data() + places[i].begin, count, result.data.data() + begin);
        }
    });
    return result;
}

// Calls workers[w].row(grammar, stop, rows) for all documents.
template <class Worker>
SparseCounts count_rows(std::vector<std::unique_ptr<Worker>>& workers, std::span<const GrammarView> documents,
                        const Labour& labour) {
    std::vector<Rows> crew(workers.size());
    std::vector<RowPlace> places(documents.size());
    Buffer<std::int64_t> sizes;
    sizes.renew(documents.size() + 1);
    sizes[0] = 0;
    each_document(documents, labour, [&](std::size_t i, std::size_t worker, const std::atomic<bool>& stop) {
        places[i] = {worker, crew[worker].indices.size()};
        workers[worker]->row(documents[i], stop, crew[worker]);
        sizes[i + 1] = static_cast<std::int64_t>(crew[worker].indices.size() - places[i].begin);
    });
    return in_order(crew, places, std::move(sizes), labour);
}

// Entries of one row, in any order, of which some may share a column.
class Row {
public:
    explicit Row(std::uint32_t columns)
        : column_shift_(64 - std::max(1, static_cast<int>(std::bit_width(columns - 1)))) {}

    // The entry, whose count is to be added to by its number.
    std::size_t add(std::uint32_t column) {
        // A column has at most 31 bits, which leaves more for the number than memory has room for.
        entries_.push_back({std::uint64_t{column} << column_shift_ | counts_.size()});
        counts_.push_back(0);
        return counts_.size() - 1;
    }
    void increase(std::size_t entry, std::uint64_t count) { counts_[entry] += count; }
    void turn(std::size_t entry) { counts_[entry] = 0 - counts_[entry]; }
    void halve(std::size_t entry) { counts_[entry] /= 2; }

    void write(Rows& rows) {
        if (!std::is_sorted(entries_.begin(), entries_.end()))
            radix_sort(entries_, scratch_, (64 - static_cast<std::size_t>(column_shift_) + 7) / 8);
        const std::size_t begin = rows.indices.size();
        for (const PackedKey entry : entries_) {
            const auto column = static_cast<std::int32_t>(entry.word >> column_shift_);
            const std::uint64_t number = entry.word & ((std::uint64_t{1} << column_shift_) - 1);
            const auto count = static_cast<std::int64_t>(counts_[number]);
            if (rows.indices.size() > begin && rows.indices.end()[-1] == column) {
                std::int64_t& sum = rows.data.end()[-1];
                constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
                if (count > 0 ? sum > kMost - count : sum < -kMost - count)
                    throw GrammarError("a column's count exceeds 64 bits; use more columns");
                sum += count;
                continue;
            }
            rows.indices.push_back(column);
            rows.data.push_back(count);
        }
        entries_.clear();
        counts_.clear();
    }

private:
    int column_shift_;
    Buffer<PackedKey> entries_, scratch_;  // column and number
    Buffer<std::uint64_t> counts_;         // by number
};

}  // namespace laconic
