#include "lz_to_grammar.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>
#include <utility>

namespace laconic {
namespace {

constexpr std::size_t kWindow = 1 << 16;  // farther back no copy reaches

// How high the tree of a symbol may be. Real text stays far below: it is who copies and adds a letter, again and
// again, that would make trees as high as they are long, and cutting them slow.
int highest(std::uint32_t length) { return 2 * std::bit_width(length) + 4; }

}  // namespace

void LzToGrammar::start(Symbol alphabet_size, std::size_t tokens) {
    alphabet_size_ = alphabet_size;
    size_ = copy_length_ = copy_distance_ = 0;
    const auto letters = static_cast<std::size_t>(alphabet_size);
    rules_.clear();
    lengths_.renew(letters);
    heights_.renew(letters);
    std::fill(lengths_.begin(), lengths_.end(), 1);
    std::fill(heights_.begin(), heights_.end(), 0);
    pairs_.reset(tokens);
    roots_.clear();
    begins_.clear();
    crcs_.clear();
    adlers_.clear();
}

Symbol LzToGrammar::known_pair(Symbol left, Symbol right) const {
    return static_cast<Symbol>(pairs_.find(static_cast<std::uint32_t>(left) + 1, static_cast<std::uint32_t>(right)));
}

Symbol LzToGrammar::pair(Symbol left, Symbol right) {
    std::uint32_t& known = pairs_.at(static_cast<std::uint32_t>(left) + 1, static_cast<std::uint32_t>(right));
    if (known != 0) return static_cast<Symbol>(known);
    if (lengths_.size() == static_cast<std::size_t>(kMaxSymbol))
        throw GrammarError("it takes more than 2^31 - 1 symbols");
    const auto made = static_cast<Symbol>(lengths_.size());
    known = static_cast<std::uint32_t>(made);
    pairs_.added();
    const Symbol rule[] = {left, right};
    rules_.append(rule, 2);
    lengths_.push_back(length_of(left) + length_of(right));
    heights_.push_back(static_cast<std::uint8_t>(1 + std::max(height_of(left), height_of(right))));
    return made;
}

// ---- the sequence ----------------------------------------------------------------------------------------------

void LzToGrammar::append(Symbol symbol) {
    begins_.push_back(static_cast<std::uint32_t>(size_));
    roots_.push_back(symbol);
    size_ += length_of(symbol);
}

// The slot of the root that stands for a position of the window.
std::size_t LzToGrammar::slot_at(std::size_t position) {
    // A search without branches: which half it is cannot be foretold.
    const std::size_t window = std::min(begins_.size(), kWindow);
    std::size_t slot = begins_.size() - window;
    for (std::size_t left = window; left > 1; left -= left / 2)
        slot += begins_[slot + left / 2] <= position ? left / 2 : 0;
    std::size_t owner = slot;
    while (roots_[owner] < 0) owner -= static_cast<std::size_t>(-roots_[owner]);
    for (std::size_t at = slot; at != owner;) {  // next time it is one step
        const auto back = static_cast<std::size_t>(-roots_[at]);
        roots_[at] = -static_cast<Symbol>(at - owner);
        at -= back;
    }
    return owner;
}

std::size_t LzToGrammar::next_slot(std::size_t slot) const {
    if (slot + 1 == roots_.size() || roots_[slot + 1] >= 0) return slot + 1;
    return static_cast<std::size_t>(std::lower_bound(begins_.begin() + slot + 2, begins_.end(), end_of(slot)) -
                                    begins_.begin());
}

// Puts a symbol in the place of the roots in slots first … last, which it stands for.
void LzToGrammar::merge_roots(std::size_t first, std::size_t last, Symbol symbol) {
    for (std::size_t slot = next_slot(first), next; slot <= last; slot = next) {
        next = next_slot(slot);
        roots_[slot] = -static_cast<Symbol>(slot - first);
    }
    roots_[first] = symbol;
}

// ---- letters and copies ------------------------------------------------------------------------------------------

void LzToGrammar::letter(Symbol letter) {
    if (letter >= alphabet_size_)
        throw GrammarError("symbol " + std::to_string(letter) + " is outside the alphabet 0 … " +
                           std::to_string(alphabet_size_ - 1));
    if (copy_length_ > 0) finish_copy();
    check_length(size_ + 1);
    append(letter);
}

void LzToGrammar::copy(std::uint32_t length, std::uint32_t distance) {
    if (distance != copy_distance_ && !goes_on(length, distance)) {
        finish_copy();
        copy_distance_ = distance;
    }
    copy_length_ += length;
    check_length(size_ + copy_length_);
}

// Whether a copy is of what the unfinished one would come to next: in a repeated text zlib now and then takes a piece
// from where it is nearer, and what could be one run would be thousands of copies.
bool LzToGrammar::goes_on(std::size_t length, std::size_t distance) {
    constexpr std::size_t kLong = 258, kSteps = 1024;
    if (copy_length_ < kLong || length > std::min(copy_distance_, distance)) return false;
    const std::size_t at = size_ + copy_length_;
    add_window(at - copy_distance_, length);
    std::swap(parts_, some_);
    add_window(at - distance, length);
    const auto open = [&](Buffer<Symbol>& symbols) {
        const Symbol symbol = symbols[symbols.size() - 1];
        symbols[symbols.size() - 1] = rule(symbol)[1];
        symbols.push_back(rule(symbol)[0]);
    };
    for (std::size_t steps = 0; steps < kSteps; ++steps) {
        if (parts_.size() == 0) return true;
        const Symbol one = parts_[parts_.size() - 1], other = some_[some_.size() - 1];
        if (one == other) {
            parts_.resize(parts_.size() - 1);
            some_.resize(some_.size() - 1);
        } else if (is_letter(one) && is_letter(other)) {
            return false;
        } else {
            open(length_of(one) >= length_of(other) ? parts_ : some_);
        }
    }
    return false;
}

// Makes parts_ the symbols of what stands at a position of the window or in the unfinished copy, from right to left.
void LzToGrammar::add_window(std::size_t begin, std::size_t length) {
    parts_.clear();
    while (length > 0) {
        if (begin >= size_) begin = size_ - copy_distance_ + (begin - size_) % copy_distance_;
        const std::size_t slot = slot_at(begin), some = std::min(length, end_of(slot) - begin);
        const auto from = static_cast<std::uint32_t>(begin - begins_[slot]);
        add_parts(roots_[slot], from, from + static_cast<std::uint32_t>(some));
        begin += some;
        length -= some;
    }
    std::reverse(parts_.begin(), parts_.end());
}

std::size_t LzToGrammar::length() {
    finish_copy();
    return size_;
}

void LzToGrammar::finish_copy() {
    if (copy_length_ == 0) return;
    const std::size_t length = std::exchange(copy_length_, 0), distance = std::exchange(copy_distance_, 0);
    const std::size_t begin = size_ - distance;
    if (length <= distance) return append(phrase(begin, begin + length));
    // A run: the source again and again, and a part of it.
    const Symbol whole = power(phrase(begin, size_), length / distance);
    const Symbol part = length % distance > 0 ? phrase(begin, begin + length % distance) : -1;
    parts_.clear();
    parts_.push_back(whole);
    if (part >= 0) parts_.push_back(part);
    append(join());
}

// A symbol, so many times in a row: 2, 4, 8, … of them, of which the right ones are joined.
Symbol LzToGrammar::power(Symbol symbol, std::size_t times) {
    Symbol made = symbol;
    for (int bit = std::bit_width(times) - 2; bit >= 0; --bit) {
        made = pair(made, made);
        if (times >> bit & 1) made = pair(made, symbol);
    }
    return made;
}

// One symbol for terminals [begin, end), all of which are there.
Symbol LzToGrammar::phrase(std::size_t begin, std::size_t end) {
    const std::size_t cut = slot_at(begin);
    const std::size_t first = begins_[cut] < begin ? next_slot(cut) : cut;
    std::size_t last = first, after = first;
    parts_.clear();
    for (; after < roots_.size() && end_of(after) <= end; after = next_slot(after))
        parts_.push_back(roots_[last = after]);
    const bool whole = parts_.size() > 0;
    if (parts_.size() > 1) merge_roots(first, last, join());

    parts_.clear();
    if (cut < first)
        add_parts(roots_[cut], static_cast<std::uint32_t>(begin - begins_[cut]),
                  static_cast<std::uint32_t>(std::min(end, end_of(cut)) - begins_[cut]));
    if (whole) parts_.push_back(roots_[first]);
    if (after < roots_.size() && begins_[after] < end)
        add_parts(roots_[after], 0, static_cast<std::uint32_t>(end - begins_[after]));
    return join();
}

// Adds the fewest symbols that stand for terminals [begin, end) of a symbol, from left to right.
void LzToGrammar::add_parts(Symbol symbol, std::uint32_t begin, std::uint32_t end) {
    while (begin > 0 || end < length_of(symbol)) {
        const Symbol left = rule(symbol)[0], right = rule(symbol)[1];
        const std::uint32_t middle = length_of(left);
        if (end <= middle) {
            symbol = left;
            continue;
        }
        if (begin < middle) {
            add_parts(left, begin, middle);
            begin = middle;
        }
        symbol = right;
        begin -= middle;
        end -= middle;
    }
    parts_.push_back(symbol);
}

// ---- joining
// ---------------------------------------------------------------------------------------------------------

// Joins parts_ to one symbol.
Symbol LzToGrammar::join() {
    shorten(parts_);
    if (parts_.size() == 1) return parts_[0];
    some_.clear();
    some_.append(parts_.data(), parts_.size());
    join_lowest_first();
    const std::uint32_t length = length_of(parts_[0]);
    if (height_of(parts_[0]) <= highest(length)) return parts_[0];
    // Too high: once more, of parts that are low.
    parts_.clear();
    for (const Symbol part : some_) add_low_parts(part, std::bit_width(length));
    join_lowest_first();
    return parts_[0];
}

// Makes rules of neighbours in rounds, in each of which the lowest there are.
void LzToGrammar::join_lowest_first() {
    const auto height = [&](std::size_t i) { return std::max(height_of(parts_[i]), height_of(parts_[i + 1])); };
    while (parts_.size() > 1) {
        int low = height(0);
        for (std::size_t i = 1; i + 1 < parts_.size(); ++i) low = std::min(low, height(i));
        std::size_t size = 0;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const bool joined = i + 1 < parts_.size() && height(i) <= low;
            parts_[size++] = joined ? pair(parts_[i], parts_[i + 1]) : parts_[i];
            i += joined;
        }
        parts_.resize(size);
    }
}

