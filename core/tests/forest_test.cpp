// Forests of many grammars; tests/test_forest.py compares them with slow versions, here sanitizers watch.
#include "forest.hpp"

#include "check.hpp"
#include "repair.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

std::vector<Symbol> terminals_of(const Forest& forest, Symbol alphabet_size, Symbol node) {
    if (node < alphabet_size) return {node};
    const auto i = 2 * static_cast<std::size_t>(node - alphabet_size);
    std::vector<Symbol> both = terminals_of(forest, alphabet_size, forest.children[i]);
    const std::vector<Symbol> right = terminals_of(forest, alphabet_size, forest.children[i + 1]);
    both.insert(both.end(), right.begin(), right.end());
    return both;
}

void check_batches() {
    Random random(7);
    Planter planter;  // one for all: nothing may be left of the batch before
    for (int round = 0; round < 200; ++round) {
        const Symbol terminals = static_cast<Symbol>(random.between(1, 9));
        std::vector<Text> texts;
        std::vector<Output> outputs(random.below(6));
        Repair repair;
        for (Output& out : outputs) {
            texts.push_back(uniform(random, random.below(300), terminals));
            repair.compress(std::span<const Symbol>(texts.back()), terminals, {}, out);
        }
        const std::vector<GrammarView> documents = views_of(terminals, outputs);
        for (const bool merge : {true, false}) {
            Forest forest;
            planter.plant(terminals, documents, merge, forest);
            const std::string input = "round " + std::to_string(round) + (merge ? ", merged" : "");
            std::size_t at = 0;
            for (std::size_t d = 0; d < texts.size(); ++d) {
                Text told;
                for (std::size_t i = 0; i < documents[d].sequence.size(); ++i)
                    for (Symbol terminal : terminals_of(forest, terminals, forest.sequence[at++]))
                        told.push_back(terminal);
                CHECK(told == texts[d], input);
            }
            CHECK(at == forest.sequence.size(), input);
            const std::size_t nodes = forest.children.size() / 2;
            const std::size_t all = static_cast<std::size_t>(terminals) + nodes;
            CHECK(forest.lengths.size() == all && forest.hashes.size() == all, input);
            CHECK(forest.level_offsets[0] == 0 &&
                      forest.level_offsets[forest.level_offsets.size() - 1] == static_cast<std::int64_t>(nodes),
                  input);
        }
    }
}

}  // namespace
}  // namespace laconic::test

int main() {
    laconic::test::check_batches();
    return laconic::test::report("forest");
}
