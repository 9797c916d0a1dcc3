// The core's arrays as NumPy's: what all bindings share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "grammar.hpp"

namespace laconic {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rules = nb::ndarray<const Symbol, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> view(const Array<T>& array) {
    return {array.data(), array.shape(0)};
}

inline GrammarView view(Symbol alphabet_size, const Rules& rules, const Array<Symbol>& sequence) {
    return {alphabet_size, {rules.data(), 2 * rules.shape(0)}, view(sequence)};
}

// Hands a buffer over to NumPy without copying it. Parts of a grammar are read-only for good, since the core
// trusts them; terminals (Element = T, not const) are the caller's.
template <class T, class Element = const T>
nb::object to_numpy(Buffer<T>&& values, std::size_t columns = 1) {
    auto held = std::make_unique<Buffer<T>>(std::move(values));
    held->reserve(1);  // NumPy wants an address even for an empty array
    T* const data = held->data();
    const std::size_t shape[] = {held->size() / columns, columns};
    nb::capsule owner(held.get(), [](void* buffer) noexcept { delete static_cast<Buffer<T>*>(buffer); });
    held.release();
    return nb::cast(nb::ndarray<nb::numpy, Element>(data, columns == 1 ? 1 : 2, shape, owner));
}

// Lets Ctrl-C through while other threads work.
inline void poll_signals() {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Document i of many, whose offsets have been checked.
inline GrammarView document(Symbol alphabet_size, const Rules& rules, const Array<std::int64_t>& rule_offsets,
                            const Array<Symbol>& sequence, const Array<std::int64_t>& sequence_offsets, std::size_t i) {
    const auto slice = [](const Symbol* data, const Array<std::int64_t>& offsets, std::size_t at, std::size_t width) {
        const auto begin = static_cast<std::size_t>(offsets.data()[at]),
                   end = static_cast<std::size_t>(offsets.data()[at + 1]);
        return std::span<const Symbol>(data + width * begin, width * (end - begin));
    };
    return {alphabet_size, slice(rules.data(), rule_offsets, i, 2), slice(sequence.data(), sequence_offsets, i, 1)};
}

inline std::vector<GrammarView> documents_of(Symbol alphabet_size, const Rules& rules,
                                             const Array<std::int64_t>& rule_offsets, const Array<Symbol>& sequence,
                                             const Array<std::int64_t>& sequence_offsets) {
    std::vector<GrammarView> documents;
    for (std::size_t i = 0; i + 1 < rule_offsets.shape(0); ++i)
        documents.push_back(document(alphabet_size, rules, rule_offsets, sequence, sequence_offsets, i));
    return documents;
}

void bind_ngrams(nb::module_& m);

}  // namespace laconic
