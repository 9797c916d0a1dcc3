#include "compact.hpp"

#include <algorithm>
#include <bit>

namespace laconic {
namespace {

// What is asked when a document is coded; each has a table, whose row is the context.
enum Question : std::size_t {
    kPresent,         // does this letter occur? by letter
    kWidth,           // how many binary digits has the number of rules, or of symbols?
    kStep,            // how far is the right operand from the one before? by whether that was a rule
    kLeftEnds,        // with which letter does the left operand end? by the letter the right one starts with
    kLeftIsLetter,    // is it that letter itself? by the number of rules that end so
    kSymbolEnds,      // with which letter does a symbol of the sequence end? by the letter the next one starts with
    kSymbolIsLetter,  // is it that letter itself? by the number of rules that end so
    kQuestions
};
// Under a rulebook, the questions whether it is the letter itself have three answers, and the row says which letter,
// and whether there are private rules that end so. Which shared symbol it is has a table for each letter, after the
// others.
enum Origin : std::uint32_t { kPrivate, kLetter, kShared, kOrigins };

constexpr std::size_t kWidths = 32, kSteps = 64, kFar = 62, kBack = 63, kCrowds = 24;
// Rules and symbols of a document; so that few bytes cannot claim to be many.
constexpr std::size_t kMostPerByte = 4, kMostSymbols = 1 << 25;

std::size_t crowd(std::size_t rules) {
    return rules < 16 ? rules
                      : std::min<std::size_t>(kCrowds - 1, 11 + static_cast<std::size_t>(std::bit_width(rules)));
}

// The document that is being coded, read or written: one walk asks the same questions in the same order either way.
struct Draft {
    std::vector<Symbol> letters, left, right, sequence;
};

// Answers come from the draft, and are counted.
struct TableLearner {
    static constexpr bool kKnows = true;
    std::vector<std::vector<std::uint32_t>>& counts;
    const std::vector<Frequencies>& tables;
    std::uint32_t ask(std::size_t question, std::size_t row, std::uint32_t answer) {
        ++counts[question][row * tables[question].size() + answer];
        return answer;
    }
    std::uint32_t any_of(std::uint32_t, std::uint32_t answer) { return answer; }
};

// Answers come from the draft, and are written.
struct Writer {
    static constexpr bool kKnows = true;
    const std::vector<Frequencies>& tables;
    RangeEncoder coder;
    std::uint32_t ask(std::size_t question, std::size_t row, std::uint32_t answer) {
        const std::uint32_t* const ends = tables[question].row(row);
        coder.put(ends[answer], ends[answer + 1] - ends[answer], Frequencies::kRowTotal);
        return answer;
    }
    std::uint32_t any_of(std::uint32_t count, std::uint32_t answer) {
        coder.put(answer, 1, count);
        return answer;
    }
};

// Answers are read, for the draft.
struct Reader {
    static constexpr bool kKnows = false;
    const std::vector<Frequencies>& tables;
    RangeDecoder coder;
    std::uint32_t ask(std::size_t question, std::size_t row, std::uint32_t) {
        const std::uint32_t* const ends = tables[question].row(row);
        const std::size_t size = tables[question].size();
        const std::uint32_t found = coder.peek(Frequencies::kRowTotal);
        const auto answer = static_cast<std::uint32_t>(std::upper_bound(ends + 1, ends + size + 1, found) - (ends + 1));
        coder.took(ends[answer], ends[answer + 1] - ends[answer]);
        return answer;
    }
    std::uint32_t any_of(std::uint32_t count, std::uint32_t) {
        const std::uint32_t answer = coder.peek(count);
        coder.took(answer, 1);
        return answer;
    }
};

template <class Answers>
class Walk {
public:
    Walk(Answers& answers, const CompactModel& model, Draft& draft, std::size_t most)
        : answers_(answers),
          size_(static_cast<std::size_t>(model.alphabet_size())),
          shared_(model.shared()),
          draft_(draft),
          most_(most) {}

