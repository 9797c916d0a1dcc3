// N-grams of grammars against those of the text itself; tests/test_ngrams.py has more, here sanitizers watch.
#include "ngrams.hpp"

#include <map>
#include <set>

#include "check.hpp"
#include "hashed_phrases.hpp"
#include "hashes.hpp"
#include "lzd.hpp"
#include "repair.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

using Row = std::map<Text, std::int64_t>;

// Letters 0 … `letters`-1, of which the first ones may be white space; the blank is a letter of its own.
struct Reading {
    Reading(Symbol letters, Symbol space_count, bool both_strands) {
        for (Symbol letter = 0; letter < letters; ++letter) {
            names.push_back(static_cast<std::uint32_t>(letter + 1));
            if (space_count > 0) spaces.push_back(letter < space_count);
        }
        for (std::uint32_t point = 0; point <= static_cast<std::uint32_t>(letters); ++point) {
            points.push_back(point);
            if (both_strands) complements.push_back(static_cast<std::uint32_t>(letters) + 1 - point);
        }
    }
    LetterTable table() const {
        return {names, spaces, points, complements, static_cast<std::uint32_t>(points.size())};
    }

    std::vector<std::uint32_t> names;
    std::vector<std::uint8_t> spaces;
    std::vector<std::uint32_t> points, complements;
};

Text collapsed(const Text& text, const Reading& reading) {
    if (reading.spaces.empty()) return text;
    Text result;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && reading.spaces[static_cast<std::size_t>(text[end])] != 0) ++end;
        if (end - i > 1) result.push_back(static_cast<Symbol>(reading.names.size()));  // the blank
        if (end - i == 1 || end == i) result.push_back(text[i]);
        i = std::max(end, i + 1);
    }
    return result;
}

Row ngrams_by_definition(const Text& text, unsigned low, unsigned high, const Reading& reading) {
    Row row;
    const Text read = collapsed(text, reading);
    for (std::size_t n = low; n <= high; ++n) {
        for (std::size_t i = 0; i + n <= read.size(); ++i) {
            Text ngram(read.begin() + static_cast<std::ptrdiff_t>(i),
                       read.begin() + static_cast<std::ptrdiff_t>(i + n));
            Text other;
            for (std::size_t j = n; !reading.complements.empty() && j-- > 0;)
                other.push_back(static_cast<Symbol>(reading.complements[static_cast<std::size_t>(ngram[j])]) - 1);
            ++row[other.empty() ? ngram : std::min(ngram, other)];
        }
    }
    return row;
}

std::vector<Row> rows_of(const SparseCounts& counts, const std::vector<Text>& names) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i + 1 < counts.indptr.size(); ++i) {
        rows.emplace_back();
        for (auto at = static_cast<std::size_t>(counts.indptr[i]); at < static_cast<std::size_t>(counts.indptr[i + 1]);
             ++at)
            rows.back()[names[static_cast<std::size_t>(counts.indices[at])]] = counts.data[at];
    }
    return rows;
}

std::vector<Text> names_of(const Spelled& spelled) {
    std::vector<Text> names;
    for (std::size_t k = 0; k + 1 < spelled.offsets.size(); ++k)
        names.emplace_back(spelled.points.begin() + spelled.offsets[k],
                           spelled.points.begin() + spelled.offsets[k + 1]);
    return names;
}

// Texts of any kind, and their grammars by Re-Pair or LZD.
void compress_some(Random& random, bool by_repair, Symbol letters, std::uint32_t longest, std::vector<Text>& texts,
                   std::vector<Output>& outputs) {
    for (Output& out : outputs) {
        const auto kind = static_cast<Kind>(random.below(static_cast<std::uint32_t>(Kind::count)));
        texts.push_back(make_text(kind, random, random.below(3) * random.below(longest), letters));
        const std::span<const Symbol> text(texts.back());
        if (by_repair)
            Repair().compress(text, letters, {}, out);
        else
            Lzd().compress(text, letters, LzdLetters::known, out);
    }
}

