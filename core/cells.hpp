// A sequence of symbols in which neighbours are joined in place, with a number for the pair that starts at each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "buffer.hpp"

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define LACONIC_SSE2 1
#endif

namespace laconic {

// Symbols are 1, 2, 3, … and stand in cells 1 … size()-2, between two guards that hold 0. When two symbols are
// joined, the first cell takes the new symbol and the rest become a gap: every cell of a gap is negative, and
// both of its ends hold minus its length, so a neighbour is one addition away in either direction. Symbol and
// pair lie side by side because who reads one reads the other, and in a long document each is a cache miss.
template <class Sym, class Id>
class Cells {
public:
    struct Cell {
        Sym symbol;
        Id pair;
    };

    std::size_t size() const { return size_; }
    std::size_t gaps() const { return gaps_; }
    const Cell* data() const { return cells_.data(); }
    Sym operator[](std::size_t p) const { return cells_[p].symbol; }
    Id& pair(std::size_t p) { return cells_[p].pair; }
    Id pair(std::size_t p) const { return cells_[p].pair; }

    void reset(std::size_t length) {
        size_ = length + 2;
        gaps_ = 0;
        cells_.renew(size_ + kSlack);
        cells_[0] = cells_[size_ - 1] = {0, 0};
    }
    void set(std::size_t p, Sym symbol) { cells_[p].symbol = symbol; }

    std::size_t next(std::size_t p) const { return p + step(cells_[p + 1].symbol); }
    std::size_t previous(std::size_t p) const { return p - step(cells_[p - 1].symbol); }

    // Writes `symbol` over the symbols at p and q = next(p); `after` is next(q).
    void join(std::size_t p, std::size_t q, std::size_t after, Sym symbol) {
        const auto gap = static_cast<Sym>(-static_cast<std::int64_t>(after - p - 1));
        cells_[p].symbol = symbol;
        cells_[q].symbol = gap;
        cells_[p + 1].symbol = gap;
        cells_[after - 1].symbol = gap;
        ++gaps_;
    }

    // Writes the first `count` cells from `begin` on that carry the pair `id`, in order. All of them must exist.
    void find(Id id, std::size_t begin, std::size_t count, Id* places) const {
        Id* const end = places + count;
#if LACONIC_SSE2
        if constexpr (sizeof(Cell) == 8) {
            const __m128i wanted = _mm_set1_epi32(static_cast<int>(id));
            for (std::size_t p = begin; places < end; p += 8) {
                const auto* const at = reinterpret_cast<const float*>(cells_.data() + p);
                const auto equal = [&](const float* four) {
                    const __m128 pairs = _mm_shuffle_ps(_mm_loadu_ps(four), _mm_loadu_ps(four + 4), 0xDD);
                    return _mm_cmpeq_epi32(_mm_castps_si128(pairs), wanted);
                };
                const __m128i eight = _mm_packs_epi32(equal(at), equal(at + 8));
                auto mask = static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(eight, _mm_setzero_si128())));
                // What lies past the last match may be left over from another document.
                for (; mask != 0 && places < end; mask &= mask - 1)
                    *places++ = static_cast<Id>(p + static_cast<std::size_t>(std::countr_zero(mask)));
            }
            return;
        }
#endif
        for (std::size_t p = begin; places < end; ++p)
            if (cells_[p].pair == id) *places++ = static_cast<Id>(p);
    }

    // Closes the gaps, and gives every pair the number renumber(old number).
    template <class Renumber>
    void close_gaps(Renumber renumber) {
        std::size_t to = 0;
        for (std::size_t from = 0; from < size_; ++from) {
            cells_[to] = {cells_[from].symbol, renumber(cells_[from].pair)};
            to += cells_[from].symbol >= 0;
        }
        size_ = to;
        gaps_ = 0;
    }

    // Gives back the memory of cells that are no longer there.
    void trim() {
        cells_.resize(size_ + kSlack);
        cells_.trim();
    }

private:
    // One past the gap, if the neighbour is one. Whether it is no processor could predict: so no branch.
    static std::size_t step(std::int64_t neighbour) {
        return static_cast<std::size_t>(1 - (neighbour & (neighbour >> 63)));
    }

    static constexpr std::size_t kSlack = 8;  // cells that find() may read past the last
    Buffer<Cell> cells_;
    std::size_t size_ = 2, gaps_ = 0;
};

}  // namespace laconic
