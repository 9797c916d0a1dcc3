// Hashes of texts that depend on their letters alone, not on how rules split them.
#pragma once

#include <cstdint>

#include "grammar.hpp"

namespace laconic {

// A polynomial in kBase modulo 2^64, whose coefficients are letters plus 1.
struct Fingerprint {
    static constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15u;

    std::uint64_t hash, power;  // power: kBase to the number of letters

    static Fingerprint of_letter(Symbol letter) { return {static_cast<std::uint64_t>(letter) + 1, kBase}; }
};

inline Fingerprint joined(const Fingerprint& left, const Fingerprint& right) {
    return {left.hash * right.power + right.hash, left.power * right.power};
}

// Spreads a hash over all its bits, of which the lowest would otherwise know little (the end of MurmurHash3).
inline std::uint64_t mixed(std::uint64_t hash) {
    hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCDu;
    hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53u;
    return hash ^ hash >> 33;
}

}  // namespace laconic