// Replaces neighbours that are a rule, from left to right, as long as there are any.
void LzToGrammar::shorten(Buffer<Symbol>& symbols) const {
    std::size_t size = 0;
    for (Symbol symbol : symbols) {
        for (Symbol known; size > 0 && (known = known_pair(symbols[size - 1], symbol)) != 0; --size) symbol = known;
        symbols[size++] = symbol;
    }
    symbols.resize(size);
}

// Adds the parts of a symbol that are not higher than `most`.
void LzToGrammar::add_low_parts(Symbol symbol, int most) {
    for (; height_of(symbol) > most; symbol = rule(symbol)[1]) add_low_parts(rule(symbol)[0], most);
    parts_.push_back(symbol);
}

// ---- what is asked at the end -----------------------------------------------------------------------------------

template <class Sum>
std::uint32_t LzToGrammar::checksum(std::size_t begin) {
    finish_copy();
    Buffer<Sum>& sums = [&]() -> Buffer<Sum>& {
        if constexpr (std::is_same_v<Sum, Crc32>)
            return crcs_;
        else
            return adlers_;
    }();
    const auto sum_of = [&](Symbol symbol) {
        return is_letter(symbol) ? Sum::of(static_cast<std::uint8_t>(symbol))
                                 : sums[static_cast<std::size_t>(symbol - alphabet_size_)];
    };
    for (std::size_t k = sums.size(); k < rules_.size() / 2; ++k)
        sums.push_back(sum_of(rules_[2 * k]).then(sum_of(rules_[2 * k + 1])));
    Sum sum;
    if (begin < size_) {
        const auto first =
            static_cast<std::size_t>(std::lower_bound(begins_.begin(), begins_.end(), begin) - begins_.begin());
        for (std::size_t slot = first; slot < roots_.size(); ++slot)
            if (roots_[slot] >= 0) sum = sum.then(sum_of(roots_[slot]));
    }
    return sum.result();
}

