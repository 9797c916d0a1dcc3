// The pairs that a text begins with, before any of them is replaced: each is numbered as it is met, and counted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "buffer.hpp"
#include "cells.hpp"
#include "pairs.hpp"

namespace laconic {

template <class Sym, class Id>
class FirstPairs {
public:
    // Gives every cell the number of the pair that starts in it, 0 where it overlaps the same pair counted before it.
    // Symbols are 1 … `terminals`.
    void number(Cells<Sym, Id>& cells, std::size_t terminals, Pairs<Sym, Id>& pairs) {
        const auto at = [&](std::size_t p) { return static_cast<std::size_t>(cells[p]); };
        const std::size_t stride = terminals + 1;
        if (stride * stride <= std::max<std::size_t>(cells.size() / 2, 1 << 16)) {
            meet(cells, pairs, stride * stride, [&](std::size_t p) { return at(p) * stride + at(p + 1); });
            return;
        }
        // Too many terminals for a square table: sort the cells by pair, and a pair's slot is its rank.
        order_.renew(cells.size() - 1);
        slots_.renew(cells.size() - 1);
        for (std::size_t p = 0; p < order_.size(); ++p) order_[p] = static_cast<std::uint32_t>(p);
        std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
            return std::pair(cells[a], cells[a + 1]) < std::pair(cells[b], cells[b + 1]);
        });
        std::size_t slot = 0;
        for (std::size_t i = 0; i < order_.size(); ++i) {
            const std::size_t p = order_[i], q = order_[i == 0 ? 0 : i - 1];
            slot += cells[p] != cells[q] || cells[p + 1] != cells[q + 1];
            slots_[p] = static_cast<std::uint32_t>(slot);
        }
        meet(cells, pairs, slot + 1, [&](std::size_t p) { return std::size_t{slots_[p]}; });
    }

private:
    template <class SlotOf>
    void meet(Cells<Sym, Id>& cells, Pairs<Sym, Id>& pairs, std::size_t slots, SlotOf slot_of) {
        while (table_.size() < slots) table_.push_back(0);
        pairs.clear();
        pairs.reserve(std::min(slots, cells.size()));
        typename Pairs<Sym, Id>::Roll roll(pairs);
        bool overlaps = false;  // whether cell p starts a pair that overlaps the same pair counted at p - 1
        for (std::size_t p = 1; p + 2 < cells.size(); ++p) {
            const Sym left = cells[p], right = cells[p + 1];
            overlaps = left == right && left == cells[p - 1] && !overlaps;
            if (overlaps) [[unlikely]]
                cells.pair(p) = 0;
            else
                cells.pair(p) = roll.meet(table_[slot_of(p)], left, right, p);
        }
        cells.pair(0) = cells.pair(cells.size() - 2) = cells.pair(cells.size() - 1) = 0;
        pairs.add(roll);
        // Wiping what was used is cheaper than wiping the table, and leaves it ready for the next document.
        for (std::size_t id = 1; id < pairs.size(); ++id) table_[slot_of(pairs[id].start)] = 0;
    }

    Buffer<Id> table_;  // by slot; all zero between documents
    Buffer<std::uint32_t> order_, slots_;
};

}  // namespace laconic
