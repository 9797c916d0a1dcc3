// Work on several threads, while the calling one polls for a wish to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace laconic {

// Calls work(i, worker) for i = 0 … count-1, each once, on `threads` threads, while this one polls. Sets `stop` when
// something is thrown, and throws it on when all threads have ended.
template <class Work>
void parallel(std::size_t count, std::size_t threads, const std::function<void()>& poll, std::atomic<bool>& stop,
              const Work& work) {
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::condition_variable finished;
    std::size_t running = threads;
    std::exception_ptr error;
    const auto fail = [&] {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = count;
        stop = true;
    };
    const auto run = [&](std::size_t worker) {
        try {
            for (std::size_t i; (i = next.fetch_add(1)) < count;) work(i, worker);
        } catch (...) {
            fail();
        }
        const std::lock_guard lock(mutex);
        --running;
        finished.notify_one();
    };
    std::vector<std::thread> pool;
    try {
        for (std::size_t worker = 0; worker < threads; ++worker) pool.emplace_back(run, worker);
        std::unique_lock lock(mutex);
        while (!finished.wait_for(lock, std::chrono::milliseconds(50), [&] { return running == 0; })) {
            lock.unlock();
            poll();
            lock.lock();
        }
    } catch (...) {
        fail();
    }
    for (std::thread& thread : pool) thread.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace laconic
