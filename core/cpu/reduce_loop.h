#pragma once
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/kernels/reduce.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

#include <limits>
#include <type_traits>

// How a reduction walks its input. A policy R says what is computed:
//   In, Acc, Out; kContext (a number per output is wanted); identity(); add(acc, x, context);
//   merge(acc, acc); finish(acc, args, output index).
// Note: fixed chunk tree. The reduced elements of one output are cut into chunks of a size that
// depends on the shape alone; chunks are merged in order. Threads take chunks or outputs, so their
// number never changes a bit of the result.
namespace cutaway::cpu::CUTAWAY_VARIANT {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;
template <class T>
inline constexpr bool kIsFloating = std::is_floating_point_v<T> || kIsHalf<T>;

// The type one element is computed in: its own, f32 for 16-bit floats.
template <class T>
using ComputeOf = std::conditional_t<kIsHalf<T>, float, T>;
template <class T>
[[gnu::always_inline]] inline ComputeOf<T> compute(T x) {
  return static_cast<ComputeOf<T>>(x);
}

// Position in a list of dimensions: offset of a row-major counter. Its loops are short and are not
// unrolled, as they stand in every kernel.
struct Odometer {
  int rank;
  const int64_t* sizes;
  const int64_t* strides;
  int64_t at[kMaxRank];
  int64_t offset = 0;

  [[gnu::always_inline]] Odometer(int r, const int64_t* s, const int64_t* st, int64_t linear)
      : rank(r), sizes(s), strides(st) {
#pragma GCC unroll 1
    for (int d = rank - 1; d >= 0; --d) {
      at[d] = sizes[d] > 0 ? linear % sizes[d] : 0;
      linear = sizes[d] > 0 ? linear / sizes[d] : 0;
      offset += at[d] * strides[d];
    }
  }
  [[gnu::always_inline]] void next() {
#pragma GCC unroll 1
    for (int d = rank - 1; d >= 0; --d) {
      offset += strides[d];
      if (++at[d] < sizes[d]) return;
      offset -= at[d] * strides[d];
      at[d] = 0;
    }
  }
};

// True where the work on one element is long: 16-bit conversion, or as the policy says.
template <class R>
inline constexpr bool kHeavy = kIsHalf<typename R::In> || requires {
  typename R::Heavy;
};

inline constexpr int64_t kReduceChunk = 16384;  // reduced elements in one chunk
inline constexpr int64_t kColumns = 1024;       // columns accumulated side by side

// Runs body(task) for all tasks, on several threads only when the work is worth it.
template <class F>
void run_tasks(int64_t tasks, int64_t work, F&& body) {
  if (work < 2 * kGrain) {
    for (int64_t i = 0; i < tasks; ++i) body(i);
  } else {
    parallel_chunks(tasks, body);
  }
}

// n elements with stride s in four sums side by side: one alone would wait for each addition.
template <class R>
typename R::Acc reduce_short_run(const typename R::In* x, int64_t n, int64_t s, double context) {
  typename R::Acc a = R::identity(), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    a = R::add(a, x[i * s], context);
    b = R::add(b, x[(i + 1) * s], context);
    c = R::add(c, x[(i + 2) * s], context);
    d = R::add(d, x[(i + 3) * s], context);
  }
  for (; i < n; ++i) a = R::add(a, x[i * s], context);
  return R::merge(R::merge(a, b), R::merge(c, d));
}

// n elements with stride s. Lanes are fixed, so that the order of additions does not depend on the
// CPU.
template <class R>
[[gnu::noinline]] typename R::Acc reduce_run(const typename R::In* x, int64_t n, int64_t s,
                                             double context) {
  using Acc = typename R::Acc;
  constexpr int64_t kLanes = 256 / int64_t(sizeof(Acc));
  if (s != 1 || n < 2 * kLanes) return reduce_short_run<R>(x, n, s, context);
  alignas(64) Acc lane[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) lane[j] = R::identity();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int64_t j = 0; j < kLanes; ++j) lane[j] = R::add(lane[j], x[i + j], context);
  }
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) lane[j] = R::merge(lane[j], lane[j + width]);
  }
  Acc total = R::identity();
  for (; i < n; ++i) total = R::add(total, x[i], context);
  return R::merge(lane[0], total);
}

// Reduced elements [begin, end) over several dimensions, of the output that starts at x.
template <class R>
[[gnu::noinline]] typename R::Acc reduce_lines(const ReduceArgs& a, const typename R::In* x,
                                               int64_t begin, int64_t end, double context) {
  const int last = a.reduced_rank - 1;
  const int64_t n = a.reduced_sizes[last], s = a.reduced_strides[last];
  Odometer outer(last, a.reduced_sizes, a.reduced_strides, begin / n);
  typename R::Acc acc = R::identity();
  for (int64_t i = begin; i < end; outer.next()) {
    const int64_t from = i % n, length = n - from < end - i ? n - from : end - i;
    acc = R::merge(acc, reduce_run<R>(x + outer.offset + from * s, length, s, context));
    i += length;
  }
  return acc;
}

