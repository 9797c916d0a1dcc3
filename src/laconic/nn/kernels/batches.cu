// A batch written into a larger one, whose levels begin elsewhere: all of its arrays at once.
//
// Nodes move with their levels, of which there are at most 255; what is room thereafter means
// nothing to a model. Arrays are those of laconic.batching.Batch, in this order; none may be missing
// but the last eight.

typedef long long i64;

constexpr int kThreads = 256, kLevels = 255;

enum {
  kSymbols, kChildren, kSequenceLengths, kNodeLengths, kNodeHashes, kNodeShared, kLabels,
  kDocuments, kBuckets, kCounts, kNodes, kNodeBuckets, kPlaces, kPlaceBuckets, kArrays
};

struct Arrays {
  void* of[kArrays];

  template <class Number>
  __device__ Number* at(int which) const { return (Number*)of[which]; }
};

// Entries of the batch, and how many the larger one has room for.
struct Sizes {
  int terminals, documents, length, length_room, levels, label_words;
  int counted, counted_room, within, within_room, across, across_room;
};

// Of the nodes of each level, the first, and after the last level their number.
struct Levels {
  int begin[kLevels + 1];
};

__device__ int level_of(const int* begin, int levels, int node) {
  int low = 0, high = levels;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (begin[middle] <= node) low = middle; else high = middle;
  }
  return low;
}

// Room for n-grams repeats what n-grams there are: a GPU adds to one place one after the other. It
// counts 0, or, of n-grams in their places, is in the bucket ~bucket.
__device__ i64 repeated(const i64* values, int count, i64 i) {
  return count ? values[i % count] : 0;
}

extern "C" __global__ void __launch_bounds__(kThreads)
copy_batch(Arrays from, Arrays to, Sizes sizes, Levels before, Levels after) {
  __shared__ int old_begin[kLevels + 1], new_begin[kLevels + 1];
  for (int level = threadIdx.x; level <= sizes.levels; level += kThreads) {
    old_begin[level] = before.begin[level];
    new_begin[level] = after.begin[level];
  }
  __syncthreads();
  const int terminals = sizes.terminals;
  const auto place = [&](int node) {
    if (node < terminals) return node;
    const int level = level_of(old_begin, sizes.levels, node - terminals);
    return node + new_begin[level] - old_begin[level];
  };
  const i64 places = (i64)sizes.documents * sizes.length_room;
  const i64 nodes = terminals + new_begin[sizes.levels];
  const i64 all = places + nodes + sizes.documents + sizes.label_words + sizes.counted_room +
                  sizes.within_room + sizes.across_room;
  for (i64 next = (i64)blockIdx.x * kThreads + threadIdx.x; next < all;
       next += (i64)kThreads * gridDim.x) {
    i64 i = next;
    if (i < places) {
      const int document = (int)(i / sizes.length_room), t = (int)(i % sizes.length_room);
      const int* symbols = from.at<int>(kSymbols) + (i64)document * sizes.length;
      to.at<int>(kSymbols)[i] = t < sizes.length ? place(symbols[t]) : 0;
      continue;
    }
    i -= places;
    if (i < nodes) {
      int node = (int)i;
      bool known = true;
      if (i >= terminals) {
        const int level = level_of(new_begin, sizes.levels, (int)i - terminals);
        const int within = (int)i - terminals - new_begin[level];
        known = within < old_begin[level + 1] - old_begin[level];
        node = terminals + old_begin[level] + within;
        const int* children = from.at<int>(kChildren) + 2 * (i64)(node - terminals);
        int* operands = to.at<int>(kChildren) + 2 * (i - terminals);
        operands[0] = known ? place(children[0]) : 0;
        operands[1] = known ? place(children[1]) : 0;
      }
      to.at<i64>(kNodeLengths)[i] = known ? from.at<i64>(kNodeLengths)[node] : 1;
      to.at<i64>(kNodeHashes)[i] = known ? from.at<i64>(kNodeHashes)[node] : 0;
      to.at<int>(kNodeShared)[i] = known ? from.at<int>(kNodeShared)[node] : -1;
      continue;
    }
    i -= nodes;
    if (i < sizes.documents) {
      to.at<i64>(kSequenceLengths)[i] = from.at<i64>(kSequenceLengths)[i];
      continue;
    }
    i -= sizes.documents;
    if (i < sizes.label_words) {
      to.at<int>(kLabels)[i] = from.at<int>(kLabels)[i];
      continue;
    }
    i -= sizes.label_words;
    if (i < sizes.counted_room) {
      const bool known = i < sizes.counted;
      to.at<i64>(kDocuments)[i] = known ? from.at<i64>(kDocuments)[i] : i % sizes.documents;
      to.at<i64>(kBuckets)[i] = repeated(from.at<i64>(kBuckets), sizes.counted, i);
      to.at<float>(kCounts)[i] = known ? from.at<float>(kCounts)[i] : 0;
      continue;
    }
    i -= sizes.counted_room;
    if (i < sizes.within_room) {
      const i64 bucket = repeated(from.at<i64>(kNodeBuckets), sizes.within, i);
      to.at<i64>(kNodes)[i] = place((int)repeated(from.at<i64>(kNodes), sizes.within, i));
      to.at<i64>(kNodeBuckets)[i] = i < sizes.within ? bucket : ~bucket;
      continue;
    }
    i -= sizes.within_room;
    const i64 bucket = repeated(from.at<i64>(kPlaceBuckets), sizes.across, i);
    to.at<i64>(kPlaces)[i] = repeated(from.at<i64>(kPlaces), sizes.across, i);
    to.at<i64>(kPlaceBuckets)[i] = i < sizes.across ? bucket : ~bucket;
  }
}
