// Sorts keys byte by byte: documents have too few windows to wait for mispredicted comparisons.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "buffer.hpp"
#include "window_key.hpp"

namespace laconic {

template <std::size_t Words>
struct Weighted {
    Key<Words> key;
    std::uint64_t weight;

    std::uint8_t byte(std::size_t from_top) const { return key.byte(from_top); }
    friend bool operator<(const Weighted& a, const Weighted& b) { return a.key < b.key; }
};

// A key of one word that has room for something else in the bits it does not use.
struct PackedKey {
    std::uint64_t word;

    std::uint8_t byte(std::size_t from_top) const { return static_cast<std::uint8_t>(word >> (56 - 8 * from_top)); }
    friend bool operator<(PackedKey a, PackedKey b) { return a.word < b.word; }
};

// Sorts by the topmost `bytes` bytes at least. `scratch` is room that keeps its memory.
template <class T>
void radix_sort(Buffer<T>& values, Buffer<T>& scratch, std::size_t bytes) {
    constexpr std::size_t kFew = 48, kMostPasses = 24;
    const std::size_t size = values.size();
    if (size < kFew || bytes > kMostPasses || size > 0xFFFFFFFF) {
        std::sort(values.begin(), values.end());
        return;
    }
    scratch.renew(size);
    std::uint32_t counts[kMostPasses][256];
    std::memset(counts, 0, bytes * sizeof counts[0]);
    for (const T& value : values)
        for (std::size_t i = 0; i < bytes; ++i) ++counts[i][value.byte(i)];
    for (std::size_t i = bytes; i-- > 0;) {
        if (counts[i][values[0].byte(i)] == size) continue;  // all alike
        std::uint32_t begin = 0;
        for (std::uint32_t& count : counts[i]) begin += std::exchange(count, begin);
        for (const T& value : values) scratch[counts[i][value.byte(i)]++] = value;
        std::swap(values, scratch);
    }
}

}  // namespace laconic
