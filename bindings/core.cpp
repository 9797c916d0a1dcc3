// laconic._core: the core, name for name, over NumPy arrays. Nothing outside this folder knows Python.
#include "arrays.hpp"

namespace laconic {
namespace {

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
    nb::set_leak_warnings(false);  // what Python still holds when it ends, such as caches, is no leak
    nb::register_exception_translator(translate);
    bind_rulebook(m);
    bind_grammars(m);
    bind_files(m);
    bind_forest(m);
    bind_ngrams(m);
}

}  // namespace laconic
