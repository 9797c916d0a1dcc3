// The hashes that files rest on: a model's rows belong to the buckets that these give for texts. Whoever changes what
// one gives for any text must change its version, too: then a file made with the old one is refused, not misread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "grammar.hpp"

namespace laconic {

struct HashName {
    const char *of, *name;  // what it is for; its name and version
};
inline constexpr HashName kHashes[] = {
    {"ngrams", "murmur3-32.1"},             // columns of count_hashed()
    {"phrases", "polynomial-64-modulo.1"},  // columns of count_phrases()
    {"in_place", "polynomial-64-scale.1"},  // buckets of n-grams in their places
    {"identity", "polynomial-64.1"},        // of a forest's nodes
};

// MurmurHash3 of 32 bits, with seed 0, as scikit-learn's HashingVectorizer has it.
inline std::uint32_t murmur3(const std::uint8_t* bytes, std::size_t size) {
    constexpr std::uint32_t kFirst = 0xCC9E2D51, kSecond = 0x1B873593;
    std::uint32_t hash = 0;
    const auto mixed = [](std::uint32_t block) { return std::rotl(block * kFirst, 15) * kSecond; };
    std::size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        const std::uint32_t block = bytes[i] | std::uint32_t{bytes[i + 1]} << 8 | std::uint32_t{bytes[i + 2]} << 16 |
                                    std::uint32_t{bytes[i + 3]} << 24;
        hash = std::rotl(hash ^ mixed(block), 13) * 5 + 0xE6546B64;
    }
    std::uint32_t rest = 0;
    for (std::size_t j = size; j-- > i;) rest = rest << 8 | bytes[j];
    if (i < size) hash ^= mixed(rest);
    hash ^= static_cast<std::uint32_t>(size);
    hash = (hash ^ hash >> 16) * 0x85EBCA6B;
    hash = (hash ^ hash >> 13) * 0xC2B2AE35;
    return hash ^ hash >> 16;
}

// A hash of terminals alone, not of how rules split them: a polynomial in kBase modulo 2^64, whose coefficients are
// terminals plus 1.
struct Fingerprint {
    static constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15u;

    std::uint64_t hash, power;  // power: kBase to the number of terminals

    static Fingerprint of_terminal(Symbol terminal) { return {static_cast<std::uint64_t>(terminal) + 1, kBase}; }
};

inline Fingerprint joined(const Fingerprint& left, const Fingerprint& right) {
    return {left.hash * right.power + right.hash, left.power * right.power};
}

// Spreads a polynomial over all its bits, of which the lowest would otherwise know little (the end of MurmurHash3).
inline std::uint64_t mixed(std::uint64_t hash) {
    hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCDu;
    hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53u;
    return hash ^ hash >> 33;
}

// The column of a phrase, and the bucket of an n-gram in its place, whose polynomial is `hash`.
inline std::uint32_t phrase_column(std::uint64_t hash, std::uint32_t columns) {
    return static_cast<std::uint32_t>(mixed(hash) % columns);
}
inline std::int32_t place_bucket(std::uint64_t hash, std::uint32_t buckets) {
    return static_cast<std::int32_t>((mixed(hash) >> 32) * buckets >> 32);
}

}  // namespace laconic
