// All levels of a forest in one launch: what composers have in common.
//
// A cluster of thread blocks has all weights of a composer in its registers: a warp those of some
// columns, as tensor-core fragments, for the whole forest. Clusters take pieces of levels, of up
// to 16 TILES nodes, one after the other, in the order in which they are needed; who has a piece
// waits until the level before is done. Since pieces are taken in order, and only by clusters that
// run, somebody can always go on: no cluster needs another that has not started yet.
//
// What the blocks of a cluster need of each other goes through global memory, which is L2.
//
// Set when compiled: SIZE (of a state, a multiple of 8), BLOCKS (of a cluster), TILES.

constexpr int kThreads = 256, kWarps = 8;
constexpr int kRows = 16 * TILES;            // nodes of a piece, at most
constexpr int kBoth = 2 * SIZE;              // numbers of both operands of a node
constexpr int kLevels = 255;                 // of a launch, at most

// Of a product with so many numbers in a row, 16 each; bytes from row to row of short numbers, with
// a gap for the banks, which is also what the last part reads if it is half a part.
template <int numbers>
constexpr int parts_of = (numbers + 15) / 16;
template <int numbers>
constexpr int pitch_of = 2 * numbers + (numbers / 8 % 2 ? 32 : 16);
constexpr int kJoinedPitch = 40;             // floats from row to row of a block's 32 units
constexpr int kPairs = (SIZE + 63) / 64;     // of a state's numbers, that a lane has of a whole row
constexpr int kParts = parts_of<kBoth>, kPitch = pitch_of<kBoth>;
static_assert(SIZE % 8 == 0 && 32 * BLOCKS >= SIZE && 32 * (BLOCKS - 1) < SIZE, "32 units for each block");

struct Levels {
  int count, offsets[kLevels + 1];  // none is empty
};

// ---- Who does what.

struct Forest {
  const Levels& levels;
  const bool down;              // from the top
  const int clusters, cluster, rank;
  int *counters, *done;         // pieces taken, two places for each cluster, blocks done by level
  int order = 0, earlier = 0;   // levels gone through, and their pieces
  int below = 0, pieces = 0, tiles = 0, begin = 0, end = 0;  // pieces of the level before; this level
  int first = 0, rows = 0;      // nodes of the present piece

  __device__ Forest(const Levels& levels, int* counters, bool down)
      : levels(levels), down(down), clusters(gridDim.x / BLOCKS), cluster(blockIdx.x / BLOCKS),
        rank(cluster_rank()), counters(counters), done(counters + 1 + 2 * clusters) {
    measure();
    tell(0, ask());
    cluster_barrier();
  }

  // Levels are cut so that all clusters have as much to do, in as few rounds as can be.
  __device__ void measure() {
    if (order >= levels.count) return;
    const int level = down ? levels.count - 1 - order : order;
    begin = levels.offsets[level], end = levels.offsets[level + 1];
    const int all = (end - begin + 15) / 16, rounds = (all + clusters * TILES - 1) / (clusters * TILES);
    tiles = (all + clusters * rounds - 1) / (clusters * rounds);
    pieces = (all + tiles - 1) / tiles;
  }

  // The next piece: asked for when the present one can be begun, so that nobody has two while others
  // have none; told later, since the answer takes time, but before a barrier of the cluster.
  __device__ int ask() const { return rank == 0 && threadIdx.x == 0 ? atomicAdd(counters, 1) : 0; }
  __device__ void tell(int turn, int piece) const {
    if (rank == 0 && threadIdx.x == 0) __stcg(counters + 1 + 2 * cluster + (turn & 1), piece);
  }

  __device__ bool find(int turn) {
    const int piece = load_fresh(counters + 1 + 2 * cluster + (turn & 1));
    while (order < levels.count && piece - earlier >= pieces) {
      earlier += pieces, below = pieces, order++;
      measure();
    }
    if (order == levels.count) return false;
    first = begin + (piece - earlier) * tiles * 16;
    rows = min(16 * tiles, end - first);
    return true;
  }

  __device__ int present_tiles() const { return (rows + 15) / 16; }

  __device__ void await_level() const {
    if (order && threadIdx.x == 0)
      while (load_acquire(done + order - 1) < below * BLOCKS) {}
    __syncthreads();
  }

  __device__ void finish() const {
    __syncthreads();
    if (threadIdx.x == 0) add_release(done + order);
  }

  // Operands of the piece's nodes, two for each; -1 where there is no node.
  __device__ void load_operands(int* operands, const int* children) const {
    for (int i = threadIdx.x; i < 32 * present_tiles(); i += kThreads)
      operands[i] = i < 2 * rows ? children[2 * first + i] : -1;
  }
};

struct Lane {
  int lane, warp, row, pair;
  __device__ Lane() : lane(threadIdx.x & 31), warp(threadIdx.x >> 5), row(lane >> 2), pair(lane & 3) {}
};

// ---- Products: 16 rows of shared memory by 8 columns for each of a warp's fragments.

