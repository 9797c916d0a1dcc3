#include "deflate.hpp"

#include "check.hpp"
#include "oracles.hpp"
#include "texts.hpp"
#include "zipped.hpp"

namespace laconic::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Tokens = std::vector<Token>;

// Bits as deflate writes them: numbers from their lowest bit on, codes from their highest.
class Bits {
public:
    Bits& number(std::uint32_t value, int count) {
        for (int i = 0; i < count; ++i) bit(value >> i & 1);
        return *this;
    }
    Bits& code(std::uint32_t value, int count) {
        for (int i = count; i-- > 0;) bit(value >> i & 1);
        return *this;
    }
    // Codes of the fixed block.
    Bits& symbol(std::uint32_t symbol) {
        if (symbol < 144) return code(0x30 + symbol, 8);
        if (symbol < 256) return code(0x190 + symbol - 144, 9);
        return symbol < 280 ? code(symbol - 256, 7) : code(0xC0 + symbol - 280, 8);
    }
    Bytes bytes() const { return bytes_; }

private:
    void bit(std::uint32_t value) {
        if (count_ % 8 == 0) bytes_.push_back(0);
        bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | value << count_ % 8);
        ++count_;
    }
    Bytes bytes_;
    int count_ = 0;
};

Tokens tokens_of(const Bytes& stream) {
    static DeflateTokens tokens;  // one for all: what a stream leaves behind must not show in the next
    Tokens all;
    tokens.start(stream);
    for (std::span<const Token> some; !(some = tokens.next()).empty();) all.insert(all.end(), some.begin(), some.end());
    CHECK(tokens.consumed() <= stream.size(), "a stream's end");
    return all;
}

Bytes gzipped(const Bytes& stream, std::uint32_t crc, std::uint32_t length) {
    Bytes bytes{0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255};
    bytes.insert(bytes.end(), stream.begin(), stream.end());
    for (const std::uint32_t number : {crc, length})
        for (int i = 0; i < 32; i += 8) bytes.push_back(static_cast<std::uint8_t>(number >> i));
    return bytes;
}

Plain zipped(const Bytes& bytes, Symbol alphabet_size = 256, bool raw = false) {
    static Zipped zipped;
    Output out;
    zipped.compress(bytes, alphabet_size, raw, out);
    return {{out.rules.begin(), out.rules.end()}, {out.sequence.begin(), out.sequence.end()}};
}

void test_tokens() {
    CHECK((tokens_of({1, 2, 0, 0xFD, 0xFF, 'a', 'b'}) == Tokens{{'a', 0}, {'b', 0}}), "a stored block");
    CHECK((tokens_of({0, 0, 0, 0xFF, 0xFF, 1, 1, 0, 0xFE, 0xFF, 'a'}) == Tokens{{'a', 0}}), "two stored blocks");
    const Bytes fixed =
        Bits().number(3, 3).symbol('a').symbol(200).symbol(257).code(1, 5).symbol(285).code(0, 5).symbol(256).bytes();
    CHECK((tokens_of(fixed) == Tokens{{'a', 0}, {200, 0}, {3, 2}, {258, 1}}), "a fixed block");
    const Bytes extra = Bits()
                            .number(3, 3)
                            .symbol('a')
                            .symbol(265)
                            .number(1, 1)
                            .code(0, 5)
                            .symbol(265)
                            .number(0, 1)
                            .code(4, 5)
                            .number(1, 1)
                            .symbol(256)
                            .bytes();
    CHECK((tokens_of(extra) == Tokens{{'a', 0}, {12, 1}, {11, 6}}), "extra bits");
}

