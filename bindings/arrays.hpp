// The core's arrays as NumPy's: what all bindings share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "grammar.hpp"
#include "rulebook.hpp"
#include "standalone.hpp"

namespace laconic {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Array = nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// Of the smallest dtype that holds an alphabet: uint8, uint16 or int32.
using Terminals = nb::ndarray<nb::numpy, nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WriteableTerminals = nb::ndarray<nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SymbolPairs = nb::ndarray<nb::numpy, const Symbol, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> view(const Array<T>& array) {
    return {array.data(), array.shape(0)};
}
inline std::span<const Symbol> view(const SymbolPairs& pairs) { return {pairs.data(), 2 * pairs.shape(0)}; }

// The part of an array that belongs to document i; the offsets have been checked.
template <class T>
std::span<const T> part(std::span<const T> all, const Array<std::int64_t>& offsets, std::size_t i,
                        std::size_t width = 1) {
    const auto begin = static_cast<std::size_t>(offsets.data()[i]),
               end = static_cast<std::size_t>(offsets.data()[i + 1]);
    return all.subspan(width * begin, width * (end - begin));
}

// Hands a buffer over to NumPy without copying it. What the core trusts is read-only for good: Made is of const.
template <class Made, class T>
Made handed_over(Buffer<T>&& values, std::size_t columns = 1) {
    auto held = std::make_unique<Buffer<T>>(std::move(values));
    held->reserve(1);  // NumPy wants an address even for an empty array
    T* const data = held->data();
    const std::size_t shape[] = {held->size() / columns, columns};
    nb::capsule owner(held.get(), [](void* buffer) noexcept { delete static_cast<Buffer<T>*>(buffer); });
    held.release();
    return Made(data, columns == 1 ? 1 : 2, shape, owner, nullptr, nb::dtype<T>());
}
template <class T>
Array<T> to_numpy(Buffer<T>&& values) {
    return handed_over<Array<T>>(std::move(values));
}

// For a field of what Python holds: by way of NumPy's own array, so that whoever asks for it is given the same one.
template <class Made, class Array>
Made held_by_numpy(Array&& array) {
    return nb::cast<Made>(nb::cast(std::move(array)));
}
template <class T>
Array<T> field(Buffer<T>&& values) {
    return held_by_numpy<Array<T>>(to_numpy(std::move(values)));
}
template <class T>
Array<T> writeable_field(Buffer<T>&& values) {
    return held_by_numpy<Array<T>>(handed_over<nb::ndarray<nb::numpy, T>>(std::move(values)));
}
inline SymbolPairs field_of_pairs(Buffer<Symbol>&& values) {
    return held_by_numpy<SymbolPairs>(handed_over<SymbolPairs>(std::move(values), 2));
}

// Calls work(text) with terminals of their own width.
template <class Work>
auto with_terminals(const Terminals& text, Work work) {
    const auto as = [&]<class Terminal>(Terminal) {
        return work(std::span(static_cast<const Terminal*>(text.data()), text.shape(0)));
    };
    if (text.dtype() == nb::dtype<std::uint8_t>()) return as(std::uint8_t{});
    if (text.dtype() == nb::dtype<std::uint16_t>()) return as(std::uint16_t{});
    if (text.dtype() == nb::dtype<std::int32_t>()) return as(std::int32_t{});
    throw nb::type_error("terminals must be uint8, uint16 or int32");
}

// Every call whose time grows with its arrays works in here, so that other Python threads go on.
template <class Work>
auto without_gil(Work work) {
    const nb::gil_scoped_release release;
    return work();
}

// Lets Ctrl-C through while other threads work.
inline void poll_signals() {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Does something to each document; errors name it.
template <class Work>
void for_each_document(std::size_t count, Work work) {
    for (std::size_t i = 0; i < count; ++i) in_document(i, [&] { work(i); });
}

// What Python holds of one document, of many, and of a forest: arrays that are trusted, since whoever made them has
// checked them, or will with check().
struct Grammar {
    Symbol alphabet_size;
    SymbolPairs rules;
    Array<Symbol> sequence;

    GrammarView view() const { return {alphabet_size, laconic::view(rules), laconic::view(sequence)}; }
};

struct Grammars {
    Symbol alphabet_size;
    SymbolPairs rules;
    Array<std::int64_t> rule_offsets;
    Array<Symbol> sequence;
    Array<std::int64_t> sequence_offsets;
    std::shared_ptr<Rulebook> rulebook = nullptr;  // of as many terminals, if there is one

    std::size_t count() const { return rule_offsets.shape(0) - 1; }
    // Document i as it is written: symbols of the rulebook are terminals to it.
    GrammarView operator[](std::size_t i) const {
        const Symbol first = rulebook ? rulebook->symbols() : alphabet_size;
        return {first, part(view(rules), rule_offsets, i, 2), part(view(sequence), sequence_offsets, i)};
    }
    std::vector<GrammarView> written() const {
        std::vector<GrammarView> views;
        for (std::size_t i = 0; i < count(); ++i) views.push_back((*this)[i]);
        return views;
    }
    // All documents over terminals alone.
    Standalone standalone() const { return {written(), rulebook.get()}; }
};

void bind_rulebook(nb::module_& m);
void bind_grammars(nb::module_& m);
void bind_files(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_ngrams(nb::module_& m);

}  // namespace laconic
