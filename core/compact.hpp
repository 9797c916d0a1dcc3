// Packed grammars in few bytes (FORMAT.md, compact columns): a static model of which letters follow which, learned
// from some documents and kept with the corpus, and a range coder. Every document is coded on its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "packed.hpp"
#include "range_coder.hpp"
#include "shared_ends.hpp"

namespace laconic {

// Rows of frequencies; each row adds up to kRowTotal, and nothing has frequency 0: anything can be coded.
class Frequencies {
public:
    static constexpr std::uint32_t kRowTotal = 1 << 15;

    Frequencies(std::size_t rows, std::size_t size) : size_(size), ends_(rows * (size + 1)) {}
    std::size_t rows() const { return ends_.size() / (size_ + 1); }
    std::size_t size() const { return size_; }
    const std::uint32_t* row(std::size_t row) const { return ends_.data() + row * (size_ + 1); }

    // Sets a row from how often each value was seen, or from frequencies, which must be right.
    void learn(std::size_t row, std::span<const std::uint32_t> counts);
    void set(std::size_t row, std::span<const std::uint16_t> frequencies);

private:
    std::size_t size_;
    std::vector<std::uint32_t> ends_;  // of each row: 0, and the sums of its frequencies so far
};

// What is known of the grammars of a corpus over an alphabet of at most kMostLetters, perhaps under a rulebook of at
// most kMostShared rules.
class CompactModel {
public:
    static constexpr Symbol kMostLetters = 256;
    static constexpr std::size_t kMostShared = Frequencies::kRowTotal - 1;

    explicit CompactModel(Symbol alphabet_size, const Rulebook* book = nullptr);

    // Learns from documents, each packed by Packer with sort.
    static CompactModel learn(Symbol alphabet_size, std::span<const PackedView> documents,
                              const Rulebook* book = nullptr);

    // As numbers to keep; from_numbers throws GrammarError for what numbers() could not have given.
    std::vector<std::uint16_t> numbers() const;
    static CompactModel from_numbers(Symbol alphabet_size, std::span<const std::uint16_t> numbers,
                                     const Rulebook* book = nullptr);

    Symbol alphabet_size() const { return alphabet_size_; }
    const SharedEnds* shared() const { return shared_ ? &*shared_ : nullptr; }
    std::vector<Frequencies> tables;  // by Question, in compact.cpp, then one of shared symbols for each terminal

private:
    Symbol alphabet_size_;
    std::optional<SharedEnds> shared_;
};

class CompactCoder {
public:
    explicit CompactCoder(const CompactModel& model) : model_(model) {}

    // Appends the document's code to `out`.
    void encode(const PackedView& document, Buffer<std::uint8_t>& out);

    // Appends the document to `out`; throws GrammarError for what is no code of a document.
    void decode(std::span<const std::uint8_t> code, Packed& out);

private:
    const CompactModel& model_;
};

}  // namespace laconic
