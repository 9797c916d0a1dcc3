#include "codecs.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "lz78.hpp"

namespace laconic {
namespace {

// A compressor of what a function does with (text, alphabet_size, out), for terminals of any width.
template <class Work>
class Function final : public Compressor {
public:
    explicit Function(Work work) : work_(std::move(work)) {}
    void compress(std::span<const std::uint8_t> text, Symbol alphabet_size, Output& out) override {
        work_(text, alphabet_size, out);
    }
    void compress(std::span<const std::uint16_t> text, Symbol alphabet_size, Output& out) override {
        work_(text, alphabet_size, out);
    }
    void compress(std::span<const std::int32_t> text, Symbol alphabet_size, Output& out) override {
        work_(text, alphabet_size, out);
    }

private:
    Work work_;
};

template <class Work>
std::unique_ptr<Compressor> compressor(Work work) {
    return std::make_unique<Function<Work>>(std::move(work));
}

std::unique_ptr<Compressor> make_repair(const CodecOptions& options) {
    return compressor([repair = Repair{}, told = options.repair](auto text, Symbol size, Output& out) mutable {
        repair.compress(text, size, told, out);
    });
}

std::unique_ptr<Compressor> make_lz78(const CodecOptions&) {
    return compressor([lz78 = Lz78{}](auto text, Symbol size, Output& out) mutable { lz78.compress(text, size, out); });
}

std::unique_ptr<Compressor> make_lzd(const CodecOptions& options) {
    return compressor([lzd = Lzd{}, letters = options.letters](auto text, Symbol size, Output& out) mutable {
        lzd.compress(text, size, letters, out);
    });
}

std::unique_ptr<Compressor> make_none(const CodecOptions&) {
    return compressor([](auto text, Symbol, Output& out) {
        const std::size_t begin = out.sequence.size();
        out.sequence.resize(begin + text.size());
        std::copy(text.begin(), text.end(), out.sequence.begin() + begin);
    });
}

}  // namespace

const std::vector<Codec>& codecs() {
    static const std::vector<Codec> all{
        {"repair", {"min_count", "max_rules", "max_expansion"}, make_repair},
        {"lz78", {}, make_lz78},
        {"lzd", {"letters"}, make_lzd},
        {"none", {}, make_none},
    };
    return all;
}

const Codec& codec_named(std::string_view name) {
    const auto found = std::ranges::find(codecs(), name, &Codec::name);
    if (found == codecs().end()) throw GrammarError("no codec is named " + std::string(name));
    return *found;
}

}  // namespace laconic