    void run() {
        walk_letters();
        const std::size_t rules = number(draft_.left.size()), symbols = number(draft_.sequence.size());
        if (rules > most_ || symbols > most_ || rules + symbols > most_)
            throw GrammarError("its code claims more symbols than it can hold");
        if (letters_ == 0 && rules + symbols > 0) throw GrammarError("its code has symbols but no letters");
        draft_.left.resize(rules);
        draft_.right.resize(rules);
        draft_.sequence.resize(symbols);
        firsts_.resize(rules);
        lasts_.resize(rules);
        places_.resize(rules);
        endings_.resize(shared_ ? size_ : letters_);
        Symbol before = 0;
        for (std::size_t k = 0; k < rules; ++k) {
            const Symbol right = before = right_operand(k, before);
            draft_.right[k] = right;
            const Symbol left = draft_.left[k] =
                symbol(kLeftEnds, kLeftIsLetter, static_cast<std::size_t>(letter(first(right))), draft_.left[k]);
            firsts_[k] = first(left);
            lasts_[k] = last(right);
            places_[k] = static_cast<std::uint32_t>(endings_[static_cast<std::size_t>(lasts_[k])].size());
            endings_[static_cast<std::size_t>(lasts_[k])].push_back(static_cast<Symbol>(letters_ + k));
        }
        // Backwards, as in rules: the letter that follows is the context.
        std::size_t follows = size_;
        for (std::size_t i = symbols; i-- > 0;) {
            draft_.sequence[i] = symbol(kSymbolEnds, kSymbolIsLetter, follows, draft_.sequence[i]);
            follows = static_cast<std::size_t>(letter(first(draft_.sequence[i])));
        }
    }

private:
    Symbol letter(Symbol rank) const { return shared_ ? rank : draft_.letters[static_cast<std::size_t>(rank)]; }
    bool is_rule(Symbol symbol) const { return static_cast<std::size_t>(symbol) >= letters_; }
    Symbol first(Symbol symbol) const {
        if (is_rule(symbol)) return firsts_[static_cast<std::size_t>(symbol) - letters_];
        return shared_ ? shared_->first[static_cast<std::size_t>(symbol)] : symbol;
    }
    Symbol last(Symbol symbol) const {
        if (is_rule(symbol)) return lasts_[static_cast<std::size_t>(symbol) - letters_];
        return shared_ ? shared_->last[static_cast<std::size_t>(symbol)] : symbol;
    }

    // Under a rulebook symbols are what they are everywhere: which occur is seen when they do.
    void walk_letters() {
        if (shared_) {
            letters_ = shared_->first.size();
            return;
        }
        std::vector<Symbol> found;
        ranks_.assign(size_, -1);
        std::size_t next = 0;
        for (std::size_t each = 0; each < size_; ++each) {
            const bool known = next < draft_.letters.size() && draft_.letters[next] == static_cast<Symbol>(each);
            next += known;
            if (answers_.ask(kPresent, each, known) == 0) continue;
            ranks_[each] = static_cast<Symbol>(found.size());
            found.push_back(static_cast<Symbol>(each));
        }
        draft_.letters = std::move(found);
        letters_ = draft_.letters.size();
    }

    std::size_t number(std::size_t value) {
        const std::uint32_t width = answers_.ask(kWidth, 0, static_cast<std::uint32_t>(std::bit_width(value)));
        return width < 2 ? width : std::size_t{1} << (width - 1) | bits(value, width - 1);
    }

    // The lowest `width` bits of the value, which are equally likely.
    std::size_t bits(std::size_t value, std::uint32_t width) {
        std::size_t result = 0;
        for (std::uint32_t done = 0; done < width;) {
            const std::uint32_t some = std::min(width - done, 15u);
            const auto part = static_cast<std::uint32_t>(value >> done & ((1u << some) - 1));
            result |= std::size_t{answers_.any_of(1u << some, part)} << done;
            done += some;
        }
        return result;
    }

