// The core's n-grams for Python.
#include "ngrams.hpp"

#include "arrays.hpp"
#include "hashes.hpp"
#include "phrases.hpp"

namespace laconic {
namespace {

// How terminals are read, as NumPy holds it. Sizes have been checked.
struct LetterArrays {
    LetterArrays(Array<std::uint32_t> of_terminals, Array<std::uint8_t> are_spaces, Array<std::uint32_t> of_letters,
                 Array<std::uint32_t> of_other_strand, std::uint32_t of_runs)
        : letters(of_terminals), spaces(are_spaces), points(of_letters), complements(of_other_strand), blank(of_runs) {}

    Array<std::uint32_t> letters;
    Array<std::uint8_t> spaces;
    Array<std::uint32_t> points, complements;
    std::uint32_t blank;

    NgramOptions options(unsigned low, unsigned high) const {
        return {{view(letters), view(spaces), view(points), view(complements), blank}, low, high};
    }
};

// Keeps the arrays that its counter reads.
class Counter {
public:
    Counter(const LetterArrays& letters, unsigned low, unsigned high, bool keep)
        : letters_(letters), counter_(letters_.options(low, high), keep) {}

    void add(Symbol alphabet_size, const Rules& rules, const Array<std::int64_t>& rule_offsets,
             const Array<Symbol>& sequence, const Array<std::int64_t>& sequence_offsets, unsigned threads) {
        const nb::gil_scoped_release release;
        counter_.add(documents_of(alphabet_size, rules, rule_offsets, sequence, sequence_offsets),
                     {threads, poll_signals});
    }

    nb::tuple finish(unsigned threads) {
        {
            const nb::gil_scoped_release release;
            counter_.finish({threads, poll_signals});
        }
        return nb::make_tuple(copied(counter_.frequencies()), copied(counter_.totals()));
    }

    nb::tuple spelled(const Array<std::int64_t>& ngrams) const {
        Spelled result;
        {
            const nb::gil_scoped_release release;
            result = counter_.spelled(view(ngrams));
        }
        return nb::make_tuple(to_numpy(std::move(result.points)), to_numpy(std::move(result.offsets)));
    }

    nb::tuple matrix(const Array<std::int32_t>& columns, unsigned threads);

private:
    static nb::object copied(std::span<const std::int64_t> values) {
        Buffer<std::int64_t> copy;
        copy.append(values.data(), values.size());
        return to_numpy(std::move(copy));
    }

