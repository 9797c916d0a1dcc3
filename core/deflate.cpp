#include "deflate.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "grammar.hpp"

namespace laconic {

void breaks_off() { throw GrammarError("the compressed bytes break off before their end; fetch them again"); }

namespace {

struct Range {
    std::uint16_t base;
    std::uint8_t extra;  // bits
};
constexpr Range kLengths[] = {{3, 0},   {4, 0},   {5, 0},   {6, 0},   {7, 0},  {8, 0},  {9, 0},  {10, 0},
                              {11, 1},  {13, 1},  {15, 1},  {17, 1},  {19, 2}, {23, 2}, {27, 2}, {31, 2},
                              {35, 3},  {43, 3},  {51, 3},  {59, 3},  {67, 4}, {83, 4}, {99, 4}, {115, 4},
                              {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};
constexpr Range kDistances[] = {{1, 0},     {2, 0},     {3, 0},     {4, 0},      {5, 1},      {7, 1},
                                {9, 2},     {13, 2},    {17, 3},    {25, 3},     {33, 4},     {49, 4},
                                {65, 5},    {97, 5},    {129, 6},   {193, 6},    {257, 7},    {385, 7},
                                {513, 8},   {769, 8},   {1025, 9},  {1537, 9},   {2049, 10},  {3073, 10},
                                {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}};
constexpr std::size_t kEnd = 256;  // the symbol that ends a block

}  // namespace

bool HuffmanCode::make(std::span<const std::uint8_t> lengths, bool whole) {
    counts_.fill(0);
    for (const std::uint8_t length : lengths) ++counts_[length];
    const std::size_t codes = lengths.size() - counts_[0];
    counts_[0] = 0;
    std::array<std::uint16_t, kLongest + 2> begins{};
    int unused = 1;  // codes, of those of one length
    for (std::size_t length = 1; length <= kLongest; ++length) {
        unused = 2 * unused - counts_[length];
        if (unused < 0) return false;
        begins[length + 1] = static_cast<std::uint16_t>(begins[length] + counts_[length]);
    }
    if (unused > 0 && (whole || codes > 1 || (codes == 1 && counts_[1] == 0))) return false;
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol)
        if (lengths[symbol] > 0) sorted_[begins[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);

    fast_.fill({0, 0});
    std::uint32_t code = 0;  // its first bit is the highest
    std::size_t at = 0;
    for (int length = 1; length <= kFast; ++length, code <<= 1)
        for (int i = 0; i < counts_[static_cast<std::size_t>(length)]; ++i, ++code, ++at) {
            std::uint32_t reversed = 0;
            for (int bit = 0; bit < length; ++bit) reversed |= (code >> bit & 1) << (length - 1 - bit);
            for (std::size_t slot = reversed; slot < fast_.size(); slot += std::size_t{1} << length)
                fast_[slot] = {sorted_[at], static_cast<std::uint8_t>(length)};
        }
    return true;
}

HuffmanCode::Found HuffmanCode::find_long(std::uint64_t bits) const {
    std::uint32_t code = 0, first = 0, before = 0;  // codes of this length: the first of them, and how many are shorter
    for (std::size_t length = 1; length <= kLongest; ++length, bits >>= 1) {
        code = code << 1 | static_cast<std::uint32_t>(bits & 1);
        first <<= 1;
        if (code < first + counts_[length]) return {sorted_[before + code - first], static_cast<std::uint8_t>(length)};
        first += counts_[length];
        before += counts_[length];
    }
    return {0, 0};
}

void DeflateTokens::start(std::span<const std::uint8_t> stream) {
    stream_ = stream;
    next_ = 0;
    bits_ = 0;
    count_ = padding_ = 0;
    inside_ = Inside::nothing;
    last_ = false;
    out_ = 0;
    tokens_.renew(kMost);
}

void DeflateTokens::damaged(const char* what) const {
    if (padding_ > 0) breaks_off();  // what there is no more of seems to be zeros
    throw GrammarError(std::string("the compressed bytes are damaged (") + what + "); fetch them again");
}

// At least 56 bits, which are more than a token takes; zeros beyond the end, of which whoever takes one is told.
void DeflateTokens::refill() {
    if (std::endian::native == std::endian::little && stream_.size() - next_ >= 8) {
        std::uint64_t word;
        std::memcpy(&word, stream_.data() + next_, 8);
        bits_ |= word << count_;
        next_ += static_cast<std::size_t>(63 - count_) / 8;
        count_ |= 56;
        return;
    }
    for (; count_ <= 56; count_ += 8) {
        if (next_ < stream_.size())
            bits_ |= std::uint64_t{stream_[next_++]} << count_;
        else
            padding_ += 8;
    }
}

std::uint32_t DeflateTokens::take(int bits) {
    if (count_ < bits) refill();
    const auto value = static_cast<std::uint32_t>(bits_ & ((std::uint64_t{1} << bits) - 1));
    bits_ >>= bits;
    count_ -= bits;
    if (count_ < padding_) breaks_off();
    return value;
}

std::span<const Token> DeflateTokens::next() {
    tokens_.clear();
    while (tokens_.size() == 0) {
        if (inside_ == Inside::nothing) {
            if (last_) break;
            begin_block();
        } else if (inside_ == Inside::stored) {
            stored();
        } else {
            coded();
        }
    }
    return {tokens_.data(), tokens_.size()};
}

void DeflateTokens::begin_block() {
    last_ = take(1) == 1;
    const std::uint32_t kind = take(2);
    if (kind == 3) damaged("a block of no kind");
    if (kind == 0) {
        take(count_ % 8);
        const std::uint32_t size = take(16), negated = take(16);
        if ((size ^ negated) != 0xFFFF) damaged("a stored block's length");
        left_ = size;
        inside_ = Inside::stored;
        // What was read ahead goes back: the rest is bytes.
        next_ = consumed();
        bits_ = 0;
        count_ = padding_ = 0;
        return;
    }
    inside_ = Inside::coded;
    if (kind == 2) return read_codes();
    std::array<std::uint8_t, 288> lengths;
    std::fill_n(lengths.begin(), 144, std::uint8_t{8});
    std::fill_n(lengths.begin() + 144, 112, std::uint8_t{9});
    std::fill_n(lengths.begin() + 256, 24, std::uint8_t{7});
    std::fill_n(lengths.begin() + 280, 8, std::uint8_t{8});
    letters_.make(lengths, true);
    lengths.fill(5);
    distances_.make(std::span(lengths).first(32), true);
}

void DeflateTokens::read_codes() {
    const std::size_t letters = take(5) + 257, distances = take(5) + 1, given = take(4) + 4;
    if (letters > 286 || distances > 30) damaged("too many codes");
    constexpr std::uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    std::array<std::uint8_t, 19> outer{};
    for (std::size_t i = 0; i < given; ++i) outer[kOrder[i]] = static_cast<std::uint8_t>(take(3));
    if (!letters_.make(outer, true)) damaged("codes of code lengths");

    std::array<std::uint8_t, 286 + 30> lengths;
    const std::size_t all = letters + distances;
    for (std::size_t i = 0; i < all;) {
        if (count_ < 22) refill();
        const auto [symbol, bits] = letters_.find(bits_);
        take(bits);
        if (symbol < 16) {
            lengths[i++] = static_cast<std::uint8_t>(symbol);
            continue;
        }
        if (symbol == 16 && i == 0) damaged("a length repeated before there is one");
        const std::uint8_t repeated = symbol == 16 ? lengths[i - 1] : 0;
        const std::size_t times = symbol == 16 ? 3 + take(2) : symbol == 17 ? 3 + take(3) : 11 + take(7);
        if (times > all - i) damaged("more code lengths than codes");
        std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(i), times, repeated);
        i += times;
    }
    if (lengths[kEnd] == 0) damaged("a block that cannot end");
    if (!letters_.make(std::span(lengths).first(letters), false)) damaged("codes of letters");
    if (!distances_.make(std::span(lengths).subspan(letters, distances), false)) damaged("codes of distances");
}

void DeflateTokens::stored() {
    if (left_ > stream_.size() - next_) breaks_off();
    const std::size_t some = std::min(left_, kMost);
    for (std::size_t i = 0; i < some; ++i) tokens_.push_back({stream_[next_ + i], 0});
    next_ += some;
    out_ += some;
    left_ -= some;
    if (left_ == 0) inside_ = Inside::nothing;
}

void DeflateTokens::coded() {
    Token* token = tokens_.data();
    Token* const end = token + kMost;
    while (token < end) {
        if (count_ < 48) refill();
        const auto [symbol, bits] = letters_.find(bits_);
        if (bits == 0) damaged("a code that is no letter's");
        bits_ >>= bits;
        count_ -= bits;
        if (symbol < kEnd) {
            *token++ = {symbol, 0};
            ++out_;
            if (padding_ > count_) breaks_off();
            continue;
        }
        if (symbol == kEnd) {
            if (padding_ > count_) breaks_off();
            inside_ = Inside::nothing;
            break;
        }
        const std::size_t which = symbol - kEnd - 1u;
        if (which >= std::size(kLengths)) damaged("a length that there is not");
        const std::uint32_t length = kLengths[which].base + take(kLengths[which].extra);
        const auto [far, far_bits] = distances_.find(bits_);
        if (far_bits == 0 || far >= std::size(kDistances)) damaged("a distance that there is not");
        take(far_bits);
        const std::uint32_t distance = kDistances[far].base + take(kDistances[far].extra);
        if (distance > out_) damaged("a copy from before the beginning");
        *token++ = {static_cast<std::uint16_t>(length), static_cast<std::uint16_t>(distance)};
        out_ += length;
    }
    tokens_.resize(static_cast<std::size_t>(token - tokens_.data()));
}

}  // namespace laconic
