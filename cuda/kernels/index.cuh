#pragma once
#include <cutaway/core/kernels/index.h>
#include <cutaway/core/math/half.h>
#include <cutaway/cuda/device/recording.h>
#include <cutaway/cuda/device/scatter_places.h>
#include <cutaway/cuda/device/scratch.h>

// Reading and writing at indices, without arithmetic: one instance for each element size. Where
// several values go to one place a first pass finds the last of them (by integer atomics, whose
// result does not depend on the order), a second one writes it.
namespace cutaway::cuda::CUTAWAY_TARGET {

DEVICE bool is_outside(const BoundsArgs& a, int64_t v) {
  return (v < a.low || v >= a.high) && !(a.has_ignored && v == a.ignored);
}
KERNEL find_outside(BoundsArgs a, int64_t* first) {
  const int64_t i = thread_number();
  if (i >= a.n) return;
  const int64_t v = global<const int64_t>(a.index)[i];
  if (is_outside(a, v)) atomic_min(global<int64_t>(first), 0, i);
}
// For replays of a graph: where nobody can be told, no work on bad indices.
KERNEL stop_outside(BoundsArgs a) {
  const int64_t i = thread_number();
  if (i >= a.n) return;
  const int64_t v = global<const int64_t>(a.index)[i];
  if (is_outside(a, v)) stop_device("an index is out of range", i, v);
}

inline void index_bounds(const BoundsArgs& a) {
  *a.found = -1;
  if (a.n == 0) return;
  if (recording()) return launch(one_thread_each("index_bounds", a.n), stop_outside, a);
  const DeviceArray<int64_t> first(&a.n, 1);
  launch(one_thread_each("index_bounds", a.n), find_outside, a, first.get());
  const int64_t found = read_from_device(first.get());
  if (found < a.n) *a.found = found;
}

// ---- single elements

template <class T, class I>
KERNEL gather_elements(Walk<I, 1> walk, GatherArgs a, I n) {
  const I i = static_cast<I>(thread_number());
  if (i >= n) return;
  I at[1];
  walk.at(i, at);
  const int64_t t = global<const int64_t>(a.index)[i];
  const auto y = global<T>(a.out);
  if (t < 0) {
    y[i] = T(0);
  } else {
    y[i] = global<const T>(a.in)[static_cast<int64_t>(at[0]) + t * a.in_strides[a.dim]];
  }
}

template <class T, class I>
void gather_with(const GatherArgs& a, const int64_t* strides, int64_t n) {
  launch(one_thread_each("gather", n), gather_elements<T, I>,
         walk_of<I, 1>(a.rank, a.sizes, {strides}), a, static_cast<I>(n));
}
template <class T>
void gather(const GatherArgs& a) {
  int64_t n = 1, strides[kMaxRank];
  for (int d = 0; d < a.rank; ++d) {
    n *= a.sizes[d];
    strides[d] = d == a.dim ? 0 : a.in_strides[d];
  }
  if (n == 0) return;
  const bool narrow = fits32(n) && fits32(extent(a.rank, a.sizes, strides));
  narrow ? gather_with<T, uint32_t>(a, strides, n) : gather_with<T, uint64_t>(a, strides, n);
}

template <class I>
KERNEL find_last(ScatterPlaces<I> p, std::make_signed_t<I>* last) {
  const int64_t i = thread_number();
  if (i >= p.n) return;
  const int64_t t = global<const int64_t>(p.index)[i];
  if (t < 0) return;
  I at[3];
  p.walk.at(static_cast<I>(i), at);
  using S = std::make_signed_t<I>;
  // On one line, later in the order of the index is later in memory.
  atomic_max(global<S>(last), static_cast<int64_t>(at[0]) + t * p.along, static_cast<S>(i));
}

// last: null where no two values can meet.
template <class T, class I>
KERNEL scatter_elements(ScatterPlaces<I> p, const std::make_signed_t<I>* last, const void* src,
                        const void* value, void* out) {
  using S = std::make_signed_t<I>;
  const int64_t i = thread_number();
  if (i >= p.n) return;
  const int64_t t = global<const int64_t>(p.index)[i];
  if (t < 0) return;
  I at[3];
  p.walk.at(static_cast<I>(i), at);
  if (last) {
    const S winner = global<const S>(last)[static_cast<int64_t>(at[0]) + t * p.along];
    if (winner != static_cast<S>(i)) return;
  }
  T v;
  if (src) {
    v = global<const T>(src)[at[1]];
  } else {
    v = global<const T>(value)[0];
  }
  global<T>(out)[static_cast<int64_t>(at[2]) + t * p.out_along] = v;
}

template <class T, class I>
void scatter_with(const ScatterArgs& a, const ScatterShape& shape) {
  using S = std::make_signed_t<I>;
  const ScatterPlaces<I> p = shape.places_of<I>(a);
  const bool meet = a.sizes[a.dim] > 1;
  const DeviceArray<S> last(meet ? shape.places : 0);
  if (meet) {
    fill(last.get(), S(-1), shape.places);
    launch(one_thread_each("scatter_find_last", p.n), find_last<I>, p, last.get());
  }
  launch(one_thread_each("scatter", p.n), scatter_elements<T, I>, p,
         static_cast<const S*>(meet ? last.get() : nullptr), a.src, a.value, a.out);
}
template <class T>
void scatter(const ScatterArgs& a) {
  const ScatterShape shape(a);
  if (shape.n == 0) return;
  shape.narrow ? scatter_with<T, uint32_t>(a, shape) : scatter_with<T, uint64_t>(a, shape);
}

// ---- rows

struct RowMove {
  const int64_t* index;
  const int64_t* last;  // put_rows: for each place the row that is written there
  const void* in;
  void* out;
  int64_t outer, n, count, units;  // units of a row
};

// A thread moves one unit, W elements of U.
template <class U, int W, class I>
KERNEL take_row_units(RowMove a) {
  const auto units = static_cast<I>(a.units), count = static_cast<I>(a.count);
  const I i = static_cast<I>(thread_number());
  if (i >= static_cast<I>(a.outer) * count * units) return;
  const I row = i / units, unit = i - row * units, o = row / count;
  const int64_t t = global<const int64_t>(a.index)[row - o * count];
  Vec<U, W> v{};
  if (t >= 0) {
    v = load<W>(global<const U>(a.in), ((static_cast<int64_t>(o) * a.n + t) * a.units + unit) * W);
  }
  store(global<U>(a.out), static_cast<int64_t>(i) * W, v);
}

KERNEL find_last_row(const int64_t* index, int64_t count, int64_t* last) {
  const int64_t k = thread_number();
  if (k >= count) return;
  const int64_t t = global<const int64_t>(index)[k];
  if (t >= 0) atomic_max(global<int64_t>(last), t, k);
}
template <class U, int W, class I>
KERNEL put_row_units(RowMove a) {
  const auto units = static_cast<I>(a.units), count = static_cast<I>(a.count);
  const I i = static_cast<I>(thread_number());
  if (i >= static_cast<I>(a.outer) * count * units) return;
  const I row = i / units, unit = i - row * units, o = row / count;
  const int64_t k = row - o * count, t = global<const int64_t>(a.index)[k];
  if (t < 0) return;
  const int64_t winner = global<const int64_t>(a.last)[t];
  if (winner != k) return;
  const Vec<U, W> v = load<W>(global<const U>(a.in), static_cast<int64_t>(i) * W);
  store(global<U>(a.out), ((static_cast<int64_t>(o) * a.n + t) * a.units + unit) * W, v);
}

template <class U, int W>
void move_rows(RowMove a, int64_t row_bytes, bool take) {
  a.units = row_bytes / static_cast<int64_t>(sizeof(U) * W);
  const int64_t n = a.outer * a.count * a.units;
  const Launch l = one_thread_each(take ? "take_rows" : "put_rows", n);
  if (fits32(n)) {
    launch(l, take ? take_row_units<U, W, uint32_t> : put_row_units<U, W, uint32_t>, a);
  } else {
    launch(l, take ? take_row_units<U, W, uint64_t> : put_row_units<U, W, uint64_t>, a);
  }
}
// By the widest accesses that rows of this size allow.
inline void move_rows(const RowMove& a, int64_t row_bytes, bool take) {
  const auto fits = [&](int64_t bytes) {
    return row_bytes % bytes == 0 && is_aligned(a.in, bytes) && is_aligned(a.out, bytes);
  };
  if (fits(16)) return move_rows<uint32_t, 4>(a, row_bytes, take);
  if (fits(8)) return move_rows<uint32_t, 2>(a, row_bytes, take);
  if (fits(4)) return move_rows<uint32_t, 1>(a, row_bytes, take);
  if (fits(2)) return move_rows<uint16_t, 1>(a, row_bytes, take);
  move_rows<uint8_t, 1>(a, row_bytes, take);
}

template <int64_t Size>
void take_rows(const TakeRowsArgs& a) {
  if (a.outer * a.count * a.inner == 0) return;
  move_rows({a.index, nullptr, a.in, a.out, a.outer, a.n, a.count, 0}, a.inner * Size, true);
}
template <int64_t Size>
void put_rows(const PutRowsArgs& a) {
  if (a.outer * a.count * a.inner == 0) return;
  const DeviceArray<int64_t> last(a.n);
  fill(last.get(), int64_t{-1}, a.n);
  launch(one_thread_each("put_rows_find_last", a.count), find_last_row, a.index, a.count,
         last.get());
  move_rows({a.index, last.get(), a.in, a.out, a.outer, a.n, a.count, 0}, a.inner * Size, false);
}

// ---- positions of elements that are not zero; a block of threads for each kNonzeroBlock elements

inline constexpr int kNonzeroThreads = 512, kNonzeroWarps = kNonzeroThreads / 32;

template <class T>
DEVICE bool is_nonzero(T x) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<float>(x) != 0.0f;
  } else {
    return x != T(0);
  }
}

