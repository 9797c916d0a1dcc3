#include "range_coder.hpp"

#include <string>
#include <vector>

#include "check.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

using Code = std::vector<std::uint8_t>;

struct Part {
    std::uint32_t start, size, total;
};

Code written(const std::vector<Part>& parts) {
    Buffer<std::uint8_t> out;
    RangeEncoder encoder(out);
    for (const Part& part : parts) encoder.put(part.start, part.size, part.total);
    encoder.finish();
    return {out.begin(), out.end()};
}

// Reads the parts again, also when the zeros at the end are gone; returns the length with them.
std::size_t check_parts(const std::vector<Part>& parts, const std::string& name) {
    Code code = written(parts);
    const std::size_t size = code.size();
    for (int trimmed = 0; trimmed < 2; ++trimmed) {
        RangeDecoder decoder(code);
        std::size_t wrong = 0;
        for (const Part& part : parts) {
            const std::uint32_t found = decoder.peek(part.total);
            wrong += found < part.start || found >= part.start + part.size;
            decoder.took(part.start, part.size);
        }
        CHECK(wrong == 0, name + (trimmed ? ", trimmed" : ""));
        while (!code.empty() && code.back() == 0) code.pop_back();
    }
    return size;
}

void check_range_coder() {
    Random random(1);
    check_parts({}, "no parts");
    for (int round = 0; round < 400; ++round) {
        std::vector<Part> parts;
        const std::uint32_t digits = random.below(17), shape = random.below(5);
        for (std::uint32_t count = random.below(400); count > 0; --count) {
            const std::uint32_t total = random.between(1, 1u << digits);
            std::uint32_t start = random.below(total), size = random.between(1, total - start);
            if (shape == 1) size = 1;
            if (shape == 2) start = 0;
            if (shape == 3) start = total - size;  // highest of all: low_ comes close to a carry
            if (shape == 4) start = 0, size = 1;
            parts.push_back({start, size, total});
        }
        check_parts(parts, "parts " + std::to_string(round));
    }
    // Certain things cost nothing.
    CHECK(check_parts(std::vector<Part>(100000, {0, kMostTotal, kMostTotal}), "certain") < 10, "certain things");
    CHECK(check_parts(std::vector<Part>(100000, {0, 1, 1}), "one of one") < 10, "one of one");
    const std::size_t bits = check_parts(std::vector<Part>(80000, {1, 1, 2}), "bits");
    CHECK(bits >= 10000 && bits < 10010, "80000 bits take " + std::to_string(bits) + " bytes");
}

// Bytes of 0xFF wait until it is known whether a carry comes. Of each part, takes the one in which that is still
// open: the first part spans a multiple of 2^24, and so does every one after it, until `over` says on which side.
std::vector<Part> open_question(std::uint32_t length, std::uint32_t total, bool over) {
    constexpr std::uint64_t kEdge = std::uint64_t{1} << 32;
    std::vector<Part> parts{{1, 1, 300}};
    std::uint64_t range = 0xFFFFFFFFu / 300 * 256, low = range;  // as the encoder's, after its first byte
    for (std::uint32_t i = 0; i < length; ++i) {
        const std::uint64_t unit = range / total;
        // What division leaves over is nobody's: then the edge is behind the last part, and a carry never comes.
        const std::uint64_t start = std::min<std::uint64_t>((kEdge - 1 - low) / unit, total - 1);
        parts.push_back({static_cast<std::uint32_t>(start), 1, total});
        low += start * unit;
        for (range = unit; range < kRangeBottom; range <<= 8) low = (low & 0x00FFFFFFu) << 8;
    }
    const std::uint32_t last = over ? kMostTotal - 1 : 0;
    parts.push_back({last, 1, kMostTotal});
    parts.push_back({last, 1, kMostTotal});
    return parts;
}

void check_carries() {
    std::size_t ones = 0, zeros = 0;  // the longest runs of 0xFF and of 0x00, which is what a carry leaves of those
    for (std::uint32_t length : {1u, 2u, 3u, 4u, 5u, 8u, 16u, 30u, 100u, 1000u, 70000u})
        for (std::uint32_t total : {2u, 4u, 16u, 1u << 8, 1u << 12, 1u << 16, 3u, 255u, 257u, 65535u})
            for (bool over : {false, true}) {
                const std::vector<Part> parts = open_question(length, total, over);
                check_parts(parts, "a run of " + std::to_string(length) + " by " + std::to_string(total));
                const Code code = written(parts);
                std::size_t one = 0, zero = 0;
                for (std::size_t i = 0; i + 5 < code.size(); ++i) {
                    one = code[i] == 0xFF ? one + 1 : 0;
                    zero = code[i] == 0x00 && i > 0 ? zero + 1 : 0;
                    ones = std::max(ones, one);
                    zeros = std::max(zeros, zero);
                }
            }
    CHECK(ones > 1000 && zeros > 1000, std::to_string(ones) + " and " + std::to_string(zeros));

    for (std::uint32_t total : {3u, 256u, 65535u, kMostTotal})
        check_parts(std::vector<Part>(70000, {total - 1, 1, total}), "the last of " + std::to_string(total));
}

void check_arbitrary_numbers() {
    Random random(3);
    for (int round = 0; round < 300; ++round) {
        Code code(random.below(60));
        const bool high = random.below(3) == 0;
        for (std::uint8_t& byte : code) byte = high ? 0xFF : static_cast<std::uint8_t>(random.below(256));
        RangeDecoder decoder(code);
        for (int i = 0; i < 200; ++i) {
            const std::uint32_t total = random.between(1, kMostTotal), found = decoder.peek(total);
            CHECK(found < total, "any bytes give numbers within their totals");
            decoder.took(found, random.below(2) ? 1 : total - found);
        }
    }
}

}  // namespace
}  // namespace laconic::test

int main() {
    using namespace laconic::test;
    check_range_coder();
    check_carries();
    check_arbitrary_numbers();
    return report("range_coder");
}
