// Deflate (RFC 1951): a stream as its tokens, letters and copies, without the bytes that they stand for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "buffer.hpp"

namespace laconic {

// Throws GrammarError: there should be more.
[[noreturn]] void breaks_off();

// A letter if `distance` is 0; else a copy of `value` bytes that stand `distance` bytes back.
struct Token {
    std::uint16_t value, distance;
    bool operator==(const Token&) const = default;
};

// A Huffman code: codes of up to kFast bits are found by one look, longer ones bit by bit.
class HuffmanCode {
public:
    static constexpr int kFast = 9, kLongest = 15;
    struct Found {
        std::uint16_t symbol;
        std::uint8_t bits;  // 0: no code begins like this
    };

    // Symbol i has a code of lengths[i] bits, or none. False if those cannot be, or leave codes unused; but one code
    // alone may be of one bit, and there may be none, as zlib has it, unless it is to be `whole`.
    bool make(std::span<const std::uint8_t> lengths, bool whole);

    // The symbol whose code `bits` begins with.
    Found find(std::uint64_t bits) const {
        const Found found = fast_[bits & ((1 << kFast) - 1)];
        return found.bits > 0 ? found : find_long(bits);
    }

private:
    Found find_long(std::uint64_t bits) const;

    std::array<Found, 1 << kFast> fast_;
    std::array<std::uint16_t, kLongest + 1> counts_;  // of codes, by length
    std::array<std::uint16_t, 288> sorted_;           // symbols by their codes
};

// The tokens of a stream, some at a time. Throws GrammarError for every stream that zlib would not inflate.
class DeflateTokens {
public:
    // `stream` begins with a block; what follows the last one is not looked at.
    void start(std::span<const std::uint8_t> stream);

    // The next tokens; none at the end. They are there until the next call.
    std::span<const Token> next();

    // How many bytes the stream took, once its end was reached.
    std::size_t consumed() const { return next_ - static_cast<std::size_t>(count_ - padding_) / 8; }

private:
    static constexpr std::size_t kMost = 4096;  // tokens at a time
    enum class Inside { nothing, stored, coded };

    [[noreturn]] void damaged(const char* what) const;
    void refill();
    std::uint32_t take(int bits);
    void begin_block();
    void read_codes();
    void stored();
    void coded();

    std::span<const std::uint8_t> stream_;
    std::size_t next_ = 0;    // the byte after those in bits_
    std::uint64_t bits_ = 0;  // the next ones, the lowest first
    int count_ = 0;           // of bits_
    int padding_ = 0;         // of count_, zeros that stand for what is beyond the end
    Inside inside_ = Inside::nothing;
    bool last_ = false;      // the block is the last one
    std::size_t left_ = 0;   // bytes of a stored block
    std::uint64_t out_ = 0;  // how many bytes all tokens so far stand for
    HuffmanCode letters_, distances_;
    Buffer<Token> tokens_;
};

}  // namespace laconic
