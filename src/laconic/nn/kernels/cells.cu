// What is left of a composer's cell when its two products are done, and the way back.
//
// Set when compiled: SIZE (of a state). Arrays are float32 [nodes, …]; pairs, [nodes, 2 SIZE], are
// the operands of nodes, left and right; own, which may be none, is what nodes have beside them.

typedef long long i64;

constexpr int kEach = (SIZE + 31) / 32;  // numbers of a state that a lane has
constexpr float kEpsilon = 1e-5f;        // LayerNorm's

__device__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

__device__ float total(float x) {
  for (int by = 16; by; by /= 2) x += __shfl_xor_sync(~0u, x, by);
  return x;
}

// ---- GRC: gates, sum and LayerNorm, a warp for each node.

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

// gates: [nodes, 4 SIZE].
extern "C" __global__ void __launch_bounds__(256)
grc_forward(const float* pairs, const float* gates, const float* own, const float* weight,
        const float* bias, float* states, int nodes) {
  const int lane = threadIdx.x & 31;
  for (int n = blockIdx.x * 8 + threadIdx.x / 32; n < nodes; n += 8 * gridDim.x) {
    const i64 row = (i64)n * SIZE;
    const Node node(pairs + 2 * row, gates + 4 * row, own ? own + row : own, lane);
    #pragma unroll
    for (int i = 0; i < kEach; i++) {
      const int k = lane + 32 * i;
      if (k < SIZE) states[row + k] = node.normal[i] * weight[k] + bias[k];
    }
  }
}

// gates become their own gradients; to_pairs: what does not come through them; weights and
// biases, LayerNorm's gradients, are added to.
extern "C" __global__ void __launch_bounds__(256)
grc_backward(const float* pairs, float* gates, const float* own, const float* weight,
         const float* gradients, float* to_pairs, float* to_own, float* weights,
             float* biases, int nodes) {
  const int lane = threadIdx.x & 31;
  float to_weight[kEach] = {}, to_bias[kEach] = {};
  for (int n = blockIdx.x * 8 + threadIdx.x / 32; n < nodes; n += 8 * gridDim.x) {
    const i64 row = (i64)n * SIZE;
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
  for (int k = threadIdx.x; k < SIZE; k += 256) {
    atomicAdd(weights + k, sums[k]), atomicAdd(biases + k, sums[SIZE + k]);
  }
}

// ---- Dual GRU: three shares by softmax, a reset gate for each operand; a thread for each number.
// gates: [nodes, 5 SIZE], three of the shares and two of the resets.

#define FOR_EACH                                                                                  \
  for (i64 at = blockIdx.x * 256ll + threadIdx.x; at < (i64)nodes * SIZE; at += 256ll * gridDim.x)

struct Shares {
  float left, right, in;

  __device__ Shares(const float* gates) {
    const float a = gates[0], b = gates[SIZE], c = gates[2 * SIZE];
    const float most = fmaxf(a, fmaxf(b, c));
    left = __expf(a - most), right = __expf(b - most), in = __expf(c - most);
    const float all = 1.0f / (left + right + in);
    left *= all, right *= all, in *= all;
  }
};

// open: [nodes, 2 SIZE], the operands as far as the resets let them through.
extern "C" __global__ void __launch_bounds__(256)
dual_gru_open(const float* pairs, const float* gates, float* open, int nodes) {
  FOR_EACH {
    const i64 node = at / SIZE, k = at % SIZE;
    const float* gate = gates + node * 5 * SIZE + 3 * SIZE + k;
    const i64 pair = node * 2 * SIZE + k;
    open[pair] = sigmoid(gate[0]) * pairs[pair];
    open[pair + SIZE] = sigmoid(gate[SIZE]) * pairs[pair + SIZE];
  }
}

// candidates: [nodes, SIZE].
extern "C" __global__ void __launch_bounds__(256)
dual_gru_forward(const float* pairs, const float* gates, const float* candidates, const float* own,
                 float* states, int nodes) {
  FOR_EACH {
    const i64 node = at / SIZE, k = at % SIZE;
    const Shares share(gates + node * 5 * SIZE + k);
    const float* pair = pairs + node * 2 * SIZE + k;
    const float made = share.left * pair[0] + share.right * pair[SIZE] + share.in * sigmoid(candidates[at]);
    states[at] = own ? made + own[at] : made;
  }
}

// The shares and the candidates become their own gradients.
extern "C" __global__ void __launch_bounds__(256)
dual_gru_backward(const float* pairs, float* gates, float* candidates, const float* gradients,
                  float* to_pairs, float* to_own, int nodes) {
  FOR_EACH {
    const i64 node = at / SIZE, k = at % SIZE;
    float* gate = gates + node * 5 * SIZE + k;
    const Shares share(gate);
    const float* pair = pairs + node * 2 * SIZE + k;
    const float made = sigmoid(candidates[at]), given = gradients[at];
    const float mean = share.left * pair[0] + share.right * pair[SIZE] + share.in * made;
    gate[0] = given * share.left * (pair[0] - mean);
    gate[SIZE] = given * share.right * (pair[SIZE] - mean);
    gate[2 * SIZE] = given * share.in * (made - mean);
    candidates[at] = given * share.in * made * (1 - made);
    to_pairs[node * 2 * SIZE + k] = given * share.left;
    to_pairs[node * 2 * SIZE + SIZE + k] = given * share.right;
    if (to_own) to_own[at] = given;
  }
}

// to_open: the gradients of what the resets let through; the resets become theirs.
extern "C" __global__ void __launch_bounds__(256)
dual_gru_reset(const float* pairs, float* gates, const float* to_open, float* to_pairs, int nodes) {
  FOR_EACH {
    const i64 node = at / SIZE, k = at % SIZE;
    for (int side = 0; side < 2; side++) {
      float* gate = gates + node * 5 * SIZE + (3 + side) * SIZE + k;
      const i64 pair = node * 2 * SIZE + side * SIZE + k;
      const float open = sigmoid(*gate), given = to_open[pair];
      to_pairs[pair] += given * open;
      *gate = given * pairs[pair] * open * (1 - open);
    }
  }
}
