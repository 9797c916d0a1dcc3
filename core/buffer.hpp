// A growable array that never initialises what it holds and keeps its memory between documents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace laconic {

// std::vector writes zeros over memory that a codec is about to fill, and copies when it shrinks. Workspaces
// are sized to each document, so both would cost more than short documents take to compress.
template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~Buffer() { std::free(data_); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return capacity_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }

    void clear() { size_ = 0; }

    // Room for at least `capacity` elements, all below the old capacity kept; grows by half, so that appending stays
    // linear.
    void reserve(std::size_t capacity) {
        if (capacity > capacity_)
            reallocate(capacity > capacity_ + capacity_ / 2 ? capacity : capacity_ + capacity_ / 2);
    }

    void resize(std::size_t size) {
        reserve(size);
        size_ = size;
    }

    // As resize, when the old elements are not wanted: nothing is copied, nothing is over-allocated.
    void renew(std::size_t size) {
        if (size > capacity_) {
            std::free(std::exchange(data_, nullptr));
            size_ = capacity_ = 0;
            reallocate(size);
        }
        size_ = size;
    }

    // Gives memory beyond the elements back to the system.
    void trim() {
        if (size_ < capacity_ && size_ > 0) reallocate(size_);
    }

    // Asks the system for large pages, where it has them: what is read here and there all over a long buffer
    // otherwise waits for the page table as long as for the memory.
    void prefer_huge_pages() {
#if defined(__linux__)
        constexpr std::uintptr_t kPage = 4096, kLong = 1 << 22;
        if (capacity_ * sizeof(T) < kLong) return;
        const auto begin = (reinterpret_cast<std::uintptr_t>(data_) + kPage - 1) / kPage * kPage;
        const auto end = reinterpret_cast<std::uintptr_t>(data_ + capacity_) / kPage * kPage;
        madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
    }

    void push_back(T value) {
        if (size_ == capacity_) reserve(size_ < 16 ? 16 : size_ + 1);
        data_[size_++] = value;
    }

    void append(const T* values, std::size_t count) {
        reserve(size_ + count);
        for (std::size_t i = 0; i < count; ++i) data_[size_ + i] = values[i];
        size_ += count;
    }

private:
    void reallocate(std::size_t capacity) {
        if (capacity > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_alloc();
        void* data = std::realloc(data_, capacity * sizeof(T));
        if (data == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(data);
        capacity_ = capacity;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace laconic
