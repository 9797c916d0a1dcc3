// Counts whose columns are known beforehand, hashed or given: each document is a row on its own.
#include <limits>

#include "fingerprint.hpp"
#include "ngram_work.hpp"
#include "window_table.hpp"

namespace laconic {
namespace {

// Rows as workers write them, to be put in order.
struct alignas(128) Rows {
    Buffer<std::int32_t> indices;
    Buffer<std::int64_t> data;
};

struct RowPlace {
    std::size_t worker, begin;
};

SparseCounts in_order(std::vector<Rows>& crew, const std::vector<RowPlace>& places, Buffer<std::int64_t>&& sizes,
                      const Labour& labour) {
    SparseCounts result;
    result.indptr = std::move(sizes);
    for (std::size_t i = 0; i < places.size(); ++i) result.indptr[i + 1] += result.indptr[i];
    if (crew.size() == 1) {  // what one worker wrote is in order already
        result.indices = std::move(crew[0].indices);
        result.data = std::move(crew[0].data);
        return result;
    }
    const auto size = static_cast<std::size_t>(result.indptr[places.size()]);
    result.indices.renew(size);
    result.data.renew(size);
    constexpr std::size_t kRows = 256;
    std::atomic<bool> stop = false;
    share_out((places.size() + kRows - 1) / kRows, labour, stop, [&](std::size_t share, std::size_t) {
        for (std::size_t i = share * kRows; i < std::min(places.size(), (share + 1) * kRows); ++i) {
            const auto begin = static_cast<std::size_t>(result.indptr[i]);
            const std::size_t count = static_cast<std::size_t>(result.indptr[i + 1]) - begin;
            const Rows& rows = crew[places[i].worker];
            std::copy_n(rows.indices.data() + places[i].begin, count, result.indices.data() + begin);
            std::copy_n(rows.data.data() + places[i].begin, count, result.data.data() + begin);
        }
    });
    return result;
}

// Calls workers[w].row(grammar, stop, rows) for all documents.
template <class Worker>
SparseCounts count_rows(std::vector<std::unique_ptr<Worker>>& workers, std::span<const GrammarView> documents,
                        const Labour& labour) {
    std::vector<Rows> crew(workers.size());
    std::vector<RowPlace> places(documents.size());
    Buffer<std::int64_t> sizes;
    sizes.renew(documents.size() + 1);
    sizes[0] = 0;
    each_document(documents, labour, [&](std::size_t i, std::size_t worker, const std::atomic<bool>& stop) {
        places[i] = {worker, crew[worker].indices.size()};
        workers[worker]->row(documents[i], stop, crew[worker]);
        sizes[i + 1] = static_cast<std::int64_t>(crew[worker].indices.size() - places[i].begin);
    });
    return in_order(crew, places, std::move(sizes), labour);
}

// Entries of one row, in any order, of which some may share a column.
class Row {
public:
    explicit Row(std::uint32_t columns)
        : column_shift_(64 - std::max(1, static_cast<int>(std::bit_width(columns - 1)))) {}

    // The entry, whose count is to be added to by its number.
    std::size_t add(std::uint32_t column) {
        // A column has at most 31 bits, which leaves more for the number than memory has room for.
        entries_.push_back({std::uint64_t{column} << column_shift_ | counts_.size()});
        counts_.push_back(0);
        return counts_.size() - 1;
    }
    void increase(std::size_t entry, std::uint64_t count) { counts_[entry] += count; }
    void turn(std::size_t entry) { counts_[entry] = 0 - counts_[entry]; }
    void halve(std::size_t entry) { counts_[entry] /= 2; }

