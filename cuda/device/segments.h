#pragma once
#include <cutaway/cuda/device/scratch.h>
#include <cutaway/cuda/device/walk.h>

// Elements brought together by key, for reductions at indices that add in a fixed order: a stable
// radix sort of (key, number of the element), 8 bits of the key at a time. Elements of one key (a
// segment) stay in their order, so whoever owns a segment adds as a single thread would.
namespace cutaway::cuda::CUTAWAY_TARGET {

inline constexpr int kSortThreads = 256, kSortRounds = 8, kSortBins = 256;
inline constexpr int kSortTile = kSortThreads * kSortRounds;  // elements of one block

template <class I>
struct SortPass {
  const I* keys;
  const I* order;  // null: 0, 1, 2, …
  I* sorted_keys;
  I* sorted_order;
  I* starts;  // [bins][tiles]: how many elements of a bin each tile holds, then where they go
  I* totals;  // [bins]
  int64_t n, tiles;
  int shift;  // of the key's bits that are sorted by
};

// The place of the k-th element of the calling thread: a warp takes neighbouring runs of 32.
DEVICE int64_t sort_place(int k) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  return static_cast<int64_t>(blockIdx.x) * kSortTile + (warp * kSortRounds + k) * 32 + lane;
}
template <class I>
DEVICE int bin_of(I key, int shift) {
  return static_cast<int>((key >> shift) & static_cast<I>(kSortBins - 1));
}

template <class I>
KERNEL sort_count(SortPass<I> a) {
  const auto keys = global<const I>(a.keys);
  const auto counts = global<I>(a.starts);
  SHARED(uint32_t, bins, kSortBins);
  const int t = static_cast<int>(threadIdx.x);
  bins[t] = 0u;
  __syncthreads();
  for (int k = 0; k < kSortRounds; ++k) {
    const int64_t i = sort_place(k);
    if (i >= a.n) break;
    atomic_add(bins, bin_of<I>(keys[i], a.shift), 1u);
  }
  __syncthreads();
  counts[t * a.tiles + blockIdx.x] = static_cast<I>(static_cast<uint32_t>(bins[t]));
}

// Sum of `value` over the threads before the calling one, of 256.
template <class I>
DEVICE I sum_before(I value, Shared<I> warp_sums, I& total) {
  const int t = static_cast<int>(threadIdx.x), lane = t % 32, warp = t / 32;
  I sum = value;
  for (int d = 1; d < 32; d *= 2) {
    const I below = __shfl_up_sync(kAllLanes, sum, d);
    if (lane >= d) sum += below;
  }
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  I before = 0;
  total = 0;
  for (int w = 0; w < kSortThreads / 32; ++w) {
    const I part = warp_sums[w];
    if (w < warp) before += part;
    total += part;
  }
  __syncthreads();
  return before + sum - value;
}

