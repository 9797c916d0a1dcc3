#include "batch.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "parallel.hpp"

namespace laconic {
namespace {

struct Size {
    std::size_t rules = 0, sequence = 0;  // symbols
};

struct alignas(128) Worker {  // on a cache line shared by two, each would wait for the other
    explicit Worker(std::unique_ptr<Compressor> own) : compressor(std::move(own)) {}
    std::unique_ptr<Compressor> compressor;
    Output out;                     // grammars of the shares it holds, one after the other
    std::vector<std::size_t> held;  // ascending
};

// Makes room for what is to come, if it is like the part that is done: growing step by step would copy again and again.
void reserve_all(Buffer<Symbol>& buffer, std::size_t size, double done) {
    constexpr double kMargin = 1.05, kMost = 1 << 28;  // a wrong guess must not take more memory than there is
    const double wanted = kMargin * static_cast<double>(size) / done;
    if (wanted <= kMost) buffer.reserve(static_cast<std::size_t>(wanted));
}

// Joins grammars in the order of their shares, which workers finish in any order. A worker copies its shares to their
// places as soon as all before them are finished, so that it holds little, in memory that is warm: touching new memory
// for the first time costs as much as compressing.
class Joined {
public:
    explicit Joined(std::vector<double> terminals_before)
        : terminals_before_(std::move(terminals_before)),
          sizes_(terminals_before_.size() - 1),
          begins_(terminals_before_.size()) {}

    // To be called by the worker that has appended the grammars of `share` to its output.
    void finish(std::size_t share, Size size, Worker& worker) {
        worker.held.push_back(share);
        {
            const std::lock_guard lock(mutex_);
            sizes_[share] = size;
            for (; known_ < sizes_.size() && sizes_[known_]; ++known_)
                begins_[known_ + 1] = {begins_[known_].rules + sizes_[known_]->rules,
                                       begins_[known_].sequence + sizes_[known_]->sequence};
            if (share >= known_) return;
        }
        place(worker);
    }

    // Copies what the worker holds, whose places must be known: those of all shares are, once all are finished.
    void place(Worker& worker) {
        if (worker.held.empty()) return;
        const Size end = begins_[worker.held.back() + 1];
        std::shared_lock lock(growing_);
        if (rules_.capacity() < end.rules || sequence_.capacity() < end.sequence) {
            lock.unlock();
            grow(end, terminals_before_[worker.held.back() + 1] / terminals_before_.back());
            lock.lock();
        }
        const Symbol *rules = worker.out.rules.data(), *sequence = worker.out.sequence.data();
        for (const std::size_t share : worker.held) {
            std::copy_n(rules, sizes_[share]->rules, rules_.begin() + begins_[share].rules);
            std::copy_n(sequence, sizes_[share]->sequence, sequence_.begin() + begins_[share].sequence);
            rules += sizes_[share]->rules;
            sequence += sizes_[share]->sequence;
        }
        worker.out.rules.clear();
        worker.out.sequence.clear();
        worker.held.clear();
    }

    // When all is in its place.
    void move_to(Batch& batch) {
        rules_.resize(begins_.back().rules);
        sequence_.resize(begins_.back().sequence);
        batch.rules = std::move(rules_);
        batch.sequence = std::move(sequence_);
    }

private:
    void grow(Size end, double done) {
        const std::unique_lock lock(growing_);
        reserve_all(rules_, end.rules, done);
        reserve_all(sequence_, end.sequence, done);
        rules_.reserve(end.rules);
        sequence_.reserve(end.sequence);
    }

    const std::vector<double> terminals_before_;  // each share, and all
    std::mutex mutex_;
    std::vector<std::optional<Size>> sizes_;  // of the finished shares
    std::vector<Size> begins_;                // of shares 0 … known_
    std::size_t known_ = 0;
    std::shared_mutex growing_;  // held shared to write to the buffers, alone to move them
    Buffer<Symbol> rules_, sequence_;
};

// How an error names a document: not at all if there is but one.
std::optional<std::size_t> name(std::size_t document, std::span<const std::int64_t> offsets) {
    return offsets.size() > 2 ? std::optional(document) : std::nullopt;
}

template <class Terminal>
void check_text(std::span<const Terminal> text, std::span<const std::int64_t> offsets, Symbol alphabet_size) {
    if (alphabet_size < 1) throw GrammarError("alphabet_size must be at least 1");
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != static_cast<std::int64_t>(text.size()))
        throw GrammarError("offsets must go from 0 to the length of the text");
    for (std::size_t i = 1; i < offsets.size(); ++i)
        if (offsets[i] < offsets[i - 1])
            throw GrammarError("offset " + std::to_string(i) + " is smaller than the one before it");
    if (text.empty() || std::numeric_limits<Terminal>::max() < alphabet_size) return;
    // A branch-free pass that vectorises; only if it finds something is it worth asking where.
    bool fits = true;
    for (Terminal terminal : text)
        fits &= static_cast<std::uint32_t>(terminal) < static_cast<std::uint32_t>(alphabet_size);
    if (fits) return;
    const auto outside = [&](Terminal terminal) {
        return std::int64_t{terminal} < 0 || std::int64_t{terminal} >= alphabet_size;
    };
    const auto bad = std::find_if(text.begin(), text.end(), outside);
    const auto document = std::upper_bound(offsets.begin(), offsets.end(), bad - text.begin()) - offsets.begin() - 1;
    throw GrammarError(
        "symbol " + std::to_string(*bad) + " is outside the alphabet 0 … " + std::to_string(alphabet_size - 1),
        name(static_cast<std::size_t>(document), offsets));
}

constexpr std::size_t kCompressedTogether = 1 << 17;  // terminals

// Runs of documents of about equal length, so that short documents do not pay for being handed out one by one.
std::vector<std::size_t> split(std::span<const std::int64_t> offsets) {
    std::vector<std::size_t> bounds{0};
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        const auto size = static_cast<std::size_t>(offsets[i] - offsets[bounds.back()]);
        if (i + 1 == offsets.size() || size >= kCompressedTogether) bounds.push_back(i);
    }
    return bounds;
}

