#include "batch.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

#include "check.hpp"
#include "lz78.hpp"
#include "oracles.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

// A codec, and what it is told.
struct Chosen {
    const char* name = "repair";
    CodecOptions options;

    std::unique_ptr<Compressor> operator()() const { return codec_named(name).make(options); }
};

constexpr const char* kAll[] = {"none", "repair", "lz78", "lzd"};

const std::function<void()> kNoPoll = [] {};

template <class Terminal>
struct Documents {
    std::vector<Terminal> text;
    std::vector<std::int64_t> offsets{0};

    void add(const Text& document) {
        for (Symbol terminal : document) text.push_back(static_cast<Terminal>(terminal));
        offsets.push_back(static_cast<std::int64_t>(text.size()));
    }
    Batch compress(Symbol alphabet_size, const Chosen& codec, unsigned threads,
                   const std::function<void()>& poll = kNoPoll) const {
        return compress_many(std::span<const Terminal>(text), offsets, alphabet_size, codec, threads, poll);
    }
};

// Document i of a batch.
Plain document(const Batch& batch, std::size_t i) {
    const Symbol *rules = batch.rules.data(), *sequence = batch.sequence.data();
    return {{rules + 2 * batch.rule_offsets[i], rules + 2 * batch.rule_offsets[i + 1]},
            {sequence + batch.sequence_offsets[i], sequence + batch.sequence_offsets[i + 1]}};
}

// What each document comes to by itself, in a new workspace.
template <class Terminal>
Plain alone(std::span<const Terminal> text, Symbol alphabet_size, const Chosen& codec) {
    Output out;
    codec()->compress(text, alphabet_size, out);
    return {{out.rules.begin(), out.rules.end()}, {out.sequence.begin(), out.sequence.end()}};
}

template <class Terminal>
void check_batch(const Documents<Terminal>& documents, Symbol alphabet_size, const Chosen& codec,
                 const std::string& name) {
    std::vector<Plain> expected;
    for (std::size_t i = 0; i + 1 < documents.offsets.size(); ++i) {
        const auto begin = static_cast<std::size_t>(documents.offsets[i]),
                   end = static_cast<std::size_t>(documents.offsets[i + 1]);
        expected.push_back(
            alone(std::span<const Terminal>(documents.text).subspan(begin, end - begin), alphabet_size, codec));
    }
    for (unsigned threads = 1; threads <= 5; ++threads) {
        const Batch batch = documents.compress(alphabet_size, codec, threads);
        const std::string input = name + ", " + codec.name + ", " + std::to_string(threads) + " threads";
        CHECK(batch.rule_offsets.size() == documents.offsets.size() && batch.rule_offsets[0] == 0, input);
        CHECK(batch.sequence_offsets.size() == documents.offsets.size() && batch.sequence_offsets[0] == 0, input);
        for (std::size_t i = 0; i < expected.size(); ++i)
            CHECK(document(batch, i) == expected[i], input + ", document " + std::to_string(i));
        CHECK(batch.rules.size() == 2 * static_cast<std::size_t>(batch.rule_offsets[expected.size()]), input);
        CHECK(batch.sequence.size() == static_cast<std::size_t>(batch.sequence_offsets[expected.size()]), input);
    }
}

// ---- the same as one by one ------------------------------------------------------------------------------------

// Documents of all kinds and sizes, many of them empty. Threads are handed about 2^17 terminals at a time.
template <class Terminal>
Documents<Terminal> mixed_documents(std::uint32_t seed, std::size_t terminals_in_all, Symbol terminals) {
    Random random(seed);
    Documents<Terminal> documents;
    while (documents.text.size() < terminals_in_all) {
        const auto kind = static_cast<Kind>(random.below(static_cast<std::uint32_t>(Kind::count)));
        const std::uint32_t size = random.below(20);
        const std::size_t length = size < 3 ? 0 : size < 17 ? random.below(2000) : random.below(40000);
        documents.add(make_text(kind, random, length, terminals));
    }
    documents.add({});
    return documents;
}

