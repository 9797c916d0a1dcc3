// Counts whose columns are known beforehand, hashed or given.
#include "hashes.hpp"
#include "ngram_work.hpp"
#include "rows.hpp"
#include "window_table.hpp"

namespace laconic {
namespace {

struct Utf8 {
    std::uint8_t bytes[4];
    std::uint8_t size;
};

Utf8 utf8(std::uint32_t point) {
    const auto tail = [point](unsigned shift) { return static_cast<std::uint8_t>(0x80 | ((point >> shift) & 0x3F)); };
    if (point < 0x80) return {{static_cast<std::uint8_t>(point)}, 1};
    if (point < 0x800) return {{static_cast<std::uint8_t>(0xC0 | point >> 6), tail(0)}, 2};
    if (point < 0x10000) return {{static_cast<std::uint8_t>(0xE0 | point >> 12), tail(6), tail(0)}, 3};
    return {{static_cast<std::uint8_t>(0xF0 | point >> 18), tail(12), tail(6), tail(0)}, 4};
}

template <std::size_t Words>
class Hasher {
public:
    Hasher(const NgramOptions& options, std::uint32_t columns, bool alternate_sign)
        : options_(options),
          columns_(columns),
          alternate_sign_(alternate_sign),
          windows_(options.table, bits_per_letter(options.table), options.high),
          row_(columns) {
        for (std::uint32_t point : options.table.points) letters_.push_back(utf8(point));
    }

    void row(const GrammarView& grammar, const std::atomic<bool>& stop, Rows& rows) {
        const Packing<Words>& packing = windows_.packing();
        Open open[kLongestNgram + 1]{};
        std::uint8_t bytes[4 * kLongestNgram];
        std::size_t ends[kLongestNgram + 1]{};
        const auto close = [&](unsigned shared) {
            for (unsigned n = std::max(shared + 1, options_.low); n <= options_.high; ++n) {
                if (open[n].used && open[n].twice) row_.halve(open[n].entry);
                if (open[n].used && open[n].negative) row_.turn(open[n].entry);
                open[n].used = false;
            }
        };
        for (const Window<Words>& window : windows_.of(grammar, stop)) {
            close(window.shared);
            const unsigned length = packing.length(window.key);
            for (unsigned n = window.shared + 1; n <= length; ++n) {
                const Utf8& letter = letters_[packing.letter(window.key, n - 1) - 1];
                ends[n] = ends[n - 1];
                for (unsigned i = 0; i < letter.size; ++i) bytes[ends[n]++] = letter.bytes[i];
                if (n < options_.low) continue;
                const Strand strand = strand_of(packing, options_.table, window.key, n);
                if (strand == Strand::other) continue;
                const std::uint32_t hash = murmur3(bytes, ends[n]);
                const bool negative = hash >> 31 != 0;
                const std::uint32_t size = negative ? 0 - hash : hash;
                open[n] = {row_.add(size % columns_), true, negative && alternate_sign_, strand == Strand::twice};
            }
            for (unsigned n = options_.low; n <= length; ++n)
                if (open[n].used) row_.increase(open[n].entry, window.weight);
        }
        close(0);
        row_.write(rows);
    }

private:
    struct Open {
        std::size_t entry;
        bool used, negative, twice;
    };

    const NgramOptions options_;
    const std::uint32_t columns_;
    const bool alternate_sign_;
    Windows<Words> windows_;
    Buffer<Utf8> letters_;
    Row row_;
};

// N-grams -> columns, for all workers to read.
template <std::size_t Words>
class Dictionary {
public:
    Dictionary(const NgramOptions& options, std::span<const std::uint32_t> letters,
               std::span<const std::int64_t> offsets)
        : packing_(bits_per_letter(options.table), options.high) {
        for (std::size_t k = 0; k + 1 < offsets.size(); ++k) {
            const auto begin = static_cast<std::size_t>(offsets[k]), end = static_cast<std::size_t>(offsets[k + 1]);
            if (end - begin < options.low || end - begin > options.high) continue;
            const auto ngram = letters.subspan(begin, end - begin);
            if (std::find(ngram.begin(), ngram.end(), 0u) != ngram.end()) continue;
            Key<Words> key{};
            for (std::size_t i = ngram.size(); i-- > 0;) key = packing_.pushed(key, ngram[i]);
            table_.add(key);
            columns_.push_back(static_cast<std::int32_t>(k));
        }
        for (unsigned n = 0; n <= options.high; ++n) masks_.push_back(packing_.first(n));
    }

