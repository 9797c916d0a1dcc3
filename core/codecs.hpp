// The codecs there are, by name: each has files of its own, and a line in codecs.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "grammar.hpp"
#include "lzd.hpp"
#include "repair.hpp"

namespace laconic {

// What codecs can be told; each takes some of it.
struct CodecOptions {
    RepairOptions repair;
    LzdLetters letters = LzdLetters::known;
};

// What one thread needs to compress document after document.
class Compressor {
public:
    virtual ~Compressor() = default;
    // Appends the grammar of `text`, whose terminals are 0 … alphabet_size-1, to `out`.
    virtual void compress(std::span<const std::uint8_t> text, Symbol alphabet_size, Output& out) = 0;
    virtual void compress(std::span<const std::uint16_t> text, Symbol alphabet_size, Output& out) = 0;
    virtual void compress(std::span<const std::int32_t> text, Symbol alphabet_size, Output& out) = 0;
};

struct Codec {
    std::string_view name;
    std::vector<std::string_view> options;  // names of those that it takes
    std::unique_ptr<Compressor> (*make)(const CodecOptions& options);
};

const std::vector<Codec>& codecs();

// Throws GrammarError for a name that there is not.
const Codec& codec_named(std::string_view name);

}  // namespace laconic
