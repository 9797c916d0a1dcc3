#include "ngrams.hpp"

#include <limits>

#include "ngram_work.hpp"
#include "window_table.hpp"

namespace laconic {

struct NgramCounter::Implementation {
    virtual ~Implementation() = default;
    virtual void add(std::span<const GrammarView> documents, const Labour& labour) = 0;
    virtual void finish(const Labour& labour) = 0;
    virtual Spelled spelled(std::span<const std::int64_t> ngrams) const = 0;
    virtual SparseCounts matrix(std::span<const std::int32_t> columns, const Labour& labour) = 0;

    Buffer<std::int64_t> frequencies, totals;  // by n-gram
};

namespace {

// What is kept of a window of a document: 64 bits, since there are as many as letters.
struct Kept {
    std::uint32_t window;  // its number: at first the worker's, then in the order of windows
    std::uint32_t facts;   // weight << kSharedBits | letters shared with the window before it

    static constexpr unsigned kSharedBits = 6;
    static constexpr std::uint32_t kHeavy = 0xFFFFFFFF >> kSharedBits;  // the weight is kept elsewhere
    static_assert(kLongestNgram <= 1 << kSharedBits);
};

// Where a document's windows are kept.
struct Place {
    std::uint32_t worker, size;
    std::size_t begin, heavy;
};

template <std::size_t Words>
struct alignas(128) NgramLearner {
    explicit NgramLearner(const NgramOptions& options)
        : windows(options.table, bits_per_letter(options.table), options.high) {}

    Windows<Words> windows;
    WindowTable<Words> table;
    Buffer<std::uint64_t> sums;  // by window of the table: its weight, then the documents below, two to a word
    Buffer<std::uint32_t> numbers;
    Buffer<Kept> kept;
    Buffer<std::uint64_t> heavy;       // weights beyond kHeavy
    std::uint64_t letters = 0;         // of all documents; more than 2^63 - 1 if it cannot be counted
    std::vector<std::uint32_t> ranks;  // by window of the table: its place among all windows
};

template <std::size_t Words>
class Learned final : public NgramCounter::Implementation {
public:
    Learned(const NgramOptions& options, bool keep)
        : options_(options),
          keep_(keep),
          packing_(bits_per_letter(options.table), options.high),
          width_(options.high - options.low + 1),
          stride_(1 + (width_ + 1) / 2) {}

    void add(std::span<const GrammarView> documents, const Labour& labour) override {
        while (crew_.size() < workers_for(documents, labour))
            crew_.push_back(std::make_unique<NgramLearner<Words>>(options_));
        const std::size_t before = places_.size();
        if (before + documents.size() > std::numeric_limits<std::uint32_t>::max())
            throw GrammarError("more than 2^32 - 1 documents");
        places_.resize(before + documents.size());
        each_document(documents, labour, [&](std::size_t i, std::size_t worker, const std::atomic<bool>& stop) {
            learn(documents[i], static_cast<std::uint32_t>(worker), stop, places_[before + i]);
        });
        std::uint64_t letters = 0;
        for (const auto& learner : crew_) {
            letters = std::min(letters, kMost) + std::min(learner->letters, kMost);
            if (letters >= static_cast<std::uint64_t>(Windows<Words>::most_letters(options_.table)))
                throw GrammarError("the documents have too many letters together to count them in 64 bits");
        }
    }

    void finish(const Labour& labour) override {
        Buffer<Weighted<Words>> all, scratch;
        for (std::size_t worker = 0; worker < crew_.size(); ++worker) {
            crew_[worker]->ranks.resize(crew_[worker]->table.size());
            crew_[worker]->table.each([&](const Key<Words>& key, std::uint32_t number) {
                all.push_back({key, static_cast<std::uint64_t>(worker) << 32 | number});
            });
            crew_[worker]->table = WindowTable<Words>();
        }
        labour.poll();
        radix_sort(all, scratch, (packing_.used_bits() + 7) / 8);
        labour.poll();
        keys_.reserve(all.size());
        ngrams_.reserve(all.size() * width_);
        ngrams_.prefer_huge_pages();
        rank(all, labour);
        for (auto& learner : crew_) learner->sums = Buffer<std::uint64_t>();
    }

