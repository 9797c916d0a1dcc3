// Checksums of documents from their grammars: that of a rule follows from those of its operands.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace laconic {
namespace crc32 {

// Remainders of polynomials over two elements, the lowest power in the highest bit: times x.
constexpr std::uint32_t times_x(std::uint32_t a) { return a >> 1 ^ (a & 1 ? 0xEDB88320 : 0); }

// What becomes of the highest powers, log2(size) of them, when as many times x is multiplied by.
template <std::size_t size>
constexpr auto kOn = [] {
    std::array<std::uint32_t, size> table{};
    for (std::uint32_t low = 0; low < size; ++low) {
        table[low] = low;
        for (std::size_t bit = 1; bit < size; bit *= 2) table[low] = times_x(table[low]);
    }
    return table;
}();

constexpr std::uint32_t times_x8(std::uint32_t a) { return a >> 8 ^ kOn<256>[a & 255]; }

// Four bits of `a` at a time, from its highest powers on.
constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    std::array<std::uint32_t, 16> multiples{};
    for (std::uint32_t bit = 8; bit > 0; bit /= 2, b = times_x(b))
        for (std::uint32_t above = 0; above < 16; above += 2 * bit) multiples[above + bit] = multiples[above] ^ b;
    std::uint32_t sum = 0;
    for (int at = 0; at < 32; at += 4) sum = sum >> 4 ^ kOn<16>[sum & 15] ^ multiples[a >> at & 15];
    return sum;
}

// x^(8 length) for short lengths: most are.
constexpr auto kShifts = [] {
    std::array<std::uint32_t, 1024> table{1u << 31};
    for (std::size_t length = 1; length < table.size(); ++length) table[length] = times_x8(table[length - 1]);
    return table;
}();

constexpr std::uint32_t shift(std::uint32_t length) {
    if (length < kShifts.size()) return kShifts[length];
    const std::uint32_t half = shift(length / 2), whole = product(half, half);
    return length % 2 == 1 ? times_x8(whole) : whole;
}

}  // namespace crc32

// CRC-32, as gzip has it and crc32() of zlib gives it.
struct Crc32 {
    std::uint32_t value = 0, length = 0;

    static Crc32 of(std::uint8_t letter) { return {crc32::kOn<256>[0xFFu ^ letter] ^ 0xFF000000, 1}; }
    Crc32 then(const Crc32& next) const {
        const std::uint32_t shifted =
            next.length == 1 ? crc32::times_x8(value) : crc32::product(value, crc32::shift(next.length));
        return {shifted ^ next.value, length + next.length};
    }
    std::uint32_t result() const { return value; }
};

// Adler-32, as zlib has it: the sum of all bytes, and that of the sums up to each.
struct Adler32 {
    std::uint32_t low = 0, high = 0, length = 0;  // all modulo kPrime

    static Adler32 of(std::uint8_t letter) { return {letter, letter, 1}; }
    Adler32 then(const Adler32& next) const {
        const std::uint64_t carried = std::uint64_t{low} * next.length;
        return {(low + next.low) % kPrime, static_cast<std::uint32_t>((high + carried + next.high) % kPrime),
                (length + next.length) % kPrime};
    }
    std::uint32_t result() const { return (high + length) % kPrime << 16 | (low + 1) % kPrime; }

private:
    static constexpr std::uint32_t kPrime = 65521;
};

}  // namespace laconic
