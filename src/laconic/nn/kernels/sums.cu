// Weighted sums of rows of a large table, and what gradients of the sums are to the table.
//
// Entries are (row, weight, into), of which those with the same `into` mostly follow each other. A few
// lanes take some entries that follow each other, and add to memory once for each run of them: places
// that many entries go into would else be waited for by all of them. What weighs nothing is not read.

typedef long long i64;

constexpr int kThreads = 256;
constexpr int kEntries = 16;  // that lanes take at a time
constexpr int kMost = 8;      // columns of a lane

// Calls each(entry, weight, first column) for the entries of these lanes, and after(first column)
// when some of them are done.
template <class Each, class After>
__device__ void for_entries(const float* weights, int count, int size, int lanes, Each each, After after) {
  const int group = threadIdx.x / lanes, groups = kThreads / lanes, lane = threadIdx.x % lanes;
  const int chunks = (count + kEntries - 1) / kEntries;
  for (int first = lane; first - lane < size; first += kMost * lanes)
    for (int chunk = blockIdx.x * groups + group; chunk < chunks; chunk += gridDim.x * groups) {
      const int begin = chunk * kEntries, end = count - begin < kEntries ? count : begin + kEntries;
      for (int k = begin; k < end; k++)
        if (const float weight = weights[k]; weight != 0) each(k, weight, first);
      after(first);
    }
}

// rows: none if all entries are of row 0.
extern "C" __global__ void __launch_bounds__(kThreads)
sum_rows(const float* table, const i64* rows, const float* weights, const i64* into, int count, int size,
         int lanes, float* sums) {
  float sum[kMost] = {};
  i64 present = -1;
  const auto write = [&](int first) {
    if (present < 0) return;
    #pragma unroll
    for (int i = 0; i < kMost; i++) {
      const int column = first + lanes * i;
      if (column < size) atomicAdd(sums + present * size + column, sum[i]);
      sum[i] = 0;
    }
    present = -1;
  };
  for_entries(weights, count, size, lanes, [&](int k, float weight, int first) {
    const i64 place = into[k];
    if (place != present) write(first), present = place;
    const float* row = table + (rows ? rows[k] : 0) * size;
    #pragma unroll
    for (int i = 0; i < kMost; i++) {
      const int column = first + lanes * i;
      if (column < size) sum[i] += weight * row[column];
    }
  }, write);
}

// Adds to the table's gradients what those of the sums are to it.
extern "C" __global__ void __launch_bounds__(kThreads)
add_to_rows(const float* gradients, const i64* rows, const float* weights, const i64* into, int count, int size,
            int lanes, float* table) {
  for_entries(weights, count, size, lanes, [&](int k, float weight, int first) {
    const float* gradient = gradients + into[k] * size;
    float* row = table + rows[k] * size;
    #pragma unroll
    for (int i = 0; i < kMost; i++) {
      const int column = first + lanes * i;
      if (column < size) atomicAdd(row + column, weight * gradient[column]);
    }
  }, [](int) {});
}