void check_mixed_documents() {
    const auto bytes = mixed_documents<std::uint8_t>(1, 700000, 20);
    for (const char* name : kAll) check_batch(bytes, 256, Chosen{name, {}}, "bytes");
    check_batch(bytes, 20, Chosen{"lzd", {{}, LzdLetters::seen}}, "seen terminals");
    Chosen limited;
    limited.options.repair = {.min_count = 3, .max_rules = 20, .max_expansion = 8};
    check_batch(bytes, 20, limited, "options");
    const auto wide = mixed_documents<std::uint16_t>(2, 300000, 500);
    for (const char* name : kAll) check_batch(wide, 65536, Chosen{name, {}}, "two bytes");
    const auto any = mixed_documents<std::int32_t>(3, 300000, 3000);
    for (const char* name : kAll) check_batch(any, 3000000, Chosen{name, {}}, "four bytes");
}

void check_small_batches() {
    for (const char* name : kAll) {
        Documents<std::uint8_t> documents;
        check_batch(documents, 1, Chosen{name, {}}, "no documents");
        documents.add({});
        check_batch(documents, 1, Chosen{name, {}}, "an empty document");
        documents.add({});
        check_batch(documents, 1, Chosen{name, {}}, "empty documents");
        documents.add({0, 1, 0, 1});
        documents.add({});
        check_batch(documents, 2, Chosen{name, {}}, "a short document");
        // Where one share of the work ends and the next begins.
        for (std::size_t length : {131071, 1, 131072, 131073}) {
            documents.add(Text(length, 1));
            documents.add({});
        }
        check_batch(documents, 2, Chosen{name, {}}, "documents as long as a share");
    }
    Documents<std::uint8_t> documents;
    documents.add({0, 1});
    CHECK((document(documents.compress(2, Chosen{"none", {}}, 0), 0) == Plain{{}, {0, 1}}), "no threads at all");
}

// ---- what is refused -------------------------------------------------------------------------------------------

template <class Terminal>
void compress_text(std::vector<Terminal> text, std::vector<std::int64_t> offsets, Symbol alphabet_size) {
    compress_many(std::span<const Terminal>(text), offsets, alphabet_size, Chosen{}, 2, kNoPoll);
}

void check_bad_input() {
    using Byte = std::uint8_t;
    const std::string whole = "offsets must go from 0 to the length of the text";
    CHECK_THROWS((compress_text<Byte>({1, 2}, {}, 256)), GrammarError, whole);
    CHECK_THROWS((compress_text<Byte>({1, 2}, {0}, 256)), GrammarError, whole);
    CHECK_THROWS((compress_text<Byte>({1, 2}, {1, 2}, 256)), GrammarError, whole);
    CHECK_THROWS((compress_text<Byte>({1, 2}, {0, 1}, 256)), GrammarError, whole);
    CHECK_THROWS((compress_text<Byte>({1, 2}, {0, 3}, 256)), GrammarError, whole);
    CHECK_THROWS((compress_text<Byte>({1, 2}, {-1, 2}, 256)), GrammarError, whole);
    CHECK_THROWS((compress_text<Byte>({1, 2}, {0, 2, 1, 2}, 256)), GrammarError,
                 "offset 2 is smaller than the one before");
    CHECK_THROWS((compress_text<Byte>({1, 2}, {0, -1, 2}, 256)), GrammarError,
                 "offset 1 is smaller than the one before");
    CHECK_THROWS((compress_text<Byte>({1, 2}, {0, 3, 2}, 256)), GrammarError,
                 "offset 2 is smaller than the one before");

    CHECK_THROWS((compress_text<Byte>({}, {0}, 0)), GrammarError, "alphabet_size must be at least 1");
    CHECK_THROWS((compress_text<Byte>({}, {0}, -1)), GrammarError, "alphabet_size must be at least 1");
    CHECK_THROWS((compress_text<Byte>({0, 2}, {0, 2}, 2)), GrammarError, "symbol 2 is outside the alphabet 0 … 1");
    CHECK_THROWS((compress_text<Byte>({0, 255}, {0, 2}, 255)), GrammarError,
                 "symbol 255 is outside the alphabet 0 … 254");
    CHECK_THROWS((compress_text<std::uint16_t>({65535, 1}, {0, 2}, 65535)), GrammarError, "symbol 65535 is outside");
    CHECK_THROWS((compress_text<std::int32_t>({1, -3, 9}, {0, 3}, 5)), GrammarError, "symbol -3 is outside");
    CHECK_THROWS((compress_text<std::int32_t>({1, 3, 9}, {0, 3}, 9)), GrammarError, "symbol 9 is outside");
    CHECK_THROWS((compress_text<std::int32_t>({-1}, {0, 1}, kMaxSymbol)), GrammarError, "symbol -1 is outside");
    CHECK_THROWS((compress_text<std::int32_t>({kMaxSymbol}, {0, 1}, kMaxSymbol)), GrammarError,
                 "is outside the alphabet");
    // The document is named where there are several; an empty one before it holds nothing to blame.
    CHECK_THROWS((compress_text<Byte>({0, 9, 1}, {0, 1, 1, 3}, 2)), GrammarError, "document 2: symbol 9 is outside");
    CHECK_THROWS((compress_text<Byte>({9, 0, 1}, {0, 0, 1, 3}, 2)), GrammarError, "document 1: symbol 9 is outside");
    CHECK_THROWS((compress_text<Byte>({0, 1, 9}, {0, 1, 3, 3}, 2)), GrammarError, "document 1: symbol 9 is outside");
    compress_text<Byte>({0, 255}, {0, 2}, 256);
    compress_text<std::uint16_t>({0, 65535}, {0, 2}, 65536);
    compress_text<std::int32_t>({0, kMaxSymbol - 1}, {0, 2}, kMaxSymbol);
    CHECK(true, "terminals that just fit");
}

