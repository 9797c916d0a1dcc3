// Documents that lie compressed by deflate, in gzip, zlib or nothing around it: to grammars, without inflating them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "codecs.hpp"
#include "deflate.hpp"
#include "grammar.hpp"
#include "lz_to_grammar.hpp"

namespace laconic {

class Zipped {
public:
    // Appends the grammar of what `bytes` would be inflated to, over terminals 0 … alphabet_size-1, to `out`. gzip of
    // several members is one document; zeros may follow it. Checksums and lengths are verified on the grammar, so that
    // damage is found without expanding it. Throws GrammarError, with what is wrong and the cure.
    // Bytes that begin with kSlice stand for a part of a document: then come where it begins and ends, eight bytes
    // each, the lowest first, and the whole document as gzip.
    void compress(std::span<const std::uint8_t> bytes, Symbol alphabet_size, bool raw, Output& out);

    static constexpr std::uint8_t kSlice[] = {'L', 'S'};  // neither gzip nor zlib begins like this

private:
    std::size_t read_deflate(std::span<const std::uint8_t> stream, const Output& out);
    void read_gzip(std::span<const std::uint8_t> bytes, const Output& out);
    void read_zlib(std::span<const std::uint8_t> bytes, const Output& out);

    DeflateTokens tokens_;
    LzToGrammar grammar_;
};

// For batches: documents are compressed bytes, whatever `alphabet_size` says of those that they stand for. `raw`:
// without gzip or zlib around them.
std::unique_ptr<Compressor> zipped_compressor(Symbol alphabet_size, bool raw);

// What scan_gzip finds: how many bytes a gzip member takes, and what it is inflated to.
struct Member {
    std::uint64_t size, length;
};

// Reads the first member of `bytes`, which may go on, without verifying its checksum: that is for whoever wants its
// grammar. Throws GrammarError as Zipped does.
Member scan_gzip(std::span<const std::uint8_t> bytes);

}  // namespace laconic