    // The column of a window's first letters, or -1.
    std::int32_t column(const Key<Words>& window, unsigned length) const {
        const std::uint32_t found = table_.find(window & masks_[length]);
        return found == WindowTable<Words>::kNone ? -1 : columns_[found];
    }

private:
    Packing<Words> packing_;
    WindowTable<Words> table_;
    std::vector<std::int32_t> columns_;
    std::vector<Key<Words>> masks_;
};

// Looks up each window once, as long as there are not too many, and remembers the columns of all its beginnings.
template <std::size_t Words>
class Finder {
public:
    Finder(const NgramOptions& options, const Dictionary<Words>& dictionary, std::size_t columns)
        : options_(options),
          width_(options.high - options.low + 1),
          dictionary_(dictionary),
          windows_(options.table, bits_per_letter(options.table), options.high),
          row_(static_cast<std::uint32_t>(std::max<std::size_t>(1, columns))) {}

    void row(const GrammarView& grammar, const std::atomic<bool>& stop, Rows& rows) {
        constexpr std::size_t kMostKnown = 1 << 20, kAhead = 12;
        if (known_.size() > kMostKnown) {
            known_.clear();
            columns_.clear();
        }
        const std::span<const Window<Words>> windows = windows_.of(grammar, stop);
        numbers_.renew(windows.size());
        for (std::size_t i = 0; i < windows.size(); ++i) {
            if (i + kAhead < windows.size()) known_.expect(windows[i + kAhead].key);
            const std::size_t before = known_.size();
            numbers_[i] = known_.add(windows[i].key);
            if (numbers_[i] == before)
                look_up(windows[i].key);
            else
                prefetch(&columns_[width_ * numbers_[i]]);
        }
        Open open[kLongestNgram]{};
        const auto close = [&](std::size_t from) {
            for (std::size_t j = from; j < width_; ++j)
                if (open[j].used && open[j].twice) row_.halve(open[j].entry);
        };
        for (std::size_t i = 0; i < windows.size(); ++i) {
            const std::int32_t* const columns = &columns_[width_ * numbers_[i]];
            const std::size_t fresh = std::max(windows[i].shared + 1, options_.low) - options_.low;
            close(fresh);
            for (std::size_t j = fresh; j < width_; ++j) {
                open[j].used = columns[j] >= 0;
                if (!open[j].used) continue;
                const auto length = static_cast<unsigned>(j) + options_.low;
                const Strand strand = strand_of(windows_.packing(), options_.table, windows[i].key, length);
                open[j] = {row_.add(static_cast<std::uint32_t>(columns[j])), strand != Strand::other,
                           strand == Strand::twice};
            }
            for (std::size_t j = 0; j < width_; ++j)
                if (open[j].used) row_.increase(open[j].entry, windows[i].weight);
        }
        close(0);
        row_.write(rows);
    }

private:
    struct Open {
        std::size_t entry;
        bool used, twice;
    };

    void look_up(const Key<Words>& window) {
        const unsigned length = windows_.packing().length(window);
        for (unsigned n = options_.low; n <= options_.high; ++n) {
            const bool counts =
                n <= length && strand_of(windows_.packing(), options_.table, window, n) != Strand::other;
            columns_.push_back(counts ? dictionary_.column(window, n) : -1);
        }
    }

    const NgramOptions options_;
    const std::size_t width_;
    const Dictionary<Words>& dictionary_;
    Windows<Words> windows_;
    WindowTable<Words> known_;
    Buffer<std::int32_t> columns_;  // by window known, by length
    Buffer<std::uint32_t> numbers_;
    Row row_;
};

}  // namespace

SparseCounts count_hashed(const NgramOptions& options, std::span<const GrammarView> documents, std::uint32_t columns,
                          bool alternate_sign, const Labour& labour) {
    return with_words(options, [&]<std::size_t Words>() {
        std::vector<std::unique_ptr<Hasher<Words>>> workers;
        for (std::size_t i = workers_for(documents, labour); i > 0; --i)
            workers.push_back(std::make_unique<Hasher<Words>>(options, columns, alternate_sign));
        return count_rows(workers, documents, labour);
    });
}

SparseCounts count_known(const NgramOptions& options, std::span<const GrammarView> documents,
                         std::span<const std::uint32_t> vocabulary, std::span<const std::int64_t> offsets,
                         const Labour& labour) {
    return with_words(options, [&]<std::size_t Words>() {
        const Dictionary<Words> dictionary(options, vocabulary, offsets);
        std::vector<std::unique_ptr<Finder<Words>>> workers;
        for (std::size_t i = workers_for(documents, labour); i > 0; --i)
            workers.push_back(std::make_unique<Finder<Words>>(options, dictionary, offsets.size() - 1));
        return count_rows(workers, documents, labour);
    });
}

}  // namespace laconic
