// N-grams in their places; tests/ngrams/test_in_place.py compares them with slow versions, here sanitizers watch.
#include "ngrams_in_place.hpp"

#include "check.hpp"
#include "forest.hpp"
#include "repair.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

// The number of n-grams of 1 to `most` terminals that a text has.
std::size_t ngrams_of(std::size_t terminals, std::size_t most) {
    std::size_t count = 0;
    for (std::size_t n = 1; n <= std::min(terminals, most); ++n) count += terminals - n + 1;
    return count;
}

void check_counts() {
    Random random(11);
    Planter planter;
    PlaceReader reader;  // one for all: nothing may be left of the batch before
    for (int round = 0; round < 200; ++round) {
        const Symbol terminals = static_cast<Symbol>(random.between(1, 9));
        const auto most = static_cast<unsigned>(random.between(1, round % 20 == 0 ? kLongestInPlace : 9));
        std::vector<Text> texts;
        std::vector<Output> outputs(random.below(5));
        std::vector<std::int64_t> offsets = {0};
        Repair repair;
        for (Output& out : outputs) {
            texts.push_back(uniform(random, random.below(300), terminals));
            repair.compress(std::span<const Symbol>(texts.back()), terminals, {}, out);
        }
        const std::vector<GrammarView> documents = views_of(terminals, outputs);
        for (const GrammarView& document : documents)
            offsets.push_back(offsets.back() + static_cast<std::int64_t>(document.sequence.size()));
        Forest forest;
        planter.plant(terminals, documents, true, forest);
        PlacedNgrams found;
        reader.read(terminals, {forest.children.data(), forest.children.size()},
                    {forest.sequence.data(), forest.sequence.size()}, offsets, most, 1000, found);

        const std::string input = "round " + std::to_string(round);
        CHECK(found.nodes.size() == found.node_buckets.size(), input);
        CHECK(found.places.size() == found.place_buckets.size(), input);
        CHECK(std::is_sorted(found.nodes.begin(), found.nodes.end()), input);
        std::vector<std::size_t> within(static_cast<std::size_t>(terminals) + forest.children.size() / 2);
        for (Symbol node : found.nodes) ++within[static_cast<std::size_t>(node)];
        for (std::size_t i = 0; i < forest.children.size() / 2; ++i)
            for (std::size_t side : {0, 1})
                within[static_cast<std::size_t>(terminals) + i] +=
                    within[static_cast<std::size_t>(forest.children[2 * i + side])];
        std::size_t total = found.places.size(), wanted = 0;
        for (Symbol node : forest.sequence) total += within[static_cast<std::size_t>(node)];
        for (const Text& text : texts) wanted += ngrams_of(text.size(), most);
        CHECK(total == wanted, input);
        for (std::int32_t bucket : found.place_buckets) CHECK(0 <= bucket && bucket < 1000, input);
    }
}

void check_refusals() {
    PlaceReader reader;
    PlacedNgrams found;
    const std::vector<std::int64_t> offsets = {0};
    const auto read = [&](unsigned longest, std::uint32_t buckets) {
        reader.read(2, {}, {}, offsets, longest, buckets, found);
    };
    CHECK_THROWS(read(0, 5), GrammarError, "letters");
    CHECK_THROWS(read(kLongestInPlace + 1, 5), GrammarError, "letters");
    CHECK_THROWS(read(3, 0), GrammarError, "buckets");
    CHECK_THROWS(read(3, 1u << 31), GrammarError, "buckets");
}

}  // namespace
}  // namespace laconic::test

int main() {
    laconic::test::check_counts();
    laconic::test::check_refusals();
    return laconic::test::report("ngrams_in_place");
}