    Spelled spelled(std::span<const std::int64_t> ngrams) const override {
        Spelled result;
        result.offsets.push_back(0);
        for (std::int64_t ngram : ngrams) {
            const Origin& origin = origins_[static_cast<std::size_t>(ngram)];
            for (unsigned i = 0; i < origin.length; ++i)
                result.points.push_back(options_.table.points[packing_.letter(keys_[origin.window], i) - 1]);
            result.offsets.push_back(static_cast<std::int64_t>(result.points.size()));
        }
        return result;
    }

    SparseCounts matrix(std::span<const std::int32_t> columns, const Labour& labour) override {
        if (!keep_ || columns.size() != origins_.size())
            throw GrammarError("a matrix needs what was kept of the documents, and a column or -1 for every n-gram");
        for (std::int32_t& ngram : ngrams_)
            if (ngram >= 0) ngram = columns[static_cast<std::size_t>(ngram)];
        SparseCounts result;
        result.indptr.renew(places_.size() + 1);
        result.indptr[0] = 0;
        each_place(labour, [&](std::size_t i) { result.indptr[i + 1] = rank_and_count(places_[i]); });
        for (std::size_t i = 0; i < places_.size(); ++i) result.indptr[i + 1] += result.indptr[i];
        const auto size = static_cast<std::size_t>(result.indptr[places_.size()]);
        result.indices.renew(size);
        result.data.renew(size);
        each_place(labour, [&](std::size_t i) {
            const auto begin = static_cast<std::size_t>(result.indptr[i]);
            write(places_[i], result.indices.data() + begin, result.data.data() + begin);
        });
        if (!options_.table.complements.empty()) halve(columns, result);
        return result;
    }

private:
    static constexpr std::size_t kAhead = 12;          // windows whose memory is asked for before they are looked at
    static constexpr std::uint32_t kPolled = 1 << 16;  // windows that are ranked from one poll to the next
    static constexpr std::uint64_t kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

    struct Origin {
        std::uint32_t window;
        std::uint32_t length : 31, twice : 1;
    };

    void learn(const GrammarView& grammar, std::uint32_t worker, const std::atomic<bool>& stop, Place& place) {
        NgramLearner<Words>& own = *crew_[worker];
        const std::span<const Window<Words>> windows = own.windows.of(grammar, stop);
        own.letters = std::min(own.letters, kMost) + static_cast<std::uint64_t>(own.windows.document_length());
        own.numbers.renew(windows.size());
        for (std::size_t i = 0; i < windows.size(); ++i) {
            if (stop.load(std::memory_order_relaxed)) throw Stopped();
            if (i + kAhead < windows.size()) own.table.expect(windows[i + kAhead].key);
            const std::size_t known = own.table.size();
            const std::uint32_t number = own.table.add(windows[i].key);
            own.numbers[i] = number;
            if (number == known) {
                own.sums.resize(stride_ * (known + 1));
                std::fill_n(own.sums.end() - stride_, stride_, std::uint64_t{0});
            } else {
                prefetch(&own.sums[stride_ * number]);
            }
        }
        place = {worker, static_cast<std::uint32_t>(windows.size()), own.kept.size(), own.heavy.size()};
        const std::uint32_t least = options_.low - 1;
        for (std::size_t i = 0; i < windows.size(); ++i) {
            std::uint64_t* const sums = &own.sums[stride_ * own.numbers[i]];
            sums[0] += windows[i].weight;
            const std::uint32_t shared = std::max(windows[i].shared, least) - least;
            sums[1 + shared / 2] += std::uint64_t{1} << 32 * (shared % 2);
            if (!keep_) continue;
            const bool heavy = windows[i].weight >= Kept::kHeavy;
            if (heavy) own.heavy.push_back(windows[i].weight);
            const std::uint32_t weight = heavy ? Kept::kHeavy : static_cast<std::uint32_t>(windows[i].weight);
            own.kept.push_back({own.numbers[i], weight << Kept::kSharedBits | windows[i].shared});
        }
    }

