// laconic._core: the core, name for name, over NumPy arrays. Nothing outside this folder knows Python.
#include "arrays.hpp"
#include "batch.hpp"
#include "compact.hpp"
#include "forest.hpp"
#include "grammar.hpp"
#include "ngrams_in_place.hpp"
#include "packed.hpp"

namespace laconic {
namespace {

template <class Letter>
nb::tuple compress_documents(Array<Letter> text, Array<std::int64_t> offsets, Symbol alphabet_size,
                             const std::string& codec, std::uint32_t min_count, std::uint32_t max_rules,
                             std::uint32_t max_expansion, bool letters_known, unsigned threads) {
    const CodecOptions options{{min_count, max_rules, max_expansion},
                               letters_known ? LzdLetters::known : LzdLetters::seen};
    const Codec& chosen = codec_named(codec);
    Batch batch;
    {
        const nb::gil_scoped_release release;
        batch = laconic::compress_many(
            view(text), view(offsets), alphabet_size, [&] { return chosen.make(options); }, threads, poll_signals);
    }
    return nb::make_tuple(to_numpy(std::move(batch.rules), 2), to_numpy(std::move(batch.rule_offsets)),
                          to_numpy(std::move(batch.sequence)), to_numpy(std::move(batch.sequence_offsets)));
}

template <class Letter>
nb::object expand_range(const GrammarView& grammar, const Array<std::int64_t>& lengths,
                        const Array<std::int64_t>& starts, std::int64_t begin, std::int64_t end) {
    Buffer<Letter> out;
    {
        const nb::gil_scoped_release release;
        out.renew(static_cast<std::size_t>(end - begin));
        laconic::expand(grammar, lengths.data(), starts.data(), begin, end, out.data());
    }
    return to_numpy<Letter, Letter>(std::move(out));
}

// Packed documents that NumPy holds, whose offsets have been checked.
struct PackedArrays {
    Array<Symbol> letters;
    Array<std::int64_t> letter_offsets;
    Array<Symbol> left, right;
    Array<std::int64_t> rule_offsets;
    Array<Symbol> sequence;
    Array<std::int64_t> sequence_offsets;

    std::size_t count() const { return rule_offsets.shape(0) - 1; }
    PackedView operator[](std::size_t i) const {
        const auto part = [i](const Array<Symbol>& all, const Array<std::int64_t>& offsets) {
            const auto begin = static_cast<std::size_t>(offsets.data()[i]),
                       end = static_cast<std::size_t>(offsets.data()[i + 1]);
            return std::span<const Symbol>(all.data() + begin, end - begin);
        };
        return {part(letters, letter_offsets), part(left, rule_offsets), part(right, rule_offsets),
                part(sequence, sequence_offsets)};
    }
};

// Does something to each document; errors name it.
template <class Work>
void for_each_document(std::size_t count, Work work) {
    for (std::size_t i = 0; i < count; ++i) in_document(i, [&] { work(i); });
}

// The core's error as Python's, with the same data.
void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const GrammarError& error) {
        nb::dict place;
        if (error.document()) place["document"] = *error.document();
        const nb::object type = nb::module_::import_("laconic.errors").attr("GrammarError");
        PyErr_SetObject(type.ptr(), type(error.reason(), **place).ptr());
    }
}

}  // namespace