void LzToGrammar::write(std::size_t begin, std::size_t end, Output& out) {
    finish_copy();
    parts_.clear();
    for (std::size_t slot = 0; slot < roots_.size(); ++slot) {
        if (roots_[slot] < 0) continue;
        const std::size_t from = begins_[slot], until = end_of(slot);
        if (from < end && until > begin)
            add_parts(roots_[slot], static_cast<std::uint32_t>(std::max(from, begin) - from),
                      static_cast<std::uint32_t>(std::min(until, end) - from));
    }
    shorten(parts_);
    // Only rules that are used get a name. Operands have smaller numbers than their rules, so one sweep finds them.
    Buffer<Symbol>& names = some_;
    names.renew(lengths_.size());
    std::fill(names.begin(), names.end(), -1);
    for (const Symbol symbol : parts_) names[static_cast<std::size_t>(symbol)] = 0;
    for (auto symbol = static_cast<Symbol>(lengths_.size() - 1); symbol >= alphabet_size_; --symbol) {
        if (names[static_cast<std::size_t>(symbol)] < 0) continue;
        names[static_cast<std::size_t>(rule(symbol)[0])] = names[static_cast<std::size_t>(rule(symbol)[1])] = 0;
    }
    const auto name = [&](Symbol symbol) {
        return is_letter(symbol) ? symbol : names[static_cast<std::size_t>(symbol)];
    };
    Symbol next = alphabet_size_;
    for (Symbol symbol = alphabet_size_; symbol < static_cast<Symbol>(lengths_.size()); ++symbol) {
        if (names[static_cast<std::size_t>(symbol)] < 0) continue;
        names[static_cast<std::size_t>(symbol)] = next++;
        out.add_rule(name(rule(symbol)[0]), name(rule(symbol)[1]));
    }
    out.sequence.reserve(out.sequence.size() + parts_.size());
    for (const Symbol symbol : parts_) out.sequence.push_back(name(symbol));
}

template std::uint32_t LzToGrammar::checksum<Crc32>(std::size_t);
template std::uint32_t LzToGrammar::checksum<Adler32>(std::size_t);

}  // namespace laconic
