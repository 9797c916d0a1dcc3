// Words: what rules of a rulebook do not cross, and a table that knows words again.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "buffer.hpp"
#include "hashes.hpp"

namespace laconic {

// What a terminal is to words; see end_of_word().
enum class WordKind : std::uint8_t { space, blank, letter, mark };

// A word is a run of letters or a run of marks, each with one blank before it if there is one; white space that is left
// over is a word, too. Without `kinds` (by terminal) a document is one word. Returns where the word that begins at
// `begin` ends.
template <class Terminal>
std::size_t end_of_word(std::span<const Terminal> text, std::size_t begin, std::span<const WordKind> kinds) {
    if (kinds.empty()) return text.size();
    const auto kind = [&](std::size_t i) { return kinds[static_cast<std::size_t>(text[i])]; };
    std::size_t end = begin;
    while (end < text.size() && kind(end) < WordKind::letter) ++end;
    const std::size_t spaces = end - begin;
    if (end == text.size() && spaces > 0) return end;
    const bool blank = spaces > 0 && kind(end - 1) == WordKind::blank;
    if (spaces > 1) return end - blank;
    if (spaces == 1 && !blank) return end;
    const WordKind run = kind(end);
    while (end < text.size() && kind(end) == run) ++end;
    return end;
}

// Numbers words, from 0 in the order in which they come. It keeps pointers: what it was given must stay.
template <class Terminal>
class WordTable {
public:
    using Word = std::span<const Terminal>;

    std::size_t size() const { return words_.size(); }
    Word operator[](std::size_t number) const { return {words_[number].data, words_[number].size}; }

    // Its number, which is the old size() if it is new.
    std::uint32_t number(Word word) {
        const std::uint64_t hash = hash_of(word);
        if (2 * words_.size() >= slots_.size()) grow();
        std::size_t slot = place(hash);
        for (; slots_[slot].number != 0; slot = (slot + 1) & (slots_.size() - 1)) {
            if (slots_[slot].hash != static_cast<std::uint32_t>(hash)) continue;
            const Kept& known = words_[slots_[slot].number - 1];
            if (known.size == word.size() && std::memcmp(known.data, word.data(), word.size_bytes()) == 0)
                return slots_[slot].number - 1;
        }
        words_.push_back({word.data(), word.size()});
        slots_[slot] = {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(words_.size())};
        return static_cast<std::uint32_t>(words_.size() - 1);
    }

private:
    struct Kept {
        const Terminal* data;
        std::size_t size;
    };
    struct Slot {
        std::uint32_t hash, number;  // number + 1; 0: none
    };

    static std::uint64_t hash_of(Word word) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(word.data());
        std::uint64_t hash = word.size(), eight = 0;
        std::size_t left = word.size_bytes();
        for (; left > 8; left -= 8, bytes += 8) {
            std::memcpy(&eight, bytes, 8);
            hash = mixed(hash ^ eight) + 1;
        }
        eight = 0;
        std::memcpy(&eight, bytes, left);
        return mixed(hash ^ eight);
    }

    std::size_t place(std::uint64_t hash) const { return (hash >> 32) & (slots_.size() - 1); }

    void grow() {
        slots_.renew(slots_.size() < 1024 ? 1024 : 2 * slots_.size());
        std::memset(static_cast<void*>(slots_.data()), 0, slots_.size() * sizeof(Slot));
        for (std::size_t i = 0; i < words_.size(); ++i) {
            const std::uint64_t hash = hash_of((*this)[i]);
            std::size_t slot = place(hash);
            while (slots_[slot].number != 0) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(i + 1)};
        }
    }

    Buffer<Kept> words_;
    Buffer<Slot> slots_;  // a power of two of them
};

}  // namespace laconic
