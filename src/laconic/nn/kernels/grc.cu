// GRC on all levels of a forest: h = GELU(W1 [l; r] + b1); [f1, f2, i, c] = W2 h + b2;
// LayerNorm(s(f1) l + s(f2) r + s(i) c + own). Put after ptx.cu and forest.cu.
//
// A block has 64 hidden numbers, 8 for each warp, and 32 units, 8 for each pair of warps: the first
// has the gates of both operands, the second the rest. Rows of a piece are nodes.

constexpr float kEpsilon = 1e-5f;  // LayerNorm's
constexpr int kAtOnce = 5;         // rows of a warp whose loads and sums do not wait for each other

__device__ float normal_below(float x) { return 0.5f + 0.5f * erff(x * 0.70710678118654752f); }
__device__ float gelu(float x) { return x * normal_below(x); }
__device__ float gelu_slope(float x) {
  return normal_below(x) + x * 0.3989422804014327f * __expf(-0.5f * x * x);
}

// Writes states. What blocks tell each other: hidden, float16 [clusters, kRows, 2 SIZE], and shares,
// [clusters, kRows, 8], of rows: means, and squares of the distances from them. Kept, unless there is nowhere to: before, float16 [nodes, 2 SIZE], what
// GELU is of; gates, float16 [nodes, 4 SIZE], as open as they are; scales, [nodes], means and
// inverse deviations. own may be none.
extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(kThreads, 1)
grc_up(const __grid_constant__ Levels levels, const float* w1, const float* b1, const float* w2,
       const float* b2, const float* weight, const float* bias, const int* children, const float* own,
       float* states, u32* before, u32* gates, float2* scales, u32* hidden, float2* shares, int* counters,
       int terminals) {
  unsigned char* const shared = dynamic_shared();  // rows; operands' units; what they join; operands
  float* const sides = (float*)(shared + kRows * kPitch);
  float* const joined = sides + 2 * kRows * kJoinedPitch;
  int* const operands = (int*)(joined + 2 * kRows * kJoinedPitch);
  const u32 shared_at = shared_address(shared);
  Forest forest(levels, counters, false);
  const Lane me;
  const int group = forest.rank * kWarps + me.warp;            // of hidden numbers
  const int second = me.warp & 1, units = forest.rank * 4 + me.warp / 2;
  const int column = 8 * group + 2 * me.pair, unit = 8 * units + 2 * me.pair;
  const bool has_hidden = 8 * group < kBoth, has_units = 8 * units < SIZE;
  const int width = min(32, SIZE - 32 * forest.rank);          // units of the block
  hidden += (i64)forest.cluster * kRows * kBoth / 2, shares += (i64)forest.cluster * kRows * 8;

  u32 of_hidden[1][kParts][2], of_gates[2][kParts][2];
  float hidden_bias[2] = {}, gate_bias[2][2] = {};
  load_weights<false, kBoth, 1>(of_hidden[0], w1 + (i64)(8 * group + me.row) * kBoth, has_hidden, me.pair);
  #pragma unroll
  for (int g = 0; g < 2; g++)
    load_weights<false, kBoth, 1>(of_gates[g], w2 + (i64)((2 * second + g) * SIZE + 8 * units + me.row) * kBoth,
                           has_units, me.pair);
  if (has_hidden) hidden_bias[0] = b1[column], hidden_bias[1] = b1[column + 1];
  if (has_units)
    for (int g = 0; g < 2; g++)
      for (int j = 0; j < 2; j++) gate_bias[g][j] = b2[(2 * second + g) * SIZE + unit + j];

  const float norm_weight = me.lane < width ? weight[32 * forest.rank + me.lane] : 0;
  const float norm_bias = me.lane < width ? bias[32 * forest.rank + me.lane] : 0;

  for (int turn = 0; forest.find(turn); turn++) {
    const int tiles = forest.present_tiles();
    forest.load_operands(operands, children);
    forest.await_level();
    const int next = forest.ask();
    gather(shared, sides, states, operands, tiles, forest.rank);
    __syncthreads();
    if (has_hidden)
      #pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        float sums[1][4];
        product<false>(sums, left_side(shared_at, me.lane, tile, kPitch), of_hidden);
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          const float x = sums[0][2 * half] + hidden_bias[0], y = sums[0][2 * half + 1] + hidden_bias[1];
          __stcg(hidden + (r * kBoth + column) / 2, halves(gelu(x), gelu(y)));
          if (before && r < forest.rows) before[((i64)(forest.first + r) * kBoth + column) / 2] = halves(x, y);
        }
      }
    forest.tell(turn + 1, next);
    cluster_barrier();

    load_rows<kBoth>(shared_at, hidden, 16 * tiles, tiles);
    if (has_units)
      #pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        float sums[2][4];
        product<false>(sums, left_side(shared_at, me.lane, tile, kPitch), of_gates);
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          const int at = r * kJoinedPitch + 8 * (me.warp / 2) + 2 * me.pair;
          float open[2][2], made[2];
          #pragma unroll
          for (int j = 0; j < 2; j++) {
            const float x = sums[0][2 * half + j] + gate_bias[0][j], y = sums[1][2 * half + j] + gate_bias[1][j];
            open[0][j] = sigmoid(x), open[1][j] = second ? y : sigmoid(y);
            made[j] = second ? open[0][j] * y
                             : open[0][j] * sides[at + j] + open[1][j] * sides[at + j + kRows * kJoinedPitch];
          }
          *(float2*)(joined + second * kRows * kJoinedPitch + at) = make_float2(made[0], made[1]);
          if (gates && r < forest.rows)
            for (int g = 0; g < 2; g++)
              gates[((i64)(forest.first + r) * 4 * SIZE + (2 * second + g) * SIZE + unit) / 2] =
                  halves(open[g][0], open[g][1]);
        }
      }
    __syncthreads();

    const bool any = me.lane < width;
    const int k = 32 * forest.rank + me.lane;
    for (int from = me.warp; from < forest.rows; from += kAtOnce * kWarps) {
      float x[kAtOnce];
      #pragma unroll
      for (int e = 0; e < kAtOnce; e++) {
        const int r = from + e * kWarps;
        const float* at = joined + r * kJoinedPitch + me.lane;
        const bool here = any && r < forest.rows;
        x[e] = here && own ? own[(i64)(forest.first + r) * SIZE + k] : 0;
        if (here) x[e] += at[0] + at[kRows * kJoinedPitch];
      }
      #pragma unroll
      for (int e = 0; e < kAtOnce; e++) {
        const int r = from + e * kWarps;
        const float mean = total(x[e]) / width;
        const float squares = total(any ? (x[e] - mean) * (x[e] - mean) : 0);
        if (r >= forest.rows) continue;
        joined[r * kJoinedPitch + me.lane] = x[e];
        if (me.lane == 0) __stcg(shares + r * 8 + forest.rank, make_float2(mean, squares));
      }
    }
    cluster_barrier();

    const int there = me.lane & 7, its = there < BLOCKS ? min(32, SIZE - 32 * there) : 0;
    for (int from = me.warp; from < forest.rows; from += kAtOnce * kWarps) {
      float2 share[kAtOnce];
      #pragma unroll
      for (int e = 0; e < kAtOnce; e++)
        share[e] = its && from + e * kWarps < forest.rows ? load_fresh(shares + (from + e * kWarps) * 8 + there) : make_float2(0, 0);
      #pragma unroll
      for (int e = 0; e < kAtOnce; e++) {
        const int r = from + e * kWarps;
        const float mean = total<8>(share[e].x * its) / SIZE, away = share[e].x - mean;
        const float scale = rsqrtf(total<8>(share[e].y + its * away * away) / SIZE + kEpsilon);
        if (r >= forest.rows) continue;
        const i64 node = forest.first + r;
        if (any)
          states[(terminals + node) * SIZE + k] =
              (joined[r * kJoinedPitch + me.lane] - mean) * scale * norm_weight + norm_bias;
        if (scales && forest.rank == 0 && me.lane == 0) scales[node] = make_float2(mean, scale);
      }
    }
    forest.finish();
  }
}

