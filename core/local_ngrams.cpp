#include "local_ngrams.hpp"

#include <algorithm>

#include "fingerprint.hpp"

namespace laconic {
namespace {

using Letters = std::span<const Symbol>;

std::int32_t bucket_of(std::uint64_t hash, std::uint32_t buckets) {
    return static_cast<std::int32_t>((mixed(hash) >> 32) * buckets >> 32);
}

// Calls add(bucket) for the n-grams of up to `most` letters that begin in `left` and end in `right`.
template <class Add>
void straddle(Letters left, Letters right, unsigned most, std::uint32_t buckets, Add add) {
    std::uint64_t begun = 0, power = 1;
    for (std::size_t length = 1; length <= std::min<std::size_t>(left.size(), most - 1); ++length) {
        begun += Fingerprint::of_letter(left[left.size() - length]).hash * power;
        power *= Fingerprint::kBase;
        std::uint64_t hash = begun;
        for (std::size_t j = 0; j < std::min<std::size_t>(right.size(), most - length); ++j) {
            hash = hash * Fingerprint::kBase + Fingerprint::of_letter(right[j]).hash;
            add(bucket_of(hash, buckets));
        }
    }
}

}  // namespace

void LocalReader::read(Symbol alphabet_size, std::span<const Symbol> children, std::span<const Symbol> sequence,
                       std::span<const std::int64_t> offsets, unsigned letters, std::uint32_t buckets, Placed& out) {
    if (letters < 1 || letters > kLongestLocalNgram)
        throw GrammarError("n-grams are of 1 to " + std::to_string(kLongestLocalNgram) + " letters");
    if (buckets < 1 || buckets > 0x7FFFFFFF) throw GrammarError("buckets must be from 1 to 2^31 - 1");
    const std::size_t most = letters - 1, nodes = children.size() / 2;
    edges_.renew(2 * most * nodes);
    lengths_.renew(nodes);
    const auto place = [&](Symbol node) { return static_cast<std::size_t>(node - alphabet_size); };
    // A letter is its own first and last: `node` must live as long as what is returned.
    const auto first = [&](const Symbol& node) -> Letters {
        if (node < alphabet_size) return {&node, std::min<std::size_t>(1, most)};
        return {edges_.data() + 2 * most * place(node), lengths_[place(node)]};
    };
    const auto last = [&](const Symbol& node) -> Letters {
        if (node < alphabet_size) return {&node, std::min<std::size_t>(1, most)};
        const std::size_t length = lengths_[place(node)];
        return {edges_.data() + 2 * most * (place(node) + 1) - length, length};
    };

    for (Symbol letter = 0; letter < alphabet_size; ++letter) {
        out.nodes.push_back(letter);
        out.node_buckets.push_back(bucket_of(Fingerprint::of_letter(letter).hash, buckets));
    }
    for (std::size_t i = 0; i < nodes; ++i) {
        const Symbol &left = children[2 * i], &right = children[2 * i + 1];
        straddle(last(left), first(right), letters, buckets, [&](std::int32_t bucket) {
            out.nodes.push_back(alphabet_size + static_cast<Symbol>(i));
            out.node_buckets.push_back(bucket);
        });
        const auto append = [&](Symbol* to, Letters some, Letters more) {
            to = std::copy(some.begin(), some.end(), to);
            std::copy(more.begin(), more.end(), to);
        };
        Symbol* const edge = edges_.data() + 2 * most * i;
        const Letters begin = first(left), begin_more = first(right);
        append(edge, begin, begin_more.first(std::min(begin_more.size(), most - begin.size())));
        const Letters end = last(right), end_more = last(left);
        const std::size_t kept = std::min(end_more.size(), most - end.size());
        append(edge + 2 * most - end.size() - kept, end_more.last(kept), end);
        lengths_[i] = static_cast<std::uint8_t>(begin.size() + std::min(begin_more.size(), most - begin.size()));
    }

    const std::size_t documents = offsets.size() - 1;
    Symbol before[2 * kLongestLocalNgram];  // the letters before a symbol, the last `most` at most
    for (std::size_t d = 0; d < documents; ++d) {
        std::size_t known = 0;
        for (std::int64_t at = offsets[d]; at < offsets[d + 1]; ++at) {
            const Symbol& symbol = sequence[static_cast<std::size_t>(at)];
            const auto here = static_cast<std::int64_t>(documents) * (at - offsets[d]) + static_cast<std::int64_t>(d);
            straddle({before, known}, first(symbol), letters, buckets, [&](std::int32_t bucket) {
                out.places.push_back(here);
                out.place_buckets.push_back(bucket);
            });
            const Letters end = last(symbol);
            const std::size_t kept = std::min(known, most - end.size());
            if (kept < known) std::copy(before + known - kept, before + known, before);
            std::copy(end.begin(), end.end(), before + kept);
            known = kept + end.size();
        }
    }
}

}  // namespace laconic
