// A range coder: numbers in as few bits as their probabilities allow (Martin 1979; carries as in LZMA).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "buffer.hpp"
#include "grammar.hpp"

namespace laconic {

inline constexpr std::uint32_t kRangeBottom = 1 << 24;
inline constexpr std::uint32_t kMostTotal = 1 << 16;  // of frequencies

class RangeEncoder {
public:
    explicit RangeEncoder(Buffer<std::uint8_t>& out) : out_(out) {}

    // One of `total` things, of which `size` from `start` on mean this one.
    void put(std::uint32_t start, std::uint32_t size, std::uint32_t total) {
        range_ /= total;
        low_ += std::uint64_t{start} * range_;
        range_ *= size;
        while (range_ < kRangeBottom) {
            range_ <<= 8;
            shift();
        }
    }

    void finish() {
        for (int i = 0; i < 5; ++i) shift();
    }

private:
    void shift() {
        if (low_ < 0xFF000000u || low_ > 0xFFFFFFFFu) {
            const auto carry = static_cast<std::uint8_t>(low_ >> 32);
            if (started_) out_.push_back(static_cast<std::uint8_t>(cache_ + carry));
            for (; pending_ > 0; --pending_) out_.push_back(static_cast<std::uint8_t>(0xFF + carry));
            cache_ = static_cast<std::uint8_t>(low_ >> 24);
            started_ = true;
        } else {
            ++pending_;
        }
        low_ = (low_ & 0x00FFFFFFu) << 8;
    }

    Buffer<std::uint8_t>& out_;
    std::uint64_t low_ = 0;
    std::uint32_t range_ = 0xFFFFFFFFu;
    std::uint8_t cache_ = 0;
    std::size_t pending_ = 0;
    bool started_ = false;
};

// Reads what RangeEncoder wrote; anything else gives arbitrary numbers, within their totals.
class RangeDecoder {
public:
    explicit RangeDecoder(std::span<const std::uint8_t> data) : data_(data) {
        for (int i = 0; i < 4; ++i) code_ = code_ << 8 | next();
    }

    // Which of `total` things; to be followed by took().
    std::uint32_t peek(std::uint32_t total) {
        range_ /= total;
        const std::uint32_t value = code_ / range_;
        return value < total ? value : total - 1;
    }

    void took(std::uint32_t start, std::uint32_t size) {
        code_ -= start * range_;
        range_ *= size;
        while (range_ < kRangeBottom) {
            range_ <<= 8;
            code_ = code_ << 8 | next();
        }
    }

private:
    std::uint32_t next() {
        // What follows the end are zeros, which finish() wrote and the caller may have cut off.
        return at_ < data_.size() ? data_[at_++] : 0;
    }

    std::span<const std::uint8_t> data_;
    std::size_t at_ = 0;
    std::uint32_t range_ = 0xFFFFFFFFu, code_ = 0;
};

}  // namespace laconic