NB_MODULE(_core, m) {
    nb::register_exception_translator(translate);
    bind_ngrams(m);

    nb::dict options_of;
    for (const Codec& codec : codecs()) {
        nb::list options;
        for (const std::string_view option : codec.options) options.append(nb::str(option.data(), option.size()));
        options_of[nb::str(codec.name.data(), codec.name.size())] = nb::tuple(options);
    }
    m.attr("CODECS") = options_of;

    const auto bind_compress = [&]<class Letter>(Letter) {
        m.def("compress_many", &compress_documents<Letter>, "text"_a.noconvert(), "offsets"_a, "alphabet_size"_a,
              "codec"_a, "min_count"_a, "max_rules"_a, "max_expansion"_a, "letters_known"_a, "threads"_a);
    };
    bind_compress(std::uint8_t{});
    bind_compress(std::uint16_t{});
    bind_compress(std::int32_t{});

    m.def(
        "check",
        [](Symbol alphabet_size, Rules rules, Array<Symbol> sequence) {
            const nb::gil_scoped_release release;
            check(view(alphabet_size, rules, sequence));
        },
        "alphabet_size"_a, "rules"_a, "sequence"_a);

    m.def(
        "check_many",
        [](Symbol alphabet_size, Rules rules, Array<std::int64_t> rule_offsets, Array<Symbol> sequence,
           Array<std::int64_t> sequence_offsets) {
            const nb::gil_scoped_release release;
            for_each_document(rule_offsets.shape(0) - 1, [&](std::size_t i) {
                check(document(alphabet_size, rules, rule_offsets, sequence, sequence_offsets, i));
            });
        },
        "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a, "sequence_offsets"_a);

    m.def(
        "expanded_lengths",
        [](Symbol alphabet_size, Rules rules) {
            Buffer<std::int64_t> lengths;
            lengths.renew(rules.shape(0));
            {
                const nb::gil_scoped_release release;
                expanded_lengths({alphabet_size, {rules.data(), 2 * rules.shape(0)}, {}}, lengths.data());
            }
            return to_numpy(std::move(lengths));
        },
        "alphabet_size"_a, "rules"_a);

    m.def(
        "starts",
        [](Symbol alphabet_size, Array<Symbol> sequence, Array<std::int64_t> lengths) {
            Buffer<std::int64_t> result;
            result.renew(sequence.shape(0) + 1);
            {
                const nb::gil_scoped_release release;
                starts({alphabet_size, {}, view(sequence)}, lengths.data(), result.data());
            }
            return to_numpy(std::move(result));
        },
        "alphabet_size"_a, "sequence"_a, "lengths"_a);

    m.def(
        "expanded_lengths_many",
        [](Symbol alphabet_size, Rules rules, Array<std::int64_t> rule_offsets, Array<Symbol> sequence,
           Array<std::int64_t> sequence_offsets) {
            Buffer<std::int64_t> result, lengths, begins;
            result.renew(rule_offsets.shape(0) - 1);
            for (std::size_t i = 0; i < result.size(); ++i) {
                const GrammarView grammar = document(alphabet_size, rules, rule_offsets, sequence, sequence_offsets, i);
                lengths.renew(grammar.rule_count());
                begins.renew(grammar.sequence.size() + 1);
                expanded_lengths(grammar, lengths.data());
                in_document(i, [&] { starts(grammar, lengths.data(), begins.data()); });
                result[i] = begins[grammar.sequence.size()];
            }
            return to_numpy(std::move(result));
        },
        "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a, "sequence_offsets"_a);

    m.def(
        "pack_many",
        [](Symbol alphabet_size, Rules rules, Array<std::int64_t> rule_offsets, Array<Symbol> sequence,
           Array<std::int64_t> sequence_offsets, bool sort) {
            Packed packed;
            Buffer<std::int64_t> letter_offsets;
            {
                const nb::gil_scoped_release release;
                Packer packer;
                packed.left.reserve(rules.shape(0));
                packed.right.reserve(rules.shape(0));
                packed.sequence.reserve(sequence.shape(0));
                letter_offsets.push_back(0);
                for (std::size_t i = 0; i + 1 < rule_offsets.shape(0); ++i) {
                    packer.pack(document(alphabet_size, rules, rule_offsets, sequence, sequence_offsets, i), sort,
                                packed);
                    letter_offsets.push_back(static_cast<std::int64_t>(packed.letters.size()));
                }
            }
            return nb::make_tuple(to_numpy(std::move(packed.letters)), to_numpy(std::move(letter_offsets)),
                                  to_numpy(std::move(packed.left)), to_numpy(std::move(packed.right)),
                                  to_numpy(std::move(packed.sequence)));
        },
        "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a, "sequence_offsets"_a, "sort"_a);

    m.def(
        "unpack_many",
        [](Symbol alphabet_size, Array<Symbol> letters, Array<std::int64_t> letter_offsets, Array<Symbol> left,
           Array<Symbol> right, Array<std::int64_t> rule_offsets, Array<Symbol> sequence,
           Array<std::int64_t> sequence_offsets) {
            const PackedArrays packed{letters, letter_offsets, left, right, rule_offsets, sequence, sequence_offsets};
            Output out;
            {
                const nb::gil_scoped_release release;
                out.rules.reserve(2 * left.shape(0));
                out.sequence.reserve(sequence.shape(0));
                for_each_document(packed.count(), [&](std::size_t i) { unpack(packed[i], alphabet_size, out); });
            }
            return nb::make_tuple(to_numpy(std::move(out.rules), 2), to_numpy(std::move(out.sequence)));
        },
        "alphabet_size"_a, "letters"_a, "letter_offsets"_a, "left"_a, "right"_a, "rule_offsets"_a, "sequence"_a,
        "sequence_offsets"_a);

    m.def(
        "learn_compact",
        [](Symbol alphabet_size, Array<Symbol> letters, Array<std::int64_t> letter_offsets, Array<Symbol> left,
           Array<Symbol> right, Array<std::int64_t> rule_offsets, Array<Symbol> sequence,
           Array<std::int64_t> sequence_offsets) {
            const PackedArrays packed{letters, letter_offsets, left, right, rule_offsets, sequence, sequence_offsets};
            Buffer<std::uint16_t> numbers;
            {
                const nb::gil_scoped_release release;
                std::vector<PackedView> documents;
                for (std::size_t i = 0; i < packed.count(); ++i) documents.push_back(packed[i]);
                for (std::uint16_t number : CompactModel::learn(alphabet_size, documents).numbers())
                    numbers.push_back(number);
            }
            return to_numpy(std::move(numbers));
        },
        "alphabet_size"_a, "letters"_a, "letter_offsets"_a, "left"_a, "right"_a, "rule_offsets"_a, "sequence"_a,
        "sequence_offsets"_a);

    m.def(
        "encode_compact",
        [](Symbol alphabet_size, Array<std::uint16_t> model, Array<Symbol> letters, Array<std::int64_t> letter_offsets,
           Array<Symbol> left, Array<Symbol> right, Array<std::int64_t> rule_offsets, Array<Symbol> sequence,
           Array<std::int64_t> sequence_offsets) {
            const PackedArrays packed{letters, letter_offsets, left, right, rule_offsets, sequence, sequence_offsets};
            Buffer<std::uint8_t> codes;
            Buffer<std::int64_t> offsets;
            {
                const nb::gil_scoped_release release;
                const CompactModel known = CompactModel::from_numbers(alphabet_size, view(model));
                CompactCoder coder(known);
                offsets.push_back(0);
                for_each_document(packed.count(), [&](std::size_t i) {
                    coder.encode(packed[i], codes);
                    offsets.push_back(static_cast<std::int64_t>(codes.size()));
                });
            }
            return nb::make_tuple(to_numpy(std::move(codes)), to_numpy(std::move(offsets)));
        },
        "alphabet_size"_a, "model"_a, "letters"_a, "letter_offsets"_a, "left"_a, "right"_a, "rule_offsets"_a,
        "sequence"_a, "sequence_offsets"_a);

    m.def(
        "decode_compact",
        [](Symbol alphabet_size, Array<std::uint16_t> model, Array<std::uint8_t> codes, Array<std::int64_t> offsets) {
            Packed packed;
            Buffer<std::int64_t> letter_offsets, rule_offsets, sequence_offsets;
            {
                const nb::gil_scoped_release release;
                const CompactModel known = CompactModel::from_numbers(alphabet_size, view(model));
                CompactCoder coder(known);
                const auto end = [&] {
                    letter_offsets.push_back(static_cast<std::int64_t>(packed.letters.size()));
                    rule_offsets.push_back(static_cast<std::int64_t>(packed.left.size()));
                    sequence_offsets.push_back(static_cast<std::int64_t>(packed.sequence.size()));
                };
                end();
                for_each_document(offsets.shape(0) - 1, [&](std::size_t i) {
                    const auto begin = static_cast<std::size_t>(offsets.data()[i]);
                    const auto size = static_cast<std::size_t>(offsets.data()[i + 1]) - begin;
                    coder.decode({codes.data() + begin, size}, packed);
                    end();
                });
            }
            return nb::make_tuple(to_numpy(std::move(packed.letters)), to_numpy(std::move(letter_offsets)),
                                  to_numpy(std::move(packed.left)), to_numpy(std::move(packed.right)),
                                  to_numpy(std::move(rule_offsets)), to_numpy(std::move(packed.sequence)),
                                  to_numpy(std::move(sequence_offsets)));
        },
        "alphabet_size"_a, "model"_a, "codes"_a, "offsets"_a);

    m.def(
        "plant",
        [](Symbol alphabet_size, Rules rules, Array<std::int64_t> rule_offsets, Array<Symbol> sequence,
           Array<std::int64_t> sequence_offsets, bool merge) {
            Forest forest;
            {
                const nb::gil_scoped_release release;
                thread_local Planter planter;
                planter.plant(alphabet_size,
                              documents_of(alphabet_size, rules, rule_offsets, sequence, sequence_offsets), merge,
                              forest);
            }
            return nb::make_tuple(to_numpy(std::move(forest.children), 2), to_numpy(std::move(forest.level_ends)),
                                  to_numpy(std::move(forest.sequence)), to_numpy(std::move(forest.lengths)),
                                  to_numpy(std::move(forest.hashes)));
        },
        "alphabet_size"_a, "rules"_a, "rule_offsets"_a, "sequence"_a, "sequence_offsets"_a, "merge"_a);

    m.def(
        "ngrams_in_place",
        [](Symbol alphabet_size, Rules children, Array<Symbol> sequence, Array<std::int64_t> offsets, unsigned longest,
           std::uint32_t buckets) {
            PlacedNgrams found;
            {
                const nb::gil_scoped_release release;
                thread_local PlaceReader reader;
                reader.read(alphabet_size, {children.data(), 2 * children.shape(0)}, view(sequence), view(offsets),
                            longest, buckets, found);
            }
            return nb::make_tuple(to_numpy(std::move(found.nodes)), to_numpy(std::move(found.node_buckets)),
                                  to_numpy(std::move(found.places)), to_numpy(std::move(found.place_buckets)));
        },
        "alphabet_size"_a, "children"_a, "sequence"_a, "offsets"_a, "longest"_a, "buckets"_a);

    m.def(
        "depths",
        [](Symbol alphabet_size, Rules rules) {
            Buffer<std::int32_t> result;
            result.renew(rules.shape(0));
            {
                const nb::gil_scoped_release release;
                depths({alphabet_size, {rules.data(), 2 * rules.shape(0)}, {}}, result.data());
            }
            return to_numpy(std::move(result));
        },
        "alphabet_size"_a, "rules"_a);

    m.def(
        "occurrences",
        [](Symbol alphabet_size, Rules rules, Array<Symbol> sequence) {
            Buffer<std::int64_t> counts;
            counts.renew(rules.shape(0));
            {
                const nb::gil_scoped_release release;
                occurrences(view(alphabet_size, rules, sequence), counts.data());
            }
            return to_numpy(std::move(counts));
        },
        "alphabet_size"_a, "rules"_a, "sequence"_a);

    m.def(
        "expand",
        [](Symbol alphabet_size, Rules rules, Array<Symbol> sequence, Array<std::int64_t> lengths,
           Array<std::int64_t> starts, std::int64_t begin, std::int64_t end) {
            const GrammarView grammar = view(alphabet_size, rules, sequence);
            if (alphabet_size <= 1 << 8) return expand_range<std::uint8_t>(grammar, lengths, starts, begin, end);
            if (alphabet_size <= 1 << 16) return expand_range<std::uint16_t>(grammar, lengths, starts, begin, end);
            return expand_range<std::int32_t>(grammar, lengths, starts, begin, end);
        },
        "alphabet_size"_a, "rules"_a, "sequence"_a, "lengths"_a, "starts"_a, "begin"_a, "end"_a);
}

}  // namespace laconic
