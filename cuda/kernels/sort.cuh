#pragma once
#include <algorithm>

#include <cutaway/core/kernels/sort.h>
#include <cutaway/cuda/device/order_key.h>
#include <cutaway/cuda/device/scratch.h>
#include <cutaway/cuda/device/team.h>

// Sorting of lines, groups of equal elements and searches in sorted rows. Elements are compared by
// unsigned keys, and equal ones by their places, so that no two are equal: every way to sort gives
// the stable order.
namespace cutaway::cuda::CUTAWAY_TARGET {

constexpr int kSortTile = 4096;  // a line so long is sorted in shared memory
constexpr int kMergeTile = 1024;
constexpr int kSortThreads = 256;

template <class K>
DEVICE bool comes_before(K key_a, uint32_t at_a, K key_b, uint32_t at_b) {
  return key_a != key_b ? key_a < key_b : at_a < at_b;
}

// Lines on their way: keys and places, [lines, n].
template <class K>
struct Entries {
  K* key;
  uint32_t* at;
};

DEVICE int64_t line_base(const SortArgs& a, int64_t line, int64_t length) {
  return line / a.inner * length * a.inner + line % a.inner;
}
// Result j of a line: the element from place `at`.
template <class T>
DEVICE void put_sorted(const SortArgs& a, int64_t line, int64_t j, uint32_t at) {
  const int64_t to = line_base(a, line, a.k) + j * a.inner;
  if (a.values) {
    const T value = global<const T>(a.in)[line_base(a, line, a.n) + at * a.inner];
    global<T>(a.values)[to] = value;
  }
  if (a.indices) global<int64_t>(a.indices)[to] = at;
}

// Stages of a bitonic network that reach at most 16 places, for element i, which the lane holds:
// its partners are in the same warp.
template <class K>
DEVICE void sort_in_warp(K& key, uint32_t& at, int i, int length) {
  const bool ascending = (i & length) == 0;
  for (int step = length / 2 < 16 ? length / 2 : 16; step > 0; step /= 2) {
    const K other_key = shuffle_xor(key, step);
    const uint32_t other_at = shuffle_xor(at, step);
    const bool keep_first = ((i & step) == 0) == ascending;
    if (comes_before(other_key, other_at, key, at) == keep_first) {
      key = other_key;
      at = other_at;
    }
  }
}

// Sorts a tile of a line by a bitonic network over `size` places, a power of two from 32; places
// behind the end hold the largest key. Results go out, or to `runs` when the line has more tiles.
template <class T>
KERNEL sort_tiles(SortArgs a, int size, int64_t tiles, Entries<KeyOf<T>> runs) {
  using K = KeyOf<T>;
  DYNAMIC_SHARED(K, key);
  const auto at = recast<uint32_t>(key + size);
  const int threads = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
  const int64_t line = blockIdx.x / tiles, first = blockIdx.x % tiles * kSortTile;
  const int n = static_cast<int>(a.n - first < kSortTile ? a.n - first : kSortTile);
  const auto x = global<const T>(a.in);
  const int64_t base = line_base(a, line, a.n);
  for (int i = t; i < size; i += threads) {
    K k = static_cast<K>(~K{0});
    uint32_t place = UINT32_MAX;
    if (i < n) {
      const T v = x[base + (first + i) * a.inner];
      k = a.descending ? static_cast<K>(~key_of(v)) : static_cast<K>(key_of(v));
      place = static_cast<uint32_t>(first + i);
    }
    for (int length = 2; length <= 32; length *= 2) sort_in_warp(k, place, i, length);
    key[i] = k;
    at[i] = place;
  }
  for (int length = 64; length <= size; length *= 2) {
    for (int step = length / 2; step >= 32; step /= 2) {
      __syncthreads();
      for (int pair = t; pair < size / 2; pair += threads) {
        const int i = 2 * pair - (pair & (step - 1)), j = i + step;
        const K ki = key[i], kj = key[j];
        const uint32_t ai = at[i], aj = at[j];
        const bool ascending = (i & length) == 0;
        if (comes_before(kj, aj, ki, ai) == ascending) {
          key[i] = kj;
          key[j] = ki;
          at[i] = aj;
          at[j] = ai;
        }
      }
    }
    __syncthreads();
    for (int i = t; i < size; i += threads) {
      K k = key[i];
      uint32_t place = at[i];
      sort_in_warp(k, place, i, length);
      key[i] = k;
      at[i] = place;
    }
  }
  __syncthreads();
  if (tiles == 1) {
    for (int j = t; j < a.k; j += threads) put_sorted<T>(a, line, j, at[j]);
    return;
  }
  const auto keys_out = global<K>(runs.key);
  const auto ats_out = global<uint32_t>(runs.at);
  for (int i = t; i < n; i += threads) {
    keys_out[line * a.n + first + i] = key[i];
    ats_out[line * a.n + first + i] = at[i];
  }
}

// How many of the first `diagonal` merged elements come from the left run [begin, begin + n_left);
// the right one follows it. (Green, McColl and Bader, "GPU merge path", 2012.)
template <class K>
DEVICE int64_t left_part(Global<const K> key, Global<const uint32_t> at, int64_t begin,
                         int64_t n_left, int64_t n_right, int64_t diagonal) {
  int64_t low = diagonal > n_right ? diagonal - n_right : 0;
  int64_t high = diagonal < n_left ? diagonal : n_left;
  while (low < high) {
    const int64_t middle = (low + high) / 2, left = begin + middle;
    const int64_t right = begin + n_left + diagonal - 1 - middle;
    const K kl = key[left], kr = key[right];
    const uint32_t al = at[left], ar = at[right];
    if (comes_before(kl, al, kr, ar)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Merges neighbouring runs of `run` elements; a block for each kMergeTile results.
template <class K>
KERNEL merge_runs(int64_t n, int64_t run, int64_t tiles, Entries<K> from, Entries<K> to) {
  SHARED(int64_t, parts, 2);
  SHARED(K, key, kMergeTile);
  SHARED(uint32_t, at, kMergeTile);
  const int t = static_cast<int>(threadIdx.x);
  const int64_t line = blockIdx.x / tiles, first = blockIdx.x % tiles * kMergeTile;
  const int64_t begin = first / (2 * run) * (2 * run);
  const int64_t rest = n - begin, n_left = run < rest ? run : rest;
  const int64_t n_right = rest - n_left < run ? rest - n_left : run;
  const int64_t from_diagonal = first - begin;
  const int64_t to_diagonal = std::min(from_diagonal + kMergeTile, n_left + n_right);
  const auto keys = global<const K>(from.key) + line * n;
  const auto ats = global<const uint32_t>(from.at) + line * n;
  if (t % 32 == 0 && t < 64) {
    parts[t / 32] =
        left_part<K>(keys, ats, begin, n_left, n_right, t == 0 ? from_diagonal : to_diagonal);
  }
  __syncthreads();
  const int64_t left_begin = parts[0], left_end = parts[1];
  const int lefts = static_cast<int>(left_end - left_begin);
  const int total = static_cast<int>(to_diagonal - from_diagonal);
  const int64_t right_begin = from_diagonal - left_begin;
  for (int i = t; i < total; i += kSortThreads) {
    const int64_t place = begin + (i < lefts ? left_begin + i : n_left + right_begin + (i - lefts));
    key[i] = keys[place];
    at[i] = ats[place];
  }
  __syncthreads();
  const auto keys_out = global<K>(to.key) + line * n;
  const auto ats_out = global<uint32_t>(to.at) + line * n;
  for (int i = t; i < total; i += kSortThreads) {
    const K k = key[i];
    const uint32_t place = at[i];
    // Elements of the other part that come before this one.
    const bool of_left = i < lefts;
    const int other = of_left ? lefts : 0;
    int low = 0, high = of_left ? total - lefts : lefts;
    while (low < high) {
      const int middle = (low + high) / 2;
      const K km = key[other + middle];
      const uint32_t am = at[other + middle];
      if (comes_before(km, am, k, place)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const int64_t rank = (of_left ? i : i - lefts) + low;
    keys_out[first + rank] = k;
    ats_out[first + rank] = place;
  }
}

template <class T>
KERNEL put_all_sorted(SortArgs a, const uint32_t* at) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.outer * a.inner * a.k) return;
  // Neighbouring threads write neighbouring results.
  const int64_t o = i / (a.k * a.inner), j = i / a.inner % a.k;
  const int64_t line = o * a.inner + i % a.inner;
  put_sorted<T>(a, line, j, global<const uint32_t>(at)[line * a.n + j]);
}

template <class T>
void launch_tiles(const SortArgs& a, int size, int64_t tiles, Entries<KeyOf<T>> runs) {
  const int threads = std::clamp(size / 2, 32, kSortThreads);
  const int64_t entry = static_cast<int64_t>(sizeof(KeyOf<T>) + sizeof(uint32_t));
  launch({.name = "sort_tiles",
          .grid = {static_cast<unsigned>(a.outer * a.inner * tiles)},
          .block = {static_cast<unsigned>(threads)},
          .shared = size * entry},
         sort_tiles<T>, a, size, tiles, runs);
}
template <class T>
void sort(const SortArgs& a) {
  using K = KeyOf<T>;
  const int64_t lines = a.outer * a.inner;
  if (lines == 0 || a.n == 0 || a.k == 0) return;
  if (a.n <= kSortTile) {
    return launch_tiles<T>(a, std::max(32, power_of_two_from(a.n, kSortTile)), 1,
                           {nullptr, nullptr});
  }
  DeviceArray<K> keys(2 * lines * a.n);
  DeviceArray<uint32_t> ats(2 * lines * a.n);
  Entries<K> from{keys.get(), ats.get()};
  Entries<K> to{keys.get() + lines * a.n, ats.get() + lines * a.n};
  launch_tiles<T>(a, kSortTile, blocks_for(a.n, kSortTile), from);
  const int64_t tiles = blocks_for(a.n, kMergeTile);
  for (int64_t run = kSortTile; run < a.n; run *= 2) {
    launch({.name = "merge_runs",
            .grid = {static_cast<unsigned>(lines * tiles)},
            .block = {kSortThreads}},
           merge_runs<K>, a.n, run, tiles, from, to);
    std::swap(from, to);
  }
  launch({.name = "put_sorted",
          .grid = {static_cast<unsigned>(blocks_for(lines * a.k, kSortThreads))},
          .block = {kSortThreads},
          .sync = Sync::none},
         put_all_sorted<T>, a, static_cast<const uint32_t*>(from.at));
}

// ---- groups of equal elements: their borders are counted block by block, then numbered.

template <class T>
DEVICE bool begins_group(const UniqueArgs& a, int64_t i) {
  if (i >= a.n) return false;
  if (i == 0) return true;
  const auto x = global<const T>(a.sorted);
  const T here = x[i], before = x[i - 1];
  return compute(here) != compute(before);
}
template <class T>
KERNEL count_borders(UniqueArgs a, int64_t* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSortThreads + threadIdx.x;
  const int count = __syncthreads_count(begins_group<T>(a, i));
  if (threadIdx.x == 0) global<int64_t>(counts)[blockIdx.x] = count;
}
// counts[b] becomes the number of borders before block b, counts[blocks] that of all; one block.
KERNEL sum_borders(int64_t* counts, int64_t blocks) {
  SHARED(int64_t, sums, kSortThreads);
  const int t = static_cast<int>(threadIdx.x);
  const int64_t each = (blocks + kSortThreads - 1) / kSortThreads;
  const int64_t begin = t * each, end = begin + each < blocks ? begin + each : blocks;
  const auto c = global<int64_t>(counts);
  int64_t mine = 0;
  for (int64_t b = begin; b < end; ++b) mine += c[b];
  sums[t] = mine;
  __syncthreads();
  int64_t before = 0;
  for (int k = 0; k < t; ++k) before += sums[k];
  for (int64_t b = begin; b < end; ++b) {
    const int64_t here = c[b];
    c[b] = before;
    before += here;
  }
  if (t == kSortThreads - 1) c[blocks] = before;
}
template <class T>
KERNEL number_groups(UniqueArgs a, const int64_t* before, int64_t* begins) {
  SHARED(int, warps, kSortThreads / 32);
  const int t = static_cast<int>(threadIdx.x);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSortThreads + t;
  const bool border = begins_group<T>(a, i);
  const unsigned bits = __ballot_sync(kAllLanes, border);
  if (t % 32 == 0) warps[t / 32] = __popc(bits);
  __syncthreads();
  if (i >= a.n) return;
  // Borders up to and with this element.
  int64_t count = global<const int64_t>(before)[blockIdx.x];
  for (int w = 0; w < t / 32; ++w) count += warps[w];
  count += __popc(bits & (kAllLanes >> (31 - t % 32)));
  const int64_t order = global<const int64_t>(a.order)[i];
  global<int64_t>(a.inverse)[order] = count - 1;
  if (!border) return;
  const T value = global<const T>(a.sorted)[i];
  global<T>(a.values)[count - 1] = value;
  global<int64_t>(begins)[count - 1] = i;
}
KERNEL count_members(UniqueArgs a, const int64_t* begins, const int64_t* groups) {
  const int64_t g = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t n = global<const int64_t>(groups)[0];
  if (g >= n) return;
  const auto begin = global<const int64_t>(begins);
  int64_t end = a.n;
  if (g + 1 < n) end = begin[g + 1];
  const int64_t from = begin[g];
  global<int64_t>(a.counts)[g] = end - from;
}
template <class T>
void unique(const UniqueArgs& a) {
  *a.groups = 0;
  if (a.n == 0) return;
  const int64_t blocks = blocks_for(a.n, kSortThreads);
  const unsigned grid = static_cast<unsigned>(blocks);
  DeviceArray<int64_t> borders(blocks + 1), begins(a.n);
  launch({.name = "count_borders", .grid = {grid}, .block = {kSortThreads}}, count_borders<T>, a,
         borders.get());
  launch({.name = "sum_borders", .grid = {1}, .block = {kSortThreads}}, sum_borders, borders.get(),
         blocks);
  launch({.name = "number_groups", .grid = {grid}, .block = {kSortThreads}}, number_groups<T>, a,
         static_cast<const int64_t*>(borders.get()), begins.get());
  launch({.name = "count_members", .grid = {grid}, .block = {kSortThreads}, .sync = Sync::none},
         count_members, a, static_cast<const int64_t*>(begins.get()),
         static_cast<const int64_t*>(borders.get() + blocks));
  *a.groups = read_from_device(borders.get() + blocks);
}

template <class T>
KERNEL search_rows(SearchArgs a) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.rows * a.m) return;
  const auto row = global<const T>(a.sorted) + (a.shared ? 0 : i / a.m * a.n);
  const T value = global<const T>(a.values)[i];
  const auto key = key_of(value);
  int64_t low = 0, high = a.n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const T element = row[middle];
    const auto here = key_of(element);
    if (here < key || (a.right && here == key)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  global<int64_t>(a.out)[i] = low;
}
template <class T>
void search_sorted(const SearchArgs& a) {
  if (a.rows * a.m == 0) return;
  launch({.name = "search_sorted",
          .grid = {static_cast<unsigned>(blocks_for(a.rows * a.m, kSortThreads))},
          .block = {kSortThreads},
          .sync = Sync::none},
         search_rows<T>, a);
}

template <class T>
void set_sorts(DType t) {
  kernels::sort.set(kDevice, t, &sort<T>);
  kernels::unique.set(kDevice, t, &unique<T>);
  kernels::search_sorted.set(kDevice, t, &search_sorted<T>);
}

void register_sort_kernels() {
  set_sorts<double>(DType::f64);
  set_sorts<float>(DType::f32);
  set_sorts<BFloat16>(DType::bf16);
  set_sorts<Float16>(DType::f16);
  set_sorts<int64_t>(DType::i64);
  set_sorts<int32_t>(DType::i32);
  set_sorts<uint8_t>(DType::u8);
  set_sorts<int8_t>(DType::i8);
  set_sorts<uint8_t>(DType::boolean);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
