// The windows of a document, each with how often it occurs, from its grammar (Goto, Bannai, Inenaga, Takeda 2011).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "buffer.hpp"
#include "grammar.hpp"
#include "radix_sort.hpp"
#include "window_key.hpp"

namespace laconic {

// How terminals are read. Letters are numbered from 1 in the order of their code points.
struct LetterTable {
    std::span<const std::uint32_t> letters;      // by terminal
    std::span<const std::uint8_t> spaces;        // by terminal: whether it is white space; empty: runs of it stay
    std::span<const std::uint32_t> points;       // by letter, from 0: its code point
    std::span<const std::uint32_t> complements;  // by letter, from 0: the letter of its complement; empty: none
    std::uint32_t blank = 0;                     // what two or more white-space letters are read as
};

template <std::size_t Words>
struct Window {
    Key<Words> key;
    std::uint64_t weight;
    std::uint32_t shared;  // letters it begins with like the window before it
};

// Every position of the text begins one window, of `letters` letters or, near the end, of those that are left. Each
// n-gram of up to so many letters is the beginning of as many windows as it has occurrences, so windows are all there
// is to count. A window lies within one rule but neither of its operands, which counts it as often as the rule occurs,
// or straddles symbols of the sequence.
template <std::size_t Words>
class Windows {
public:
    Windows(const LetterTable& table, unsigned bits, unsigned letters) : table_(table), packing_(bits, letters) {}

    // A document must have fewer, so that no count exceeds 64 bits: with complements both strands are counted.
    static constexpr std::int64_t most_letters(const LetterTable& table) {
        return std::numeric_limits<std::int64_t>::max() >> (table.complements.empty() ? 0 : 1);
    }

    const Packing<Words>& packing() const { return packing_; }
    std::int64_t document_length() const { return length_; }

    // The windows of a document in ascending order, each once, until the next call. With complements, those of its
    // reverse complement are among them. O(letters · (rules + sequence)). Throws GrammarError on a document of
    // most_letters() or more.
    // Throws Stopped soon after somebody sets `stop`.
    std::span<const Window<Words>> of(const GrammarView& grammar, const std::atomic<bool>& stop) {
        stop_ = &stop;
        compose(grammar);
        const std::uint64_t most = static_cast<std::uint64_t>(length_) << (table_.complements.empty() ? 0 : 1);
        if constexpr (Words == 1) {
            const unsigned unused = 64 - packing_.used_bits();
            if (unused > 0 && most >> unused == 0) {
                packed_.clear();
                read(grammar,
                     [this](const Key<1>& key, std::uint64_t weight) { packed_.push_back({key.words[0] | weight}); });
                radix_sort(packed_, packed_scratch_, bytes());
                const std::uint64_t weights = ~std::uint64_t{0} >> packing_.used_bits();
                merge(packed_, [weights](PackedKey window) {
                    return Weighted<1>{{{window.word & ~weights}}, window.word & weights};
                });
                return {merged_.data(), merged_.size()};
            }
        }
        found_.clear();
        read(grammar, [this](const Key<Words>& key, std::uint64_t weight) { found_.push_back({key, weight}); });
        radix_sort(found_, found_scratch_, bytes());
        merge(found_, [](const Weighted<Words>& window) { return window; });
        return {merged_.data(), merged_.size()};
    }

private:
    // White space in a row: none, a letter that stands alone, or more.
    using Run = std::uint32_t;
    static constexpr Run kMany = 0xFFFFFFFF;
    static Run joined(Run left, Run right) { return left == 0 ? right : right == 0 ? left : kMany; }
    std::uint32_t read_as(Run run) const { return run == kMany ? table_.blank : run; }

    // What is known of a symbol's text. Where runs of white space are collapsed its own ones are kept apart, since they
    // may go on beyond it: `lead`, then letters from the first to the last that is no space, then `trail`. A symbol of
    // white space alone has length 0 and all of it in `lead`.
    struct Part {
        Key<Words> prefix, suffix;  // the first letters, in front, and the last, at the end: all but one of a window's
        std::uint32_t length;       // of those letters; a window's, if more
        Run lead, trail;
    };

    std::size_t bytes() const { return (packing_.used_bits() + 7) / 8; }
    bool is_space(Symbol terminal) const {
        return !table_.spaces.empty() && table_.spaces[static_cast<std::size_t>(terminal)] != 0;
    }
    std::uint32_t letter_of(Symbol terminal) const { return table_.letters[static_cast<std::size_t>(terminal)]; }

