// Windows -> 0, 1, 2, … in the order in which they were added, in one open-addressing table.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "buffer.hpp"
#include "grammar.hpp"
#include "window_key.hpp"

namespace laconic {

inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

template <std::size_t Words>
class WindowTable {
public:
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;

    WindowTable() { allocate(kStart); }

    std::size_t size() const { return size_; }

    void clear() {
        allocate(kStart);
        size_ = 0;
    }

    void expect(const Key<Words>& key) const { prefetch(&slots_[home(key)]); }

    std::uint32_t find(const Key<Words>& key) const {
        for (std::size_t slot = home(key);; slot = (slot + 1) & mask_) {
            if (slots_[slot].key == key) return slots_[slot].number;
            if (slots_[slot].key.empty()) return kNone;
        }
    }

    // The number of a window, which is new if it is what size() was.
    std::uint32_t add(const Key<Words>& key) {
        for (std::size_t slot = home(key);; slot = (slot + 1) & mask_) {
            if (slots_[slot].key == key) return slots_[slot].number;
            if (!slots_[slot].key.empty()) continue;
            if (size_ == kNone)
                throw GrammarError("more than 2^32 - 1 different n-grams; count shorter ones, or fewer documents");
            const auto number = static_cast<std::uint32_t>(size_);
            slots_[slot] = {key, number};
            if (++size_ * 8 > (mask_ + 1) * 5) grow();
            return number;
        }
    }

    // Calls visit(key, number) for every window, in no order.
    template <class Visit>
    void each(Visit visit) const {
        for (const Slot& slot : slots_)
            if (!slot.key.empty()) visit(slot.key, slot.number);
    }

private:
    struct Slot {
        Key<Words> key;
        std::uint32_t number;
    };

    std::size_t home(const Key<Words>& key) const { return static_cast<std::size_t>(key.hash() >> shift_); }

    void allocate(std::size_t slots) {
        slots_.renew(slots);
        slots_.prefer_huge_pages();
        std::memset(static_cast<void*>(slots_.data()), 0, slots * sizeof(Slot));
        mask_ = slots - 1;
        shift_ = 64 - std::countr_zero(slots);
    }

    void grow() {
        Buffer<Slot> old = std::move(slots_);
        slots_ = Buffer<Slot>();
        allocate(2 * old.size());
        for (const Slot& moved : old) {
            if (moved.key.empty()) continue;
            std::size_t slot = home(moved.key);
            while (!slots_[slot].key.empty()) slot = (slot + 1) & mask_;
            slots_[slot] = moved;
        }
    }

    static constexpr std::size_t kStart = 4096;
    Buffer<Slot> slots_;
    std::size_t mask_ = 0, size_ = 0;
    int shift_ = 64;
};

}  // namespace laconic