// ---- work that is stopped --------------------------------------------------------------------------------------

struct Stop : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// How many threads this process has, where the system says so.
std::ptrdiff_t thread_count() {
    const std::filesystem::path tasks = "/proc/self/task";
    if (!std::filesystem::exists(tasks)) return 1;
    return std::distance(std::filesystem::directory_iterator(tasks), std::filesystem::directory_iterator());
}

// Whether it has so many; one that was joined is listed a moment longer.
bool threads_are(std::ptrdiff_t count) {
    for (int attempt = 0; attempt < 2000 && thread_count() != count; ++attempt)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return thread_count() == count;
}

// Many shares, each quick, so that stopping is quick too and finishing would show.
void check_poll_stops() {
    Random random(4);
    Documents<std::uint8_t> documents;
    const Text document = uniform(random, 1 << 17, 256);
    for (int i = 0; i < 200; ++i) documents.add(document);
    for (unsigned threads : {1u, 2u, 5u}) {
        const std::ptrdiff_t before = thread_count();
        const std::thread::id caller = std::this_thread::get_id();
        int polls = 0;
        bool elsewhere = false;
        const auto poll = [&] {
            elsewhere |= std::this_thread::get_id() != caller;
            if (++polls == 2) throw Stop("stopped by the test");
        };
        const auto begin = std::chrono::steady_clock::now();
        CHECK_THROWS(documents.compress(256, Chosen{"repair", {}}, threads, poll), Stop, "stopped by the test");
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        const std::string input = std::to_string(threads) + " threads, " + std::to_string(taken.count()) + " s";
        CHECK(polls == 2 && !elsewhere, input + ", polls: " + std::to_string(polls));
        CHECK(threads_are(before), input);
        CHECK(taken.count() < 5, input);  // all of it takes several times as long under sanitizers
    }
}

// A worker's exception reaches the caller, and the workspaces are left to nobody.
void check_worker_fails() {
    // The second document is refused for its length, before any terminal is read: there need be no such memory.
    const std::vector<std::uint8_t> terminals(1 << 18);
    const auto first = static_cast<std::int64_t>(terminals.size()),
               last = first + static_cast<std::int64_t>(kMaxDocument) + 1;
    const std::span<const std::uint8_t> text(terminals.data(), static_cast<std::size_t>(last));
    const std::vector<std::int64_t> offsets{0, first / 2, first, last};
    for (const char* name : {"repair", "lz78", "lzd"})
        for (unsigned threads : {1u, 3u}) {
            const std::ptrdiff_t before = thread_count();
            CHECK_THROWS(compress_many(text, offsets, 256, Chosen{name, {}}, threads, kNoPoll), GrammarError,
                         "too long");
            CHECK(threads_are(before), name);
        }
    // One document alone is compressed by the calling thread.
    const std::vector<std::int64_t> alone_offsets{0, last};
    CHECK_THROWS(compress_many(text, alone_offsets, 256, Chosen{}, 1, kNoPoll), GrammarError, "too long");
}

}  // namespace
}  // namespace laconic::test

int main() {
    using namespace laconic::test;
    check_small_batches();
    check_mixed_documents();
    check_bad_input();
    check_poll_stops();
    check_worker_fails();
    return report("batch");
}