    // Numbers n-grams and adds up what is known of them, from the windows of all workers in order.
    void rank(const Buffer<Weighted<Words>>& all, const Labour& labour) {
        const auto sums_of = [&](const Weighted<Words>& entry) {
            return &crew_[entry.weight >> 32]->sums[stride_ * static_cast<std::uint32_t>(entry.weight)];
        };
        std::int32_t open[kLongestNgram + 1];  // by length: the n-gram that the window begins with, or -1
        std::vector<std::uint64_t> sums(stride_);
        for (std::size_t i = 0; i < all.size();) {
            const Key<Words> key = all[i].key;
            std::fill(sums.begin(), sums.end(), std::uint64_t{0});
            const auto window = static_cast<std::uint32_t>(keys_.size());
            if (window % kPolled == kPolled - 1) labour.poll();
            for (; i < all.size() && all[i].key == key; ++i) {
                if (i + kAhead < all.size()) prefetch(sums_of(all[i + kAhead]));
                const std::uint64_t* const more = sums_of(all[i]);
                for (std::size_t j = 0; j < stride_; ++j) sums[j] += more[j];
                crew_[all[i].weight >> 32]->ranks[static_cast<std::uint32_t>(all[i].weight)] = window;
            }
            const unsigned length = packing_.length(key);
            const unsigned shared = window == 0 ? 0 : packing_.shared(keys_[window - 1], key);
            keys_.push_back(key);
            for (unsigned n = std::max(shared + 1, options_.low); n <= length; ++n) open[n] = number(key, window, n);
            std::int64_t documents = 0;
            for (unsigned n = options_.low; n <= options_.high; ++n) {
                const std::int32_t ngram = n <= length ? open[n] : -1;
                ngrams_.push_back(ngram);
                const unsigned at = n - options_.low;
                documents += static_cast<std::uint32_t>(sums[1 + at / 2] >> 32 * (at % 2));
                if (ngram < 0) continue;
                frequencies[static_cast<std::size_t>(ngram)] += documents;
                totals[static_cast<std::size_t>(ngram)] += static_cast<std::int64_t>(sums[0]);
            }
        }
        for (std::size_t ngram = 0; ngram < origins_.size(); ++ngram)
            if (origins_[ngram].twice) totals[ngram] /= 2;
    }

    std::int32_t number(const Key<Words>& key, std::uint32_t window, unsigned length) {
        const Strand strand = strand_of(packing_, options_.table, key, length);
        if (strand == Strand::other) return -1;
        if (origins_.size() == std::numeric_limits<std::int32_t>::max())
            throw GrammarError("more than 2^31 - 1 different n-grams; count shorter ones, or hash them");
        origins_.push_back({window, length, strand == Strand::twice});
        frequencies.push_back(0);
        totals.push_back(0);
        return static_cast<std::int32_t>(origins_.size() - 1);
    }

    template <class Work>
    void each_place(const Labour& labour, const Work& work) {
        constexpr std::size_t kRows = 64;
        std::atomic<bool> stop = false;
        share_out((places_.size() + kRows - 1) / kRows, labour, stop, [&](std::size_t share, std::size_t) {
            if (stop.load(std::memory_order_relaxed)) throw Stopped();
            for (std::size_t i = share * kRows; i < std::min(places_.size(), (share + 1) * kRows); ++i) work(i);
        });
    }

