// One layer of LSTM or GRU, all time steps in one launch, both directions at once.
//
// A cluster of thread blocks owns 16 documents and one direction. Its warps own 8 units each and
// keep their slices of the recurrent weights in registers, as tensor-core fragments, for the whole
// sequence; a thread owns two units of two documents, states included. Nothing is shared but what
// the next product needs: blocks write it into each other's shared memory, and each write counts
// on a barrier of the block that gets it, so that nobody waits for more than that.
//
// Units have four slots each, side by side in memory: input, forget, cell and output gate of an
// LSTM; reset, update, new from the input, new from the state of a GRU.
//
// Set when compiled: WIDTH (units, a multiple of 8), BLOCKS (of a cluster), GRU (0 or 1).

constexpr int kGroups = WIDTH / 8;                        // of units, one for each warp
constexpr int kWarps = (kGroups + BLOCKS - 1) / BLOCKS;   // of a block; the last may have less to do
constexpr int kThreads = 32 * kWarps;
static_assert(WIDTH % 8 == 0 && (BLOCKS - 1) * kWarps < kGroups, "every block needs units");
constexpr int kDocuments = 16;
constexpr int kAhead = 4;                                 // steps whose inputs are on their way

struct Span {  // What a cluster reads: arrays are [steps, documents, ways, WIDTH].
  const i64* lengths;
  int steps, documents, ways;
};

// ---- Who is who.

struct Thread {
  int lane, warp, row, pair, rank, way, first, group, unit;
  int length[2];  // of its documents, first + row and first + row + 8
  int steps;      // of the longest of the sixteen
  bool own;       // whether its warp has units at all

  __device__ Thread(const Span& span)
      : lane(threadIdx.x & 31), warp(threadIdx.x >> 5), row(lane >> 2), pair(lane & 3),
        rank(cluster_rank()) {
    int cluster = blockIdx.x / BLOCKS;
    way = cluster % span.ways;
    first = cluster / span.ways * kDocuments;
    group = rank * kWarps + warp;
    unit = 8 * group + 2 * pair;
    own = group < kGroups;
    for (int half = 0; half < 2; half++) {
      int document = first + row + 8 * half;
      i64 length_ = document < span.documents ? span.lengths[document] : 0;
      length[half] = (int)(length_ < 0 ? 0 : length_ > span.steps ? span.steps : length_);
    }
    steps = __reduce_max_sync(~0u, max(length[0], length[1]));
  }

  __device__ bool exists(const Span& span, int half) const {
    return own && first + row + 8 * half < span.documents;
  }

  // Where its two units are at a step: the second way reads from each document's end, and what is
  // behind a document stays there.
  __device__ i64 place(const Span& span, int half, int step) const {
    int time = way && step < length[half] ? length[half] - 1 - step : step;
    return (((i64)time * span.documents + first + row + 8 * half) * span.ways + way) * WIDTH + unit;
  }
};

// ---- Forward.

constexpr int kParts = (WIDTH + 15) / 16;      // of a product, 16 units of the state before each
constexpr int kStateBytes = kParts * 512;      // [units / 8][documents][8], float16
constexpr int kForwardRing = kThreads * 32;

