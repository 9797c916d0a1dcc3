#include "ngrams_in_place.hpp"

#include <algorithm>

#include "hashes.hpp"

namespace laconic {
namespace {

using Terminals = std::span<const Symbol>;

// Calls add(bucket) for the n-grams of up to `most` terminals that begin in `left` and end in `right`.
template <class Add>
void straddle(Terminals left, Terminals right, unsigned most, std::uint32_t buckets, Add add) {
    std::uint64_t begun = 0, power = 1;
    for (std::size_t length = 1; length <= std::min<std::size_t>(left.size(), most - 1); ++length) {
        begun += Fingerprint::of_terminal(left[left.size() - length]).hash * power;
        power *= Fingerprint::kBase;
        std::uint64_t hash = begun;
        for (std::size_t j = 0; j < std::min<std::size_t>(right.size(), most - length); ++j) {
            hash = hash * Fingerprint::kBase + Fingerprint::of_terminal(right[j]).hash;
            add(place_bucket(hash, buckets));
        }
    }
}

}  // namespace

void PlaceReader::read(Symbol alphabet_size, std::span<const Symbol> children, std::span<const Symbol> sequence,
                       std::span<const std::int64_t> offsets, unsigned longest, std::uint32_t buckets,
                       PlacedNgrams& out) {
    if (longest < 1 || longest > kLongestInPlace)
        throw GrammarError("n-grams are of 1 to " + std::to_string(kLongestInPlace) + " letters");
    if (buckets < 1 || buckets > 0x7FFFFFFF) throw GrammarError("buckets must be from 1 to 2^31 - 1");
    const std::size_t most = longest - 1, nodes = children.size() / 2;
    edges_.renew(2 * most * nodes);
    lengths_.renew(nodes);
    const auto place = [&](Symbol node) { return static_cast<std::size_t>(node - alphabet_size); };
    // A terminal is its own first and last: `node` must live as long as what is returned.
    const auto first = [&](const Symbol& node) -> Terminals {
        if (node < alphabet_size) return {&node, std::min<std::size_t>(1, most)};
        return {edges_.data() + 2 * most * place(node), lengths_[place(node)]};
    };
    const auto last = [&](const Symbol& node) -> Terminals {
        if (node < alphabet_size) return {&node, std::min<std::size_t>(1, most)};
        const std::size_t length = lengths_[place(node)];
        return {edges_.data() + 2 * most * (place(node) + 1) - length, length};
    };

    for (Symbol terminal = 0; terminal < alphabet_size; ++terminal) {
        out.nodes.push_back(terminal);
        out.node_buckets.push_back(place_bucket(Fingerprint::of_terminal(terminal).hash, buckets));
    }
    for (std::size_t i = 0; i < nodes; ++i) {
        const Symbol &left = children[2 * i], &right = children[2 * i + 1];
        straddle(last(left), first(right), longest, buckets, [&](std::int32_t bucket) {
            out.nodes.push_back(alphabet_size + static_cast<Symbol>(i));
            out.node_buckets.push_back(bucket);
        });
        const auto append = [&](Symbol* to, Terminals some, Terminals more) {
            to = std::copy(some.begin(), some.end(), to);
            std::copy(more.begin(), more.end(), to);
        };
        Symbol* const edge = edges_.data() + 2 * most * i;
        const Terminals begin = first(left), begin_more = first(right);
        append(edge, begin, begin_more.first(std::min(begin_more.size(), most - begin.size())));
        const Terminals end = last(right), end_more = last(left);
        const std::size_t kept = std::min(end_more.size(), most - end.size());
        append(edge + 2 * most - end.size() - kept, end_more.last(kept), end);
        lengths_[i] = static_cast<std::uint8_t>(begin.size() + std::min(begin_more.size(), most - begin.size()));
    }

    const std::size_t documents = offsets.size() - 1;
    Symbol before[2 * kLongestInPlace];  // the terminals before a symbol, the last `most` at most
    for (std::size_t d = 0; d < documents; ++d) {
        std::size_t known = 0;
        for (std::int64_t at = offsets[d]; at < offsets[d + 1]; ++at) {
            const Symbol& symbol = sequence[static_cast<std::size_t>(at)];
            const auto here = static_cast<std::int64_t>(documents) * (at - offsets[d]) + static_cast<std::int64_t>(d);
            straddle({before, known}, first(symbol), longest, buckets, [&](std::int32_t bucket) {
                out.places.push_back(here);
                out.place_buckets.push_back(bucket);
            });
            const Terminals end = last(symbol);
            const std::size_t kept = std::min(known, most - end.size());
            if (kept < known) std::copy(before + known - kept, before + known, before);
            std::copy(end.begin(), end.end(), before + kept);
            known = kept + end.size();
        }
    }
}

}  // namespace laconic