// One block for each bin: counts of the tiles become where they start within the bin.
template <class I>
KERNEL sort_scan(SortPass<I> a) {
  const auto starts = global<I>(a.starts), totals = global<I>(a.totals);
  SHARED(I, warp_sums, kSortThreads / 32);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * a.tiles;
  I before = 0;
  for (int64_t first = 0; first < a.tiles; first += kSortThreads) {
    const int64_t i = first + threadIdx.x;
    I count = 0, total;
    if (i < a.tiles) count = starts[row + i];
    const I at = sum_before<I>(count, warp_sums, total);
    if (i < a.tiles) starts[row + i] = before + at;
    before += total;
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = before;
}

// The same with a thread for each bin, for few tiles.
template <class I>
KERNEL sort_scan_few(SortPass<I> a) {
  const auto starts = global<I>(a.starts);
  const int64_t row = threadIdx.x * a.tiles;
  I before = 0;
  for (int64_t i = row; i < row + a.tiles; ++i) {
    const I count = starts[i];
    starts[i] = before;
    before += count;
  }
  global<I>(a.totals)[threadIdx.x] = before;
}

// The lanes of the warp that hold the same bin as the calling one.
DEVICE uint32_t lanes_of_bin(int bin) {
  uint32_t same = kAllLanes;
  for (int bit = 1; bit <= kSortBins; bit *= 2) {
    const bool set = (bin & bit) != 0;
    const uint32_t lanes = __ballot_sync(kAllLanes, set);
    same &= set ? lanes : ~lanes;
  }
  return same;
}

template <class I>
KERNEL sort_move(SortPass<I> a) {
  const auto keys = global<const I>(a.keys);
  const auto order = global<const I>(a.order);
  const auto sorted_keys = global<I>(a.sorted_keys), sorted_order = global<I>(a.sorted_order);
  SHARED(I, places, kSortThreads / 32 * kSortBins);  // of each warp and bin
  SHARED(I, warp_sums, kSortThreads / 32);
  const int t = static_cast<int>(threadIdx.x), lane = t % 32, row = t / 32 * kSortBins;
  for (int w = 0; w < kSortThreads / 32; ++w) places[w * kSortBins + t] = I(0);
  __syncthreads();
  I rank[kSortRounds];  // among the elements of its warp and bin
  for (int k = 0; k < kSortRounds; ++k) {
    const int64_t i = sort_place(k);
    if (i - lane >= a.n) break;
    // Lanes without an element share a bin that does not exist.
    const int bin = i < a.n ? bin_of<I>(keys[i], a.shift) : kSortBins;
    const uint32_t same = lanes_of_bin(bin);
    const uint32_t below = same & ((1u << lane) - 1u);
    rank[k] = static_cast<I>(__popc(below));
    if (i < a.n) rank[k] += places[row + bin];
    __syncwarp();
    if (i < a.n && below == 0) places[row + bin] += static_cast<I>(__popc(same));
    __syncwarp();
  }
  __syncthreads();
  I next, unused;
  next = sum_before<I>(global<const I>(a.totals)[t], warp_sums, unused);
  next += static_cast<I>(global<const I>(a.starts)[t * a.tiles + blockIdx.x]);
  for (int w = 0; w < kSortThreads / 32; ++w) {
    const I count = places[w * kSortBins + t];
    places[w * kSortBins + t] = next;
    next += count;
  }
  __syncthreads();
  for (int k = 0; k < kSortRounds; ++k) {
    const int64_t i = sort_place(k);
    if (i >= a.n) break;
    const I key = keys[i];
    const I element = a.order ? static_cast<I>(order[i]) : static_cast<I>(i);
    const int64_t to = static_cast<int64_t>(places[row + bin_of(key, a.shift)]) + rank[k];
    sorted_keys[to] = key;
    sorted_order[to] = element;
  }
}

// Keys in ascending order and the elements they belong to.
template <class I>
class Sorted {
 public:
  // n keys of at most `largest`, in device memory; they are overwritten.
  Sorted(I* keys, int64_t n, uint64_t largest)
      : own_keys_(n), order_{DeviceArray<I>(n), DeviceArray<I>(n)} {
    const int64_t tiles = blocks_for(n, kSortTile);
    const DeviceArray<I> starts(kSortBins * tiles), totals(kSortBins);
    I* from = keys;
    I* to = own_keys_.get();
    int pass = 0;
    do {
      const SortPass<I> a{from,
                          pass ? order_[(pass + 1) % 2].get() : nullptr,
                          to,
                          order_[pass % 2].get(),
                          starts.get(),
                          totals.get(),
                          n,
                          tiles,
                          8 * pass};
      const auto blocks = static_cast<unsigned>(tiles);
      launch({.name = "sort_count", .grid = {blocks}, .block = {kSortThreads}}, sort_count<I>, a);
      if (tiles <= 16) {
        launch(one_thread_each("sort_scan", kSortBins, kSortBins), sort_scan_few<I>, a);
      } else {
        launch({.name = "sort_scan", .grid = {kSortBins}, .block = {kSortThreads}}, sort_scan<I>,
               a);
      }
      launch({.name = "sort_move", .grid = {blocks}, .block = {kSortThreads}}, sort_move<I>, a);
      I* sorted = to;
      to = from;
      from = sorted;
      ++pass;
    } while (8 * pass < 64 && largest >> (8 * pass) != 0);
    keys_ = from;
    last_ = (pass + 1) % 2;
  }
  const I* keys() const { return keys_; }
  const I* order() const { return order_[last_].get(); }

 private:
  DeviceArray<I> own_keys_, order_[2];
  const I* keys_;
  int last_;
};

}  // namespace cutaway::cuda::CUTAWAY_TARGET