void sum(Buffer<std::int64_t>& sizes) {
    for (std::size_t i = 1; i < sizes.size(); ++i) sizes[i] += sizes[i - 1];
}

}  // namespace

template <class Terminal>
Batch compress_many(std::span<const Terminal> text, std::span<const std::int64_t> offsets, Symbol alphabet_size,
                    const MakeCompressor& make, unsigned threads, const std::function<void()>& poll) {
    check_text(text, offsets, alphabet_size);
    Batch batch;
    batch.rule_offsets.resize(offsets.size());
    batch.sequence_offsets.resize(offsets.size());
    batch.rule_offsets[0] = batch.sequence_offsets[0] = 0;

    const std::vector<std::size_t> bounds = split(offsets);
    const std::size_t shares = bounds.size() - 1;
    const std::size_t workers = std::max<std::size_t>(1, std::min<std::size_t>(threads, shares));
    std::vector<Worker> crew;
    for (std::size_t worker = 0; worker < workers; ++worker) crew.emplace_back(make());
    std::vector<double> terminals_before;
    for (std::size_t bound : bounds) terminals_before.push_back(static_cast<double>(offsets[bound]));
    Joined joined(terminals_before);
    std::atomic<bool> stop = false;
    for (Worker& worker : crew) worker.out.stop = &stop;

    const auto compress_share = [&](std::size_t share, std::size_t worker) {
        Output& out = crew[worker].out;
        const Size before{out.rules.size(), out.sequence.size()};
        for (std::size_t i = bounds[share]; i < bounds[share + 1]; ++i) {
            const std::size_t rules = out.rules.size(), sequence = out.sequence.size();
            const auto begin = static_cast<std::size_t>(offsets[i]), end = static_cast<std::size_t>(offsets[i + 1]);
            in_document(name(i, offsets), [&] {
                crew[worker].compressor->compress(text.subspan(begin, end - begin), alphabet_size, out);
            });
            batch.rule_offsets[i + 1] = static_cast<std::int64_t>((out.rules.size() - rules) / 2);
            batch.sequence_offsets[i + 1] = static_cast<std::int64_t>(out.sequence.size() - sequence);
        }
        if (workers > 1) {
            joined.finish(share, {out.rules.size() - before.rules, out.sequence.size() - before.sequence},
                          crew[worker]);
        } else if (share == 0 && shares > 1) {
            const double done = terminals_before[1] / terminals_before.back();
            reserve_all(out.rules, out.rules.size(), done);
            reserve_all(out.sequence, out.sequence.size(), done);
        }
    };
    if (text.size() < kCompressedTogether)  // starting a thread would take longer than one short document
        for (std::size_t share = 0; share < shares; ++share) compress_share(share, 0);
    else
        parallel(shares, workers, poll, stop, compress_share);
    sum(batch.rule_offsets);
    sum(batch.sequence_offsets);

    if (workers == 1) {  // what one worker wrote is in order already
        batch.rules = std::move(crew[0].out.rules);
        batch.sequence = std::move(crew[0].out.sequence);
    } else {
        parallel(workers, workers, poll, stop, [&](std::size_t i, std::size_t) { joined.place(crew[i]); });
        joined.move_to(batch);
    }
    batch.rules.trim();
    batch.sequence.trim();
    return batch;
}

template Batch compress_many(std::span<const std::uint8_t>, std::span<const std::int64_t>, Symbol,
                             const MakeCompressor&, unsigned, const std::function<void()>&);
template Batch compress_many(std::span<const std::uint16_t>, std::span<const std::int64_t>, Symbol,
                             const MakeCompressor&, unsigned, const std::function<void()>&);
template Batch compress_many(std::span<const std::int32_t>, std::span<const std::int64_t>, Symbol,
                             const MakeCompressor&, unsigned, const std::function<void()>&);

}  // namespace laconic