    Part part(Symbol symbol, Symbol alphabet_size) const {
        if (symbol >= alphabet_size) return parts_[static_cast<std::size_t>(symbol - alphabet_size)];
        const std::uint32_t letter = letter_of(symbol);
        if (is_space(symbol)) return {{}, {}, 0, letter, 0};
        if (packing_.letters() == 1) return {{}, {}, 1, 0, 0};
        return {packing_.at_front(letter), packing_.at_end(letter), 1, 0, 0};
    }

    Part joined(const Part& left, const Part& right) const {
        if (left.length == 0) {
            Part both = right;
            both.lead = joined(left.lead, right.lead);
            return both;
        }
        if (right.length == 0) {
            Part both = left;
            both.trail = joined(left.trail, right.lead);
            return both;
        }
        const unsigned bits = packing_.bits(), most = packing_.letters() - 1;
        const Run run = joined(left.trail, right.lead);
        const std::uint32_t space = run == 0 ? 0 : 1;
        Part both{left.prefix, right.suffix, 0, left.lead, right.trail};
        if (std::uint32_t length = left.length; length < most) {
            if (space != 0) both.prefix = both.prefix | packing_.at_front(read_as(run)) >> bits * length++;
            if (length < most) both.prefix = both.prefix | right.prefix >> bits * length;
            both.prefix = both.prefix & packing_.before_last();
        }
        if (std::uint32_t length = right.length; length < most) {
            if (space != 0) both.suffix = both.suffix | packing_.at_end(read_as(run)) << bits * length++;
            if (length < most) both.suffix = both.suffix | left.suffix << bits * length;
            both.suffix = both.suffix & packing_.last();
        }
        both.length = std::min(left.length + space + right.length, packing_.letters());
        return both;
    }

    void compose(const GrammarView& grammar) {
        const std::size_t rules = grammar.rule_count();
        parts_.renew(rules);
        lengths_.renew(rules);
        expanded_lengths(grammar, lengths_.data());
        std::int64_t total = 0;
        for (Symbol symbol : grammar.sequence) {
            const std::int64_t length =
                symbol < grammar.alphabet_size ? 1 : lengths_[static_cast<std::size_t>(symbol - grammar.alphabet_size)];
            if (length >= most_letters(table_) - total)
                throw GrammarError("the document has too many letters to count them in 64 bits");
            total += length;
        }
        length_ = total;
        for (std::size_t k = 0; k < rules; ++k)
            parts_[k] = joined(part(grammar.rules[2 * k], grammar.alphabet_size),
                               part(grammar.rules[2 * k + 1], grammar.alphabet_size));
    }

    // The window that begins where reading from right to left has come to, and, with complements, its reverse
    // complement: a letter more on the left of one is one more on the right of the other.
    struct Front {
        Key<Words> window, other{};  // `other` ends in the last place, whatever its length
    };

    void heed() const {
        if (stop_->load(std::memory_order_relaxed)) throw Stopped();
    }
    bool both_strands() const { return !table_.complements.empty(); }
    std::uint32_t complement(std::uint64_t letter) const {
        return table_.complements[static_cast<std::size_t>(letter - 1)];
    }

    Front front_of(const Key<Words>& window) const {
        Front front{window};
        if (both_strands())
            for (unsigned i = packing_.length(window); i-- > 0;) extend_other(front, packing_.letter(window, i));
        return front;
    }
    void push(Front& front, std::uint64_t letter) const {
        front.window = packing_.pushed(front.window, letter);
        if (both_strands()) extend_other(front, letter);
    }
    void extend_other(Front& front, std::uint64_t letter) const {
        front.other = front.other << packing_.bits() | packing_.in_last_place(complement(letter));
    }

    // Calls count(window, weight) for all windows, some of them many times.
    template <class Count>
    void read(const GrammarView& grammar, Count count) {
        const Key<Words> start = read_sequence(grammar, count);
        if (both_strands()) {  // the shorter windows at the end of the other strand
            Key<Words> other{};
            const unsigned most = std::min(packing_.length(start), packing_.letters() - 1);
            for (unsigned i = 0; i < most; ++i)
                count(other = packing_.pushed(other, complement(packing_.letter(start, i))), 1);
        }
        read_rules(grammar, count);
    }