template <bool keep>
__device__ void forward(const u32* weights, uint4* gates, u32* states, float2* outputs, Span span) {
  extern __shared__ __align__(128) unsigned char shared[];  // states, twice; ring of inputs
  __shared__ u64 barriers[2];
  const Thread me(span);
  const u32 states_at = shared_address(shared), barriers_at = shared_address(barriers);
  const u32 ring = states_at + 2 * kStateBytes + threadIdx.x * 16;

  for (int i = threadIdx.x; i < kStateBytes / 2; i += kThreads) ((u32*)shared)[i] = 0;
  if (threadIdx.x < 2) {
    start_barrier(barriers_at + 8 * threadIdx.x);
    expect(barriers_at + 8 * threadIdx.x, WIDTH * kDocuments * 2);
  }
  u32 w[kParts][4][2];
  #pragma unroll
  for (int part = 0; part < kParts; part++)
    #pragma unroll
    for (int slot = 0; slot < 4; slot++)
      #pragma unroll
      for (int r = 0; r < 2; r++) {
        int from = part * 16 + r * 8 + me.pair * 2;
        i64 to = ((i64)me.way * WIDTH + me.group * 8 + me.row) * 4 + slot;
        w[part][slot][r] = me.own && from < WIDTH ? weights[(to * WIDTH + from) / 2] : 0;
      }
  auto load = [&](int step) {
    if (me.own)
      #pragma unroll
      for (int half = 0; half < 2; half++) {
        bool any = step < me.length[half];
        const uint4* from = gates + (any ? me.place(span, half, step) / 2 : 0);
        load_ahead<16>(ring + (step % kAhead) * kForwardRing + half * kThreads * 16, from, any);
      }
    loads_end();
  };
  for (int step = 0; step < kAhead; step++) load(step);
  cluster_barrier();

  float state[2][2] = {};
  if (me.own)
  for (int step = 0; step < me.steps; step++) {
    await_loads<kAhead - 1>();
    float sums[4][4];
    #pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint4 x = *(const uint4*)(shared + (ring - states_at) + (step % kAhead) * kForwardRing + half * kThreads * 16);
      const float2 a = floats(x.x), b = floats(x.y), c = floats(x.z), d = floats(x.w);
      sums[0][2 * half] = a.x, sums[1][2 * half] = a.y, sums[2][2 * half] = b.x, sums[3][2 * half] = b.y;
      sums[0][2 * half + 1] = c.x, sums[1][2 * half + 1] = c.y, sums[2][2 * half + 1] = d.x, sums[3][2 * half + 1] = d.y;
    }
    load(step + kAhead);
    if (step) {
      const u32 before = (step - 1) & 1, barrier = barriers_at + 8 * before;
      await(barrier, (step - 1) >> 1 & 1);
      if (threadIdx.x == 0) expect(barrier, WIDTH * kDocuments * 2);
      const u32 from = states_at + before * kStateBytes + me.lane * 16;
      #pragma unroll
      for (int part = 0; part < kParts; part++) {
        u32 a[4];
        load_matrix(a, from + part * 512);
        #pragma unroll
        for (int slot = 0; slot < 4; slot++) multiply_halves(sums[slot], a, w[part][slot]);
      }
    }
    float output[4];
    #pragma unroll
    for (int i = 0; i < 4; i++) {  // documents by units
      float& s = state[i / 2][i % 2];
#if GRU
      sums[0][i] = sigmoid(sums[0][i]);
      sums[1][i] = sigmoid(sums[1][i]);
      sums[2][i] = tanh_(sums[2][i] + sums[0][i] * sums[3][i]);
      output[i] = s = sums[2][i] + sums[1][i] * (s - sums[2][i]);
#else
      sums[0][i] = sigmoid(sums[0][i]);
      sums[1][i] = sigmoid(sums[1][i]);
      sums[2][i] = tanh_(sums[2][i]);
      sums[3][i] = sigmoid(sums[3][i]);
      s = sums[1][i] * s + sums[0][i] * sums[2][i];
      output[i] = sums[3][i] * tanh_(s);
#endif
    }
    if (step + 1 < me.steps) {
      // The four threads of a document have 16 bytes, which go to every block: each sends all of
      // them to some.
      const u32 mine[2] = {halves(output[0], output[1]), halves(output[2], output[3])};
      u32 all[2][4];
      #pragma unroll
      for (int half = 0; half < 2; half++)
        #pragma unroll
        for (int i = 0; i < 4; i++) all[half][i] = __shfl_sync(~0u, mine[half], (me.lane & ~3) | i);
      const u32 now = step & 1, to = states_at + now * kStateBytes + me.group * 256 + me.row * 16;
      #pragma unroll
      for (int i = 0; i < (2 * BLOCKS + 3) / 4; i++) {
        const int which = 4 * i + me.pair, half = which / BLOCKS, rank = which % BLOCKS;
        const uint4 v = half ? make_uint4(all[1][0], all[1][1], all[1][2], all[1][3])
                             : make_uint4(all[0][0], all[0][1], all[0][2], all[0][3]);
        if (which < 2 * BLOCKS) send(at_block(to + half * 128, rank), v, at_block(barriers_at + 8 * now, rank));
      }
    }
    #pragma unroll
    for (int half = 0; half < 2; half++)
      if (me.exists(span, half)) {
        const bool any = step < me.length[half];
        const i64 place = me.place(span, half, step) / 2;
        outputs[place] = any ? make_float2(output[2 * half], output[2 * half + 1]) : make_float2(0, 0);
        if (keep && any) {
          const int a = 2 * half, b = a + 1;
          gates[place] = make_uint4(halves(sums[0][a], sums[1][a]), halves(sums[2][a], sums[3][a]),
                                    halves(sums[0][b], sums[1][b]), halves(sums[2][b], sums[3][b]));
          states[place] = halves(state[half][0], state[half][1]);
        }
      }
  }
  for (int step = me.steps; step < span.steps; step++)
    for (int half = 0; half < 2; half++)
      if (me.exists(span, half)) outputs[me.place(span, half, step) / 2] = make_float2(0, 0);
  cluster_barrier();  // Nobody leaves while others may still write to it.
}