template <bool bfloat>
__device__ u32 shorts(float low, float high) { return bfloat ? bfloats(low, high) : halves(low, high); }

// The weights of so many numbers that lead to one, `along` apart.
template <bool bfloat, int numbers, int along, int parts>
__device__ void load_weights(u32 (&w)[parts][2], const float* from, bool any, int pair) {
  #pragma unroll
  for (int part = 0; part < parts; part++)
    #pragma unroll
    for (int r = 0; r < 2; r++) {
      const float* at = from + (i64)(part * 16 + r * 8 + pair * 2) * along;
      w[part][r] = 0;
      if (!any || part * 16 + r * 8 >= numbers) continue;
      if constexpr (along == 1) {
        const float2 two = *(const float2*)at;
        w[part][r] = shorts<bfloat>(two.x, two.y);
      } else {
        w[part][r] = shorts<bfloat>(at[0], at[along]);
      }
    }
}

template <bool bfloat, int columns, int parts>
__device__ void product(float (&sums)[columns][4], u32 from, const u32 (&w)[columns][parts][2]) {
  float odd[columns][4];  // Two chains of sums, since each waits for the one before.
  #pragma unroll
  for (int c = 0; c < columns; c++)
    #pragma unroll
    for (int i = 0; i < 4; i++) sums[c][i] = odd[c][i] = 0;
  #pragma unroll
  for (int part = 0; part < parts; part++) {
    u32 a[4];
    load_matrix(a, from + part * 32);
    #pragma unroll
    for (int c = 0; c < columns; c++) {
      if constexpr (bfloat) multiply_bfloats(part % 2 ? odd[c] : sums[c], a, w[c][part]);
      else multiply_halves(part % 2 ? odd[c] : sums[c], a, w[c][part]);
    }
  }
  #pragma unroll
  for (int c = 0; c < columns; c++)
    #pragma unroll
    for (int i = 0; i < 4; i++) sums[c][i] += odd[c][i];
}

// Where a lane reads 16 rows of a product's left side from.
__device__ u32 left_side(u32 shared, int lane, int tile, int pitch) {
  return shared + (16 * tile + (lane & 15)) * pitch + (lane >> 4) * 16;
}

// Rows of so many short numbers into shared memory; zeros beyond the last number and the last row.
template <int numbers>
__device__ void load_rows(u32 to, const u32* from, int rows, int tiles) {
  constexpr int kChunks = 2 * parts_of<numbers>;
  for (int i = threadIdx.x; i < 16 * tiles * kChunks; i += kThreads) {
    const int row = i / kChunks, at = i % kChunks * 4;
    const bool any = row < rows && at < numbers / 2;
    load_ahead<16>(to + row * pitch_of<numbers> + at * 4, any ? from + (i64)row * (numbers / 2) + at : from, any);
  }
  loads_end();
  await_loads<0>();
  __syncthreads();
}

// Both operands' states into shared memory, as float16; of the block's own units as they are, too,
// [2, kRows, kJoinedPitch].
__device__ void gather(unsigned char* to, float* sides, const float* states, const int* operands, int tiles,
                       int rank) {
  constexpr int kEach = 6, kChunks = kBoth / 4;
  for (int from = threadIdx.x; from < 16 * tiles * kChunks; from += kEach * kThreads) {
    float4 x[kEach];
    #pragma unroll
    for (int e = 0; e < kEach; e++) {  // All loads first: none waits for another.
      const int i = from + e * kThreads, row = i / kChunks, at = i % kChunks * 4, right = at >= SIZE;
      const int operand = i < 16 * tiles * kChunks ? operands[2 * row + right] : -1;
      x[e] = operand < 0 ? make_float4(0, 0, 0, 0)
                         : load_fresh((const float4*)(states + (i64)operand * SIZE + at - right * SIZE));
    }
    #pragma unroll
    for (int e = 0; e < kEach; e++) {
      const int i = from + e * kThreads, row = i / kChunks, at = i % kChunks * 4, right = at >= SIZE;
      const int unit = at - right * SIZE - 32 * rank;
      if (i >= 16 * tiles * kChunks) continue;
      *(uint2*)(to + row * kPitch + at * 2) = make_uint2(halves(x[e].x, x[e].y), halves(x[e].z, x[e].w));
      if (0 <= unit && unit < 32) *(float4*)(sides + (right * kRows + row) * kJoinedPitch + unit) = x[e];
    }
  }
}

template <int lanes = 32>
__device__ float total(float x) {
  #pragma unroll
  for (int by = lanes / 2; by; by /= 2) x += __shfl_xor_sync(~0u, x, by);
  return x;
}

__device__ float2 load_two(const float* from) { return load_fresh((const float2*)from); }

// Nothing is added where it is nothing: room in a graph's levels adds to one node alone.
__device__ void add_unless_zero(float* to, float x, float y) {
  if (x != 0 || y != 0) add_two(to, x, y);
}