void check_batches() {
    Random random(11);
    const std::function<void()> poll = [] {};
    for (int round = 0; round < 150; ++round) {
        const Symbol letters = static_cast<Symbol>(random.between(1, round % 5 == 0 ? 300 : 6));
        const Reading reading(letters, random.below(2) * static_cast<Symbol>(random.between(0, 2)) % (letters + 1),
                              random.below(3) == 0);
        const unsigned low = random.between(1, 4), high = low + random.below(round % 7 == 0 ? 30 : 5);
        const std::string input = "round " + std::to_string(round);
        std::vector<Text> texts;
        std::vector<Output> outputs(random.below(6));
        compress_some(random, round % 2 == 0, letters, 150, texts, outputs);
        const std::vector<GrammarView> documents = views_of(letters, outputs);
        std::vector<Row> wanted;
        for (const Text& text : texts) wanted.push_back(ngrams_by_definition(text, low, high, reading));

        const NgramOptions options{reading.table(), low, high};
        const Labour labour{1 + random.below(2), poll};
        NgramCounter counter(options, true);
        counter.add(documents, labour);
        counter.finish(labour);
        const std::size_t count = counter.totals().size();
        std::vector<std::int64_t> all;
        std::vector<std::int32_t> columns;
        for (std::size_t k = 0; k < count; ++k) {
            all.push_back(static_cast<std::int64_t>(k));
            columns.push_back(static_cast<std::int32_t>(k));
        }
        const Spelled spelled = counter.spelled(all);
        const std::vector<Text> names = names_of(spelled);
        CHECK(std::is_sorted(names.begin(), names.end()), input);
        CHECK(rows_of(counter.matrix(columns, labour), names) == wanted, input);
        std::map<Text, std::pair<std::int64_t, std::int64_t>> sums;
        for (const Row& row : wanted)
            for (const auto& [ngram, times] : row) sums[ngram] = {sums[ngram].first + 1, sums[ngram].second + times};
        CHECK(sums.size() == count, input);
        for (std::size_t k = 0; k < count; ++k)
            CHECK(sums[names[k]] == std::pair(counter.frequencies()[k], counter.totals()[k]), input);

        std::vector<std::uint32_t> vocabulary;
        for (std::uint32_t point : spelled.points) vocabulary.push_back(point + 1);
        const std::span<const std::int64_t> offsets(spelled.offsets.data(), spelled.offsets.size());
        CHECK(rows_of(count_known(options, documents, vocabulary, offsets, labour), names) == wanted, input);

        const SparseCounts hashed = count_hashed(options, documents, 1, false, labour);  // all in one column
        for (std::size_t d = 0; d < documents.size(); ++d) {
            std::int64_t sum = 0;
            for (const auto& [ngram, times] : wanted[d]) sum += times;
            const auto begin = static_cast<std::size_t>(hashed.indptr[d]);
            CHECK(sum == (hashed.indptr[d + 1] == hashed.indptr[d] ? 0 : hashed.data[begin]), input);
        }
    }
}

// Enough documents that several threads have work, whose result must not show it.
void check_threads() {
    Random random(13);
    const std::function<void()> poll = [] {};
    const Reading reading(5, 2, false);
    std::vector<Output> outputs(60);
    std::vector<GrammarView> documents;
    for (Output& out : outputs) {
        const Text text = make_text(Kind::copies, random, 4000, 5);
        Repair().compress(std::span<const Symbol>(text), 5, {}, out);
        documents.push_back({5, {out.rules.data(), out.rules.size()}, {out.sequence.data(), out.sequence.size()}});
    }
    const NgramOptions options{reading.table(), 1, 6};
    const auto same = [](const SparseCounts& a, const SparseCounts& b) {
        return std::equal(a.indptr.begin(), a.indptr.end(), b.indptr.begin(), b.indptr.end()) &&
               std::equal(a.indices.begin(), a.indices.end(), b.indices.begin(), b.indices.end()) &&
               std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end());
    };
    const auto learned = [&](unsigned threads) {
        NgramCounter counter(options, true);
        counter.add(documents, {threads, poll});
        counter.finish({threads, poll});
        std::vector<std::int32_t> columns(counter.totals().size());
        for (std::size_t k = 0; k < columns.size(); ++k) columns[k] = static_cast<std::int32_t>(k);
        return counter.matrix(columns, {threads, poll});
    };
    CHECK(same(learned(1), learned(3)), "learned");
    const auto hashed = [&](unsigned threads) { return count_hashed(options, documents, 1000, true, {threads, poll}); };
    CHECK(same(hashed(1), hashed(3)), "hashed");
    const std::vector<std::uint32_t> vocabulary{3, 4, 5, 1, 3, 3};
    const std::vector<std::int64_t> offsets{0, 1, 3, 6};
    const auto known = [&](unsigned threads) {
        return count_known(options, documents, vocabulary, offsets, {threads, poll});
    };
    CHECK(known(1).data.size() > documents.size() && same(known(1), known(3)), "known");
}

