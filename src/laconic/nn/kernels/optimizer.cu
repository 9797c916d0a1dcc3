// What a step does with gradients, which lie side by side in one array: they are added up, measured,
// and applied as Adam applies them.
//
// Numbers are float32. A parameter is cut into chunks, int64 [chunks, 4] each: which parameter, where
// in it the chunk begins, where in the array of gradients, and how many numbers it has, at most
// 2,048. Pointers, int64 [parameters, 4]: weights, averages of gradients, of their squares, steps.

typedef long long i64;

constexpr int kThreads = 256, kEach = 8;  // numbers of a chunk that a thread has
constexpr int kMost = 128;                // parameters whose gradients are added by one launch

struct Sources {
  const float* of[kMost];
};

struct Chunk {
  i64 parameter, begin, at;
  int count;

  __device__ Chunk(const i64* chunk)
      : parameter(chunk[0]), begin(chunk[1]), at(chunk[2]), count((int)chunk[3]) {}
};

// Where settings, float64, are.
enum { kRate, kClip, kBeta1, kBeta2, kEpsilon, kDecay, kDecoupled };

// The sum over a block, for all of its threads.
__device__ float block_total(float x) {
  __shared__ float of_warps[kThreads / 32];
  for (int by = 16; by; by /= 2) x += __shfl_xor_sync(~0u, x, by);
  __syncthreads();  // What was summed before has been read.
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < kThreads / 32; warp++) sum += of_warps[warp];
  return sum;
}

// sources: gradients of the parameters from `first` on, none where there are none.
extern "C" __global__ void __launch_bounds__(kThreads)
add_gradients(Sources sources, int first, const i64* chunks, int chunk_count, float* gradients) {
  for (int c = blockIdx.x; c < chunk_count; c += gridDim.x) {
    const Chunk chunk(chunks + 4 * (i64)c);
    const i64 source = chunk.parameter - first;
    if (source < 0 || source >= kMost || !sources.of[source]) continue;
    const float* from = sources.of[source] + chunk.begin;
    float* to = gradients + chunk.at;
    float one[kEach], other[kEach];
    #pragma unroll
    for (int i = 0; i < kEach; i++) {  // All loads first: none waits for another.
      const int k = threadIdx.x + kThreads * i;
      one[i] = k < chunk.count ? from[k] : 0, other[i] = k < chunk.count ? to[k] : 0;
    }
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      const int k = threadIdx.x + kThreads * i;
      if (k < chunk.count) to[k] = one[i] + other[i];
    }
  }
}

// squares: of the gradients, summed by each block. Steps are counted here, and corrections are,
// for each parameter, the rate by the first moment's and the inverse root of the second's.
extern "C" __global__ void __launch_bounds__(kThreads)
measure_gradients(const i64* chunks, int chunk_count, const float* gradients, const i64* pointers,
                  int parameters, const double* settings, float* squares, float* corrections) {
  for (int p = blockIdx.x * kThreads + threadIdx.x; p < parameters; p += kThreads * gridDim.x) {
    float* steps = (float*)pointers[4 * p + 3];
    const float step = *steps + 1;
    *steps = step;
    corrections[2 * p] = (float)(settings[kRate] / (1 - pow(settings[kBeta1], (double)step)));
    corrections[2 * p + 1] = (float)(1 / sqrt(1 - pow(settings[kBeta2], (double)step)));
  }
  if (settings[kClip] <= 0) return;
  float sum = 0;
  for (int c = blockIdx.x; c < chunk_count; c += gridDim.x) {
    const Chunk chunk(chunks + 4 * (i64)c);
    const float* from = gradients + chunk.at;
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      const int k = threadIdx.x + kThreads * i;
      const float x = k < chunk.count ? from[k] : 0;
      sum += x * x;
    }
  }
  sum = block_total(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

// square_count: of squares. Gradients become 0 as they are read.
extern "C" __global__ void __launch_bounds__(kThreads)
apply_adam(const i64* chunks, int chunk_count, float* gradients, const i64* pointers,
           const double* settings, const float* squares, int square_count,
           const float* corrections) {
  float factor = 1;
  if (settings[kClip] > 0) {
    float sum = 0;
    for (int i = threadIdx.x; i < square_count; i += kThreads) sum += squares[i];
    factor = (float)settings[kClip] / (sqrtf(block_total(sum)) + 1e-6f);
    if (factor > 1) factor = 1;  // What is no number stays none, for who watches losses.
  }
  const float keep1 = (float)settings[kBeta1], add1 = (float)(1 - settings[kBeta1]);
  const float keep2 = (float)settings[kBeta2], add2 = (float)(1 - settings[kBeta2]);
  const float epsilon = (float)settings[kEpsilon], decay = (float)settings[kDecay];
  const bool decoupled = settings[kDecoupled] != 0;
  const float shrink = decoupled ? (float)(1 - settings[kRate] * settings[kDecay]) : 1;
  for (int c = blockIdx.x; c < chunk_count; c += gridDim.x) {
    const Chunk chunk(chunks + 4 * (i64)c);
    const i64* of = pointers + 4 * chunk.parameter;
    float* weights = (float*)of[0] + chunk.begin;
    float* averages = (float*)of[1] + chunk.begin;
    float* averaged_squares = (float*)of[2] + chunk.begin;
    float* given = gradients + chunk.at;
    const float rate = corrections[2 * chunk.parameter];
    const float scale = corrections[2 * chunk.parameter + 1];
    float w[kEach], m[kEach], v[kEach], g[kEach];
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      const int k = threadIdx.x + kThreads * i;
      const bool any = k < chunk.count;
      w[i] = any ? weights[k] : 0, g[i] = any ? given[k] : 0;
      m[i] = any ? averages[k] : 0, v[i] = any ? averaged_squares[k] : 0;
    }
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      const int k = threadIdx.x + kThreads * i;
      if (k >= chunk.count) continue;
      float gradient = g[i] * factor;
      if (!decoupled) gradient += decay * w[i];
      m[i] = keep1 * m[i] + add1 * gradient;
      v[i] = keep2 * v[i] + add2 * gradient * gradient;
      weights[k] = w[i] * shrink - rate * m[i] / (sqrtf(v[i]) * scale + epsilon);
      averages[k] = m[i], averaged_squares[k] = v[i], given[k] = 0;
    }
  }
}
