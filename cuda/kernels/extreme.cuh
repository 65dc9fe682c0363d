#pragma once
#include <cutaway/core/kernels/sort.h>
#include <cutaway/cuda/device/order_key.h>
#include <cutaway/cuda/kernels/reduce_loop.cuh>

// Largest and smallest elements, where they stand, and medians.
namespace cutaway::cuda::CUTAWAY_TARGET {

// The first element that equals value[o]; NaN equals NaN.
template <class T>
struct FindFirst {
  using In = T;
  using Acc = int64_t;
  using C = ComputeOf<T>;
  static constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();
  DEVICE C context(const ReduceArgs& a, int64_t o, int64_t) {
    const T value = global<const T>(a.value)[o];
    return compute(value);
  }
  DEVICE Acc identity() { return kNowhere; }
  DEVICE Acc add(Acc a, T x, C value, Where where) {
    const C v = compute(x);
    const bool found = v == value || (v != v && value != value);
    return found ? merge(a, where.r) : a;
  }
  DEVICE Acc merge(Acc a, Acc b) { return a < b ? a : b; }
  DEVICE void finish(const ReduceArgs& args, int64_t o, Acc a) {
    global<int64_t>(args.out)[o] = a == kNowhere ? 0 : a;
  }
};

// ---- median. Lists of moderate length: a block for each. The key of the wanted element is found
// digit by digit, the highest first: of all keys that agree so far, the digits are counted.

constexpr int kDigits = 256;

// The digit of the element of rank `rank`, from their counts, and its rank among those that share
// the digit; for the first warp, whose lanes take eight digits each. Written to found[0] and [1].
DEVICE void find_digit(Shared<int> counts, int rank, Shared<int> found) {
  const int lane = static_cast<int>(threadIdx.x);
  int mine = 0;
  // Each lane begins at another of its digits, so that no two of them want the same bank.
  for (int d = 0; d < 8; ++d) mine += counts[8 * lane + ((d + lane / 4) & 7)];
  int below = mine;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(kAllLanes, below, step);
    if (lane >= step) below += other;
  }
  below -= mine;
  if (rank < below || rank >= below + mine) return;
  for (int d = 0; d < 8; ++d) {
    const int here = counts[8 * lane + d];
    if (rank < below + here) {
      found[0] = 8 * lane + d;
      found[1] = rank - below;
      return;
    }
    below += here;
  }
}