// The column of a text, by the definition of hashes.hpp, letter by letter.
std::int32_t column_of(std::span<const Symbol> text, std::uint32_t columns) {
    std::uint64_t hash = 0;
    for (Symbol letter : text) hash = hash * Fingerprint::kBase + static_cast<std::uint64_t>(letter) + 1;
    return static_cast<std::int32_t>(mixed(hash) % columns);
}

// Where each symbol of a sequence begins in the text, and where the last one ends.
std::vector<std::size_t> bounds_of(const GrammarView& grammar) {
    std::vector<std::size_t> lengths(static_cast<std::size_t>(grammar.alphabet_size), 1), bounds{0};
    for (std::size_t k = 0; k < grammar.rule_count(); ++k)
        lengths.push_back(lengths[static_cast<std::size_t>(grammar.rules[2 * k])] +
                          lengths[static_cast<std::size_t>(grammar.rules[2 * k + 1])]);
    for (Symbol symbol : grammar.sequence) bounds.push_back(bounds.back() + lengths[static_cast<std::size_t>(symbol)]);
    return bounds;
}

void check_names(const PhraseOptions& options, std::span<const GrammarView> documents, const std::vector<Text>& texts,
                 const std::string& input) {
    std::map<Text, std::int64_t> all, wanted, found;
    for (std::size_t d = 0; d < documents.size(); ++d) {
        const std::vector<std::size_t> bounds = bounds_of(documents[d]);
        for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
            for (std::size_t j = i + 1; j < bounds.size() && j - i <= options.most; ++j) {
                if (bounds[j] - bounds[i] < options.shortest || bounds[j] - bounds[i] > options.longest) continue;
                const auto begin = texts[d].begin();
                ++all[Text(begin + static_cast<std::ptrdiff_t>(bounds[i]),
                           begin + static_cast<std::ptrdiff_t>(bounds[j]))];
            }
        }
    }
    std::set<std::int64_t> columns;
    for (const auto& [text, count] : all)
        if (text.size() % 2 == 0) columns.insert(column_of(text, options.columns));
    for (const auto& [text, count] : all)
        if (columns.contains(column_of(text, options.columns))) wanted[text] = count;
    const std::vector<std::int64_t> ascending(columns.begin(), columns.end());
    const std::function<void()> poll = [] {};
    const NamedPhrases named = name_phrases(options, documents, ascending, {2, poll});
    for (std::size_t k = 0; k < named.columns.size(); ++k) {
        const Text text(named.terminals.begin() + named.offsets[k], named.terminals.begin() + named.offsets[k + 1]);
        CHECK(named.columns[k] == column_of(text, options.columns), input);
        CHECK(found.emplace(text, named.occurrences[k]).second, input);
    }
    CHECK(found == wanted, input);
}