    // Those of one level ascend.
    Symbol right_operand(std::size_t k, Symbol before) {
        const std::size_t defined = letters_ + k;
        const Symbol value = draft_.right[k];
        std::size_t row = is_rule(before);
        const bool back = value < before;
        std::size_t step = static_cast<std::size_t>(value) - (back ? 0 : static_cast<std::size_t>(before));
        std::uint32_t told = answers_.ask(kStep, row, static_cast<std::uint32_t>(back ? kBack : std::min(step, kFar)));
        std::size_t result = static_cast<std::size_t>(before);
        if (told == kBack) {
            result = 0;
            told = answers_.ask(kStep, 2, static_cast<std::uint32_t>(std::min(step, kFar)));
        }
        result += told < kFar ? told : kFar + number(step - std::min(step, kFar));
        if (told > kFar || result >= defined) throw GrammarError("its code has a rule that uses what is not defined");
        return static_cast<Symbol>(result);
    }

    Symbol symbol(Question ends, Question is_letter, std::size_t context, Symbol value) {
        std::uint32_t letter_id = 0, place = 0;
        bool plain = true;
        if constexpr (Answers::kKnows) {
            letter_id = static_cast<std::uint32_t>(letter(last(value)));
            plain = !is_rule(value);
            if (!plain) place = places_[static_cast<std::size_t>(value) - letters_];
        }
        letter_id = answers_.ask(ends, context, letter_id);
        if (shared_) return symbol_that_ends(letter_id, is_letter, value, plain, place);
        const Symbol rank = ranks_[letter_id];
        if (rank < 0) throw GrammarError("its code has a letter that does not occur");
        const std::vector<Symbol>& rules = endings_[static_cast<std::size_t>(rank)];
        if (rules.empty() || answers_.ask(is_letter, crowd(rules.size()), plain) == 1) return rank;
        return one_of(rules, place);
    }

    Symbol symbol_that_ends(std::uint32_t letter_id, Question question, Symbol value, bool plain, std::uint32_t place) {
        const std::vector<Symbol>&rules = endings_[letter_id], &shared = shared_->endings[letter_id];
        const bool known = plain && static_cast<std::size_t>(value) >= size_;
        const std::uint32_t origin = answers_.ask(question, 2 * letter_id + !rules.empty(),
                                                  known   ? kShared
                                                  : plain ? kLetter
                                                          : kPrivate);
        if (origin == kLetter) return static_cast<Symbol>(letter_id);
        if ((origin == kShared ? shared : rules).empty())
            throw GrammarError("its code has a symbol that does not occur");
        if (origin == kPrivate) return one_of(rules, place);
        const std::uint32_t told = known ? shared_->places[static_cast<std::size_t>(value)] : 0;
        return shared[answers_.ask(kQuestions + letter_id, 0, told)];
    }

    Symbol one_of(const std::vector<Symbol>& rules, std::uint32_t place) {
        const std::size_t count = rules.size();
        if (count <= kMostTotal) return rules[answers_.any_of(static_cast<std::uint32_t>(count), place)];
        const auto blocks = static_cast<std::uint32_t>((count - 1) / kMostTotal + 1);
        const std::uint32_t block = answers_.any_of(blocks, place / kMostTotal);
        const auto rest =
            static_cast<std::uint32_t>(std::min<std::size_t>(kMostTotal, count - block * std::size_t{kMostTotal}));
        return rules[block * std::size_t{kMostTotal} + answers_.any_of(rest, place % kMostTotal)];
    }