template <class T>
KERNEL median_of_lists(MedianArgs a) {
  using K = KeyOf<T>;
  SHARED(int, counts, kDigits);
  SHARED(int, found, 2);
  const int threads = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
  const Team team = this_team(threads);
  const int64_t list = blockIdx.x;
  const int64_t base = list / a.inner * a.n * a.inner + list % a.inner;
  const auto x = global<const T>(a.in);
  int64_t nans = 0;
  for (int64_t i = t; i < a.n; i += threads) {
    const T v = x[base + i * a.inner];
    nans += compute(v) != compute(v) ? 1 : 0;
  }
  nans = team_reduce(team, nans, Plus());
  K key = 0, known = 0;
  if (nans < a.n && (nans == 0 || a.skip_nan)) {
    int rank = static_cast<int>((a.n - nans - 1) / 2);
    for (int shift = kKeyBits<T> - 8; shift >= 0; shift -= 8) {
      for (int d = t; d < kDigits; d += threads) counts[d] = 0;
      __syncthreads();
      for (int64_t i = t; i < a.n; i += threads) {
        const T v = x[base + i * a.inner];
        const K k = key_of(v);
        if ((k & known) == key) atomic_add(counts, static_cast<int>(k >> shift & 255), 1);
      }
      __syncthreads();
      if (t < 32) find_digit(counts, rank, found);
      __syncthreads();
      key |= static_cast<K>(static_cast<int>(found[0])) << shift;
      known |= K{255} << shift;
      rank = found[1];
      __syncthreads();
    }
  } else {
    key = key_of(std::numeric_limits<T>::quiet_NaN());
  }
  int64_t first = a.n;
  for (int64_t i = t; i < a.n && first == a.n; i += threads) {
    const T v = x[base + i * a.inner];
    if (key_of(v) == key) first = i;
  }
  first = team_reduce(team, first, [](int64_t p, int64_t q) { return p < q ? p : q; });
  if (t != 0) return;
  const T value = x[base + first * a.inner];
  global<T>(a.value)[list] = value;
  if (a.index) global<int64_t>(a.index)[list] = first;
}
// From sorted lists: values and places [outer, n, inner].
template <class T>
KERNEL median_of_sorted_lists(MedianArgs a, const T* values, const int64_t* places) {
  const int64_t list = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (list >= a.outer * a.inner) return;
  const int64_t base = list / a.inner * a.n * a.inner + list % a.inner;
  const auto sorted = global<const T>(values);
  // The first element that is not below `key`.
  const auto first_from = [&](KeyOf<T> key) {
    int64_t low = 0, high = a.n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const T v = sorted[base + middle * a.inner];
      if (key_of(v) < key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  int64_t numbers = a.n;
  if constexpr (kIsFloating<T>) numbers = first_from(key_of(std::numeric_limits<T>::quiet_NaN()));
  int64_t at = numbers;  // the first NaN
  if (numbers > 0 && (numbers == a.n || a.skip_nan)) {
    const T middle = sorted[base + (numbers - 1) / 2 * a.inner];
    at = first_from(key_of(middle));
  }
  const int64_t place = global<const int64_t>(places)[base + at * a.inner];
  const T value = global<const T>(a.in)[base + place * a.inner];
  global<T>(a.value)[list] = value;
  if (a.index) global<int64_t>(a.index)[list] = place;
}
template <class T>
void median_by_sorting(const MedianArgs& a, DType t) {
  const int64_t n = a.outer * a.n * a.inner;
  DeviceArray<T> values(n);
  DeviceArray<int64_t> places(n);
  SortArgs s;
  s.in = a.in;
  s.values = values.get();
  s.indices = places.get();
  s.outer = a.outer;
  s.n = s.k = a.n;
  s.inner = a.inner;
  kernels::sort(Device{kDevice, 0}, t, s);
  launch({.name = "median",
          .grid = {static_cast<unsigned>(blocks_for(a.outer * a.inner, kReduceThreads))},
          .block = {kReduceThreads},
          .sync = Sync::none},
         median_of_sorted_lists<T>, a, static_cast<const T*>(values.get()),
         static_cast<const int64_t*>(places.get()));
}

// Long lists keep a block busy for long; a few of them are sorted by the whole device instead.
constexpr int64_t kLongList = 8192;

template <class T, DType kType>
void median(const MedianArgs& a) {
  const int64_t lists = a.outer * a.inner;
  if (lists == 0 || a.n == 0) return;
  if (a.n > kLongList && lists < kReduceBlocks) return median_by_sorting<T>(a, kType);
  launch({.name = "median",
          .grid = {static_cast<unsigned>(lists)},
          .block = {a.n <= 256 ? 32u : 256u}},
         median_of_lists<T>, a);
}

template <class T, DType kType>
void set_extremes() {
  kernels::amax.set(kDevice, kType, &reduce<Extreme<T, 1>>);
  kernels::amin.set(kDevice, kType, &reduce<Extreme<T, -1>>);
  kernels::find_first.set(kDevice, kType, &reduce<FindFirst<T>>);
  kernels::median.set(kDevice, kType, &median<T, kType>);
}

void register_extreme_kernels() {
  set_extremes<double, DType::f64>();
  set_extremes<float, DType::f32>();
  set_extremes<BFloat16, DType::bf16>();
  set_extremes<Float16, DType::f16>();
  set_extremes<int64_t, DType::i64>();
  set_extremes<int32_t, DType::i32>();
  set_extremes<uint8_t, DType::u8>();
  set_extremes<int8_t, DType::i8>();
  set_extremes<uint8_t, DType::boolean>();  // true is 1
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