void check_phrases() {
    Random random(17);
    const std::function<void()> poll = [] {};
    for (int round = 0; round < 150; ++round) {
        const Symbol letters = static_cast<Symbol>(random.between(1, 5));
        const std::string input = "phrases, round " + std::to_string(round);
        const PhraseOptions options{random.between(1, 6), random.between(1, 9), 9 + random.below(70),
                                    random.below(2) == 0 ? 1u + random.below(5) : 0x7FFFFFFFu};
        std::vector<Text> texts;
        std::vector<Output> outputs(random.below(80));
        compress_some(random, round % 2 == 0, letters, 90, texts, outputs);
        const std::vector<GrammarView> documents = views_of(letters, outputs);
        const SparseCounts counts = count_phrases(options, documents, {1 + random.below(3), poll});
        for (std::size_t d = 0; d < documents.size(); ++d) {
            const std::vector<std::size_t> bounds = bounds_of(documents[d]);
            std::map<std::int32_t, std::int64_t> wanted, found;
            for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
                for (std::size_t j = i + 1; j < bounds.size() && j - i <= options.most; ++j) {
                    const std::size_t length = bounds[j] - bounds[i];
                    if (length < options.shortest || length > options.longest) continue;
                    ++wanted[column_of(std::span<const Symbol>(texts[d]).subspan(bounds[i], length), options.columns)];
                }
            }
            const auto end = static_cast<std::size_t>(counts.indptr[d + 1]);
            for (auto at = static_cast<std::size_t>(counts.indptr[d]); at < end; ++at)
                CHECK(found.emplace(counts.indices[at], counts.data[at]).second, input);
            CHECK(found == wanted, input);
        }
        check_names(options, documents, texts, input);
    }
}

void check_limits() {
    const Reading reading(1, 0, false), strands(1, 0, true);
    const std::function<void()> poll = [] {};
    const Labour labour{1, poll};
    Text rules;
    for (Symbol k = 0; k < 70; ++k) rules.insert(rules.end(), {k, k});
    const auto counted = [&](const Reading& read, Symbol doublings, std::size_t times) {
        const Text sequence{doublings};
        const std::vector<GrammarView> documents(times, GrammarView{1, rules, sequence});
        NgramCounter counter({read.table(), 2, 3}, true);
        counter.add(documents, labour);
        counter.finish(labour);
        return counter.totals()[0];
    };
    const Text sequence{70, 2, 1, 70};
    const std::vector<GrammarView> huge{{1, rules, sequence}};
    const SparseCounts phrases = count_phrases({4, 1, 64, 1000}, huge, labour);
    std::int64_t sum = 0;
    for (std::int64_t count : phrases.data) sum += count;
    CHECK(sum == 3, "what is longer than a phrase may be counts nothing, even beyond 64 bits");
    CHECK(counted(reading, 62, 1) == (std::int64_t{1} << 62) - 1, "2^62 letters");
    CHECK_THROWS(counted(reading, 62, 2), GrammarError, "together");
    CHECK_THROWS(counted(reading, 63, 1), GrammarError, "document 0");
    CHECK(counted(strands, 61, 1) == (std::int64_t{1} << 61) - 1, "2^61 letters on two strands");
    CHECK_THROWS(counted(strands, 62, 1), GrammarError, "too many letters");
}

// Whoever waits for the windows of all documents to be sorted and ranked can stop that, wherever it is.
void check_stop() {
    Random random(19);
    const Reading reading(4, 0, false);
    Text text;
    for (int i = 0; i < 200'000; ++i) text.push_back(static_cast<Symbol>(random.below(4)));
    const std::vector<GrammarView> documents{{4, {}, text}};
    // Returns how often finish polled, or stops it the `last` time.
    const auto finished = [&](std::size_t last) {
        std::size_t polls = 0;
        const std::function<void()> idle = [] {}, poll = [&] {
            if (++polls == last) throw GrammarError("stopped");
        };
        NgramCounter counter({reading.table(), 12, 12}, false);
        counter.add(documents, {1, idle});
        counter.finish({1, poll});
        return polls;
    };
    const std::size_t polls = finished(0);
    CHECK(polls >= 5, "before and after sorting, and for every 2^16 of some 199,000 windows");
    for (std::size_t last = 1; last <= polls; ++last) CHECK_THROWS(finished(last), GrammarError, "stopped");
}

}  // namespace
}  // namespace laconic::test

int main() {
    laconic::test::check_batches();
    laconic::test::check_threads();
    laconic::test::check_phrases();
    laconic::test::check_limits();
    laconic::test::check_stop();
    return laconic::test::report("ngrams");
}
