// A window: the first letters of the text from some position on, as one number that sorts as the letters do.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace laconic {

// Letters are numbered from 1 and stand side by side, the first in the topmost bits; behind the last there are zeros.
// So a shorter window comes right before those it begins, and no two windows are the same number.
template <std::size_t Words>
struct Key {
    static constexpr unsigned kBits = 64 * Words;
    std::uint64_t words[Words]{};  // the most significant first

    friend auto operator<=>(const Key&, const Key&) = default;
    bool empty() const { return words[0] == 0; }  // true of no window: its first letter is in the topmost bits

    Key operator|(const Key& other) const {
        Key result;
        for (std::size_t i = 0; i < Words; ++i) result.words[i] = words[i] | other.words[i];
        return result;
    }
    Key operator&(const Key& other) const {
        Key result;
        for (std::size_t i = 0; i < Words; ++i) result.words[i] = words[i] & other.words[i];
        return result;
    }
    // By fewer than kBits.
    Key operator>>(unsigned bits) const {
        if constexpr (Words == 1) return {{words[0] >> bits}};
        Key result;
        const std::size_t skip = bits / 64;
        const unsigned rest = bits % 64;
        for (std::size_t i = Words; i-- > skip;) {
            result.words[i] = words[i - skip] >> rest;
            if (rest != 0 && i > skip) result.words[i] |= words[i - skip - 1] << (64 - rest);
        }
        return result;
    }
    Key operator<<(unsigned bits) const {
        if constexpr (Words == 1) return {{words[0] << bits}};
        Key result;
        const std::size_t skip = bits / 64;
        const unsigned rest = bits % 64;
        for (std::size_t i = 0; i + skip < Words; ++i) {
            result.words[i] = words[i + skip] << rest;
            if (rest != 0 && i + skip + 1 < Words) result.words[i] |= words[i + skip + 1] >> (64 - rest);
        }
        return result;
    }

    std::uint64_t low() const { return words[Words - 1]; }
    std::uint8_t byte(std::size_t from_top) const {
        return static_cast<std::uint8_t>(words[from_top / 8] >> (56 - 8 * (from_top % 8)));
    }
    std::uint64_t hash() const {
        std::uint64_t mixed = 0;
        for (std::uint64_t word : words) mixed = (mixed ^ word ^ word >> 29) * 0x9E3779B97F4A7C15u;
        return mixed;
    }
};

// How letters are packed into keys: `bits` for each, `letters` of them.
template <std::size_t Words>
class Packing {
public:
    Packing(unsigned bits, unsigned letters)
        : bits_(bits), letters_(letters), all_(first(letters)), before_last_(first(letters - 1)) {
        for (unsigned bit = 0; bit < Key<Words>::kBits; ++bit)
            letter_at_[bit] = static_cast<std::uint8_t>(std::min(bit / bits, letters));
        for (unsigned i = 0; i < letters - 1; ++i) last_ = last_ << bits | at_end(~std::uint64_t{0} >> (64 - bits));
    }

    unsigned bits() const { return bits_; }
    unsigned letters() const { return letters_; }
    unsigned used_bits() const { return bits_ * letters_; }

    Key<Words> at_end(std::uint64_t letter) const {
        Key<Words> key;
        key.words[Words - 1] = letter;
        return key;
    }
    Key<Words> at_front(std::uint64_t letter) const { return at_end(letter) << (Key<Words>::kBits - bits_); }
    Key<Words> in_last_place(std::uint64_t letter) const { return at_end(letter) << (Key<Words>::kBits - used_bits()); }
    // The window one position before `key`.
    Key<Words> pushed(const Key<Words>& key, std::uint64_t letter) const {
        if constexpr (Words == 1) return {{(key.words[0] >> bits_ | letter << (64 - bits_)) & all_.words[0]}};
        return (key >> bits_ | at_front(letter)) & all_;
    }
    std::uint32_t last_letter(const Key<Words>& key) const {  // of what stands at the end
        return static_cast<std::uint32_t>(key.low() & (~std::uint64_t{0} >> (64 - bits_)));
    }
    std::uint32_t letter(const Key<Words>& key, unsigned i) const {
        return last_letter(key >> (Key<Words>::kBits - bits_ * (i + 1)));
    }
    // The mask of the first letters.
    Key<Words> first(unsigned letters) const {
        Key<Words> mask;
        for (std::size_t i = 0; i < Words; ++i) {
            const unsigned bits = bits_ * letters, before = 64 * static_cast<unsigned>(i);
            if (bits >= before + 64)
                mask.words[i] = ~std::uint64_t{0};
            else if (bits > before)
                mask.words[i] = ~(~std::uint64_t{0} >> (bits - before));
        }
        return mask;
    }
    const Key<Words>& before_last() const { return before_last_; }  // mask of all but one letter, in front
    const Key<Words>& last() const { return last_; }                // and at the end

    // How many letters two different windows begin with alike.
    unsigned shared(const Key<Words>& a, const Key<Words>& b) const {
        for (std::size_t i = 0; i < Words; ++i)
            if (const std::uint64_t differ = a.words[i] ^ b.words[i]; differ != 0)
                return letter_at_[64 * i + static_cast<unsigned>(std::countl_zero(differ))];
        return letters_;
    }
    unsigned length(const Key<Words>& key) const {
        for (std::size_t i = Words; i-- > 0;)
            if (key.words[i] != 0)
                return letter_at_[64 * i + 63 - static_cast<unsigned>(std::countr_zero(key.words[i]))] + 1u;
        return 0;
    }

private:
    unsigned bits_, letters_;
    Key<Words> all_, before_last_, last_;
    std::uint8_t letter_at_[Key<Words>::kBits];  // by bit, from the top: a division would take longer than all else
};

}  // namespace laconic
