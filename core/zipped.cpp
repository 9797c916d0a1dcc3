#include "zipped.hpp"

#include <algorithm>
#include <string>

namespace laconic {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::uint64_t little_endian(Bytes bytes, std::size_t at, std::size_t count) {
    if (bytes.size() < at + count) breaks_off();
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | bytes[at + i];
    return value;
}

bool is_gzip(Bytes bytes) { return bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B; }

bool is_zlib(Bytes bytes) {
    return bytes.size() >= 2 && (bytes[0] & 15) == 8 && bytes[0] >> 4 <= 7 && (bytes[0] * 256 + bytes[1]) % 31 == 0;
}

// The size of the header of a gzip member (RFC 1952).
std::size_t gzip_header(Bytes bytes) {
    if (bytes.size() < 10) breaks_off();
    if (bytes[2] != 8) throw GrammarError("it is gzip, but not by deflate: pack it with gzip again");
    const std::uint8_t flags = bytes[3];
    if (flags & 0xE0) throw GrammarError("it is gzip of a kind that nobody has written yet; pack it with gzip again");
    std::size_t at = 10;
    if (flags & 4) at += 2 + static_cast<std::size_t>(little_endian(bytes, at, 2));
    for (const int name : {8, 16}) {
        if (!(flags & name)) continue;
        const auto rest = bytes.subspan(std::min(at, bytes.size()));
        const auto end = std::find(rest.begin(), rest.end(), 0);
        if (end == rest.end()) breaks_off();
        at += static_cast<std::size_t>(end - rest.begin()) + 1;
    }
    if (flags & 2) {
        const std::uint64_t said = little_endian(bytes, at, 2);
        Crc32 sum;
        for (const std::uint8_t byte : bytes.first(at)) sum = sum.then(Crc32::of(byte));
        if ((sum.result() & 0xFFFF) != said) throw GrammarError("the header's checksum is wrong; fetch it again");
        at += 2;
    }
    if (at > bytes.size()) breaks_off();
    return at;
}

void verify(std::uint32_t found, std::uint64_t said, const char* what) {
    if (found != said) throw GrammarError(std::string("its ") + what + " is not what was compressed; fetch it again");
}

class ZippedCompressor final : public Compressor {
public:
    ZippedCompressor(Symbol alphabet_size, bool raw) : alphabet_size_(alphabet_size), raw_(raw) {}
    void compress(Bytes bytes, Symbol, Output& out) override { zipped_.compress(bytes, alphabet_size_, raw_, out); }
    void compress(std::span<const std::uint16_t>, Symbol, Output&) override { refuse(); }
    void compress(std::span<const std::int32_t>, Symbol, Output&) override { refuse(); }

private:
    [[noreturn]] static void refuse() { throw GrammarError("what is compressed is bytes"); }
    Zipped zipped_;
    Symbol alphabet_size_;
    bool raw_;
};

}  // namespace

void Zipped::compress(Bytes bytes, Symbol alphabet_size, bool raw, Output& out) {
    if (alphabet_size < 1 || alphabet_size > 256) throw GrammarError("deflate is over bytes: at most 256 terminals");
    std::uint64_t begin = 0, end = std::uint64_t(-1);
    const bool slice = !raw && bytes.size() >= 2 && std::equal(kSlice, kSlice + 2, bytes.begin());
    if (slice) {
        begin = little_endian(bytes, 2, 8);
        end = little_endian(bytes, 10, 8);
        bytes = bytes.subspan(18);
    }
    grammar_.start(alphabet_size, 2 * bytes.size());
    if (raw) {
        if (read_deflate(bytes, out) < bytes.size())
            throw GrammarError("something follows the compressed bytes: cut it off");
    } else if (is_gzip(bytes)) {
        read_gzip(bytes, out);
    } else if (is_zlib(bytes)) {
        read_zlib(bytes, out);
    } else {
        throw GrammarError("it is compressed neither by gzip nor by zlib; is it text?");
    }
    const std::size_t length = grammar_.length();
    if (slice && (begin > end || end > length)) throw GrammarError("it is shorter than it says; fetch it again");
    grammar_.write(begin, std::min<std::uint64_t>(end, length), out);
}

// Returns how many bytes of `stream` are of it.
std::size_t Zipped::read_deflate(Bytes stream, const Output& out) {
    tokens_.start(stream);
    for (;;) {
        const std::span<const Token> some = tokens_.next();
        if (some.empty()) return tokens_.consumed();
        if (out.stop != nullptr && out.stop->load(std::memory_order_relaxed)) throw Stopped();
        for (const Token& token : some) {
            if (token.distance == 0)
                grammar_.letter(token.value);
            else
                grammar_.copy(token.value, token.distance);
        }
    }
}

void Zipped::read_gzip(Bytes bytes, const Output& out) {
    do {
        bytes = bytes.subspan(gzip_header(bytes));
        const std::size_t begin = grammar_.length();
        bytes = bytes.subspan(read_deflate(bytes, out));
        verify(grammar_.checksum<Crc32>(begin), little_endian(bytes, 0, 4), "checksum");
        verify(static_cast<std::uint32_t>(grammar_.length() - begin), little_endian(bytes, 4, 4), "length");
        bytes = bytes.subspan(8);
    } while (is_gzip(bytes));
    if (std::ranges::any_of(bytes, [](std::uint8_t byte) { return byte != 0; }))
        throw GrammarError("something that is not gzip follows the compressed bytes: cut it off");
}

void Zipped::read_zlib(Bytes bytes, const Output& out) {
    if (bytes[1] & 32) throw GrammarError("it is zlib with a dictionary that is not there; compress it without one");
    bytes = bytes.subspan(2);
    bytes = bytes.subspan(read_deflate(bytes, out));
    if (bytes.size() < 4) breaks_off();
    if (bytes.size() > 4) throw GrammarError("something follows the compressed bytes: cut it off");
    const std::uint32_t said =
        std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
    verify(grammar_.checksum<Adler32>(0), said, "checksum");
}

std::unique_ptr<Compressor> zipped_compressor(Symbol alphabet_size, bool raw) {
    return std::make_unique<ZippedCompressor>(alphabet_size, raw);
}

Member scan_gzip(Bytes bytes) {
    if (!is_gzip(bytes)) throw GrammarError("it is not compressed by gzip");
    const std::size_t header = gzip_header(bytes);
    DeflateTokens tokens;
    tokens.start(bytes.subspan(header));
    std::uint64_t length = 0;
    for (std::span<const Token> some; !(some = tokens.next()).empty();)
        for (const Token& token : some) length += token.distance == 0 ? 1 : token.value;
    const std::uint64_t size = header + tokens.consumed() + 8;
    if (size > bytes.size()) breaks_off();
    return {size, length};
}

}  // namespace laconic
