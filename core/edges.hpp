// The edges of a trie: (parent, terminal) -> child, in one open-addressing table.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "buffer.hpp"

namespace laconic {

// Nodes are numbered from 1; 0 means none. Terminals of the root are the caller's business.
class Edges {
public:
    // Forgets everything and makes room for a document of `length` terminals to start with.
    void reset(std::size_t length) {
        allocate(std::bit_ceil(length < kStart ? length + 16 : kStart));
        used_ = 0;
    }

    std::uint32_t find(std::uint32_t parent, std::uint32_t terminal) const {
        const std::uint64_t wanted = key(parent, terminal);
        for (std::size_t slot = home(wanted);; slot = (slot + 1) & mask_) {
            const Edge& edge = edges_[slot];
            if (edge.key == wanted) return edge.child;
            if (edge.key == 0) return 0;
        }
    }

    // The child of `parent` along `terminal`, to be read, or to be set if it was 0 and then counted by added().
    std::uint32_t& at(std::uint32_t parent, std::uint32_t terminal) { return child_of(key(parent, terminal)); }

    // Ends every reference that at() returned.
    void added() {
        if (++used_ * 8 > (mask_ + 1) * 5) grow();
    }

private:
    struct Edge {
        std::uint64_t key;  // 0 if there is none
        std::uint32_t child;
    };

    std::uint32_t& child_of(std::uint64_t wanted) {
        for (std::size_t slot = home(wanted);; slot = (slot + 1) & mask_) {
            Edge& edge = edges_[slot];
            if (edge.key == wanted) return edge.child;
            if (edge.key == 0) {
                edge.key = wanted;
                return edge.child;
            }
        }
    }

    static std::uint64_t key(std::uint32_t parent, std::uint32_t terminal) {
        return std::uint64_t{parent} << 32 | terminal;
    }
    std::size_t home(std::uint64_t wanted) const {
        return static_cast<std::size_t>((wanted * 0x9E3779B97F4A7C15u) >> shift_);
    }

    void allocate(std::size_t slots) {
        edges_.renew(slots);
        edges_.prefer_huge_pages();
        std::memset(static_cast<void*>(edges_.data()), 0, slots * sizeof(Edge));
        mask_ = slots - 1;
        shift_ = 64 - std::countr_zero(slots);
    }

    void grow() {
        Buffer<Edge> old = std::move(edges_);
        const std::size_t slots = mask_ + 1;
        edges_ = Buffer<Edge>();
        allocate(2 * slots);
        for (std::size_t i = 0; i < slots; ++i)
            if (old[i].key != 0) child_of(old[i].key) = old[i].child;
    }

    static constexpr std::size_t kStart = 8192;
    Buffer<Edge> edges_;
    std::size_t mask_ = 0, used_ = 0;
    int shift_ = 64;
};

}  // namespace laconic
