// Enough of CUDA, and of ptx.cu, for kernels of clusters to run on the CPU: a fiber for each thread
// of all blocks, one after the other in turns, so that blocks may wait for each other. Matrices of
// a warp go through an array of the warp.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __grid_constant__
#define __cluster_dims__(...)
#define __launch_bounds__(...)
#define __expf std::exp
using std::min;

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct uint2 { u32 x, y; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
static uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
static float2 make_float2(float x, float y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct Index { int x; };
static Index threadIdx, blockIdx, gridDim;

// ---- Fibers.

constexpr int kFiberThreads = 256, kStack = 1 << 17, kSharedBytes = 1 << 18;

struct Barrier {
  int here = 0, generation = 0;
};
struct Exchanged {
  u32 a[2][32][4], b[2][32][2];
  int turn[32];
};
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool over = false;
};
static std::vector<Fiber> fibers;
static std::vector<Barrier> of_warps, of_blocks, of_clusters;
static std::vector<Exchanged> exchanged;
static std::vector<unsigned char> arena;
static ucontext_t outside;
static int present, moved;

static void let_others() { swapcontext(&fibers[present].context, &outside); }
static void arrive(Barrier& barrier, int count) {
  const int generation = barrier.generation;
  moved = 1;
  if (++barrier.here == count) {
    barrier.here = 0, barrier.generation++;
    return;
  }
  while (barrier.generation == generation) let_others();
}

// ---- CUDA.

static void __syncthreads() { arrive(of_blocks[present / kFiberThreads], kFiberThreads); }
static float rsqrtf(float x) { return 1 / std::sqrt(x); }
template <class T>
T atomicAdd(T* to, T x) {
  const T before = *to;
  *to += x;
  return before;
}
template <class T>
void __stcg(T* to, T x) { *to = x; }
static u32 as_u32(float x) {
  u32 bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
static float as_float(u32 bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
// Gives all lanes' numbers to all; two places in turn, since nobody is two turns ahead.
static Exchanged& exchange(const u32* a, int as, const u32* b, int bs, int& turn) {
  Exchanged& warp = exchanged[present / 32];
  const int lane = present % 32;
  turn = warp.turn[lane]++ & 1;
  for (int i = 0; i < as; i++) warp.a[turn][lane][i] = a[i];
  for (int i = 0; i < bs; i++) warp.b[turn][lane][i] = b[i];
  arrive(of_warps[present / 32], 32);
  return warp;
}
static float __shfl_xor_sync(u32, float x, int by) {
  const u32 mine = as_u32(x);
  int turn;
  const Exchanged& all = exchange(&mine, 1, nullptr, 0, turn);
  return as_float(all.a[turn][present % 32 ^ by][0]);
}

// ---- ptx.cu.

static u32 shared_address(const void* p) { return (u32)((const unsigned char*)p - arena.data()); }
static unsigned char* dynamic_shared() { return arena.data() + (size_t)(present / kFiberThreads) * kSharedBytes; }
static u32 cluster_rank() { return blockIdx.x % BLOCKS; }
static void cluster_barrier() {
  arrive(of_clusters[present / (BLOCKS * kFiberThreads)], BLOCKS * kFiberThreads);
}
template <int bytes>
void load_ahead(u32 to, const void* from, bool any) {
  if (to % bytes || (size_t)from % bytes) std::abort();
  if (any) std::memcpy(arena.data() + to, from, bytes);
  else std::memset(arena.data() + to, 0, bytes);
}
static void loads_end() {}
template <int others>
void await_loads() {}
template <class T>
T load_fresh(const T* from) {
  if ((size_t)from % sizeof(T)) std::abort();
  return *from;
}
static int load_acquire(const int* from) {
  let_others();
  return *(const volatile int*)from;
}
static void add_release(int* to) { ++*to, moved = 1; }
static void add_two(float* to, float x, float y) {
  if ((size_t)to % 8) std::abort();
  to[0] += x, to[1] += y;
}

static u32 half_of(float x) {
  const _Float16 h = (_Float16)std::clamp(x, -65504.0f, 65504.0f);
  unsigned short bits;
  std::memcpy(&bits, &h, 2);
  return bits;
}
static float of_half(u32 bits) {
  const unsigned short low = (unsigned short)bits;
  _Float16 h;
  std::memcpy(&h, &low, 2);
  return (float)h;
}
static u32 bfloat_of(float x) {
  const u32 bits = as_u32(x);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static u32 halves(float low, float high) { return half_of(low) | half_of(high) << 16; }
static u32 bfloats(float low, float high) { return bfloat_of(low) | bfloat_of(high) << 16; }
static float2 floats(u32 both) { return {of_half(both & 0xffff), of_half(both >> 16)}; }
static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

static void load_matrix(u32 (&a)[4], u32 address) {
  if (address % 16) std::abort();
  int turn;
  const Exchanged& all = exchange(&address, 1, nullptr, 0, turn);
  for (int i = 0; i < 4; i++) {  // Matrix i has its rows where lanes 8 i and following say.
    const int lane = present % 32;
    std::memcpy(&a[i], arena.data() + all.a[turn][8 * i + lane / 4][0] + lane % 4 * 4, 4);
  }
}
template <class Read>
void multiply(float (&sum)[4], const u32 (&a)[4], const u32 (&b)[2], Read read) {
  int turn;
  const Exchanged& all = exchange(a, 4, b, 2, turn);
  const int lane = present % 32;
  for (int i = 0; i < 4; i++) {
    const int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; k++) {
      const u32 left = all.a[turn][row % 8 * 4 + k % 8 / 2][row / 8 + 2 * (k / 8)];
      const u32 right = all.b[turn][column * 4 + k % 8 / 2][k / 8];
      sum[i] += read(k % 2 ? left >> 16 : left & 0xffff) * read(k % 2 ? right >> 16 : right & 0xffff);
    }
  }
}
static void multiply_halves(float (&sum)[4], const u32 (&a)[4], const u32 (&b)[2]) { multiply(sum, a, b, of_half); }
static void multiply_bfloats(float (&sum)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  multiply(sum, a, b, [](u32 bits) { return as_float(bits << 16); });
}

// ---- Launching, as the driver does: a pointer to each argument.

static void (*started)(void**);
static void** started_with;
static void enter() {
  started(started_with);
  fibers[present].over = true;
  moved = 1;
  let_others();
}

template <auto kernel, class... Given, std::size_t... at>
void call(void (*)(Given...), void** given, std::index_sequence<at...>) {
  kernel(*static_cast<Given*>(given[at])...);
}
template <auto kernel, class... Given>
void with_arguments(void (*type)(Given...), void** given) {
  call<kernel>(type, given, std::index_sequence_for<Given...>{});
}

// Of the clusters so many run at a time. Returns 1 when all is done, -1 when nobody can go on, -2 when more shared memory was used.
template <auto kernel>
int run(int blocks, void** given, int shared, int resident) {
  fibers = std::vector<Fiber>(blocks * kFiberThreads);
  of_warps.assign(fibers.size() / 32, {}), of_blocks.assign(blocks, {}), of_clusters.assign(blocks / BLOCKS, {});
  exchanged.assign(fibers.size() / 32, {});
  arena.assign((size_t)blocks * kSharedBytes, 0xff);  // not a number, wherever nothing was written
  gridDim = {blocks};
  started = [](void** all) { with_arguments<kernel>(kernel, all); }, started_with = given;
  for (auto& fiber : fibers) {
    getcontext(&fiber.context);
    fiber.stack.reset(new char[kStack]);
    fiber.context.uc_stack.ss_sp = fiber.stack.get(), fiber.context.uc_stack.ss_size = kStack;
    makecontext(&fiber.context, enter, 0);
  }
  for (int idle = 0; idle < 3; idle++) {
    moved = 0;
    size_t over = 0;
    for (present = 0; present < (int)fibers.size(); present++) {
      if (fibers[present].over) {
        over++;
        continue;
      }
      if (present / (BLOCKS * kFiberThreads) >= resident + (int)(over / (BLOCKS * kFiberThreads))) break;
      threadIdx = {present % kFiberThreads}, blockIdx = {present / kFiberThreads};
      swapcontext(&outside, &fibers[present].context);
    }
    if (over == fibers.size()) {
      for (size_t i = 0; i < arena.size(); i++)
        if ((int)(i % kSharedBytes) >= shared && arena[i] != 0xff) return -2;
      return 1;
    }
    if (moved) idle = -1;
  }
  return -1;
}

#define LAUNCH(kernel) \
  if (!std::strcmp(name, #kernel)) return run<kernel>(blocks, given, shared, resident);