void test_refused() {
    const char* const cut = "break off";
    CHECK_THROWS(tokens_of({}), GrammarError, cut);
    CHECK_THROWS(tokens_of({1, 2, 0, 0xFD, 0xFF, 'a'}), GrammarError, cut);
    CHECK_THROWS(tokens_of(Bits().number(3, 3).symbol('a').bytes()), GrammarError, cut);
    CHECK_THROWS(tokens_of(Bits().number(7, 3).number(0, 32).number(0, 32).bytes()), GrammarError, "no kind");
    CHECK_THROWS(tokens_of({1, 2, 0, 0xFC, 0xFF, 'a', 'b', 0, 0, 0, 0}), GrammarError, "stored block's length");
    const auto block = [] { return Bits().number(3, 3); };
    const auto padded = [](Bits& bits) { return bits.number(0, 32).number(0, 32).number(0, 32).bytes(); };
    CHECK_THROWS(tokens_of(padded(block().symbol(257).code(0, 5))), GrammarError, "before the beginning");
    CHECK_THROWS(tokens_of(padded(block().symbol('a').symbol(257).code(1, 5))), GrammarError, "before the beginning");
    CHECK_THROWS(tokens_of(padded(block().symbol('a').symbol(286))), GrammarError, "a length that there is not");
    CHECK_THROWS(tokens_of(padded(block().symbol('a').symbol(257).code(30, 5))), GrammarError,
                 "a distance that there is not");
    CHECK_THROWS(tokens_of(padded(Bits().number(5, 3).number(30, 5).number(0, 5))), GrammarError, "too many codes");
    CHECK_THROWS(tokens_of(padded(Bits().number(5, 3).number(0, 14))), GrammarError, "codes of code lengths");
}

