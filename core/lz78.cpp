#include "lz78.hpp"

namespace laconic {

template <class Terminal>
void Lz78::compress(std::span<const Terminal> text, Symbol alphabet_size, Output& out) {
    check_length(text.size());
    terminals_.with_names(text, alphabet_size, [&](auto names) { parse(names, alphabet_size, out); });
}

template <class Name>
void Lz78::parse(std::span<const Name> text, Symbol alphabet_size, Output& out) {
    edges_.reset(text.size());
    phrases_.renew(1 + terminals_.count());
    for (Symbol& phrase : phrases_) phrase = -1;

    Symbol next = alphabet_size;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t name = text[i++];
        auto node = static_cast<std::uint32_t>(1 + name);
        if (phrases_[node] < 0) {
            phrases_[node] = terminals_[name];
            out.sequence.push_back(terminals_[name]);
            continue;
        }
        for (; i < text.size(); ++i) {
            std::uint32_t& child = edges_.at(node, text[i]);
            if (child == 0) {
                child = static_cast<std::uint32_t>(phrases_.size());
                edges_.added();
                break;
            }
            node = child;
        }
        if (i == text.size()) {
            out.sequence.push_back(phrases_[node]);
            break;
        }
        if (next == kMaxSymbol) throw GrammarError("the alphabet leaves no room for so many rules");
        out.add_rule(phrases_[node], terminals_[text[i++]]);
        phrases_.push_back(next);
        out.sequence.push_back(next++);
    }
}

template void Lz78::compress(std::span<const std::uint8_t>, Symbol, Output&);
template void Lz78::compress(std::span<const std::uint16_t>, Symbol, Output&);
template void Lz78::compress(std::span<const std::int32_t>, Symbol, Output&);

}  // namespace laconic
