// The dual GRU on all levels of a forest: [z1, z2, zi] = softmax(Wz [l; r] + bz) for each unit,
// o = s(Wr [l; r] + br) [l; r], i = s(Wi o + bi), z1 l + z2 r + zi i + own. Put after ptx.cu and
// forest.cu.
//
// A block has 32 units, 8 for each pair of warps: the first has the shares z, the second the
// resets and the candidate i. Rows of a piece are nodes.

// Writes states. open: float16 [clusters, 2, kRows, 2 SIZE], what blocks tell each other of o. Kept,
// unless there is nowhere to, float16: gates [nodes, 5 SIZE], shares and resets; candidates
// [nodes, SIZE]. own may be none.
extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(kThreads, 1)
dual_gru_up(const __grid_constant__ Levels levels, const float* gates_weight, const float* gates_bias,
            const float* weight, const float* bias, const int* children, const float* own, float* states,
            u32* gates, u32* candidates, u32* open, int* counters, int terminals) {
  unsigned char* const shared = dynamic_shared();  // rows; operands' units; what they join; operands
  float* const sides = (float*)(shared + kRows * kPitch);
  float* const joined = sides + 2 * kRows * kJoinedPitch;
  int* const operands = (int*)(joined + 2 * kRows * kJoinedPitch);
  const u32 shared_at = shared_address(shared);
  Forest forest(levels, counters, false);
  const Lane me;
  const int second = me.warp & 1, units = forest.rank * 4 + me.warp / 2, unit = 8 * units + 2 * me.pair;
  const bool has_units = 8 * units < SIZE;
  open += (i64)forest.cluster * 2 * kRows * kBoth / 2;

  u32 of_gates[2][kParts][2], of_third[1][kParts][2];  // the third share, or the candidate
  float biases[3][2] = {};
  const i64 from = 8 * units + me.row;
  #pragma unroll
  for (int g = 0; g < 2; g++)
    load_weights<false, kBoth, 1>(of_gates[g], gates_weight + ((3 * second + g) * SIZE + from) * kBoth, has_units, me.pair);
  load_weights<false, kBoth, 1>(of_third[0], second ? weight + from * kBoth : gates_weight + (2 * SIZE + from) * kBoth,
                                has_units, me.pair);
  if (has_units)
    for (int j = 0; j < 2; j++) {
      for (int g = 0; g < 2; g++) biases[g][j] = gates_bias[(3 * second + g) * SIZE + unit + j];
      biases[2][j] = second ? bias[unit + j] : gates_bias[2 * SIZE + unit + j];
    }

  for (int turn = 0; forest.find(turn); turn++) {
    const int tiles = forest.present_tiles();
    u32* const told = open + (turn & 1) * kRows * kBoth / 2;  // Others may still read the turn before.
    forest.load_operands(operands, children);
    forest.await_level();
    const int next = forest.ask();
    gather(shared, sides, states, operands, tiles, forest.rank);
    __syncthreads();
    if (has_units)
      #pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        float sums[2][4], third[1][4];
        const u32 left = left_side(shared_at, me.lane, tile, kPitch);
        product<false>(sums, left, of_gates);
        if (!second) product<false>(third, left, of_third);
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          const i64 kept = ((i64)(forest.first + r) * 5 * SIZE + 3 * second * SIZE + unit) / 2;
          float made[3][2];
          #pragma unroll
          for (int j = 0; j < 2; j++) {
            const float a = sums[0][2 * half + j] + biases[0][j], b = sums[1][2 * half + j] + biases[1][j];
            if (second) {
              made[0][j] = sigmoid(a), made[1][j] = sigmoid(b);
              continue;
            }
            const float c = third[0][2 * half + j] + biases[2][j], most = fmaxf(a, fmaxf(b, c));
            const float x = __expf(a - most), y = __expf(b - most), z = __expf(c - most), all = 1.0f / (x + y + z);
            made[0][j] = x * all, made[1][j] = y * all, made[2][j] = z * all;
          }
          const int at = r * kJoinedPitch + 8 * (me.warp / 2) + 2 * me.pair;
          const float2 l = *(const float2*)(sides + at), o = *(const float2*)(sides + kRows * kJoinedPitch + at);
          if (second) {
            __stcg(told + (r * kBoth + unit) / 2, halves(made[0][0] * l.x, made[0][1] * l.y));
            __stcg(told + (r * kBoth + SIZE + unit) / 2, halves(made[1][0] * o.x, made[1][1] * o.y));
          } else {
            *(float2*)(joined + at) = make_float2(made[0][0] * l.x + made[1][0] * o.x, made[0][1] * l.y + made[1][1] * o.y);
            *(float2*)(joined + kRows * kJoinedPitch + at) = make_float2(made[2][0], made[2][1]);
          }
          if (gates && r < forest.rows) {
            for (int g = 0; g < 2; g++) gates[kept + g * SIZE / 2] = halves(made[g][0], made[g][1]);
            if (!second) gates[kept + SIZE] = halves(made[2][0], made[2][1]);
          }
        }
      }
    forest.tell(turn + 1, next);
    cluster_barrier();

    load_rows<kBoth>(shared_at, told, 16 * tiles, tiles);
    if (has_units && second)
      #pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        float2 more[2];
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          more[half] = own && r < forest.rows ? *(const float2*)(own + (i64)(forest.first + r) * SIZE + unit) : make_float2(0, 0);
        }
        float sums[1][4];
        product<false>(sums, left_side(shared_at, me.lane, tile, kPitch), of_third);
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          if (r >= forest.rows) continue;
          const i64 node = forest.first + r;
          const float* at = joined + r * kJoinedPitch + 8 * (me.warp / 2) + 2 * me.pair;
          const float2 sum = *(const float2*)at, share = *(const float2*)(at + kRows * kJoinedPitch);
          const float x = sigmoid(sums[0][2 * half] + biases[2][0]), y = sigmoid(sums[0][2 * half + 1] + biases[2][1]);
          *(float2*)(states + (terminals + node) * SIZE + unit) =
              make_float2(sum.x + share.x * x + more[half].x, sum.y + share.y * y + more[half].y);
          if (candidates) candidates[(node * SIZE + unit) / 2] = halves(x, y);
        }
      }
    forest.finish();
  }
}

