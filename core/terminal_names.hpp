// Renames the terminals that occur in one document to 0, 1, 2, … so that tables indexed by terminal stay small.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "buffer.hpp"
#include "grammar.hpp"

namespace laconic {

class TerminalNames {
public:
    // Calls put(i, name) for every position of the text; afterwards `count()` names are in use.
    template <class Terminal, class Put>
    void rename(std::span<const Terminal> text, Symbol alphabet_size, Put put) {
        spelling_.clear();
        bytes_ = false;
        // A table over the alphabet, unless it is much larger than the text.
        const auto terminals = static_cast<std::size_t>(alphabet_size);
        if (terminals <= std::max({kDirect, names_.size(), text.size()})) {
            for (std::size_t known = names_.size(); known < terminals; ++known) names_.push_back(0);
            for (std::size_t i = 0; i < text.size(); ++i) {
                std::uint32_t& name = names_[static_cast<std::size_t>(text[i])];
                if (name == 0) {
                    spelling_.push_back(static_cast<Symbol>(text[i]));
                    name = static_cast<std::uint32_t>(spelling_.size());
                }
                put(i, name - 1);
            }
            // Wipe what was used, never the whole table: the next document may be short.
            for (Symbol terminal : spelling_) names_[static_cast<std::size_t>(terminal)] = 0;
            return;
        }
        for (Terminal terminal : text) spelling_.push_back(static_cast<Symbol>(terminal));
        std::sort(spelling_.begin(), spelling_.end());
        spelling_.resize(static_cast<std::size_t>(std::unique(spelling_.begin(), spelling_.end()) - spelling_.begin()));
        for (std::size_t i = 0; i < text.size(); ++i) {
            const Symbol* found = std::lower_bound(spelling_.begin(), spelling_.end(), static_cast<Symbol>(text[i]));
            put(i, static_cast<std::uint32_t>(found - spelling_.begin()));
        }
    }

    // Calls parse(names) with the text in names. Bytes name themselves, and are not copied.
    template <class Terminal, class Parse>
    void with_names(std::span<const Terminal> text, Symbol alphabet_size, Parse parse) {
        if constexpr (sizeof(Terminal) == 1) {
            const Symbol bytes = std::min<Symbol>(alphabet_size, 256);
            if (!bytes_ || count() != static_cast<std::size_t>(bytes)) {
                spelling_.clear();
                for (Symbol terminal = 0; terminal < bytes; ++terminal) spelling_.push_back(terminal);
                bytes_ = true;
            }
            parse(text);
        } else {
            text_.renew(text.size());
            rename(text, alphabet_size, [&](std::size_t i, std::uint32_t name) { text_[i] = name; });
            parse(std::span<const std::uint32_t>(text_.data(), text_.size()));
        }
    }

    std::size_t count() const { return spelling_.size(); }
    Symbol operator[](std::size_t name) const { return spelling_[name]; }

private:
    static constexpr std::size_t kDirect = 1 << 16;
    Buffer<std::uint32_t> names_;  // by terminal: its name + 1, 0 = not seen in this document
    Buffer<Symbol> spelling_;      // by name: the terminal
    Buffer<std::uint32_t> text_;
    bool bytes_ = false;
};

}  // namespace laconic