// weights: float16 [ways, WIDTH, 4, WIDTH], from the state before to the slots. gates: float16
// [..., WIDTH, 4], what the inputs add to the slots; kept as what became of them. states: float16,
// outputs: float32 [..., WIDTH].
extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(kThreads, 1)
train(const u32* weights, uint4* gates, u32* states, float2* outputs, const i64* lengths, int steps, int documents,
      int ways) {
  forward<true>(weights, gates, states, outputs, {lengths, steps, documents, ways});
}

extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(kThreads, 1)
predict(const u32* weights, uint4* gates, u32* states, float2* outputs, const i64* lengths, int steps,
        int documents, int ways) {
  forward<false>(weights, gates, states, outputs, {lengths, steps, documents, ways});
}

// ---- Backward: each block multiplies the gradients of its own slots with the weights that lead
// to them, and sends every other block its share of the result, to be added up there.

constexpr int kRows = 2 * kWarps;                   // of 16 slots
constexpr int kChunk = 288;                         // 16 documents by 8 slots, and a gap for the banks
constexpr int kSlotBytes = 2 * kRows * kChunk;      // [slots / 8][documents][8], bfloat16
constexpr int kShareBytes = BLOCKS * kThreads * 16; // [blocks][threads] float4
constexpr int kBackwardRing = kThreads * 56;