// ---- The way back: rows of a piece are spread over all warps of the cluster until the gradients
// of the gates are known, then warps have their columns again.

constexpr int kGateParts = parts_of<4 * SIZE>, kGatePitch = pitch_of<4 * SIZE>;

// gradients: float32 [terminals + nodes, SIZE], of all states, added to. Written, bfloat16: to_gates
// [nodes, 4 SIZE], to_before, hidden and pairs [nodes, 2 SIZE]; float32: to_own [nodes, SIZE], or
// none. sums: float32 [8 SIZE], added to: gradients of b2, LayerNorm's weight and bias, b1.
extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(kThreads, 1)
grc_down(const __grid_constant__ Levels levels, const float* w1, const float* w2, const float* weight,
         const int* children, const float* own, const float* states, const u32* before, const u32* gates,
         const float2* scales, float* gradients, u32* to_gates, u32* to_before, u32* hidden, u32* pairs,
         float* to_own, float* sums, int* counters, int terminals) {
  unsigned char* const shared = dynamic_shared();  // rows; sums of each warp; operands
  float* const all_sums = (float*)(shared + kRows * kGatePitch);
  int* const operands = (int*)(all_sums + kWarps * 6 * SIZE);
  const u32 shared_at = shared_address(shared);
  for (int i = threadIdx.x; i < kWarps * 6 * SIZE; i += kThreads) all_sums[i] = 0;
  Forest forest(levels, counters, true);
  const Lane me;
  float* const my_sums = all_sums + me.warp * 6 * SIZE;
  const int group = forest.rank * kWarps + me.warp, column = 8 * group + 2 * me.pair;
  const bool has_columns = 8 * group < kBoth;

  u32 to_hidden[1][kGateParts][2], to_pairs[1][kParts][2];
  load_weights<true, 4 * SIZE, kBoth>(to_hidden[0], w2 + 8 * group + me.row, has_columns, me.pair);
  load_weights<true, kBoth, kBoth>(to_pairs[0], w1 + 8 * group + me.row, has_columns, me.pair);
  float hidden_bias[2] = {};

  for (int turn = 0; forest.find(turn); turn++) {
    const int tiles = forest.present_tiles();
    forest.load_operands(operands, children);
    forest.await_level();
    const int next = forest.ask();
    for (int r = group; r < forest.rows; r += kWarps * BLOCKS) {
      const i64 node = forest.first + r;
      const int operand[2] = {operands[2 * r], operands[2 * r + 1]};
      float2 d[kPairs], normal[kPairs], side[kPairs][2];
      u32 gate[kPairs][4];
      #pragma unroll
      for (int i = 0; i < kPairs; i++) {  // All loads first: none waits for another.
        const int k = 2 * me.lane + 64 * i;
        const bool any = k < SIZE;
        d[i] = any ? load_two(gradients + (terminals + node) * SIZE + k) : make_float2(0, 0);
        for (int s = 0; s < 2; s++)
          side[i][s] = any ? load_two(states + (i64)operand[s] * SIZE + k) : make_float2(0, 0);
        #pragma unroll
        for (int g = 0; g < 4; g++) gate[i][g] = any ? gates[(node * 4 * SIZE + g * SIZE + k) / 2] : 0;
        normal[i] = own && any ? *(const float2*)(own + node * SIZE + k) : make_float2(0, 0);
      }
      const float2 scale = scales[node];
      float sum = 0, along = 0;
      #pragma unroll
      for (int i = 0; i < kPairs; i++) {
        const int k = 2 * me.lane + 64 * i;
        if (k >= SIZE) continue;
        const float2 f = floats(gate[i][0]), g = floats(gate[i][1]), in = floats(gate[i][2]), c = floats(gate[i][3]);
        normal[i].x += f.x * side[i][0].x + g.x * side[i][1].x + in.x * c.x;
        normal[i].y += f.y * side[i][0].y + g.y * side[i][1].y + in.y * c.y;
        normal[i].x = (normal[i].x - scale.x) * scale.y, normal[i].y = (normal[i].y - scale.x) * scale.y;
        float2* to_weight = (float2*)(my_sums + 4 * SIZE + k);
        float2* to_bias = (float2*)(my_sums + 5 * SIZE + k);
        *to_weight = make_float2(to_weight->x + d[i].x * normal[i].x, to_weight->y + d[i].y * normal[i].y);
        *to_bias = make_float2(to_bias->x + d[i].x, to_bias->y + d[i].y);
        d[i].x *= weight[k], d[i].y *= weight[k + 1];
        sum += d[i].x + d[i].y, along += d[i].x * normal[i].x + d[i].y * normal[i].y;
      }
      sum = total(sum) / SIZE, along = total(along) / SIZE;
      #pragma unroll
      for (int i = 0; i < kPairs; i++) {
        const int k = 2 * me.lane + 64 * i;
        if (k >= SIZE) continue;
        const float2 f = floats(gate[i][0]), g = floats(gate[i][1]), in = floats(gate[i][2]), c = floats(gate[i][3]);
        const float2 to = make_float2(scale.y * (d[i].x - sum - normal[i].x * along),
                                      scale.y * (d[i].y - sum - normal[i].y * along));
        const float2 made[4] = {
            make_float2(to.x * side[i][0].x * f.x * (1 - f.x), to.y * side[i][0].y * f.y * (1 - f.y)),
            make_float2(to.x * side[i][1].x * g.x * (1 - g.x), to.y * side[i][1].y * g.y * (1 - g.y)),
            make_float2(to.x * c.x * in.x * (1 - in.x), to.y * c.y * in.y * (1 - in.y)),
            make_float2(to.x * in.x, to.y * in.y)};
        #pragma unroll
        for (int g = 0; g < 4; g++) {
          float2* to_bias = (float2*)(my_sums + g * SIZE + k);
          *to_bias = make_float2(to_bias->x + made[g].x, to_bias->y + made[g].y);
          __stcg(to_gates + (node * 4 * SIZE + g * SIZE + k) / 2, bfloats(made[g].x, made[g].y));
        }
        for (int s = 0; s < 2; s++) pairs[(node * kBoth + s * SIZE + k) / 2] = bfloats(side[i][s].x, side[i][s].y);
        if (to_own) *(float2*)(to_own + node * SIZE + k) = to;
        add_unless_zero(gradients + (i64)operand[0] * SIZE + k, to.x * f.x, to.y * f.y);
        add_unless_zero(gradients + (i64)operand[1] * SIZE + k, to.x * g.x, to.y * g.y);
      }
    }
    forest.tell(turn + 1, next);
    cluster_barrier();

    load_rows<4 * SIZE>(shared_at, to_gates + (i64)forest.first * 2 * SIZE, forest.rows, tiles);
    if (has_columns)
      #pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        u32 x[2];
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          x[half] = r < forest.rows ? before[((i64)(forest.first + r) * kBoth + column) / 2] : 0;
        }
        float made[1][4];
        product<true>(made, left_side(shared_at, me.lane, tile, kGatePitch), to_hidden);
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          const i64 at = ((i64)(forest.first + r) * kBoth + column) / 2;
          const float2 was = floats(x[half]);
          const float one = made[0][2 * half] * gelu_slope(was.x), other = made[0][2 * half + 1] * gelu_slope(was.y);
          hidden_bias[0] += one, hidden_bias[1] += other;  // Rows that are no nodes are 0.
          if (r >= forest.rows) continue;
          __stcg(to_before + at, bfloats(one, other));
          hidden[at] = bfloats(gelu(was.x), gelu(was.y));
        }
      }
    cluster_barrier();

    load_rows<kBoth>(shared_at, to_before + (i64)forest.first * SIZE, forest.rows, tiles);
    if (has_columns)
      #pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        float made[1][4];
        product<true>(made, left_side(shared_at, me.lane, tile, kPitch), to_pairs);
        const int right = column >= SIZE;
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          if (r < forest.rows)
            add_unless_zero(gradients + (i64)operands[2 * r + right] * SIZE + column - right * SIZE,
                            made[0][2 * half], made[0][2 * half + 1]);
        }
      }
    forest.finish();
  }

  #pragma unroll
  for (int j = 0; j < 2; j++)
    for (int by = 4; by < 32; by *= 2) hidden_bias[j] += __shfl_xor_sync(~0u, hidden_bias[j], by);
  if (has_columns && me.row == 0) add_two(sums + 6 * SIZE + column, hidden_bias[0], hidden_bias[1]);
  __syncthreads();
  for (int k = threadIdx.x; k < 6 * SIZE; k += kThreads) {
    float all = 0;
    for (int warp = 0; warp < kWarps; warp++) all += all_sums[warp * 6 * SIZE + k];
    atomicAdd(sums + k, all);
  }
}