template <class T>
KERNEL nonzero_count(NonzeroArgs a) {
  const auto in = global<const T>(a.in);
  SHARED(int, counts, kNonzeroWarps);
  const int t = static_cast<int>(threadIdx.x);
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kNonzeroBlock;
  const int64_t end = min(a.n, begin + kNonzeroBlock);
  int count = 0;
  for (int64_t i = begin + t; i < end; i += kNonzeroThreads) count += is_nonzero<T>(in[i]) ? 1 : 0;
  for (int d = 16; d > 0; d /= 2) count += __shfl_xor_sync(kAllLanes, count, d);
  if (t % 32 == 0) counts[t / 32] = count;
  __syncthreads();
  if (t != 0) return;
  int64_t sum = 0;
  for (int w = 0; w < kNonzeroWarps; ++w) sum += counts[w];
  global<int64_t>(a.counts)[blockIdx.x] = sum;
}

template <class T>
KERNEL nonzero_write(NonzeroArgs a) {
  const auto in = global<const T>(a.in);
  const auto out = global<int64_t>(a.out);
  SHARED(int, counts, kNonzeroWarps);
  const int t = static_cast<int>(threadIdx.x), lane = t % 32, warp = t / 32;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kNonzeroBlock;
  const int64_t end = min(a.n, begin + kNonzeroBlock);
  int64_t next = global<const int64_t>(a.counts)[blockIdx.x];
  for (int64_t first = begin; first < end; first += kNonzeroThreads) {
    const int64_t i = first + t;
    const bool hit = i < end && is_nonzero<T>(in[i]);
    const uint32_t hits = __ballot_sync(kAllLanes, hit);
    if (lane == 0) counts[warp] = __popc(hits);
    __syncthreads();
    int64_t at = next + __popc(hits & ((1u << lane) - 1u));
    for (int w = 0; w < kNonzeroWarps; ++w) {
      const int count = counts[w];
      if (w < warp) at += count;
      next += count;
    }
    if (hit) out[at] = i;
    __syncthreads();
  }
}

