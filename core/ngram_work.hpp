// What counting n-grams shares, whatever becomes of the counts.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

#include "ngrams.hpp"
#include "parallel.hpp"

namespace laconic {

inline unsigned bits_per_letter(const LetterTable& table) {
    return static_cast<unsigned>(std::bit_width(table.points.size()));  // 0 is no letter
}

// Calls make.operator()<Words>() with as few words as windows need.
template <class Make>
auto with_words(const NgramOptions& options, Make make) {
    const unsigned bits = bits_per_letter(options.table) * options.high;
    if (bits <= 64) return make.template operator()<1>();
    if (bits <= 128) return make.template operator()<2>();
    if (bits <= 256) return make.template operator()<4>();
    if (bits <= 512) return make.template operator()<8>();
    return make.template operator()<21>();
}
// A code point has at most 21 bits.
static_assert(21 * kLongestNgram <= 21 * 64);

// Which n-grams count: all, or with complements those that are not greater than their reverse complement. One that is
// its own is found on both strands, so its count is twice what it should be.
enum class Strand { only, twice, other };

template <std::size_t Words>
Strand strand_of(const Packing<Words>& packing, const LetterTable& table, const Key<Words>& key, unsigned length) {
    if (table.complements.empty()) return Strand::only;
    for (unsigned i = 0; i < length; ++i) {
        const std::uint32_t letter = packing.letter(key, i);
        const std::uint32_t other = table.complements[packing.letter(key, length - 1 - i) - 1];
        if (letter != other) return letter < other ? Strand::only : Strand::other;
    }
    return Strand::twice;
}

// Runs of documents of about equal size, so that short ones do not pay for being handed out one by one.
inline constexpr std::size_t kShare = 1 << 14;  // symbols

inline std::vector<std::size_t> shares_of(std::span<const GrammarView> documents) {
    std::vector<std::size_t> bounds{0};
    std::size_t size = 0;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        size += documents[i].rules.size() + documents[i].sequence.size();
        if (size < kShare && i + 1 < documents.size()) continue;
        bounds.push_back(i + 1);
        size = 0;
    }
    return bounds;
}

// Calls work(i, worker) for all i below `count`.
template <class Work>
void share_out(std::size_t count, const Labour& labour, std::atomic<bool>& stop, const Work& work) {
    parallel(count, std::min<std::size_t>(labour.threads, count), labour.poll, stop, work);
}

inline std::size_t workers_for(std::span<const GrammarView> documents, const Labour& labour) {
    return std::max<std::size_t>(1, std::min<std::size_t>(labour.threads, shares_of(documents).size() - 1));
}

// Calls work(document, worker, stop) for all, of fewer workers than workers_for() says; errors name the document.
template <class Work>
void each_document(std::span<const GrammarView> documents, const Labour& labour, const Work& work) {
    const std::vector<std::size_t> bounds = shares_of(documents);
    std::atomic<bool> stop = false;
    const auto work_on = [&](std::size_t share, std::size_t worker) {
        for (std::size_t i = bounds[share]; i < bounds[share + 1]; ++i) {
            if (stop.load(std::memory_order_relaxed)) throw Stopped();
            in_document(i, [&] { work(i, worker, stop); });
        }
    };
    std::size_t size = 0;
    for (const GrammarView& grammar : documents) size += grammar.rules.size() + grammar.sequence.size();
    if (size < kShare)  // starting a thread would take longer
        for (std::size_t share = 0; share + 1 < bounds.size(); ++share) work_on(share, 0);
    else
        share_out(bounds.size() - 1, labour, stop, work_on);
}

}  // namespace laconic
