#pragma once
#include <cutaway/core/math/half.h>
#include <cutaway/cuda/device/scatter_places.h>
#include <cutaway/cuda/device/segments.h>
#include <cutaway/cuda/ladder.h>

// Reductions at indices. Values are brought together by their target, in order; the thread at the
// head of a segment owns it and goes through it as the CPU does: the same bits every time. Where
// the arguments allow atomics, sums of f32 and f64 need no sorting; each run may round them in
// another order.
namespace cutaway::cuda::CUTAWAY_TARGET {

// Values meet in f64 for floating types and are rounded once; integers wrap.
template <class T>
using ReduceType = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

CUTAWAY_HD double sum_of(double a, double b) { return a + b; }
CUTAWAY_HD int64_t sum_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
CUTAWAY_HD double product_of(double a, double b) { return a * b; }
CUTAWAY_HD int64_t product_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
CUTAWAY_HD double quotient_of(double a, int64_t n) { return a / static_cast<double>(n); }
CUTAWAY_HD int64_t quotient_of(int64_t a, int64_t n) { return a / n - (a % n < 0 ? 1 : 0); }

// a and b brought together; a NaN wins.
template <class A>
CUTAWAY_HD A merged(ScatterMode mode, A a, A b) {
  switch (mode) {
    case ScatterMode::prod:
      return product_of(a, b);
    case ScatterMode::amax:
      return b > a || b != b ? b : a;
    case ScatterMode::amin:
      return b < a || b != b ? b : a;
    default:
      return sum_of(a, b);
  }
}

// ---- single elements

template <class I>
KERNEL scatter_keys(ScatterPlaces<I> p, I* keys, I nowhere) {
  const int64_t i = thread_number();
  if (i >= p.n) return;
  const int64_t t = global<const int64_t>(p.index)[i];
  I at[3];
  p.walk.at(static_cast<I>(i), at);
  I key = nowhere;
  if (t >= 0) key = at[0] + static_cast<I>(t * p.along);
  global<I>(keys)[i] = key;
}

template <class I>
struct Segments {
  const I* keys;
  const I* order;
  I nowhere;  // the key of values that go nowhere
  int64_t n;
};

// A thread for each value; the heads of segments work.
template <class T, class I>
KERNEL scatter_segments(ScatterPlaces<I> p, Segments<I> s, const void* src, void* out,
                        int64_t* counts, ScatterMode mode, bool include_self) {
  using A = ReduceType<T>;
  const int64_t first = thread_number();
  if (first >= s.n) return;
  const auto keys = global<const I>(s.keys), order = global<const I>(s.order);
  const auto x = global<const T>(src);
  const auto y = global<T>(out);
  const I key = keys[first];
  if (key == s.nowhere) return;
  if (first > 0 && key == static_cast<I>(keys[first - 1])) return;
  int64_t place = -1, hits = 0;
  A sum = A(0);
  for (int64_t k = first; k < s.n && key == static_cast<I>(keys[k]); ++k) {
    const I element = order[k];
    I at[3];
    p.walk.at(element, at);
    const A value = A(static_cast<T>(x[at[1]]));
    if (hits == 0) {
      const int64_t t = global<const int64_t>(p.index)[element];
      place = static_cast<int64_t>(at[2]) + t * p.out_along;
      sum = include_self ? merged(mode, A(static_cast<T>(y[place])), value) : value;
    } else {
      sum = merged(mode, sum, value);
    }
    ++hits;
  }
  const int64_t total = hits + (include_self ? 1 : 0);
  y[place] = T(mode == ScatterMode::mean ? quotient_of(sum, total) : sum);
  if (counts) global<int64_t>(counts)[place] = total;
}

// Places that nothing goes to count as one value.
template <class I>
KERNEL count_places(Walk<I, 1> walk, int64_t n, int64_t* counts) {
  const int64_t i = thread_number();
  if (i >= n) return;
  I at[1];
  walk.at(static_cast<I>(i), at);
  global<int64_t>(counts)[at[0]] = int64_t{1};
}

template <class T, class I>
void scatter_reduce_with(const ScatterReduceArgs& a, const ScatterShape& shape) {
  const ScatterPlaces<I> p = shape.places_of<I>(a);
  const auto nowhere = static_cast<I>(shape.places);
  int64_t* counts = a.mode == ScatterMode::mean ? a.counts : nullptr;
  if (counts) {
    int64_t sizes[kMaxRank];
    for (int d = 0; d < a.rank; ++d) sizes[d] = d == a.dim ? a.n : a.sizes[d];
    launch(one_thread_each("scatter_counts", shape.places), count_places<I>,
           walk_of<I, 1>(a.rank, sizes, {a.out_strides}), shape.places, counts);
  }
  const DeviceArray<I> keys(p.n);
  launch(one_thread_each("scatter_keys", p.n), scatter_keys<I>, p, keys.get(), nowhere);
  const Sorted<I> sorted(keys.get(), p.n, static_cast<uint64_t>(nowhere));
  launch(one_thread_each("scatter_reduce", p.n, 128), scatter_segments<T, I>, p,
         Segments<I>{sorted.keys(), sorted.order(), nowhere, p.n}, a.src, a.out, counts, a.mode,
         a.include_self);
}
// Whole numbers have one sum, whatever the order.
template <class T>
constexpr bool kExactAtomics = std::is_same_v<T, int64_t> || std::is_same_v<T, int32_t>;
template <class T>
constexpr bool kAtomics = kExactAtomics<T> || std::is_floating_point_v<T>;
template <class T, class Args>
bool adds_atomically(const Args& a) {
  return a.mode == ScatterMode::sum && a.include_self && !a.counts &&
         (a.atomics || kExactAtomics<T>);
}

template <class T, class I>
KERNEL scatter_atomically(ScatterPlaces<I> p, const void* src, void* out) {
  const int64_t i = thread_number();
  if (i >= p.n) return;
  const int64_t t = global<const int64_t>(p.index)[i];
  I at[3];
  p.walk.at(static_cast<I>(i), at);
  const T v = global<const T>(src)[at[1]];
  if (t >= 0) atomic_add(global<T>(out), static_cast<int64_t>(at[2]) + t * p.out_along, v);
}
template <class T, class I>
void launch_scatter_atomically(const ScatterReduceArgs& a, const ScatterShape& shape) {
  launch(one_thread_each("scatter_atomically", shape.n), scatter_atomically<T, I>,
         shape.places_of<I>(a), a.src, a.out);
}

template <class T>
void scatter_reduce(const ScatterReduceArgs& a) {
  const ScatterShape shape(a);
  if (shape.n == 0) return;
  if constexpr (kAtomics<T>) {
    if (adds_atomically<T>(a)) {
      return shape.narrow ? launch_scatter_atomically<T, uint32_t>(a, shape)
                          : launch_scatter_atomically<T, uint64_t>(a, shape);
    }
  }
  shape.narrow ? scatter_reduce_with<T, uint32_t>(a, shape)
               : scatter_reduce_with<T, uint64_t>(a, shape);
}

// ---- rows

template <class I>
KERNEL row_keys(const int64_t* index, int64_t count, I* keys, I nowhere) {
  const int64_t k = thread_number();
  if (k >= count) return;
  const int64_t t = global<const int64_t>(index)[k];
  global<I>(keys)[k] = t < 0 ? nowhere : static_cast<I>(t);
}

// A thread for each row of the source and W columns; those at the heads of segments work. Rows are
// read kAhead at a time, before any of them is needed, and added in order.
template <class T, int W, class I>
KERNEL reduce_row_segments(ReduceRowsArgs a, Segments<I> s) {
  using A = ReduceType<T>;
  constexpr int kAhead = 4;
  const int64_t units = a.inner / W, i = thread_number();
  if (i >= s.n * a.outer * units) return;
  const int64_t unit = i % units, o = i / units % a.outer, first = i / units / a.outer;
  const auto keys = global<const I>(s.keys), order = global<const I>(s.order);
  const I key = keys[first];
  if (key == s.nowhere) return;
  if (first > 0 && key == static_cast<I>(keys[first - 1])) return;
  const auto x = global<const T>(a.in);
  const auto y = global<T>(a.out);
  const int64_t at = (o * a.n + static_cast<int64_t>(key)) * a.inner + unit * W;
  A sum[W] = {};
  int64_t hits = 0;
  if (a.include_self) {
    const Vec<T, W> old = load<W>(y, at);
    for (int j = 0; j < W; ++j) sum[j] = A(old.v[j]);
  }
  bool more = true;
  for (int64_t k = first; more; k += kAhead) {
    Vec<T, W> rows[kAhead];
    int here = 0;
    CUTAWAY_UNROLL
    for (int r = 0; r < kAhead; ++r) {
      more = more && k + r < s.n && key == static_cast<I>(keys[k + r]);
      if (!more) continue;
      const int64_t row = static_cast<int64_t>(static_cast<I>(order[k + r]));
      rows[r] = load<W>(x, (o * a.count + row) * a.inner + unit * W);
      ++here;
    }
    CUTAWAY_UNROLL
    for (int r = 0; r < kAhead; ++r) {
      if (r >= here) continue;
      for (int j = 0; j < W; ++j) {
        const A value = A(rows[r].v[j]);
        sum[j] = hits == 0 && !a.include_self ? value : merged(a.mode, sum[j], value);
      }
      ++hits;
    }
  }
  const int64_t total = hits + (a.include_self ? 1 : 0);
  Vec<T, W> result;
  for (int j = 0; j < W; ++j) {
    result.v[j] = T(a.mode == ScatterMode::mean ? quotient_of(sum[j], total) : sum[j]);
  }
  store(y, at, result);
  if (a.counts && o == 0 && unit == 0) global<int64_t>(a.counts)[key] = total;
}

template <class T>
KERNEL add_rows_atomically(ReduceRowsArgs a) {
  const int64_t i = thread_number();
  if (i >= a.outer * a.count * a.inner) return;
  const int64_t row = i / a.inner, o = row / a.count;
  const int64_t t = global<const int64_t>(a.index)[row % a.count];
  const T v = global<const T>(a.in)[i];
  if (t >= 0) atomic_add(global<T>(a.out), (o * a.n + t) * a.inner + i % a.inner, v);
}

template <class T, int W, class I>
void reduce_rows_with(const ReduceRowsArgs& a) {
  const auto nowhere = static_cast<I>(a.n);
  const DeviceArray<I> keys(a.count);
  launch(one_thread_each("row_keys", a.count), row_keys<I>, a.index, a.count, keys.get(), nowhere);
  const Sorted<I> sorted(keys.get(), a.count, static_cast<uint64_t>(a.n));
  launch(one_thread_each("reduce_rows", a.count * a.outer * (a.inner / W), 128),
         reduce_row_segments<T, W, I>, a,
         Segments<I>{sorted.keys(), sorted.order(), nowhere, a.count});
}

template <class T>
void reduce_rows(const ReduceRowsArgs& a) {
  if (a.counts) fill(a.counts, int64_t{1}, a.n);
  const int64_t n = a.outer * a.count * a.inner;
  if (n == 0) return;
  if constexpr (kAtomics<T>) {
    if (adds_atomically<T>(a)) {
      return launch(one_thread_each("add_rows_atomically", n), add_rows_atomically<T>, a);
    }
  }
  if (!fits32(a.n) || !fits32(a.count)) return reduce_rows_with<T, 1, uint64_t>(a);
  constexpr int kWidth = sizeof(T) < 4 ? 4 : 16 / sizeof(T);
  const bool wide = a.inner % kWidth == 0 && is_aligned(a.in, kWidth * sizeof(T)) &&
                    is_aligned(a.out, kWidth * sizeof(T));
  wide ? reduce_rows_with<T, kWidth, uint32_t>(a) : reduce_rows_with<T, 1, uint32_t>(a);
}

template <class T>
void set_index_reduce(DType t) {
  kernels::scatter_reduce.set(kDevice, t, &scatter_reduce<T>);
  kernels::reduce_rows.set(kDevice, t, &reduce_rows<T>);
}

inline Ladder<ReduceRowsArgs> scatter_ladder();  // ladder_scatter.cuh

void register_index_reduce_kernels() {
  ladders_to_fill(kDevice).scatter = scatter_ladder();
  set_index_reduce<double>(DType::f64);
  set_index_reduce<float>(DType::f32);
  set_index_reduce<BFloat16>(DType::bf16);
  set_index_reduce<Float16>(DType::f16);
  set_index_reduce<int64_t>(DType::i64);
  set_index_reduce<int32_t>(DType::i32);
  set_index_reduce<uint8_t>(DType::u8);
  set_index_reduce<int8_t>(DType::i8);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET

#include <cutaway/cuda/kernels/ladder_scatter.cuh>
