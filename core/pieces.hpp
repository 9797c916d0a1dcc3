// What a rulebook is learned from: documents, or their distinct words with how often and where they occur.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "grammar.hpp"
#include "parallel.hpp"
#include "words.hpp"

namespace laconic {

// Pieces are in the order of their first occurrence. Those of more documents than matter name only as many.
template <class Terminal>
struct Pieces {
    std::vector<std::span<const Terminal>> texts;
    Buffer<std::uint32_t> weights;           // how often each occurs
    Buffer<std::uint32_t> documents;         // those that each occurs in, end to end
    Buffer<std::uint64_t> document_offsets;  // pieces + 1
};

// The distinct words of a run of documents.
template <class Terminal>
class WordList {
public:
    explicit WordList(std::uint32_t most_documents) : most_documents_(most_documents) {}

    void add(std::span<const Terminal> word, std::uint32_t weight, std::span<const std::uint32_t> documents) {
        const std::uint32_t number = words_.number(word);
        if (number == weights_.size()) {
            weights_.push_back(0);
            documents_.emplace_back();
        }
        weights_[number] += weight;
        std::vector<std::uint32_t>& known = documents_[number];
        for (const std::uint32_t document : documents)
            if (known.size() < most_documents_ && (known.empty() || known.back() < document)) known.push_back(document);
    }
    void add(const WordList& other) {
        for (std::size_t i = 0; i < other.words_.size(); ++i)
            add(other.words_[i], other.weights_[i], other.documents_[i]);
    }

    Pieces<Terminal> pieces() const {
        Pieces<Terminal> made;
        made.document_offsets.push_back(0);
        for (std::size_t i = 0; i < words_.size(); ++i) {
            made.texts.push_back(words_[i]);
            made.weights.push_back(weights_[i]);
            made.documents.append(documents_[i].data(), documents_[i].size());
            made.document_offsets.push_back(made.documents.size());
        }
        return made;
    }

private:
    std::uint32_t most_documents_;
    WordTable<Terminal> words_;
    Buffer<std::uint32_t> weights_;
    std::vector<std::vector<std::uint32_t>> documents_;  // ascending
};

// Without `kinds`, pieces are whole documents, like ones side by side.
template <class Terminal>
Pieces<Terminal> pieces_of(std::span<const Terminal> text, std::span<const std::int64_t> offsets,
                           std::span<const WordKind> kinds, std::uint32_t most_documents, unsigned threads,
                           const std::function<void()>& poll) {
    const std::size_t documents = offsets.size() - 1;
    const auto document = [&](std::size_t i) {
        return text.subspan(static_cast<std::size_t>(offsets[i]),
                            static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
    };
    if (kinds.empty()) {
        Pieces<Terminal> made;
        made.document_offsets.push_back(0);
        for (std::size_t i = 0; i < documents; ++i) {
            made.texts.push_back(document(i));
            made.weights.push_back(1);
            made.documents.push_back(static_cast<std::uint32_t>(i));
            made.document_offsets.push_back(i + 1);
        }
        return made;
    }
    const std::size_t shares = std::max<std::size_t>(1, std::min<std::size_t>(threads, documents));
    std::vector<WordList<Terminal>> lists;
    for (std::size_t share = 0; share < shares; ++share) lists.emplace_back(most_documents);
    std::atomic<bool> stop = false;
    parallel(shares, shares, poll, stop, [&](std::size_t share, std::size_t) {
        for (std::size_t i = documents * share / shares; i < documents * (share + 1) / shares; ++i) {
            if (stop.load(std::memory_order_relaxed)) throw Stopped();
            const auto number = static_cast<std::uint32_t>(i);
            const std::span<const Terminal> whole = document(i);
            for (std::size_t begin = 0, end; begin < whole.size(); begin = end) {
                end = end_of_word(whole, begin, kinds);
                lists[share].add(whole.subspan(begin, end - begin), 1, {&number, 1});
            }
        }
    });
    for (std::size_t share = 1; share < shares; ++share) lists[0].add(lists[share]);
    return lists[0].pieces();
}

}  // namespace laconic
