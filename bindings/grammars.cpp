// Grammars for Python: how they are made, and what can be asked of them.
#include "arrays.hpp"
#include "batch.hpp"
#include "zipped.hpp"

namespace laconic {
namespace {

Grammars held(Batch made, Symbol alphabet_size, std::shared_ptr<Rulebook> rulebook = nullptr) {
    return {alphabet_size,
            field_of_pairs(std::move(made.rules)),
            field(std::move(made.rule_offsets)),
            field(std::move(made.sequence)),
            field(std::move(made.sequence_offsets)),
            std::move(rulebook)};
}

template <class Terminal>
WriteableTerminals expand_range(const Grammar& grammar, const Array<std::int64_t>& lengths,
                                const Array<std::int64_t>& starts, std::int64_t begin, std::int64_t end) {
    Buffer<Terminal> out;
    without_gil([&] {
        out.renew(static_cast<std::size_t>(end - begin));
        expand(grammar.view(), lengths.data(), starts.data(), begin, end, out.data());
    });
    return handed_over<WriteableTerminals>(std::move(out));
}

// One number for each of some things.
template <class T, class Work>
Array<T> numbers(std::size_t size, Work work) {
    Buffer<T> values;
    without_gil([&] {
        values.renew(size);
        work(values);
    });
    return to_numpy(std::move(values));
}

Array<std::int64_t> document_lengths(const Grammars& grammars) {
    return numbers<std::int64_t>(grammars.count(), [&](Buffer<std::int64_t>& result) {
        Buffer<std::int64_t> lengths, begins;
        const Standalone documents = grammars.standalone();
        for_each_document(grammars.count(), [&](std::size_t i) {
            const GrammarView& grammar = documents.views()[i];
            lengths.renew(grammar.rule_count());
            begins.renew(grammar.sequence.size() + 1);
            expanded_lengths(grammar, lengths.data());
            starts(grammar, lengths.data(), begins.data());
            result[i] = begins[grammar.sequence.size()];
        });
    });
}

}  // namespace

void bind_grammars(nb::module_& m) {
    nb::class_<Grammar>(m, "Grammar", "One grammar. Its arrays are trusted once check() has passed.")
        .def(nb::init<Symbol, SymbolPairs, Array<Symbol>>(), "alphabet_size"_a, "rules"_a, "sequence"_a)
        .def("check", [](const Grammar& self) { without_gil([&] { check(self.view()); }); })
        .def("depths",
             [](const Grammar& self) {
                 return numbers<std::int32_t>(self.rules.shape(0),
                                              [&](auto& result) { depths(self.view(), result.data()); });
             })
        .def("expanded_lengths",
             [](const Grammar& self) {
                 return numbers<std::int64_t>(self.rules.shape(0),
                                              [&](auto& result) { expanded_lengths(self.view(), result.data()); });
             })
        .def("occurrences",
             [](const Grammar& self) {
                 return numbers<std::int64_t>(self.rules.shape(0),
                                              [&](auto& result) { occurrences(self.view(), result.data()); });
             })
        .def(
            "starts",
            [](const Grammar& self, const Array<std::int64_t>& lengths) {
                return numbers<std::int64_t>(self.sequence.shape(0) + 1,
                                             [&](auto& result) { starts(self.view(), lengths.data(), result.data()); });
            },
            "lengths"_a)
        .def(
            "expand",
            [](const Grammar& self, const Array<std::int64_t>& lengths, const Array<std::int64_t>& starts,
               std::int64_t begin, std::int64_t end) {
                const auto expand_to = [&]<class Terminal>(Terminal) {
                    return expand_range<Terminal>(self, lengths, starts, begin, end);
                };
                if (self.alphabet_size <= 1 << 8) return expand_to(std::uint8_t{});
                if (self.alphabet_size <= 1 << 16) return expand_to(std::uint16_t{});
                return expand_to(std::int32_t{});
            },
            "lengths"_a, "starts"_a, "begin"_a, "end"_a);

    nb::class_<Grammars>(m, "Grammars",
                         "Grammars of many documents, end to end. Their arrays are trusted once check() has passed.")
        .def(nb::init<Symbol, SymbolPairs, Array<std::int64_t>, Array<Symbol>, Array<std::int64_t>,
                      std::shared_ptr<Rulebook>>(),
             "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a, "sequence_offsets"_a,
             "rulebook"_a.none() = nb::none())
        .def_ro("alphabet_size", &Grammars::alphabet_size)
        .def_ro("rules", &Grammars::rules)
        .def_ro("rule_offsets", &Grammars::rule_offsets)
        .def_ro("sequence", &Grammars::sequence)
        .def_ro("sequence_offsets", &Grammars::sequence_offsets)
        .def("check",
             [](const Grammars& self) {
                 without_gil([&] { for_each_document(self.count(), [&](std::size_t i) { check(self[i]); }); });
             })
        .def("expanded_lengths", document_lengths);

    nb::dict options_of;
    for (const Codec& codec : codecs()) {
        nb::list options;
        for (const std::string_view option : codec.options) options.append(nb::str(option.data(), option.size()));
        options_of[nb::str(codec.name.data(), codec.name.size())] = nb::tuple(options);
    }
    m.attr("CODECS") = options_of;

    m.def(
        "compress_many",
        [](const Terminals& text, const Array<std::int64_t>& offsets, Symbol alphabet_size, const std::string& codec,
           std::uint32_t min_count, std::uint32_t max_rules, std::uint32_t max_expansion, bool letters_known,
           std::shared_ptr<Rulebook> rulebook, unsigned threads) {
            const CodecOptions options{{min_count, max_rules, max_expansion},
                                       letters_known ? LzdLetters::known : LzdLetters::seen};
            const Codec& chosen = codec_named(codec);
            const auto make = [&] {
                return rulebook ? under_rulebook(rulebook, chosen.make(options)) : chosen.make(options);
            };
            return with_terminals(text, [&](auto terminals) {
                Batch made = without_gil([&] {
                    return compress_many(terminals, view(offsets), alphabet_size, make, threads, poll_signals);
                });
                return held(std::move(made), alphabet_size, rulebook);
            });
        },
        "text"_a, "offsets"_a, "alphabet_size"_a, "codec"_a, "min_count"_a, "max_rules"_a, "max_expansion"_a,
        "letters_known"_a, "rulebook"_a.none(), "threads"_a);

    m.def(
        "from_zipped",
        [](const Array<std::uint8_t>& data, const Array<std::int64_t>& offsets, Symbol alphabet_size, bool raw,
           unsigned threads) {
            const auto make = [&] { return zipped_compressor(alphabet_size, raw); };
            Batch made =
                without_gil([&] { return compress_many(view(data), view(offsets), 256, make, threads, poll_signals); });
            return held(std::move(made), alphabet_size);
        },
        "data"_a, "offsets"_a, "alphabet_size"_a, "raw"_a, "threads"_a,
        "Grammars of documents that lie compressed by deflate: data[offsets[i]:offsets[i + 1]].");
    m.def(
        "scan_gzip",
        [](const Array<std::uint8_t>& data) {
            const Member found = without_gil([&] { return scan_gzip(view(data)); });
            return std::pair(found.size, found.length);
        },
        "data"_a, "How many bytes the first gzip member of some takes, and how many it is inflated to.");
}

}  // namespace laconic
