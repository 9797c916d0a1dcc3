// What is left of a GRC when its two products are done: gates, sum and LayerNorm, a warp for each
// node, and the way back. Set when compiled: SIZE (of a state).

constexpr int kEach = (SIZE + 31) / 32;  // numbers of a state that a lane has
constexpr float kEpsilon = 1e-5f;        // LayerNorm's

__device__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

__device__ float total(float x) {
  for (int by = 16; by; by /= 2) x += __shfl_xor_sync(~0u, x, by);
  return x;
}

// One node: what its gates make of its operands, normalised.
struct Node {
  float left[kEach], right[kEach], f_left[kEach], f_right[kEach], in[kEach], c[kEach];
  float normal[kEach], scale;

  __device__ Node(const float* pair, const float* gates, const float* own, int lane) {
    #pragma unroll
    for (int i = 0; i < kEach; i++) {  // All loads first: none waits for another.
      const int k = lane + 32 * i;
      const bool any = k < SIZE;
      left[i] = any ? pair[k] : 0, right[i] = any ? pair[SIZE + k] : 0;
      f_left[i] = any ? gates[k] : 0, f_right[i] = any ? gates[SIZE + k] : 0;
      in[i] = any ? gates[2 * SIZE + k] : 0, c[i] = any ? gates[3 * SIZE + k] : 0;
      normal[i] = own && any ? own[k] : 0;
    }
    float sum = 0;
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      f_left[i] = sigmoid(f_left[i]), f_right[i] = sigmoid(f_right[i]), in[i] = sigmoid(in[i]);
      normal[i] += f_left[i] * left[i] + f_right[i] * right[i] + in[i] * c[i];
      sum += normal[i];
    }
    const float mean = total(sum) / SIZE;
    float squares = 0;
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      normal[i] = lane + 32 * i < SIZE ? normal[i] - mean : 0;
      squares += normal[i] * normal[i];
    }
    scale = rsqrtf(total(squares) / SIZE + kEpsilon);
    #pragma unroll
    for (int i = 0; i < kEach; i++) normal[i] *= scale;
  }
};

// pairs: [nodes, 2 SIZE]; gates: [nodes, 4 SIZE]; own, states: [nodes, SIZE], own may be none.
extern "C" __global__ void __launch_bounds__(256)
forward(const float* pairs, const float* gates, const float* own, const float* weight,
        const float* bias, float* states, int nodes) {
  const int lane = threadIdx.x & 31;
  for (int n = blockIdx.x * 8 + threadIdx.x / 32; n < nodes; n += 8 * gridDim.x) {
    const long long row = (long long)n * SIZE;
    const Node node(pairs + 2 * row, gates + 4 * row, own ? own + row : own, lane);
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      const int k = lane + 32 * i;
      if (k < SIZE) states[row + k] = node.normal[i] * weight[k] + bias[k];
    }
  }
}

// gradients: [nodes, SIZE], of the states; gates become their own gradients; to_pairs: [nodes,
// 2 SIZE], what does not come through the gates; to_own may be none; norms: [2, SIZE], added to.
extern "C" __global__ void __launch_bounds__(256)
backward(const float* pairs, float* gates, const float* own, const float* weight,
         const float* gradients, float* to_pairs, float* to_own, float* norms, int nodes) {
  const int lane = threadIdx.x & 31;
  float to_weight[kEach] = {}, to_bias[kEach] = {};
  for (int n = blockIdx.x * 8 + threadIdx.x / 32; n < nodes; n += 8 * gridDim.x) {
    const long long row = (long long)n * SIZE;
    float d[kEach], sum = 0, along = 0;
    #pragma unroll
    for (int i = 0; i < kEach; i++) d[i] = lane + 32 * i < SIZE ? gradients[row + lane + 32 * i] : 0;
    const Node node(pairs + 2 * row, gates + 4 * row, own ? own + row : own, lane);
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      to_weight[i] += d[i] * node.normal[i], to_bias[i] += d[i];
      d[i] = lane + 32 * i < SIZE ? d[i] * weight[lane + 32 * i] : 0;
      sum += d[i], along += d[i] * node.normal[i];
    }
    sum = total(sum) / SIZE, along = total(along) / SIZE;
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      const int k = lane + 32 * i;
      if (k >= SIZE) continue;
      const float to = node.scale * (d[i] - sum - node.normal[i] * along);
      float* gate = gates + 4 * row + k;
      gate[0] = to * node.left[i] * node.f_left[i] * (1 - node.f_left[i]);
      gate[SIZE] = to * node.right[i] * node.f_right[i] * (1 - node.f_right[i]);
      gate[2 * SIZE] = to * node.c[i] * node.in[i] * (1 - node.in[i]);
      gate[3 * SIZE] = to * node.in[i];
      to_pairs[2 * row + k] = to * node.f_left[i], to_pairs[2 * row + SIZE + k] = to * node.f_right[i];
      if (to_own) to_own[row + k] = to;
    }
  }
  // First within the block: one address takes one addition at a time.
  __shared__ float sums[2 * SIZE];
  for (int k = threadIdx.x; k < 2 * SIZE; k += 256) sums[k] = 0;
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < kEach; i++) {
    const int k = lane + 32 * i;
    if (k < SIZE) atomicAdd(sums + k, to_weight[i]), atomicAdd(sums + SIZE + k, to_bias[i]);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < 2 * SIZE; k += 256) atomicAdd(norms + k, sums[k]);
}
