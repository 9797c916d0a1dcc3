// The small structures under the codecs: buffers, cells, terminals and edges.
#include "buffer.hpp"

#include <map>
#include <memory>

#include "cells.hpp"
#include "check.hpp"
#include "edges.hpp"
#include "terminal_names.hpp"
#include "texts.hpp"

namespace laconic::test {
namespace {

// ---- Buffer ----------------------------------------------------------------------------------------------------

template <class T>
bool holds(const Buffer<T>& buffer, const std::vector<T>& values) {
    return std::equal(buffer.begin(), buffer.end(), values.begin(), values.end());
}

void check_buffer_against_vector() {
    Random random(1);
    Buffer<std::int32_t> buffer;
    std::vector<std::int32_t> values;
    for (int step = 0; step < 20000; ++step) {
        const std::uint32_t action = random.below(20);
        const std::size_t size = random.below(300);
        if (action < 10) {
            buffer.push_back(step);
            values.push_back(step);
        } else if (action < 13) {
            const std::vector<std::int32_t> more(size, step);
            buffer.append(more.data(), more.size());
            values.insert(values.end(), more.begin(), more.end());
        } else if (action < 15) {
            const std::size_t before = buffer.size();
            buffer.resize(size);
            for (std::size_t i = before; i < size; ++i) buffer[i] = 0;  // new elements hold anything
            values.resize(size);
        } else if (action < 16) {
            buffer.renew(size);
            for (std::int32_t& value : buffer) value = step;
            values.assign(size, step);
        } else if (action < 17) {
            const std::size_t asked = buffer.size() + size;
            buffer.reserve(asked);
            CHECK(buffer.capacity() >= asked, "reserve " + std::to_string(asked));
        } else if (action < 18) {
            buffer.trim();
            const bool tight = buffer.size() == 0 || buffer.capacity() == buffer.size();
            CHECK(tight, "trim at " + std::to_string(buffer.size()));
        } else if (action < 19) {
            Buffer<std::int32_t> other = std::move(buffer);
            CHECK(buffer.data() == nullptr && buffer.size() == 0 && buffer.capacity() == 0, "what was moved from");
            buffer = std::move(other);
        } else {
            buffer.clear();
            values.clear();
        }
        CHECK(holds(buffer, values) && buffer.size() <= buffer.capacity(), "step " + std::to_string(step));
    }
}

// Appending must not copy everything every time, and must not keep three times what it needs.
void check_buffer_growth() {
    Buffer<std::int32_t> buffer;
    std::size_t moves = 0;
    for (std::int32_t i = 0; i < 1000000; ++i) {
        const std::size_t before = buffer.capacity();
        buffer.append(&i, 1);
        moves += buffer.capacity() != before;
    }
    CHECK(moves < 60, std::to_string(moves) + " moves");
    CHECK(buffer.capacity() <= 1500000, "a capacity of " + std::to_string(buffer.capacity()));

    Buffer<std::int32_t> exact;
    exact.renew(1000);
    CHECK(exact.capacity() == 1000, "renew over-allocates nothing");
    exact.renew(10);
    CHECK(exact.size() == 10 && exact.capacity() == 1000, "renew keeps memory");
    exact.append(nullptr, 0);
    CHECK(exact.size() == 10, "nothing is appended");
}

void check_buffer_moves() {
    Buffer<char> a, b;
    a.append("abc", 3);
    b.append("de", 2);
    a = std::move(b);
    CHECK(holds(a, {'d', 'e'}), "move assignment");
    Buffer<char>& self = a;
    a = std::move(self);
    CHECK(holds(a, {'d', 'e'}), "move assignment to itself");
    Buffer<char> empty;
    CHECK(empty.begin() == empty.end() && empty.size() == 0, "an empty buffer");
    empty.trim();
    a = std::move(empty);
    CHECK(a.size() == 0, "an empty buffer moves");
}

// A size that no machine has is refused, and what is left can still be used.
void check_buffer_out_of_memory() {
    constexpr std::size_t kTooMany = static_cast<std::size_t>(-1) / 4;
    Buffer<std::int64_t> buffer;
    buffer.push_back(5);
    CHECK_THROWS(buffer.reserve(kTooMany), std::bad_alloc, "");
    CHECK(holds(buffer, {std::int64_t{5}}), "a buffer after a reserve that failed");
    CHECK_THROWS(buffer.resize(kTooMany), std::bad_alloc, "");
    CHECK(holds(buffer, {std::int64_t{5}}), "a buffer after a resize that failed");
    CHECK_THROWS(buffer.renew(kTooMany), std::bad_alloc, "");
    CHECK(buffer.size() <= buffer.capacity(), "a buffer after a renew that failed");
}

// ---- Cells -----------------------------------------------------------------------------------------------------

// Joins at random places, and closes the gaps now and then, beside a plain vector.
void check_cells() {
    Random random(2);
    for (std::size_t length : {0, 1, 2, 3, 10, 1000}) {
        Cells<std::int16_t, std::uint16_t> cells;
        cells.reset(length);
        std::vector<std::int16_t> plain;
        for (std::size_t i = 0; i < length; ++i) {
            plain.push_back(static_cast<std::int16_t>(random.between(1, 9)));
            cells.set(i + 1, plain[i]);
            cells.pair(i + 1) = static_cast<std::uint16_t>(plain[i]);
        }
        int renumbered = 0;
        for (std::int16_t symbol = 10; plain.size() >= 2; ++symbol) {
            const std::size_t k = random.below(static_cast<std::uint32_t>(plain.size() - 1));
            std::size_t p = cells.next(0);
            for (std::size_t i = 0; i < k; ++i) p = cells.next(p);
            const std::size_t q = cells.next(p);
            cells.join(p, q, cells.next(q), symbol);
            cells.pair(p) = static_cast<std::uint16_t>(symbol + renumbered);
            plain[k] = symbol;
            plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(k) + 1);
            if (random.below(50) == 0) {
                cells.close_gaps([](std::uint16_t pair) { return static_cast<std::uint16_t>(pair + 1); });
                ++renumbered;
                CHECK(cells.gaps() == 0 && cells.size() == plain.size() + 2, "closed gaps");
                cells.trim();
            }
            CHECK(cells.size() - cells.gaps() == plain.size() + 2, "the count of gaps");
        }
        std::vector<std::int16_t> forth, back;
        for (std::size_t p = cells.next(0); cells[p] != 0; p = cells.next(p)) forth.push_back(cells[p]);
        for (std::size_t p = cells.previous(cells.size() - 1); cells[p] != 0; p = cells.previous(p))
            back.push_back(cells[p]);
        CHECK(forth == plain && back == plain, std::to_string(length) + " cells");
        for (std::size_t p = cells.next(0), i = 0; cells[p] != 0; p = cells.next(p), ++i)
            CHECK(cells.pair(p) == plain[i] + renumbered, "the pair of a cell");
    }
}

// ---- Cells::find -----------------------------------------------------------------------------------------------

template <class Sym, class Id>
void check_find_of(const std::vector<Id>& matches, std::size_t begin, std::size_t count) {
    constexpr Id kWanted = 7, kUntouched = 9999;
    // Exactly the memory that may be read, so that the sanitizer sees one element too many.
    Cells<Sym, Id> cells;
    cells.reset(matches.back());
    // Half of a number, or the symbol beside it, must not do.
    for (std::size_t p = 1; p <= matches.back(); ++p) {
        cells.set(p, kWanted);
        cells.pair(p) = static_cast<Id>(p % 2 ? kWanted << 8 : 8);
    }
    for (Id p : matches) cells.pair(p) = kWanted;
    cells.pair(matches.back() + std::size_t{1}) = kWanted;  // as if left over from another document

    std::vector<Id> expected;
    for (Id p : matches)
        if (p >= begin) expected.push_back(p);
    if (expected.size() < count) return;
    expected.resize(count);
    expected.push_back(kUntouched);
    std::vector<Id> found(count + 1, kUntouched);
    cells.find(kWanted, begin, count, found.data());
    CHECK(found == expected,
          "matches up to " + std::to_string(matches.back()) + " from " + std::to_string(begin) + " on");
}

template <class Sym, class Id>
void check_find() {
    for (Id first = 1; first < 40; ++first)
        for (Id second = first; second < 70; ++second) {
            std::vector<Id> matches{first};
            if (second > first) matches.push_back(second);
            for (std::size_t begin = 1; begin <= first; begin += 1 + first / 8)
                check_find_of<Sym, Id>(matches, begin, matches.size());
            check_find_of<Sym, Id>(matches, first + std::size_t{1}, 1);
        }
    Random random(3);
    for (int round = 0; round < 500; ++round) {
        std::vector<Id> matches;
        const std::uint32_t step = random.between(1, 30);
        for (Id p = 1; p < 300; ++p)
            if (random.below(step) == 0) matches.push_back(p);
        if (matches.empty()) continue;
        const std::size_t count = random.below(static_cast<std::uint32_t>(matches.size() + 1));
        check_find_of<Sym, Id>(matches, 1 + random.below(299), count);
    }
}

// ---- TerminalNames
// ---------------------------------------------------------------------------------------------------

// Names must tell terminals apart, count from 0, and spell what they name.
template <class Terminal>
void check_names(TerminalNames& terminals, const Text& text, Symbol alphabet_size) {
    const std::vector<Terminal> typed = as<Terminal>(text);
    std::vector<std::uint32_t> names;
    terminals.rename(std::span<const Terminal>(typed), alphabet_size, [&](std::size_t i, std::uint32_t name) {
        CHECK(i == names.size(), "the order of positions");
        names.push_back(name);
    });
    Text spelled, distinct = text;
    for (std::uint32_t name : names) spelled.push_back(name < terminals.count() ? terminals[name] : -1);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    CHECK(spelled == text, "alphabet_size " + std::to_string(alphabet_size) + ", " + shown(text));
    CHECK(terminals.count() == distinct.size(), "alphabet_size " + std::to_string(alphabet_size) + ", " + shown(text));
}

void check_terminals() {
    Random random(4);
    TerminalNames terminals;
    // 2^21 is where terminals are sorted instead of looked up.
    constexpr Symbol kSizes[] = {1, 2, 200, 256, 60000, (1 << 21) - 1, 1 << 21, (1 << 21) + 1, kMaxSymbol};
    for (int round = 0; round < 400; ++round) {
        const Symbol alphabet_size = kSizes[random.below(9)];
        Text text = uniform(random, random.below(200), std::min<Symbol>(alphabet_size, 50));
        if (random.below(2))  // the largest terminals rather than the smallest
            for (Symbol& terminal : text) terminal = alphabet_size - 1 - terminal;
        if (alphabet_size <= 1 << 8) check_names<std::uint8_t>(terminals, text, alphabet_size);
        if (alphabet_size <= 1 << 16) check_names<std::uint16_t>(terminals, text, alphabet_size);
        check_names<std::int32_t>(terminals, text, alphabet_size);

        const std::vector<std::int32_t> typed = as<std::int32_t>(text);
        Text spelled;
        terminals.with_names(std::span<const std::int32_t>(typed), alphabet_size, [&](auto names) {
            for (auto name : names) spelled.push_back(terminals[name]);
        });
        CHECK(spelled == text, "with_names of " + shown(text));
        if (alphabet_size > 1 << 8) continue;
        const std::vector<std::uint8_t> bytes = as<std::uint8_t>(text);
        terminals.with_names(std::span<const std::uint8_t>(bytes), alphabet_size, [&](auto names) {
            spelled.clear();
            for (auto name : names) spelled.push_back(terminals[name]);
        });
        CHECK(spelled == text, "with_names of the bytes " + shown(text));
    }
}

// ---- Edges -----------------------------------------------------------------------------------------------------

void check_edges() {
    Random random(5);
    Edges edges;
    for (std::size_t length : {0, 1, 15, 100, 9000, 1000000, 3}) {
        edges.reset(length);
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> expected;
        // More edges than the document has terminals: the table must grow by itself.
        const std::uint32_t count = length > 10000 ? 40000 : 3000;
        for (std::uint32_t child = 1; child <= count; ++child) {
            // Few parents with many terminals, or many with few; a terminal may be any 32 bits.
            const std::uint32_t parent = random.below(child % 2 ? 3 : 50000);
            const std::uint32_t terminal = child % 3 ? random.below(20000) : 0xFFFFFFFF - random.below(300);
            std::uint32_t& found = edges.at(parent, terminal);
            const auto [entry, fresh] = expected.try_emplace({parent, terminal}, child);
            CHECK(found == (fresh ? 0 : entry->second), "edge " + std::to_string(child));
            if (!fresh) continue;
            found = child;
            edges.added();
        }
        for (const auto& [edge, child] : expected)
            CHECK(edges.find(edge.first, edge.second) == child, "edge " + std::to_string(child));
        for (std::uint32_t absent = 0; absent < 300; ++absent)
            CHECK(edges.find(60000 + absent, absent) == 0, "no edge from " + std::to_string(60000 + absent));
    }
}

}  // namespace
}  // namespace laconic::test

int main() {
    using namespace laconic::test;
    check_buffer_against_vector();
    check_buffer_growth();
    check_buffer_moves();
    check_buffer_out_of_memory();
    check_cells();
    check_find<std::int16_t, std::uint16_t>();
    check_find<std::int32_t, std::uint32_t>();
    check_terminals();
    check_edges();
    return report("buffer");
}