// ---- The way back: rows of a piece are spread over all warps of the cluster until the gradients
// of shares and candidates are known, then warps have 8 numbers of both operands each.

// gradients: float32 [terminals + nodes, SIZE], of all states, added to. Written, bfloat16: to_gates
// [nodes, 5 SIZE], to_candidates [nodes, SIZE], open and pairs [nodes, 2 SIZE]; float32: to_own
// [nodes, SIZE], or none. sums: float32 [6 SIZE], added to: gradients of both biases.
extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(kThreads, 1)
dual_gru_down(const __grid_constant__ Levels levels, const float* gates_weight, const float* weight,
              const int* children, const float* states, const u32* gates, const u32* candidates,
              float* gradients, u32* to_gates, u32* to_candidates, u32* open, u32* pairs, float* to_own,
              float* sums, int* counters, int terminals) {
  unsigned char* const shared = dynamic_shared();  // rows; sums of each warp; operands
  float* const all_sums = (float*)(shared + kRows * pitch_of<5 * SIZE>);
  int* const operands = (int*)(all_sums + kWarps * 4 * SIZE);
  const u32 shared_at = shared_address(shared);
  for (int i = threadIdx.x; i < kWarps * 4 * SIZE; i += kThreads) all_sums[i] = 0;
  Forest forest(levels, counters, true);
  const Lane me;
  float* const my_sums = all_sums + me.warp * 4 * SIZE;  // of shares, then of candidates
  const int group = forest.rank * kWarps + me.warp, column = 8 * group + 2 * me.pair;
  const int right = column >= SIZE, unit = column - right * SIZE;
  const bool has_columns = 8 * group < kBoth;

  u32 to_open[1][parts_of<SIZE>][2], to_pairs[1][parts_of<5 * SIZE>][2];
  load_weights<true, SIZE, kBoth>(to_open[0], weight + 8 * group + me.row, has_columns, me.pair);
  load_weights<true, 5 * SIZE, kBoth>(to_pairs[0], gates_weight + 8 * group + me.row, has_columns, me.pair);
  float resets[2] = {};

  for (int turn = 0; forest.find(turn); turn++) {
    const int tiles = forest.present_tiles();
    forest.load_operands(operands, children);
    forest.await_level();
    const int next = forest.ask();
    for (int r = group; r < forest.rows; r += kWarps * BLOCKS) {
      const i64 node = forest.first + r;
      const int operand[2] = {operands[2 * r], operands[2 * r + 1]};
      float2 d[kPairs], side[kPairs][2];
      u32 share[kPairs][3], candidate[kPairs];
      #pragma unroll
      for (int i = 0; i < kPairs; i++) {  // All loads first: none waits for another.
        const int k = 2 * me.lane + 64 * i;
        const bool any = k < SIZE;
        d[i] = any ? load_two(gradients + (terminals + node) * SIZE + k) : make_float2(0, 0);
        for (int s = 0; s < 2; s++)
          side[i][s] = any ? load_two(states + (i64)operand[s] * SIZE + k) : make_float2(0, 0);
        #pragma unroll
        for (int g = 0; g < 3; g++) share[i][g] = any ? gates[(node * 5 * SIZE + g * SIZE + k) / 2] : 0;
        candidate[i] = any ? candidates[(node * SIZE + k) / 2] : 0;
      }
      #pragma unroll
      for (int i = 0; i < kPairs; i++) {
        const int k = 2 * me.lane + 64 * i;
        if (k >= SIZE) continue;
        const float2 x = floats(share[i][0]), y = floats(share[i][1]), z = floats(share[i][2]), c = floats(candidate[i]);
        const float2 l = side[i][0], o = side[i][1];
        const float2 mean = make_float2(x.x * l.x + y.x * o.x + z.x * c.x, x.y * l.y + y.y * o.y + z.y * c.y);
        const float2 made[4] = {
            make_float2(d[i].x * x.x * (l.x - mean.x), d[i].y * x.y * (l.y - mean.y)),
            make_float2(d[i].x * y.x * (o.x - mean.x), d[i].y * y.y * (o.y - mean.y)),
            make_float2(d[i].x * z.x * (c.x - mean.x), d[i].y * z.y * (c.y - mean.y)),
            make_float2(d[i].x * z.x * c.x * (1 - c.x), d[i].y * z.y * c.y * (1 - c.y))};
        #pragma unroll
        for (int g = 0; g < 4; g++) {
          float2* to_bias = (float2*)(my_sums + g * SIZE + k);
          *to_bias = make_float2(to_bias->x + made[g].x, to_bias->y + made[g].y);
          __stcg(g < 3 ? to_gates + (node * 5 * SIZE + g * SIZE + k) / 2 : to_candidates + (node * SIZE + k) / 2,
                 bfloats(made[g].x, made[g].y));
        }
        for (int s = 0; s < 2; s++) pairs[(node * kBoth + s * SIZE + k) / 2] = bfloats(side[i][s].x, side[i][s].y);
        if (to_own) *(float2*)(to_own + node * SIZE + k) = d[i];
        add_unless_zero(gradients + (i64)operand[0] * SIZE + k, d[i].x * x.x, d[i].y * x.y);
        add_unless_zero(gradients + (i64)operand[1] * SIZE + k, d[i].x * y.x, d[i].y * y.y);
      }
    }
    forest.tell(turn + 1, next);
    cluster_barrier();

    load_rows<SIZE>(shared_at, to_candidates + (i64)forest.first * (SIZE / 2), forest.rows, tiles);
    if (has_columns)
      #pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        u32 reset[2];
        float2 side[2];
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          const bool any = r < forest.rows;
          reset[half] = any ? gates[((i64)(forest.first + r) * 5 * SIZE + 3 * SIZE + column) / 2] : 0;
          side[half] = any ? load_two(states + (i64)operands[2 * r + right] * SIZE + unit) : make_float2(0, 0);
        }
        float made[1][4];
        product<true>(made, left_side(shared_at, me.lane, tile, pitch_of<SIZE>), to_open);
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          if (r >= forest.rows) continue;
          const i64 node = forest.first + r;
          const float2 is = floats(reset[half]), x = side[half];
          const float one = made[0][2 * half], other = made[0][2 * half + 1];
          const float2 to = make_float2(one * x.x * is.x * (1 - is.x), other * x.y * is.y * (1 - is.y));
          resets[0] += to.x, resets[1] += to.y;
          __stcg(to_gates + (node * 5 * SIZE + 3 * SIZE + column) / 2, bfloats(to.x, to.y));
          open[(node * kBoth + column) / 2] = bfloats(x.x * is.x, x.y * is.y);
          add_unless_zero(gradients + (i64)operands[2 * r + right] * SIZE + unit, one * is.x, other * is.y);
        }
      }
    cluster_barrier();

    load_rows<5 * SIZE>(shared_at, to_gates + (i64)forest.first * 5 * (SIZE / 2), forest.rows, tiles);
    if (has_columns)
      #pragma unroll 1
      for (int tile = 0; tile < tiles; tile++) {
        float made[1][4];
        product<true>(made, left_side(shared_at, me.lane, tile, pitch_of<5 * SIZE>), to_pairs);
        #pragma unroll
        for (int half = 0; half < 2; half++) {
          const int r = 16 * tile + me.row + 8 * half;
          if (r < forest.rows)
            add_unless_zero(gradients + (i64)operands[2 * r + right] * SIZE + unit, made[0][2 * half], made[0][2 * half + 1]);
        }
      }
    forest.finish();
  }

  #pragma unroll
  for (int j = 0; j < 2; j++)
    for (int by = 4; by < 32; by *= 2) resets[j] += __shfl_xor_sync(~0u, resets[j], by);
  if (has_columns && me.row == 0) add_two(sums + 3 * SIZE + column, resets[0], resets[1]);
  __syncthreads();
  for (int k = threadIdx.x; k < 4 * SIZE; k += kThreads) {
    float all = 0;
    for (int warp = 0; warp < kWarps; warp++) all += all_sums[warp * 4 * SIZE + k];
    atomicAdd(sums + (k < 3 * SIZE ? k : k + 2 * SIZE), all);
  }
}