// The same over any number of dimensions.
template <class R>
typename R::Acc reduce_part(const ReduceArgs& a, const typename R::In* x, int64_t begin,
                            int64_t end, double context) {
  if (begin >= end) return R::identity();
  if (a.reduced_rank > 1) return reduce_lines<R>(a, x, begin, end, context);
  if (a.reduced_rank == 0) return R::add(R::identity(), x[0], context);
  const int64_t s = a.reduced_strides[0];
  return reduce_run<R>(x + begin * s, end - begin, s, context);
}

template <class R>
double context_of(const ReduceArgs& a, int64_t o) {
  if constexpr (R::kContext) return a.context[o];
  return 0;
}

// Each output by itself: reduced elements lie closest together.
template <class R>
void reduce_rows(const ReduceArgs& a) {
  using Acc = typename R::Acc;
  const auto* in = static_cast<const typename R::In*>(a.in);
  auto* out = static_cast<typename R::Out*>(a.out);
  const int64_t chunks = a.count > kReduceChunk ? (a.count + kReduceChunk - 1) / kReduceChunk : 1;
  const auto chunk = [&](const typename R::In* x, int64_t o, int64_t k) {
    const int64_t begin = k * kReduceChunk, end = begin + kReduceChunk;
    return reduce_part<R>(a, x, begin, end < a.count ? end : a.count, context_of<R>(a, o));
  };
  if (chunks == 1 && a.outputs == 1) {
    out[0] = R::finish(chunk(in, 0, 0), a, 0);
    return;
  }
  if (chunks > 1 && a.outputs < 16) {
    Scratch<Acc> parts(a.outputs * chunks);
    run_tasks(a.outputs * chunks, a.outputs * a.count, [&](int64_t i) {
      const Odometer at(a.kept_rank, a.kept_sizes, a.kept_strides, i / chunks);
      parts[i] = chunk(in + at.offset, i / chunks, i % chunks);
    });
    for (int64_t o = 0; o < a.outputs; ++o) {
      Acc acc = parts[o * chunks];
      for (int64_t k = 1; k < chunks; ++k) acc = R::merge(acc, parts[o * chunks + k]);
      out[o] = R::finish(acc, a, o);
    }
    return;
  }
  parallel_for(a.outputs, 1 + kGrain / (a.count + 1), [&](int64_t begin, int64_t end) {
    Odometer at(a.kept_rank, a.kept_sizes, a.kept_strides, begin);
    for (int64_t o = begin; o < end; ++o, at.next()) {
      Acc acc = chunk(in + at.offset, o, 0);
      for (int64_t k = 1; k < chunks; ++k) acc = R::merge(acc, chunk(in + at.offset, o, k));
      out[o] = R::finish(acc, a, o);
    }
  });
}

// acc[k] over reduced rows [begin, end) of `width` neighbouring columns that start at x.
template <class R>
[[gnu::noinline]] void accumulate_columns(const ReduceArgs& a, const typename R::In* x,
                                          int64_t begin, int64_t end, int64_t width,
                                          const double* context, typename R::Acc* acc) {
  for (int64_t k = 0; k < width; ++k) acc[k] = R::identity();
  Odometer row(a.reduced_rank, a.reduced_sizes, a.reduced_strides, begin);
  const auto ctx = [context](int64_t k) {
    if constexpr (R::kContext) return context[k];
    return 0.0;
  };
  int64_t r = begin;
  // Four rows at a time save loads and stores of acc.
  for (; !kHeavy<R> && r + 4 <= end; r += 4) {
    const typename R::In* rows[4];
    for (auto& p : rows) {
      p = x + row.offset;
      row.next();
    }
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) {
      typename R::Acc v = R::add(acc[k], rows[0][k], ctx(k));
      v = R::add(v, rows[1][k], ctx(k));
      v = R::add(v, rows[2][k], ctx(k));
      acc[k] = R::add(v, rows[3][k], ctx(k));
    }
  }
  for (; r < end; ++r, row.next()) {
    const typename R::In* p = x + row.offset;
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) acc[k] = R::add(acc[k], p[k], ctx(k));
  }
}

template <class R>
[[gnu::noinline]] void merge_columns(int64_t n, typename R::Acc* to, const typename R::Acc* from) {
  for (int64_t k = 0; k < n; ++k) to[k] = R::merge(to[k], from[k]);
}

// Outputs o, o + 1, … from their accumulators.
template <class R>
[[gnu::noinline]] void finish_columns(const ReduceArgs& a, int64_t n, int64_t o,
                                      const typename R::Acc* acc) {
  auto* out = static_cast<typename R::Out*>(a.out) + o;
  for (int64_t k = 0; k < n; ++k) out[k] = R::finish(acc[k], a, o + k);
}