    // From right to left, so that a window is the one after it, shifted, and a letter more. Returns the first.
    template <class Count>
    Key<Words> read_sequence(const GrammarView& grammar, const Count& count) {
        occurrences_.renew(grammar.rule_count());
        std::fill(occurrences_.begin(), occurrences_.end(), std::uint64_t{0});
        Front front{};
        std::uint32_t length = 0;  // of what was read, at most a window's
        Run pending = 0;           // white space between that and what comes before it
        const auto add = [&](std::uint64_t letter) {
            push(front, letter);
            count(front.window, 1);
            length = std::min(length + 1, packing_.letters());
            if (both_strands() && length == packing_.letters()) count(front.other, 1);
        };
        const auto add_pending = [&] {
            if (pending != 0) add(read_as(pending));
            pending = 0;
        };
        for (std::size_t i = grammar.sequence.size(); i-- > 0;) {
            heed();
            const Symbol symbol = grammar.sequence[i];
            if (symbol < grammar.alphabet_size) {
                const std::uint32_t letter = letter_of(symbol);
                if (is_space(symbol)) {
                    pending = joined(letter, pending);
                    continue;
                }
                add_pending();
                add(letter);
                continue;
            }
            const auto rule = static_cast<std::size_t>(symbol - grammar.alphabet_size);
            ++occurrences_[rule];
            const Part& part = parts_[rule];
            if (part.length == 0) {
                pending = joined(part.lead, pending);
                continue;
            }
            pending = joined(part.trail, pending);
            add_pending();
            Key<Words> suffix = part.suffix;
            for (std::uint32_t left = std::min(part.length, packing_.letters() - 1); left > 0; --left) {
                add(packing_.last_letter(suffix));
                suffix = suffix >> packing_.bits();
            }
            if (part.length == packing_.letters()) {
                front = front_of(part.prefix);
                length = packing_.letters();
            }
            pending = part.lead;
        }
        add_pending();
        return front.window;
    }

    // From the last rule to the first, so that all that use a rule have told how often they occur.
    template <class Count>
    void read_rules(const GrammarView& grammar, const Count& count) {
        const Symbol letters = grammar.alphabet_size;
        for (std::size_t k = grammar.rule_count(); k-- > 0;) {
            const std::uint64_t times = occurrences_[k];
            if (times == 0) continue;
            heed();
            const auto count_both = [&](const Front& front) {
                count(front.window, times);
                if (both_strands()) count(front.other, times);
            };
            const Symbol operands[] = {grammar.rules[2 * k], grammar.rules[2 * k + 1]};
            for (Symbol operand : operands) {
                if (operand >= letters)
                    occurrences_[static_cast<std::size_t>(operand - letters)] += times;
                else if (packing_.letters() == 1 && !is_space(operand))
                    count_both(front_of(packing_.at_front(letter_of(operand))));
            }
            const Part left = part(operands[0], letters), right = part(operands[1], letters);
            if (left.length == 0 || right.length == 0) continue;
            Front front = front_of(right.prefix);
            std::uint32_t length = right.length;
            const auto add = [&](std::uint64_t letter) {
                push(front, letter);
                if (++length >= packing_.letters()) count_both(front);
            };
            if (const Run run = joined(left.trail, right.lead); run != 0) add(read_as(run));
            Key<Words> suffix = left.suffix;
            for (std::uint32_t more = std::min(left.length, packing_.letters() - 1); more > 0; --more) {
                add(packing_.last_letter(suffix));
                suffix = suffix >> packing_.bits();
            }
        }
    }

    template <class T, class Unpack>
    void merge(const Buffer<T>& sorted, Unpack unpack) {
        merged_.renew(sorted.size());
        std::size_t size = 0;
        for (const T& value : sorted) {
            const Weighted<Words> window = unpack(value);
            if (size > 0 && merged_[size - 1].key == window.key) {
                merged_[size - 1].weight += window.weight;
            } else {
                const unsigned shared = size == 0 ? 0 : packing_.shared(merged_[size - 1].key, window.key);
                merged_[size++] = {window.key, window.weight, shared};
            }
        }
        merged_.resize(size);
    }

    LetterTable table_;
    Packing<Words> packing_;
    const std::atomic<bool>* stop_ = nullptr;
    std::int64_t length_ = 0;
    Buffer<Part> parts_;
    Buffer<std::int64_t> lengths_;
    Buffer<std::uint64_t> occurrences_;
    Buffer<PackedKey> packed_, packed_scratch_;
    Buffer<Weighted<Words>> found_, found_scratch_;
    Buffer<Window<Words>> merged_;
};

}  // namespace laconic