template <class T>
void nonzero(const NonzeroArgs& a) {
  if (a.n == 0) return;
  launch({.name = a.out ? "nonzero_write" : "nonzero_count",
          .grid = {static_cast<unsigned>(blocks_for(a.n, kNonzeroBlock))},
          .block = {kNonzeroThreads}},
         a.out ? nonzero_write<T> : nonzero_count<T>, a);
}

template <class T>
void set_movers(DType t) {
  kernels::gather.set(kDevice, t, &gather<T>);
  kernels::scatter.set(kDevice, t, &scatter<T>);
  kernels::take_rows.set(kDevice, t, &take_rows<sizeof(T)>);
  kernels::put_rows.set(kDevice, t, &put_rows<sizeof(T)>);
}

void register_index_kernels() {
  kernels::index_bounds.set(kDevice, DType::i64, &index_bounds);
  for (DType t : {DType::f64, DType::i64}) set_movers<uint64_t>(t);
  for (DType t : {DType::f32, DType::i32}) set_movers<uint32_t>(t);
  for (DType t : {DType::bf16, DType::f16}) set_movers<uint16_t>(t);
  for (DType t : {DType::u8, DType::i8, DType::boolean}) {
    set_movers<uint8_t>(t);
    kernels::nonzero.set(kDevice, t, &nonzero<uint8_t>);
  }
  kernels::nonzero.set(kDevice, DType::f64, &nonzero<double>);
  kernels::nonzero.set(kDevice, DType::f32, &nonzero<float>);
  kernels::nonzero.set(kDevice, DType::bf16, &nonzero<BFloat16>);
  kernels::nonzero.set(kDevice, DType::f16, &nonzero<Float16>);
  kernels::nonzero.set(kDevice, DType::i64, &nonzero<int64_t>);
  kernels::nonzero.set(kDevice, DType::i32, &nonzero<int32_t>);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