// Neighbouring outputs together: the last kept dimension has stride 1.
template <class R>
void reduce_columns(const ReduceArgs& a) {
  using Acc = typename R::Acc;
  const auto* in = static_cast<const typename R::In*>(a.in);
  const int last = a.kept_rank - 1;
  const int64_t columns = a.kept_sizes[last];
  const int64_t width = columns < kColumns ? columns : kColumns;
  const int64_t blocks = (columns + width - 1) / width, outer = a.outputs / columns;
  const int64_t rows = 16 + 4 * kReduceChunk / width;
  const int64_t chunks = a.count > rows ? (a.count + rows - 1) / rows : 1;
  // A lane is a pair (outer, block of columns).
  const auto first = [=](int64_t lane) { return lane % blocks * width; };
  const auto size = [=](int64_t lane) {
    return columns - first(lane) < width ? columns - first(lane) : width;
  };
  const auto part = [&](int64_t lane, int64_t k, Acc* acc) {
    const Odometer at(last, a.kept_sizes, a.kept_strides, lane / blocks);
    const int64_t o = lane / blocks * columns + first(lane);
    const int64_t end = (k + 1) * rows < a.count ? (k + 1) * rows : a.count;
    accumulate_columns<R>(a, in + at.offset + first(lane), k * rows, end, size(lane),
                          R::kContext ? a.context + o : nullptr, acc);
  };
  const auto merge = [&](int64_t lane, Acc* to, const Acc* from) {
    merge_columns<R>(size(lane), to, from);
  };
  const auto finish = [&](int64_t lane, const Acc* acc) {
    finish_columns<R>(a, size(lane), lane / blocks * columns + first(lane), acc);
  };
  const int64_t lanes = outer * blocks, work = a.outputs * a.count;
  if (chunks > 1 && lanes < 16) {
    Scratch<Acc> parts(lanes * chunks * width);
    run_tasks(lanes * chunks, work,
              [&](int64_t i) { part(i / chunks, i % chunks, parts.get() + i * width); });
    for (int64_t i = 0; i < lanes; ++i) {
      Acc* acc = parts.get() + i * chunks * width;
      for (int64_t k = 1; k < chunks; ++k) merge(i, acc, acc + k * width);
      finish(i, acc);
    }
    return;
  }
  parallel_for(lanes, 1 + kGrain / (a.count * width + 1), [&](int64_t begin, int64_t end) {
    Scratch<Acc> acc(2 * width);
    for (int64_t i = begin; i < end; ++i) {
      part(i, 0, acc.get());
      for (int64_t k = 1; k < chunks; ++k) {
        part(i, k, acc.get() + width);
        merge(i, acc.get(), acc.get() + width);
      }
      finish(i, acc.get());
    }
  });
}

inline bool by_columns(const ReduceArgs& a) {
  const int kept = a.kept_rank - 1, reduced = a.reduced_rank - 1;
  return kept >= 0 && a.kept_strides[kept] == 1 && a.kept_sizes[kept] >= 8 && a.count > 0 &&
         (reduced < 0 || a.reduced_strides[reduced] != 1);
}

template <class R>
void reduce(const ReduceArgs& a) {
  if (a.outputs == 0) return;
  if (by_columns(a)) return reduce_columns<R>(a);
  reduce_rows<R>(a);
}

// ---- policies that several files build upon

template <class T>
using SumAcc = std::conditional_t<kIsFloating<T>, double, uint64_t>;  // unsigned: wraps
template <class T>
using SumOut = std::conditional_t<kIsFloating<T>, T, int64_t>;

template <class T>
struct Sum {
  using In = T;
  using Acc = SumAcc<T>;
  using Out = SumOut<T>;
  static constexpr bool kContext = false;
  static Acc identity() { return 0; }
  static Acc add(Acc a, T x, double) { return a + Acc(compute(x)); }
  static Acc merge(Acc a, Acc b) { return a + b; }
  static Out finish(Acc a, const ReduceArgs&, int64_t) { return Out(a); }
};

// Largest (sign 1) or smallest (sign −1) element; a NaN stays.
template <class T, int kSign>
struct Extreme {
  using In = T;
  using Acc = ComputeOf<T>;
  using Out = T;
  static constexpr bool kContext = false;
  static Acc identity() {
    using Limits = std::numeric_limits<Acc>;
    if constexpr (Limits::has_infinity) return Acc(-kSign) * Limits::infinity();
    return kSign > 0 ? Limits::lowest() : Limits::max();
  }
  static Acc add(Acc a, T x, double) { return merge(a, compute(x)); }
  static Acc merge(Acc a, Acc b) {
    const bool better = kSign > 0 ? b > a : b < a;
    return better | (b != b) ? b : a;
  }
  static T finish(Acc a, const ReduceArgs&, int64_t) { return T(a); }
};

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