    void write(Rows& rows) {
        if (!std::is_sorted(entries_.begin(), entries_.end()))
            radix_sort(entries_, scratch_, (64 - static_cast<std::size_t>(column_shift_) + 7) / 8);
        const std::size_t begin = rows.indices.size();
        for (const PackedKey entry : entries_) {
            const auto column = static_cast<std::int32_t>(entry.word >> column_shift_);
            const std::uint64_t number = entry.word & ((std::uint64_t{1} << column_shift_) - 1);
            const auto count = static_cast<std::int64_t>(counts_[number]);
            if (rows.indices.size() > begin && rows.indices.end()[-1] == column) {
                std::int64_t& sum = rows.data.end()[-1];
                constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
                if (count > 0 ? sum > kMost - count : sum < -kMost - count)
                    throw GrammarError("a column's count exceeds 64 bits; use more columns");
                sum += count;
                continue;
            }
            rows.indices.push_back(column);
            rows.data.push_back(count);
        }
        entries_.clear();
        counts_.clear();
    }

private:
    int column_shift_;
    Buffer<PackedKey> entries_, scratch_;  // column and number
    Buffer<std::uint64_t> counts_;         // by number
};

std::uint32_t murmur3(const std::uint8_t* bytes, std::size_t size) {
    constexpr std::uint32_t kFirst = 0xCC9E2D51, kSecond = 0x1B873593;
    std::uint32_t hash = 0;
    const auto mixed = [](std::uint32_t block) { return std::rotl(block * kFirst, 15) * kSecond; };
    std::size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        const std::uint32_t block = bytes[i] | std::uint32_t{bytes[i + 1]} << 8 | std::uint32_t{bytes[i + 2]} << 16 |
                                    std::uint32_t{bytes[i + 3]} << 24;
        hash = std::rotl(hash ^ mixed(block), 13) * 5 + 0xE6546B64;
    }
    std::uint32_t rest = 0;
    for (std::size_t j = size; j-- > i;) rest = rest << 8 | bytes[j];
    if (i < size) hash ^= mixed(rest);
    hash ^= static_cast<std::uint32_t>(size);
    hash = (hash ^ hash >> 16) * 0x85EBCA6B;
    hash = (hash ^ hash >> 13) * 0xC2B2AE35;
    return hash ^ hash >> 16;
}

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

// Hashes what runs of symbols stand for.
class Phraser {
public:
    explicit Phraser(const PhraseOptions& options) : options_(options), row_(options.columns) {}

    void row(const GrammarView& grammar, const std::atomic<bool>& stop, Rows& rows) {
        fingerprints_.renew(grammar.rule_count());
        lengths_.renew(grammar.rule_count());
        const auto rule = [&](Symbol symbol) { return static_cast<std::size_t>(symbol - grammar.alphabet_size); };
        const auto fingerprint = [&](Symbol symbol) {
            return symbol < grammar.alphabet_size ? Fingerprint::of_letter(symbol) : fingerprints_[rule(symbol)];
        };
        const auto length = [&](Symbol symbol) { return symbol < grammar.alphabet_size ? 1 : lengths_[rule(symbol)]; };
        const std::uint32_t too_long = options_.longest + 1;
        for (std::size_t k = 0; k < grammar.rule_count(); ++k) {
            const Symbol left = grammar.rules[2 * k], right = grammar.rules[2 * k + 1];
            fingerprints_[k] = joined(fingerprint(left), fingerprint(right));
            lengths_[k] = std::min(too_long, length(left) + length(right));
        }
        for (std::size_t last = 0; last < grammar.sequence.size(); ++last) {
            if (last % 4096 == 0 && stop.load(std::memory_order_relaxed)) throw Stopped();
            Fingerprint run{0, 1};
            std::uint32_t letters = 0;
            for (std::size_t i = last + 1; i-- > 0 && last - i < options_.most;) {
                const Symbol symbol = grammar.sequence[i];
                letters += length(symbol);
                if (letters > options_.longest) break;
                run = joined(fingerprint(symbol), run);
                if (letters < options_.shortest) continue;
                row_.increase(row_.add(static_cast<std::uint32_t>(mixed(run.hash) % options_.columns)), 1);
            }
        }
        row_.write(rows);
    }

private:
    const PhraseOptions options_;
    Buffer<Fingerprint> fingerprints_;  // by rule
    Buffer<std::uint32_t> lengths_;     // by rule: its letters, or one more than the longest
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

SparseCounts count_phrases(const PhraseOptions& options, std::span<const GrammarView> documents, const Labour& labour) {
    std::vector<std::unique_ptr<Phraser>> workers;
    for (std::size_t i = workers_for(documents, labour); i > 0; --i)
        workers.push_back(std::make_unique<Phraser>(options));
    return count_rows(workers, documents, labour);
}

}  // namespace laconic
