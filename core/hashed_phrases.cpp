#include "hashed_phrases.hpp"

#include <algorithm>
#include <unordered_map>

#include "hashes.hpp"
#include "rows.hpp"

namespace laconic {
namespace {

// Hashes what runs of symbols stand for.
class Phrases {
public:
    explicit Phrases(const PhraseOptions& options) : options_(options) {}

    // Calls take(hash, begin, end) for every phrase of a document, sequence[begin, end).
    template <class Take>
    void of(const GrammarView& grammar, const std::atomic<bool>& stop, Take take) {
        fingerprints_.renew(grammar.rule_count());
        lengths_.renew(grammar.rule_count());
        const auto rule = [&](Symbol symbol) { return static_cast<std::size_t>(symbol - grammar.alphabet_size); };
        const auto fingerprint = [&](Symbol symbol) {
            return symbol < grammar.alphabet_size ? Fingerprint::of_terminal(symbol) : fingerprints_[rule(symbol)];
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
            std::uint32_t terminals = 0;
            for (std::size_t i = last + 1; i-- > 0 && last - i < options_.most;) {
                const Symbol symbol = grammar.sequence[i];
                terminals += length(symbol);
                if (terminals > options_.longest) break;
                run = joined(fingerprint(symbol), run);
                if (terminals >= options_.shortest) take(run.hash, i, last + 1);
            }
        }
    }

private:
    const PhraseOptions options_;
    Buffer<Fingerprint> fingerprints_;  // by rule
    Buffer<std::uint32_t> lengths_;     // by rule: its terminals, or one more than the longest
};

class PhraseCounter {
public:
    explicit PhraseCounter(const PhraseOptions& options)
        : columns_(options.columns), phrases_(options), row_(options.columns) {}

    void row(const GrammarView& grammar, const std::atomic<bool>& stop, Rows& rows) {
        phrases_.of(grammar, stop, [&](std::uint64_t hash, std::size_t, std::size_t) {
            row_.increase(row_.add(phrase_column(hash, columns_)), 1);
        });
        row_.write(rows);
    }

private:
    const std::uint32_t columns_;
    Phrases phrases_;
    Row row_;
};

void append_expanded(const GrammarView& grammar, std::span<const Symbol> symbols, Buffer<Symbol>& out) {
    std::vector<Symbol> pending(symbols.rbegin(), symbols.rend());
    while (!pending.empty()) {
        const Symbol symbol = pending.back();
        pending.pop_back();
        if (symbol < grammar.alphabet_size) {
            out.push_back(symbol);
            continue;
        }
        const auto rule = 2 * static_cast<std::size_t>(symbol - grammar.alphabet_size);
        pending.push_back(grammar.rules[rule + 1]);
        pending.push_back(grammar.rules[rule]);
    }
}

}  // namespace

SparseCounts count_phrases(const PhraseOptions& options, std::span<const GrammarView> documents, const Labour& labour) {
    std::vector<std::unique_ptr<PhraseCounter>> workers;
    for (std::size_t i = workers_for(documents, labour); i > 0; --i)
        workers.push_back(std::make_unique<PhraseCounter>(options));
    return count_rows(workers, documents, labour);
}

NamedPhrases name_phrases(const PhraseOptions& options, std::span<const GrammarView> documents,
                          std::span<const std::int64_t> columns, const Labour& labour) {
    NamedPhrases named;
    named.offsets.push_back(0);
    Phrases phrases(options);
    std::unordered_map<std::uint64_t, std::size_t> numbers;  // by hash; in `named`, phrases are in the order found
    each_document(documents, {1, labour.poll}, [&](std::size_t i, std::size_t, const std::atomic<bool>& stop) {
        const GrammarView& grammar = documents[i];
        phrases.of(grammar, stop, [&](std::uint64_t hash, std::size_t begin, std::size_t end) {
            const std::uint32_t column = phrase_column(hash, options.columns);
            if (!std::binary_search(columns.begin(), columns.end(), std::int64_t{column})) return;
            const auto [found, fresh] = numbers.try_emplace(hash, named.columns.size());
            if (fresh) {
                named.columns.push_back(static_cast<std::int32_t>(column));
                named.occurrences.push_back(0);
                append_expanded(grammar, grammar.sequence.subspan(begin, end - begin), named.terminals);
                named.offsets.push_back(static_cast<std::int64_t>(named.terminals.size()));
            }
            ++named.occurrences[found->second];
        });
    });
    return named;
}

}  // namespace laconic
