// Enough of CUDA for simple kernels to run on the CPU: a thread for each of a block's 256, block
// after block. Shared arrays are static, shuffles go through an array of the warp.
#pragma once
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __expf std::exp

struct Index {
  int x;
};
static thread_local Index threadIdx, blockIdx, gridDim;
static std::barrier<> whole_block(256);
static std::vector<std::unique_ptr<std::barrier<>>> warps;
static float exchanged[8][32];

static void __syncthreads() { whole_block.arrive_and_wait(); }
static float rsqrtf(float x) { return 1 / std::sqrt(x); }
static void atomicAdd(float* to, float x) { std::atomic_ref<float>(*to).fetch_add(x); }
static float __shfl_xor_sync(unsigned, float x, int by) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  exchanged[warp][lane] = x;
  warps[warp]->arrive_and_wait();
  const float other = exchanged[warp][lane ^ by];
  warps[warp]->arrive_and_wait();
  return other;
}

template <class... Given, std::size_t... at>
void run(void (*kernel)(Given...), int blocks, void** given, std::index_sequence<at...>) {
  while (warps.size() < 8) warps.push_back(std::make_unique<std::barrier<>>(32));
  for (int block = 0; block < blocks; block++) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 256; thread++)
      threads.emplace_back([=] {
        threadIdx = {thread}, blockIdx = {block}, gridDim = {blocks};
        kernel(*static_cast<Given*>(given[at])...);
      });
    for (auto& each : threads) each.join();
  }
}

// As the driver launches: a pointer to each argument.
#define LAUNCH(kernel) \
  if (!std::strcmp(name, #kernel)) return launch_of(kernel, blocks, given);
template <class... Given>
int launch_of(void (*kernel)(Given...), int blocks, void** given) {
  run(kernel, blocks, given, std::index_sequence_for<Given...>{});
  return 1;
}
