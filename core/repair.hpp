// Re-Pair (Larsson and Moffat 1999): replaces the most frequent pair by a new symbol until none is frequent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "grammar.hpp"

namespace laconic {

struct RepairOptions {
    std::uint32_t min_count = 2;               // a pair is replaced while it occurs this often; at least 2
    std::uint32_t max_rules = kMaxSymbol;      // stop after so many rules
    std::uint32_t max_expansion = 0xFFFFFFFF;  // no rule stands for more terminals than this
};

// The definition the tests hold this to (oracle.py): a pair's count is the number of its non-overlapping
// occurrences, found from left to right. The largest count goes first; ties go to the pair that came to be
// first, and of those that came to be by the same replacement, to the leftmost.
class Repair {
public:
    Repair();
    ~Repair();
    Repair(Repair&&) noexcept;

    // Appends the grammar of `text`, whose terminals are 0 … alphabet_size-1, to `out`.
    // O(n log n) time at worst, O(n) on real text. About 9 bytes of memory a terminal for English bytes, up to 40 where
    // there are thousands of terminals and few pairs of them occur twice.
    template <class Terminal>
    void compress(std::span<const Terminal> text, Symbol alphabet_size, const RepairOptions& options, Output& out);

private:
    struct Workspaces;
    std::unique_ptr<Workspaces> workspaces_;
};

}  // namespace laconic
