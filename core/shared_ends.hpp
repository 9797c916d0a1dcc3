// The symbols of a rulebook by the terminals that they start and end with.
#pragma once

#include <cstdint>
#include <vector>

#include "rulebook.hpp"

namespace laconic {

struct SharedEnds {
    explicit SharedEnds(const Rulebook& book) {
        const auto terminals = static_cast<std::size_t>(book.alphabet_size());
        endings.resize(terminals);
        for (std::size_t symbol = 0; symbol < terminals + book.size(); ++symbol) {
            const bool plain = symbol < terminals;
            const std::size_t rule = plain ? 0 : 2 * (symbol - terminals);
            first.push_back(plain ? static_cast<Symbol>(symbol) : first[static_cast<std::size_t>(book.rules()[rule])]);
            last.push_back(plain ? static_cast<Symbol>(symbol)
                                 : last[static_cast<std::size_t>(book.rules()[rule + 1])]);
            std::vector<Symbol>& alike = endings[static_cast<std::size_t>(last[symbol])];
            places.push_back(static_cast<std::uint32_t>(alike.size()));
            if (!plain) alike.push_back(static_cast<Symbol>(symbol));
        }
    }

    std::vector<Symbol> first, last;           // by symbol
    std::vector<std::uint32_t> places;         // by symbol: which of those that end so it is
    std::vector<std::vector<Symbol>> endings;  // by terminal: the shared symbols that end with it
};

}  // namespace laconic
