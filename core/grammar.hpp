// A grammar: rules and the sequence that remains of one document, and what can be asked of it unexpanded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "buffer.hpp"

namespace laconic {

using Symbol = std::int32_t;
inline constexpr Symbol kMaxSymbol = std::numeric_limits<Symbol>::max();
inline constexpr std::size_t kMaxDocument = 0xFFFFFF00;  // codecs keep positions in 32 bits

// Thrown out of a codec whose result is no longer wanted.
struct Stopped {};

// Grammars laid end to end, as a codec writes them: rule k of a document stands at rules[2k], rules[2k+1].
struct Output {
    Buffer<Symbol> rules;
    Buffer<Symbol> sequence;
    const std::atomic<bool>* stop = nullptr;  // another thread may set it

    void add_rule(Symbol left, Symbol right) {
        if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw Stopped();
        const Symbol rule[] = {left, right};
        rules.append(rule, 2);
    }
};

// A grammar somebody else holds. Terminals are 0 … alphabet_size-1; rule k defines alphabet_size + k.
struct GrammarView {
    Symbol alphabet_size;
    std::span<const Symbol> rules;  // left, right, left, right, …
    std::span<const Symbol> sequence;

    std::size_t rule_count() const { return rules.size() / 2; }
};

// What is wrong, and in which of many documents, if it is one's fault; what() says both.
class GrammarError : public std::runtime_error {
public:
    explicit GrammarError(const std::string& reason, std::optional<std::size_t> document = {})
        : std::runtime_error(document ? "document " + std::to_string(*document) + ": " + reason : reason),
          reason_(reason),
          document_(document) {}

    const std::string& reason() const { return reason_; }
    std::optional<std::size_t> document() const { return document_; }

private:
    std::string reason_;
    std::optional<std::size_t> document_;
};

// Does something to one of many documents; errors name it.
template <class Work>
void in_document(std::optional<std::size_t> document, Work work) {
    try {
        work();
    } catch (const GrammarError& error) {
        throw GrammarError(error.reason(), document);
    }
}

// Throws GrammarError on a document too long to compress as one.
void check_length(std::size_t length);

// Throws GrammarError on the first symbol out of range or rule that is used before it is defined.
// O(rules + sequence). Everything below trusts what passed here.
void check(const GrammarView& grammar);

// Number of terminals each rule stands for; what exceeds 2^63 - 1 counts as that.
void expanded_lengths(const GrammarView& grammar, std::int64_t* lengths);

// Where each symbol of the sequence starts in the document, and after the last of them the document's length.
// Throws GrammarError if that exceeds 2^63 - 2.
void starts(const GrammarView& grammar, const std::int64_t* lengths, std::int64_t* starts);

// Height of each rule's derivation tree: 1 for a rule over two terminals.
void depths(const GrammarView& grammar, std::int32_t* depths);

// How often each rule occurs in the derivation of the whole document; saturates like expanded_lengths.
void occurrences(const GrammarView& grammar, std::int64_t* counts);

// Terminals [begin, end) of the document, given `lengths` and `starts`. O(log n' + depth + end - begin).
template <class Terminal>
void expand(const GrammarView& grammar, const std::int64_t* lengths, const std::int64_t* starts, std::int64_t begin,
            std::int64_t end, Terminal* out);

}  // namespace laconic