void test_containers() {
    const Bytes stored{1, 2, 0, 0xFD, 0xFF, 'a', 'b'};
    const Bytes ab = gzipped(stored, 0x9E83486D, 2);
    const Text text{'a', 'b'};
    const auto joined = [](Bytes bytes, const Bytes& more) {
        bytes.insert(bytes.end(), more.begin(), more.end());
        return bytes;
    };
    CHECK(expanded(zipped(ab), 256) == text, "gzip");
    CHECK((expanded(zipped(joined(ab, ab)), 256) == Text{'a', 'b', 'a', 'b'}), "two members");
    CHECK(expanded(zipped(joined(ab, {0, 0, 0})), 256) == text, "zeros behind gzip");
    CHECK(expanded(zipped(stored, 256, true), 256) == text, "raw");
    CHECK(expanded(zipped(joined(joined({0x78, 0x9C}, stored), {0x01, 0x26, 0x00, 0xC4})), 256) == text, "zlib");
    Bytes slice{'L', 'S', 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
    CHECK((expanded(zipped(joined(slice, ab)), 256) == Text{'b'}), "a slice");
    slice[10] = 3;
    CHECK_THROWS(zipped(joined(slice, ab)), GrammarError, "shorter than it says");
    CHECK_THROWS(zipped(gzipped(stored, 0x9E83486C, 2)), GrammarError, "checksum");
    CHECK_THROWS(zipped(gzipped(stored, 0x9E83486D, 3)), GrammarError, "length");
    CHECK_THROWS(zipped(joined(ab, {1})), GrammarError, "not gzip follows");
    CHECK_THROWS(zipped(joined(stored, {0}), 256, true), GrammarError, "something follows");
    CHECK_THROWS(zipped({'a', 'b', 'c'}), GrammarError, "neither by gzip nor by zlib");
    CHECK_THROWS(zipped(ab, 98), GrammarError, "symbol 98 is outside the alphabet 0 … 97");
    Bytes flagged = ab;
    flagged[3] = 0x20;
    CHECK_THROWS(zipped(flagged), GrammarError, "nobody has written");
    const Member member = scan_gzip(joined(ab, ab));
    CHECK(member.size == ab.size() && member.length == 2, "scan_gzip");
}

// ---- letters and copies to grammars
// ----------------------------------------------------------------------------------

std::uint32_t crc_by_definition(const Text& text) {
    std::uint32_t sum = 0xFFFFFFFF;
    for (const Symbol letter : text) {
        sum ^= static_cast<std::uint32_t>(letter);
        for (int bit = 0; bit < 8; ++bit) sum = sum & 1 ? sum >> 1 ^ 0xEDB88320 : sum >> 1;
    }
    return ~sum;
}

std::uint32_t adler_by_definition(const Text& text) {
    std::uint32_t low = 1, high = 0;
    for (const Symbol letter : text) {
        low = (low + static_cast<std::uint32_t>(letter)) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

LzToGrammar grammar;

// Feeds tokens, and compares with the text that they stand for.
Plain check_tokens(const Tokens& tokens, const std::string& input) {
    Text text;
    grammar.start(256, tokens.size());
    for (const Token& token : tokens) {
        if (token.distance == 0) {
            grammar.letter(token.value);
            text.push_back(token.value);
        } else {
            grammar.copy(token.value, token.distance);
            for (int i = 0; i < token.value; ++i) text.push_back(text[text.size() - token.distance]);
        }
    }
    CHECK(grammar.length() == text.size(), input);
    CHECK(grammar.checksum<Crc32>(0) == crc_by_definition(text), input);
    CHECK(grammar.checksum<Adler32>(0) == adler_by_definition(text), input);
    Output out;
    grammar.write(0, text.size(), out);
    const Plain made{{out.rules.begin(), out.rules.end()}, {out.sequence.begin(), out.sequence.end()}};
    check(view(made, 256));
    CHECK(expanded(made, 256) == text, input);
    const std::size_t begin = text.size() / 3, end = text.size() - text.size() / 4;
    Output part;
    grammar.write(begin, end, part);
    const Plain cut{{part.rules.begin(), part.rules.end()}, {part.sequence.begin(), part.sequence.end()}};
    CHECK(expanded(cut, 256) ==
              Text(text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end)),
          input);
    return made;
}

int height_of(const Plain& made) {
    std::vector<std::int32_t> heights(made.rules.size() / 2 + 1);
    depths(view(made, 256), heights.data());
    return *std::max_element(heights.begin(), heights.end());
}

void test_grammars() {
    Random random(1);
    for (int number = 0; number < 3000; ++number) {
        Tokens tokens;
        std::uint32_t length = 0;
        const std::uint32_t letters = random.between(1, 4), copies = random.below(10);
        for (std::uint32_t i = random.below(200); i > 0; --i) {
            const bool copied = length > 0 && random.below(10) < copies;
            const auto distance = static_cast<std::uint16_t>(copied ? 1 + random.below(std::min(length, 32768u)) : 0);
            const auto value = static_cast<std::uint16_t>(copied ? random.between(3, random.below(9) == 0 ? 258 : 20)
                                                                 : random.below(letters));
            tokens.push_back({value, distance});
            length += copied ? value : 1;
        }
        check_tokens(tokens, "tokens " + std::to_string(number));
    }
    check_tokens({}, "nothing");
}

// Each copy takes the whole one before it and a letter more: without care, trees as high as they are long.
void test_height() {
    Tokens tokens{{0, 0}, {1, 0}};
    for (std::uint16_t length = 2; length < 258; ++length) {
        tokens.push_back({length, length});
        tokens.push_back({static_cast<std::uint16_t>(length % 200), 0});
        tokens.push_back({static_cast<std::uint16_t>(length + 1), static_cast<std::uint16_t>(length + 1)});
        tokens.push_back({static_cast<std::uint16_t>(length % 7), 0});
    }
    CHECK(height_of(check_tokens(tokens, "a ladder")) <= 2 * 17 + 6, "a ladder");
}

void test_runs() {
    Tokens tokens{{'a', 0}};
    for (int i = 0; i < 4000; ++i) tokens.push_back({258, 1});
    const Plain zeros = check_tokens(tokens, "a run");
    CHECK(zeros.sequence.size() <= 2 && zeros.rules.size() / 2 <= 40, "a run: " + shown(zeros));
    tokens = {{'a', 0}, {'b', 0}, {'c', 0}};
    for (int i = 0; i < 1000; ++i) tokens.push_back({200, 3});
    CHECK(check_tokens(tokens, "a period").rules.size() / 2 <= 40, "a period");
    // The same again and again, but taken from here and there, as zlib does.
    Random random(2);
    tokens.clear();
    for (int i = 0; i < 300; ++i) tokens.push_back({static_cast<std::uint16_t>(random.below(256)), 0});
    for (int i = 0; i < 2000; ++i) {
        tokens.push_back({258, 300});
        tokens.push_back({29, static_cast<std::uint16_t>(300 * (1 + (i > 1 ? random.below(2) : 0)))});
    }
    CHECK(check_tokens(tokens, "here and there").sequence.size() < 10, "here and there");
    tokens.push_back({258, 299});  // from elsewhere at last
    tokens.push_back({258, 299});
    tokens.push_back({100, 298});
    check_tokens(tokens, "elsewhere");
}

}  // namespace
}  // namespace laconic::test

int main() {
    using namespace laconic::test;
    test_tokens();
    test_refused();
    test_containers();
    test_grammars();
    test_height();
    test_runs();
    return report("deflate_test");
}
