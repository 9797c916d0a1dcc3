// Finds a value in an array, many lanes at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define LACONIC_SSE2 1
#endif

namespace laconic {

// Elements that may be read, not used, past the last match.
inline constexpr std::size_t kScanSlack = 16;

// Writes the first `count` indices from `begin` on where values[i] == value. All of them must exist.
template <class Value>
void find_all(const Value* values, std::size_t begin, Value value, std::size_t count, Value* indices) {
    Value* const end = indices + count;
    std::size_t i = begin;
#if LACONIC_SSE2
    static_assert(sizeof(Value) == 2 || sizeof(Value) == 4);
    const auto* block = reinterpret_cast<const char*>(values + begin);
    const __m128i wanted =
        sizeof(Value) == 2 ? _mm_set1_epi16(static_cast<short>(value)) : _mm_set1_epi32(static_cast<int>(value));
    for (; indices < end; i += 16, block += 16 * sizeof(Value)) {
        const auto* lanes = reinterpret_cast<const __m128i*>(block);
        unsigned mask;
        if constexpr (sizeof(Value) == 2) {
            const __m128i low = _mm_cmpeq_epi16(_mm_loadu_si128(lanes), wanted);
            const __m128i high = _mm_cmpeq_epi16(_mm_loadu_si128(lanes + 1), wanted);
            mask = static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
        } else {
            const __m128i a = _mm_cmpeq_epi32(_mm_loadu_si128(lanes), wanted);
            const __m128i b = _mm_cmpeq_epi32(_mm_loadu_si128(lanes + 1), wanted);
            const __m128i c = _mm_cmpeq_epi32(_mm_loadu_si128(lanes + 2), wanted);
            const __m128i d = _mm_cmpeq_epi32(_mm_loadu_si128(lanes + 3), wanted);
            mask = static_cast<unsigned>(
                _mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d))));
        }
        for (; mask != 0; mask &= mask - 1) {
            if (indices == end) return;  // what lies past the last match may be left over from another document
            *indices++ = static_cast<Value>(i + static_cast<std::size_t>(std::countr_zero(mask)));
        }
    }
#else
    for (; indices < end; ++i)
        if (values[i] == value) *indices++ = static_cast<Value>(i);
#endif
}

}  // namespace laconic