    Answers& answers_;
    std::size_t size_, letters_ = 0;
    const SharedEnds* shared_;
    Draft& draft_;
    std::size_t most_;
    std::vector<Symbol> ranks_;                 // by letter: its rank among those that occur, or -1
    std::vector<Symbol> firsts_, lasts_;        // by rule: the ranks of the letters it starts and ends with
    std::vector<std::uint32_t> places_;         // by rule: which of those with its last letter it is
    std::vector<std::vector<Symbol>> endings_;  // by rank: the rules that end with that letter
};

// Calls change(symbol) for all symbols of rules and sequence.
template <class Change>
void for_each_symbol(Draft& draft, Change change) {
    for (std::vector<Symbol>* some : {&draft.left, &draft.right, &draft.sequence})
        for (Symbol& symbol : *some) change(symbol);
}

Draft draft_of(const PackedView& document, const SharedEnds* shared) {
    const auto copy = [](std::span<const Symbol> values) { return std::vector<Symbol>(values.begin(), values.end()); };
    Draft draft{copy(document.letters), copy(document.left), copy(document.right), copy(document.sequence)};
    if (shared == nullptr) return draft;
    const std::size_t letters = draft.letters.size();
    for_each_symbol(draft, [&](Symbol& symbol) {
        const auto at = static_cast<std::size_t>(symbol);
        symbol = at < letters ? draft.letters[at] : static_cast<Symbol>(at - letters + shared->first.size());
    });
    return draft;
}

// Back to symbols over the letters that occur.
void pack(Draft& draft, const SharedEnds& shared) {
    const auto first_rule = static_cast<Symbol>(shared.first.size());
    for_each_symbol(draft, [&](Symbol symbol) {
        if (symbol < first_rule) draft.letters.push_back(symbol);
    });
    std::sort(draft.letters.begin(), draft.letters.end());
    draft.letters.erase(std::unique(draft.letters.begin(), draft.letters.end()), draft.letters.end());
    const auto letters = static_cast<Symbol>(draft.letters.size());
    for_each_symbol(draft, [&](Symbol& symbol) {
        symbol = symbol >= first_rule
                     ? symbol - first_rule + letters
                     : static_cast<Symbol>(std::lower_bound(draft.letters.begin(), draft.letters.end(), symbol) -
                                           draft.letters.begin());
    });
}

}  // namespace

void Frequencies::learn(std::size_t row, std::span<const std::uint32_t> counts) {
    std::uint64_t total = 0;
    for (std::uint32_t count : counts) total += count;
    std::uint32_t* const ends = ends_.data() + row * (size_ + 1);
    const std::uint64_t spare = kRowTotal - size_;
    std::uint64_t seen = 0;
    ends[0] = 0;
    for (std::size_t i = 0; i < size_; ++i) {
        // Sums are rounded, not frequencies: so they come out right.
        seen += counts[i];
        const std::uint64_t share = total == 0 ? spare * (i + 1) / size_ : spare * seen / total;
        ends[i + 1] = static_cast<std::uint32_t>(share + i + 1);
    }
}

void Frequencies::set(std::size_t row, std::span<const std::uint16_t> frequencies) {
    std::uint32_t* const ends = ends_.data() + row * (size_ + 1);
    ends[0] = 0;
    for (std::size_t i = 0; i < size_; ++i) {
        if (frequencies[i] == 0) throw GrammarError("the model has a frequency of 0");
        ends[i + 1] = ends[i] + frequencies[i];
    }
    if (ends[size_] != kRowTotal) throw GrammarError("the model has frequencies that do not add up");
}

CompactModel::CompactModel(Symbol alphabet_size, const Rulebook* book) : alphabet_size_(alphabet_size) {
    if (alphabet_size < 1 || alphabet_size > kMostLetters)
        throw GrammarError("compact corpora have alphabets of 1 to " + std::to_string(kMostLetters) + " letters");
    const auto size = static_cast<std::size_t>(alphabet_size);
    if (book != nullptr) {
        if (book->size() > kMostShared)
            throw GrammarError("compact corpora have rulebooks of at most " + std::to_string(kMostShared) + " rules");
        shared_.emplace(*book);
    }
    const std::pair<std::size_t, std::size_t> origin =
        shared_ ? std::pair<std::size_t, std::size_t>(2 * size, kOrigins) : std::pair(kCrowds, std::size_t{2});
    const std::pair<std::size_t, std::size_t> shapes[kQuestions] = {
        {shared_ ? 0 : size, 2}, {1, kWidths + 1}, {3, kSteps}, {size, size}, origin, {size + 1, size}, origin};
    for (const auto& [rows, columns] : shapes) tables.emplace_back(rows, columns);
    if (shared_)
        for (const std::vector<Symbol>& alike : shared_->endings) tables.emplace_back(!alike.empty(), alike.size());
}

CompactModel CompactModel::learn(Symbol alphabet_size, std::span<const PackedView> documents, const Rulebook* book) {
    CompactModel model(alphabet_size, book);
    std::vector<std::vector<std::uint32_t>> counts;
    for (const Frequencies& table : model.tables) counts.emplace_back(table.rows() * table.size(), 0);
    for (const PackedView& document : documents) {
        TableLearner learner{counts, model.tables};
        Draft draft = draft_of(document, model.shared());
        Walk(learner, model, draft, static_cast<std::size_t>(-1)).run();
    }
    for (std::size_t i = 0; i < model.tables.size(); ++i) {
        const std::size_t size = model.tables[i].size();
        for (std::size_t row = 0; row < model.tables[i].rows(); ++row)
            model.tables[i].learn(row, {counts[i].data() + row * size, size});
    }
    return model;
}

std::vector<std::uint16_t> CompactModel::numbers() const {
    std::vector<std::uint16_t> result;
    for (const Frequencies& table : tables)
        for (std::size_t row = 0; row < table.rows(); ++row)
            for (std::size_t i = 0; i < table.size(); ++i)
                result.push_back(static_cast<std::uint16_t>(table.row(row)[i + 1] - table.row(row)[i]));
    return result;
}

CompactModel CompactModel::from_numbers(Symbol alphabet_size, std::span<const std::uint16_t> numbers,
                                        const Rulebook* book) {
    CompactModel model(alphabet_size, book);
    std::size_t wanted = 0;
    for (const Frequencies& table : model.tables) wanted += table.rows() * table.size();
    if (numbers.size() != wanted)
        throw GrammarError("the model has " + std::to_string(numbers.size()) + " frequencies, not " +
                           std::to_string(wanted));
    for (Frequencies& table : model.tables)
        for (std::size_t row = 0; row < table.rows(); ++row, numbers = numbers.subspan(table.size()))
            table.set(row, numbers.first(table.size()));
    return model;
}

void CompactCoder::encode(const PackedView& document, Buffer<std::uint8_t>& out) {
    const std::size_t begin = out.size(), symbols = document.left.size() + document.sequence.size();
    if (symbols > kMostSymbols)
        throw GrammarError(std::to_string(symbols) + " rules and symbols are too many for compact columns");
    Draft draft = draft_of(document, model_.shared());
    Writer writer{model_.tables, RangeEncoder(out)};
    Walk(writer, model_, draft, static_cast<std::size_t>(-1)).run();
    writer.coder.finish();
    while (out.size() > begin && out[out.size() - 1] == 0) out.resize(out.size() - 1);
    while ((out.size() - begin + 1) * kMostPerByte < symbols) out.push_back(0);
}

void CompactCoder::decode(std::span<const std::uint8_t> code, Packed& out) {
    Draft draft;
    Reader reader{model_.tables, RangeDecoder(code)};
    Walk(reader, model_, draft, std::min(kMostSymbols, (code.size() + 1) * kMostPerByte)).run();
    if (model_.shared() != nullptr) pack(draft, *model_.shared());
    out.letters.append(draft.letters.data(), draft.letters.size());
    out.left.append(draft.left.data(), draft.left.size());
    out.right.append(draft.right.data(), draft.right.size());
    out.sequence.append(draft.sequence.data(), draft.sequence.size());
}

}  // namespace laconic
