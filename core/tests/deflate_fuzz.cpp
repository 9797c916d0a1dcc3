// Streams by zlib, mutated: Zipped must refuse what zlib refuses, give what it gives, and take little memory.
//     deflate_fuzz [streams] [seed]     a million take ten minutes under sanitizers
#include <zlib.h>

#include <cstdlib>
#include <optional>

#include "check.hpp"
#include "oracles.hpp"
#include "texts.hpp"
#include "zipped.hpp"

#if defined(__SANITIZE_ADDRESS__)
extern "C" {  // of sanitizer/allocator_interface.h, which not every compiler brings
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                              void (*)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void*);
}
#endif

namespace laconic::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
enum Container { raw = -15, zlib = 15, gzip = 31 };
constexpr Container kContainers[] = {raw, zlib, gzip};
constexpr std::size_t kLongest = 1 << 20;  // bytes that are compared; a mutation may make a stream a bomb

std::size_t in_use = 0, most_in_use = 0;

void watch_memory() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_install_malloc_and_free_hooks(
        [](const volatile void*, std::size_t size) { most_in_use = std::max(most_in_use, in_use += size); },
        [](const volatile void* block) { in_use -= std::min(in_use, __sanitizer_get_allocated_size(block)); });
#endif
}

Bytes deflated(const Bytes& text, Container container, int level, int strategy) {
    z_stream stream{};
    deflateInit2(&stream, level, Z_DEFLATED, container, 8, strategy);
    Bytes out(deflateBound(&stream, text.size()) + 64);
    stream.next_in = const_cast<Bytef*>(text.data());
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

struct Inflated {
    Bytes text;
    bool valid, whole;  // whole: all of the text
};

// What zlib says: members one after the other, zeros behind those of gzip.
Inflated inflated(const Bytes& bytes, Container container) {
    Inflated result{{}, false, true};
    std::size_t at = 0;
    do {
        z_stream stream{};
        inflateInit2(&stream, container);
        stream.next_in = const_cast<Bytef*>(bytes.data() + at);
        stream.avail_in = static_cast<uInt>(bytes.size() - at);
        int status = Z_OK;
        for (Bytes some(1 << 16); status == Z_OK;) {
            stream.next_out = some.data();
            stream.avail_out = static_cast<uInt>(some.size());
            status = inflate(&stream, Z_NO_FLUSH);
            const std::size_t made = some.size() - stream.avail_out;
            result.whole &= result.text.size() + made <= kLongest;
            if (result.whole) result.text.insert(result.text.end(), some.begin(), some.begin() + made);
        }
        at = bytes.size() - stream.avail_in;
        inflateEnd(&stream);
        if (status != Z_STREAM_END) return result;
    } while (container == gzip && at + 2 <= bytes.size() && bytes[at] == 0x1F && bytes[at + 1] == 0x8B);
    result.valid = container == gzip ? std::all_of(bytes.begin() + at, bytes.end(), [](int b) { return b == 0; })
                                     : at == bytes.size();
    return result;
}

void mutate(Bytes& bytes, Random& random) {
    for (std::uint32_t times = random.below(4); times > 0 && !bytes.empty(); --times) {
        // The codes are at the beginning, and most changes there are felt.
        const std::size_t reach = random.below(2) == 0 ? std::min<std::size_t>(bytes.size(), 120) : bytes.size();
        const std::size_t at = random.below(static_cast<std::uint32_t>(reach));
        const auto there = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        switch (random.below(6)) {
            case 0:
                bytes.resize(at);
                break;
            case 1:
                *there = static_cast<std::uint8_t>(random.below(256));
                break;
            case 2:
                bytes.insert(there, static_cast<std::uint8_t>(random.below(256)));
                break;
            case 3:
                bytes.erase(there);
                break;
            default:
                *there ^= static_cast<std::uint8_t>(1 << random.below(8));
        }
    }
    if (random.below(20) == 0) bytes.insert(bytes.end(), random.below(5), static_cast<std::uint8_t>(random.below(2)));
}

// Random bits behind the header of a block: what they stand for is as odd as can be.
Bytes noise(Random& random) {
    Bytes bytes(random.below(random.below(50) == 0 ? 100'000 : 400) + 1);
    const std::uint32_t ones = random.below(4);  // few or many: then copies of few bits come again and again
    for (std::uint8_t& byte : bytes) {
        byte = static_cast<std::uint8_t>(random.below(256));
        for (std::uint32_t i = 0; i < ones; ++i) byte &= static_cast<std::uint8_t>(random.below(256));
    }
    bytes[0] = static_cast<std::uint8_t>((bytes[0] & ~7u) | (random.below(4) == 0 ? 4 : 2));
    return bytes;
}

void run(std::uint32_t streams, std::uint32_t seed) {
    Random random(seed);
    std::size_t accepted = 0, worst = 0;
    for (std::uint32_t number = 0; number < streams; ++number) {
        const Container container = kContainers[random.below(3)];
        Bytes bytes;
        if (random.below(8) == 0) {
            bytes = noise(random);
        } else {
            const auto kind = static_cast<Kind>(random.below(static_cast<std::uint32_t>(Kind::count)));
            const std::size_t length = random.below(100) == 0 ? random.below(300'000) : random.below(3000);
            const Bytes text =
                as<std::uint8_t>(make_text(kind, random, length, static_cast<Symbol>(random.between(1, 256))));
            const int level = static_cast<int>(random.below(10)), strategy = static_cast<int>(random.below(5));
            bytes = deflated(text, container, level, strategy);
            if (container == gzip && random.below(4) == 0) {
                const Bytes more = deflated(text, container, 9, Z_DEFAULT_STRATEGY);
                bytes.insert(bytes.end(), more.begin(), more.end());
            }
        }
        mutate(bytes, random);
        // An empty one, and gzip that is not called so, are other questions.
        const bool odd = bytes.size() < 2 || (container != raw && bytes[0] == 'L') ||
                         (container == gzip && bytes[0] != 0x1F) || (container == zlib && bytes[0] == 0x1F);
        if (odd) continue;
        const Inflated expected = inflated(bytes, container);
        const std::string input = "stream " + std::to_string(number) + " of seed " + std::to_string(seed);
        const std::size_t before = most_in_use = in_use;
        {
            Zipped zipped;
            Output out;
            std::optional<std::string> refused;
            try {
                zipped.compress(bytes, 256, container == raw, out);
            } catch (const GrammarError& error) {
                refused = error.what();
            }
            worst = std::max(worst, most_in_use - before);
            CHECK(bytes.size() > 100'000 || most_in_use - before <= 64 << 20, input);
            CHECK(expected.valid != refused.has_value(), input + (refused ? ": " + *refused : ""));
            if (expected.valid && !refused) {
                ++accepted;
                const Plain made{{out.rules.begin(), out.rules.end()}, {out.sequence.begin(), out.sequence.end()}};
                check(view(made, 256));
                if (expected.whole) CHECK(as<std::uint8_t>(expanded(made, 256)) == expected.text, input);
            }
        }
        if (streams >= 10'000 && number % 10'000 == 9'999) {
            std::printf("%u streams, %zu accepted, %zu failed, at most %.1f MB\n", number + 1, accepted, failed,
                        worst / 1e6);
            std::fflush(stdout);
        }
    }
}

}  // namespace
}  // namespace laconic::test

int main(int count, char** arguments) {
    laconic::test::watch_memory();
    laconic::test::run(count > 1 ? static_cast<std::uint32_t>(std::atol(arguments[1])) : 2000,
                       count > 2 ? static_cast<std::uint32_t>(std::atol(arguments[2])) : 0);
    return laconic::test::report("deflate_fuzz");
}