// weights: bfloat16 [ways, WIDTH, WIDTH * 4], transposed. gates, states: as kept; gates become
// bfloat16 gradients. gradients: float32 [..., WIDTH], of the outputs. biases: float32
// [clusters, WIDTH * 4], sums over documents and steps.
extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(kThreads, 1)
backward(const u32* weights, uint4* gates, const u32* states, const float2* gradients, float4* biases,
         const i64* lengths, int steps, int documents, int ways) {
  const Span span = {lengths, steps, documents, ways};
  extern __shared__ __align__(128) unsigned char shared[];  // slots, twice; shares, twice; ring
  __shared__ u64 barriers[2][kWarps];
  const Thread me(span);
  const u32 slots_at = shared_address(shared), shares_at = slots_at + 2 * kSlotBytes;
  const u32 ring_at = shares_at + 2 * kShareBytes;
  const u32 barriers_at = shared_address(barriers) + 8 * me.warp;
  const u32 share_bytes = BLOCKS * 512;

  for (int i = threadIdx.x; i < kSlotBytes / 2; i += kThreads) ((u32*)shared)[i] = 0;
  if (me.lane < 2) {
    start_barrier(barriers_at + 8 * kWarps * me.lane);
    expect(barriers_at + 8 * kWarps * me.lane, share_bytes);
  }
  u32 w[kRows][BLOCKS][2];
  #pragma unroll
  for (int part = 0; part < kRows; part++)
    #pragma unroll
    for (int block = 0; block < BLOCKS; block++)
      #pragma unroll
      for (int r = 0; r < 2; r++) {
        int from = me.rank * kWarps * 32 + part * 16 + r * 8 + me.pair * 2;
        int group = block * kWarps + me.warp;
        i64 to = (i64)me.way * WIDTH + group * 8 + me.row;
        w[part][block][r] = group < kGroups && from < 4 * WIDTH ? weights[(to * 4 * WIDTH + from) / 2] : 0;
      }
  auto load = [&](int step) {  // Steps run down to 0.
    if (me.own)
      #pragma unroll
      for (int half = 0; half < 2; half++) {
        bool any = 0 <= step && step < me.length[half];
        i64 place = any ? me.place(span, half, step) / 2 : 0;
        u32 to = ring_at + (step & (kAhead - 1)) * kBackwardRing;
        load_ahead<16>(to + (half * kThreads + threadIdx.x) * 16, gates + place, any);
        load_ahead<8>(to + kThreads * 32 + (half * kThreads + threadIdx.x) * 8, gradients + place, any);
        load_ahead<4>(to + kThreads * 48 + (half * kThreads + threadIdx.x) * 4, states + place, any);
      }
    loads_end();
  };
  for (int step = me.steps - 1; step >= me.steps - kAhead; step--) load(step);
  for (int step = me.steps; step < span.steps; step++)
    for (int half = 0; half < 2; half++)
      if (me.exists(span, half)) gates[me.place(span, half, step) / 2] = make_uint4(0, 0, 0, 0);
  cluster_barrier();

  float carried[2][2] = {};  // the gradient of the state that goes on to the step before
  float4 bias[2] = {};
  for (int turn = 0; turn < me.steps; turn++) {
    const int step = me.steps - 1 - turn;
    const u32 now = turn & 1;
    if (me.own) {
      await_loads<kAhead - 2>();  // also the state of the step before
      const unsigned char* ring = shared + (ring_at - slots_at) + (step & (kAhead - 1)) * kBackwardRing;
      const unsigned char* next = shared + (ring_at - slots_at) + ((step - 1) & (kAhead - 1)) * kBackwardRing;
      uint4 x[2];
      float2 d[2], s[2], before[2];
      #pragma unroll
      for (int half = 0; half < 2; half++) {
        x[half] = *(const uint4*)(ring + (half * kThreads + threadIdx.x) * 16);
        d[half] = *(const float2*)(ring + kThreads * 32 + (half * kThreads + threadIdx.x) * 8);
        s[half] = floats(*(const u32*)(ring + kThreads * 48 + (half * kThreads + threadIdx.x) * 4));
        before[half] = floats(*(const u32*)(next + kThreads * 48 + (half * kThreads + threadIdx.x) * 4));
      }
      load(step - kAhead);
      if (turn) {
        const u32 last = (turn - 1) & 1, barrier = barriers_at + 8 * kWarps * last;
        await(barrier, (turn - 1) >> 1 & 1);
        if (me.lane == 0) expect(barrier, share_bytes);
        #pragma unroll
        for (int block = 0; block < BLOCKS; block++) {
          const float4 share = *(const float4*)(shared + 2 * kSlotBytes + last * kShareBytes + (block * kThreads + threadIdx.x) * 16);
          d[0].x += share.x, d[0].y += share.y, d[1].x += share.z, d[1].y += share.w;
        }
      }
      #pragma unroll
      for (int half = 0; half < 2; half++) {
        float g[2][4];
        #pragma unroll
        for (int j = 0; j < 2; j++) {
          const float2 low = floats(j ? x[half].z : x[half].x), high = floats(j ? x[half].w : x[half].y);
          const float old = j ? before[half].y : before[half].x;
          float& on = carried[half][j];
#if GRU
          const float dh = (j ? d[half].y : d[half].x) + on;
          const float n = (dh - dh * low.y) * (1.0f - high.x * high.x);
          g[j][0] = n * high.y * low.x * (1.0f - low.x);
          g[j][1] = dh * (old - high.x) * low.y * (1.0f - low.y);
          g[j][2] = n;
          g[j][3] = n * low.x;
          on = dh * low.y;
#else
          const float dh = j ? d[half].y : d[half].x, t = tanh_(j ? s[half].y : s[half].x);
          const float dc = on + dh * high.y * (1.0f - t * t);
          g[j][0] = dc * high.x * low.x * (1.0f - low.x);
          g[j][1] = dc * old * low.y * (1.0f - low.y);
          g[j][2] = dc * low.x * (1.0f - high.x * high.x);
          g[j][3] = dh * t * high.y * (1.0f - high.y);
          on = dc * low.y;
#endif
          bias[j].x += g[j][0], bias[j].y += g[j][1], bias[j].z += g[j][2], bias[j].w += g[j][3];
        }
        const uint4 made = make_uint4(bfloats(g[0][0], g[0][1]), bfloats(g[0][2], g[0][3]),
                                      bfloats(g[1][0], g[1][1]), bfloats(g[1][2], g[1][3]));
        *(uint4*)(shared + now * kSlotBytes + (4 * me.warp + me.pair) * kChunk + (me.row + 8 * half) * 16) = made;
        if (me.exists(span, half)) gates[me.place(span, half, step) / 2] = made;
      }
    }
    __syncthreads();
    if (step) {
      float sums[BLOCKS][4] = {};
      const u32 from = slots_at + now * kSlotBytes + (me.lane >> 4) * kChunk + (me.lane & 15) * 16;
      #pragma unroll
      for (int part = 0; part < kRows; part++) {
        u32 a[4];
        load_matrix(a, from + part * 2 * kChunk);
        #pragma unroll
        for (int block = 0; block < BLOCKS; block++) multiply_bfloats(sums[block], a, w[part][block]);
      }
      const u32 to = shares_at + now * kShareBytes + (me.rank * kThreads + threadIdx.x) * 16;
      #pragma unroll
      for (int block = 0; block < BLOCKS; block++)
        if (block * kWarps + me.warp < kGroups)
          send(at_block(to, block),
               make_uint4(__float_as_uint(sums[block][0]), __float_as_uint(sums[block][1]),
                          __float_as_uint(sums[block][2]), __float_as_uint(sums[block][3])),
               at_block(barriers_at + 8 * kWarps * now, block));
    }
  }
  #pragma unroll
  for (int j = 0; j < 2; j++)
    for (int by = 4; by < 32; by *= 2) {
      bias[j].x += __shfl_xor_sync(~0u, bias[j].x, by), bias[j].y += __shfl_xor_sync(~0u, bias[j].y, by);
      bias[j].z += __shfl_xor_sync(~0u, bias[j].z, by), bias[j].w += __shfl_xor_sync(~0u, bias[j].w, by);
    }
  if (me.own && me.row == 0)
    for (int j = 0; j < 2; j++) biases[(i64)(blockIdx.x / BLOCKS) * WIDTH + me.unit + j] = bias[j];
  cluster_barrier();
}
