// For Python: counts of n-grams and phrases.
#include "ngrams.hpp"

#include <nanobind/stl/pair.h>

#include "arrays.hpp"
#include "hashed_phrases.hpp"
#include "hashes.hpp"

namespace laconic {
namespace {

// How terminals are read, as NumPy holds it. Sizes have been checked.
struct LetterArrays {
    Array<std::uint32_t> letters;
    Array<std::uint8_t> spaces;
    Array<std::uint32_t> points, complements;
    std::uint32_t blank;

    NgramOptions options(unsigned low, unsigned high) const {
        return {{view(letters), view(spaces), view(points), view(complements), blank}, low, high};
    }
};

struct CountArrays {
    Array<std::int64_t> indptr;
    Array<std::int32_t> indices;
    Array<std::int64_t> data;
    std::int64_t columns;
};

// Calls work(), which counts; what it returns is the caller's to change, as scipy does.
template <class Work>
CountArrays counted(std::size_t columns, Work work) {
    SparseCounts counts = without_gil(work);
    return {writeable_field(std::move(counts.indptr)), writeable_field(std::move(counts.indices)),
            writeable_field(std::move(counts.data)), static_cast<std::int64_t>(columns)};
}

// Keeps the arrays that its counter reads.
class Counter {
public:
    Counter(const LetterArrays& letters, unsigned low, unsigned high, bool keep)
        : letters_(letters), counter_(letters_.options(low, high), keep) {}

    void add(const Grammars& grammars, unsigned threads) {
        without_gil([&] { counter_.add(grammars.standalone().views(), {threads, poll_signals}); });
    }

    auto finish(unsigned threads) {
        without_gil([&] { counter_.finish({threads, poll_signals}); });
        return std::pair(copied(counter_.frequencies()), copied(counter_.totals()));
    }

    auto spelled(const Array<std::int64_t>& ngrams) const {
        Spelled result = without_gil([&] { return counter_.spelled(view(ngrams)); });
        return std::pair(to_numpy(std::move(result.points)), to_numpy(std::move(result.offsets)));
    }

    CountArrays matrix(const Array<std::int32_t>& columns, unsigned threads) {
        const auto used = std::count_if(columns.data(), columns.data() + columns.shape(0),
                                        [](std::int32_t column) { return column >= 0; });
        return counted(static_cast<std::size_t>(used),
                       [&] { return counter_.matrix(view(columns), {threads, poll_signals}); });
    }

private:
    static Array<std::int64_t> copied(std::span<const std::int64_t> values) {
        Buffer<std::int64_t> copy;
        copy.append(values.data(), values.size());
        return to_numpy(std::move(copy));
    }

    LetterArrays letters_;
    NgramCounter counter_;
};

CountArrays hashed_counts(const Grammars& grammars, const LetterArrays& letters, unsigned low, unsigned high,
                          std::uint32_t columns, bool alternate_sign, unsigned threads) {
    return counted(columns, [&] {
        return count_hashed(letters.options(low, high), grammars.standalone().views(), columns, alternate_sign,
                            {threads, poll_signals});
    });
}

CountArrays known_counts(const Grammars& grammars, const LetterArrays& letters, unsigned low, unsigned high,
                         const Array<std::uint32_t>& vocabulary, const Array<std::int64_t>& offsets, unsigned threads) {
    return counted(offsets.shape(0) - 1, [&] {
        return count_known(letters.options(low, high), grammars.standalone().views(), view(vocabulary), view(offsets),
                           {threads, poll_signals});
    });
}

CountArrays phrase_counts(const Grammars& grammars, unsigned most, std::uint32_t shortest, std::uint32_t longest,
                          std::uint32_t columns, unsigned threads) {
    return counted(columns, [&] {
        return count_phrases({most, shortest, longest, columns}, grammars.standalone().views(),
                             {threads, poll_signals});
    });
}

struct NamedArrays {
    Array<std::int32_t> columns;
    Array<std::int64_t> occurrences;
    Array<Symbol> terminals;
    Array<std::int64_t> offsets;
};

NamedArrays named_phrases(const Grammars& grammars, unsigned most, std::uint32_t shortest, std::uint32_t longest,
                          std::uint32_t columns, const Array<std::int64_t>& wanted) {
    NamedPhrases named = without_gil([&] {
        return name_phrases({most, shortest, longest, columns}, grammars.standalone().views(), view(wanted),
                            {1, poll_signals});
    });
    return {field(std::move(named.columns)), field(std::move(named.occurrences)), field(std::move(named.terminals)),
            field(std::move(named.offsets))};
}

}  // namespace

void bind_ngrams(nb::module_& m) {
    nb::dict hashes;
    for (const HashName& hash : kHashes) hashes[hash.of] = hash.name;
    m.attr("HASHES") = hashes;

    nb::class_<CountArrays>(m, "Counts",
                            R"(A sparse matrix, document by column, in CSR form; columns ascend in every row.

Row i has the counts data[indptr[i]:indptr[i + 1]] in the columns of the same slice of indices.)")
        .def(nb::init<Array<std::int64_t>, Array<std::int32_t>, Array<std::int64_t>, std::int64_t>(), "indptr"_a,
             "indices"_a, "data"_a, "columns"_a)
        .def_ro("indptr", &CountArrays::indptr, "int64 [B + 1].")
        .def_ro("indices", &CountArrays::indices, "int32 [nnz].")
        .def_ro("data", &CountArrays::data, "int64 [nnz].")
        .def_ro("columns", &CountArrays::columns, "The number of columns.");

    nb::class_<LetterArrays>(m, "LetterTable", "How terminals are read as letters; see core/windows.hpp.")
        .def(nb::init<Array<std::uint32_t>, Array<std::uint8_t>, Array<std::uint32_t>, Array<std::uint32_t>,
                      std::uint32_t>(),
             "letters"_a, "spaces"_a, "points"_a, "complements"_a, "blank"_a);

    nb::class_<Counter>(m, "NgramCounter", "Learns which n-grams there are; see core/ngrams.hpp.")
        .def(nb::init<const LetterArrays&, unsigned, unsigned, bool>(), "letters"_a, "low"_a, "high"_a, "keep"_a)
        .def("add", &Counter::add, "grammars"_a, "threads"_a)
        .def("finish", &Counter::finish, "threads"_a, "Frequencies and totals of all n-grams.")
        .def("spelled", &Counter::spelled, "ngrams"_a, "Code points of n-grams, and offsets.")
        .def("matrix", &Counter::matrix, "columns"_a, "threads"_a);

    m.def("count_hashed", hashed_counts, "grammars"_a, "letters"_a, "low"_a, "high"_a, "columns"_a, "alternate_sign"_a,
          "threads"_a);
    m.def("count_known", known_counts, "grammars"_a, "letters"_a, "low"_a, "high"_a, "vocabulary"_a, "offsets"_a,
          "threads"_a);
    m.def("count_phrases", phrase_counts, "grammars"_a, "most"_a, "shortest"_a, "longest"_a, "columns"_a, "threads"_a);

    nb::class_<NamedArrays>(m, "NamedPhrases", "Phrase k is terminals[offsets[k]:offsets[k + 1]].")
        .def_ro("columns", &NamedArrays::columns)
        .def_ro("occurrences", &NamedArrays::occurrences)
        .def_ro("terminals", &NamedArrays::terminals)
        .def_ro("offsets", &NamedArrays::offsets);
    m.def("name_phrases", named_phrases, "grammars"_a, "most"_a, "shortest"_a, "longest"_a, "columns"_a, "wanted"_a);
}

}  // namespace laconic