    LetterArrays letters_;
    NgramCounter counter_;
};

// The caller's to change, as scipy does.
nb::tuple arrays_of(SparseCounts&& counts) {
    return nb::make_tuple(to_numpy<std::int64_t, std::int64_t>(std::move(counts.indptr)),
                          to_numpy<std::int32_t, std::int32_t>(std::move(counts.indices)),
                          to_numpy<std::int64_t, std::int64_t>(std::move(counts.data)));
}

nb::tuple Counter::matrix(const Array<std::int32_t>& columns, unsigned threads) {
    SparseCounts counts;
    {
        const nb::gil_scoped_release release;
        counts = counter_.matrix(view(columns), {threads, poll_signals});
    }
    return arrays_of(std::move(counts));
}

}  // namespace

void bind_ngrams(nb::module_& m) {
    nb::class_<LetterArrays>(m, "LetterTable")
        .def(nb::init<Array<std::uint32_t>, Array<std::uint8_t>, Array<std::uint32_t>, Array<std::uint32_t>,
                      std::uint32_t>(),
             "letters"_a, "spaces"_a, "points"_a, "complements"_a, "blank"_a);

    nb::class_<Counter>(m, "NgramCounter")
        .def(nb::init<const LetterArrays&, unsigned, unsigned, bool>(), "letters"_a, "low"_a, "high"_a, "keep"_a)
        .def("add", &Counter::add, "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a, "sequence_offsets"_a,
             "threads"_a)
        .def("finish", &Counter::finish, "threads"_a)
        .def("spelled", &Counter::spelled, "ngrams"_a)
        .def("matrix", &Counter::matrix, "columns"_a, "threads"_a);

    m.def(
        "count_hashed",
        [](const LetterArrays& letters, unsigned low, unsigned high, Symbol alphabet_size, Rules rules,
           Array<std::int64_t> rule_offsets, Array<Symbol> sequence, Array<std::int64_t> sequence_offsets,
           std::uint32_t columns, bool alternate_sign, unsigned threads) {
            SparseCounts counts;
            {
                const nb::gil_scoped_release release;
                counts = count_hashed(letters.options(low, high),
                                      documents_of(alphabet_size, rules, rule_offsets, sequence, sequence_offsets),
                                      columns, alternate_sign, {threads, poll_signals});
            }
            return arrays_of(std::move(counts));
        },
        "letters"_a, "low"_a, "high"_a, "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a,
        "sequence_offsets"_a, "columns"_a, "alternate_sign"_a, "threads"_a);

    m.def(
        "count_phrases",
        [](unsigned most, std::uint32_t shortest, std::uint32_t longest, Symbol alphabet_size, Rules rules,
           Array<std::int64_t> rule_offsets, Array<Symbol> sequence, Array<std::int64_t> sequence_offsets,
           std::uint32_t columns, unsigned threads) {
            SparseCounts counts;
            {
                const nb::gil_scoped_release release;
                counts = count_phrases({most, shortest, longest, columns},
                                       documents_of(alphabet_size, rules, rule_offsets, sequence, sequence_offsets),
                                       {threads, poll_signals});
            }
            return arrays_of(std::move(counts));
        },
        "most"_a, "shortest"_a, "longest"_a, "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a,
        "sequence_offsets"_a, "columns"_a, "threads"_a);

    m.def(
        "name_phrases",
        [](unsigned most, std::uint32_t shortest, std::uint32_t longest, Symbol alphabet_size, Rules rules,
           Array<std::int64_t> rule_offsets, Array<Symbol> sequence, Array<std::int64_t> sequence_offsets,
           std::uint32_t columns, Array<std::int64_t> wanted) {
            NamedPhrases named;
            {
                const nb::gil_scoped_release release;
                named = name_phrases({most, shortest, longest, columns},
                                     documents_of(alphabet_size, rules, rule_offsets, sequence, sequence_offsets),
                                     view(wanted), {1, poll_signals});
            }
            return nb::make_tuple(to_numpy(std::move(named.columns)), to_numpy(std::move(named.occurrences)),
                                  to_numpy(std::move(named.terminals)), to_numpy(std::move(named.offsets)));
        },
        "most"_a, "shortest"_a, "longest"_a, "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a,
        "sequence_offsets"_a, "columns"_a, "wanted"_a);

    nb::dict hashes;
    for (const HashName& hash : kHashes) hashes[hash.of] = hash.name;
    m.attr("HASHES") = hashes;

    m.def(
        "count_known",
        [](const LetterArrays& letters, unsigned low, unsigned high, Symbol alphabet_size, Rules rules,
           Array<std::int64_t> rule_offsets, Array<Symbol> sequence, Array<std::int64_t> sequence_offsets,
           Array<std::uint32_t> vocabulary, Array<std::int64_t> offsets, unsigned threads) {
            SparseCounts counts;
            {
                const nb::gil_scoped_release release;
                counts = count_known(letters.options(low, high),
                                     documents_of(alphabet_size, rules, rule_offsets, sequence, sequence_offsets),
                                     view(vocabulary), view(offsets), {threads, poll_signals});
            }
            return arrays_of(std::move(counts));
        },
        "letters"_a, "low"_a, "high"_a, "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a,
        "sequence_offsets"_a, "vocabulary"_a, "offsets"_a, "threads"_a);
}

}  // namespace laconic