    // Names the windows of a document by rank and returns how many of its n-grams have a column.
    std::int64_t rank_and_count(const Place& place) {
        NgramLearner<Words>& learner = *crew_[place.worker];
        Kept* const kept = learner.kept.data() + place.begin;
        for (std::size_t i = 0; i < place.size; ++i) {
            kept[i].window = learner.ranks[kept[i].window];
            prefetch(&ngrams_[width_ * kept[i].window]);
        }
        std::int64_t count = 0;
        for (std::size_t i = 0; i < place.size; ++i) {
            const std::int32_t* const columns = &ngrams_[width_ * kept[i].window];
            for (unsigned j = first_new(kept[i]); j < width_; ++j) count += columns[j] >= 0;
        }
        return count;
    }

    // Of a window's n-grams, the first that the window before it does not begin with, counted from the shortest.
    unsigned first_new(const Kept& kept) const {
        const unsigned shared = kept.facts & ((1u << Kept::kSharedBits) - 1);
        return std::max(shared + 1, options_.low) - options_.low;
    }

    void write(const Place& place, std::int32_t* indices, std::int64_t* data) const {
        const NgramLearner<Words>& learner = *crew_[place.worker];
        const Kept* const kept = learner.kept.data() + place.begin;
        const std::uint64_t* heavy = learner.heavy.data() + place.heavy;
        std::int64_t nowhere = 0;
        std::int64_t* open[kLongestNgram];
        for (std::size_t i = 0; i < place.size; ++i) {
            if (i + kAhead < place.size) prefetch(&ngrams_[width_ * kept[i + kAhead].window]);
            const std::int32_t* const columns = &ngrams_[width_ * kept[i].window];
            const std::uint32_t light = kept[i].facts >> Kept::kSharedBits;
            const auto weight = static_cast<std::int64_t>(light == Kept::kHeavy ? *heavy++ : light);
            const unsigned fresh = first_new(kept[i]);
            for (unsigned j = 0; j < fresh; ++j) *open[j] += weight;
            for (unsigned j = fresh; j < width_; ++j) {
                open[j] = &nowhere;
                if (columns[j] < 0) continue;
                *indices++ = columns[j];
                *data = weight;
                open[j] = data++;
            }
        }
    }

    void halve(std::span<const std::int32_t> columns, SparseCounts& counts) const {
        std::vector<bool> twice;
        for (std::size_t ngram = 0; ngram < columns.size(); ++ngram)
            if (columns[ngram] >= 0) twice.push_back(origins_[ngram].twice);
        for (std::size_t i = 0; i < counts.indices.size(); ++i)
            if (twice[static_cast<std::size_t>(counts.indices[i])]) counts.data[i] /= 2;
    }

    const NgramOptions options_;
    const bool keep_;
    const Packing<Words> packing_;
    const std::size_t width_, stride_;
    std::vector<std::unique_ptr<NgramLearner<Words>>> crew_;
    std::vector<Place> places_;    // by document
    Buffer<Key<Words>> keys_;      // of all windows, in order
    Buffer<std::int32_t> ngrams_;  // of each window, by length; later their columns
    std::vector<Origin> origins_;  // by n-gram: a window that begins with it
};

}  // namespace

NgramCounter::NgramCounter(const NgramOptions& options, bool keep)
    : implementation_(with_words(options, [&]<std::size_t Words>() -> std::unique_ptr<Implementation> {
          return std::make_unique<Learned<Words>>(options, keep);
      })) {}

NgramCounter::~NgramCounter() = default;

void NgramCounter::add(std::span<const GrammarView> documents, const Labour& labour) {
    implementation_->add(documents, labour);
}
void NgramCounter::finish(const Labour& labour) { implementation_->finish(labour); }
std::span<const std::int64_t> NgramCounter::frequencies() const {
    return {implementation_->frequencies.data(), implementation_->frequencies.size()};
}
std::span<const std::int64_t> NgramCounter::totals() const {
    return {implementation_->totals.data(), implementation_->totals.size()};
}
Spelled NgramCounter::spelled(std::span<const std::int64_t> ngrams) const { return implementation_->spelled(ngrams); }
SparseCounts NgramCounter::matrix(std::span<const std::int32_t> columns, const Labour& labour) {
    return implementation_->matrix(columns, labour);
}

}  // namespace laconic
