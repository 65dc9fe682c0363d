#pragma once
#include <cutaway/core/kernels/rows.h>
#include <cutaway/cuda/device/exponential.h>
#include <cutaway/cuda/device/limits.h>
#include <cutaway/cuda/device/team.h>
#include <cutaway/cuda/ladder.h>

// Softmax along a dimension. A line is kept in registers while it is short, in shared memory while
// it fits there: one read and one write. Longer lines are read twice.
namespace cutaway::cuda::CUTAWAY_TARGET {

constexpr int kRowThreads = 256;
constexpr int kRowElements = 16;  // of a line, in the registers of a thread
constexpr int kColumnTile = 32, kColumnParts = kRowThreads / kColumnTile;
constexpr int kStagedThreads = 512;

// The elements of a line that a thread works on: V at first, V at first + step, … of n, each
// `stride` apart from the next (1 when V > 1).
struct Share {
  int64_t base;
  int64_t first, step, n;
  int64_t stride;
};

template <int V, class T>
DEVICE Vec<std::remove_const_t<T>, V> load_share(Global<T> x, const Share& s, int64_t at) {
  if constexpr (V == 1) {
    const std::remove_const_t<T> value = x[s.base + at * s.stride];
    return {{value}};
  } else {
    return load<V>(x, s.base + at);
  }
}
template <int V, class T>
DEVICE void store_share(Global<T> y, const Share& s, int64_t at, const Vec<T, V>& v) {
  if constexpr (V == 1) {
    y[s.base + at * s.stride] = v[0];
  } else {
    store(y, s.base + at, v);
  }
}

// ---- bodies; reduce(value, merge) merges over the threads of the line.

// At most kRowElements elements for each thread.
template <class T, bool kLog, int V, class Reduce>
DEVICE void softmax_in_registers(const SoftmaxArgs& a, const Share& s, Reduce&& reduce) {
  using C = ComputeOf<T>;
  const auto x = global<const T>(a.in);
  const auto y = global<T>(a.out);
  C v[kRowElements] = {}, m = -std::numeric_limits<C>::infinity();
  CUTAWAY_UNROLL
  for (int j = 0; j < kRowElements; j += V) {
    const int64_t at = s.first + j / V * s.step;
    if (at < s.n) {
      const Vec<T, V> in = load_share<V>(x, s, at);
      for (int k = 0; k < V; ++k) v[j + k] = compute(in[k]);
      for (int k = 0; k < V; ++k) m = Larger()(m, v[j + k]);
    }
  }
  m = reduce(m, Larger());
  C part = 0;
  CUTAWAY_UNROLL
  for (int j = 0; j < kRowElements; j += V) {
    if (s.first + j / V * s.step < s.n) {
      for (int k = 0; k < V; ++k) {
        v[j + k] = v[j + k] - m;
        const C e = exp_for<T>(v[j + k]);
        part += e;
        if constexpr (!kLog) v[j + k] = e;
      }
    }
  }
  const double total = reduce(static_cast<double>(part), Plus());
  const C last = static_cast<C>(kLog ? math::log(total) : 1 / total);
  CUTAWAY_UNROLL
  for (int j = 0; j < kRowElements; j += V) {
    const int64_t at = s.first + j / V * s.step;
    if (at < s.n) {
      Vec<T, V> out;
      for (int k = 0; k < V; ++k) out[k] = static_cast<T>(kLog ? v[j + k] - last : v[j + k] * last);
      store_share<V>(y, s, at, out);
    }
  }
}

// A running maximum m, and the sum of exp(x − m).
struct MaxAndSum {
  double m, sum;
};
template <class T>
DEVICE double exp_difference(double a, double b) {
  using C = ComputeOf<T>;
  return a == b ? 1.0 : static_cast<double>(exp_for<T>(static_cast<C>(a) - static_cast<C>(b)));
}
template <class T>
DEVICE MaxAndSum add_exp(MaxAndSum a, double x) {
  if (x == -std::numeric_limits<double>::infinity()) return a;
  if (x > a.m) return {x, a.sum * exp_difference<T>(a.m, x) + 1};
  return {a.m, a.sum + exp_difference<T>(x, a.m)};
}
template <class T>
DEVICE MaxAndSum merge_exp(MaxAndSum a, MaxAndSum b) {
  const double m = a.m > b.m ? a.m : b.m;
  return {m, a.sum * exp_difference<T>(a.m, m) + b.sum * exp_difference<T>(b.m, m)};
}

// Any length: maximum and sum in one pass, the result in a second one.
template <class T, bool kLog, class Reduce>
DEVICE void softmax_in_two_passes(const SoftmaxArgs& a, const Share& s, Reduce&& reduce) {
  using C = ComputeOf<T>;
  const auto x = global<const T>(a.in);
  const auto y = global<T>(a.out);
  MaxAndSum all{-std::numeric_limits<double>::infinity(), 0};
  for (int64_t i = s.first; i < s.n; i += s.step) {
    const T value = x[s.base + i * s.stride];
    all = add_exp<T>(all, wide(value));
  }
  all = reduce(all, [](MaxAndSum p, MaxAndSum q) { return merge_exp<T>(p, q); });
  // Where the maximum is infinite, exp(∞ − ∞) is part of the sum.
  const double sum =
      all.m < std::numeric_limits<double>::infinity() ? all.sum : all.sum + (all.m - all.m);
  const C m = static_cast<C>(all.m);
  const C last = static_cast<C>(kLog ? math::log(sum) : 1 / sum);
  for (int64_t i = s.first; i < s.n; i += s.step) {
    const T value = x[s.base + i * s.stride];
    const C d = compute(value) - m;
    y[s.base + i * s.stride] = static_cast<T>(kLog ? d - last : exp_for<T>(d) * last);
  }
}

// dx = y (g − Σ g y), or g − exp(y) Σ g.
template <class T, bool kLog>
DEVICE double gradient_term(ComputeOf<T> y, ComputeOf<T> g) {
  return kLog ? static_cast<double>(g) : static_cast<double>(g) * static_cast<double>(y);
}
template <class T, bool kLog>
DEVICE T gradient(ComputeOf<T> y, ComputeOf<T> g, ComputeOf<T> sum) {
  return static_cast<T>(kLog ? g - exp_for<T>(y) * sum : y * (g - sum));
}

template <class T, bool kLog, int V, class Reduce>
DEVICE void softmax_grad_in_registers(const SoftmaxArgs& a, const Share& s, Reduce&& reduce) {
  using C = ComputeOf<T>;
  const auto y = global<const T>(a.in), g = global<const T>(a.grad);
  const auto dx = global<T>(a.out);
  C v[kRowElements] = {}, u[kRowElements] = {};
  double part = 0;
  CUTAWAY_UNROLL
  for (int j = 0; j < kRowElements; j += V) {
    const int64_t at = s.first + j / V * s.step;
    if (at < s.n) {
      const Vec<T, V> yv = load_share<V>(y, s, at), gv = load_share<V>(g, s, at);
      for (int k = 0; k < V; ++k) {
        v[j + k] = compute(yv[k]);
        u[j + k] = compute(gv[k]);
        part += gradient_term<T, kLog>(v[j + k], u[j + k]);
      }
    }
  }
  const C sum = static_cast<C>(reduce(part, Plus()));
  CUTAWAY_UNROLL
  for (int j = 0; j < kRowElements; j += V) {
    const int64_t at = s.first + j / V * s.step;
    if (at < s.n) {
      Vec<T, V> out;
      for (int k = 0; k < V; ++k) out[k] = gradient<T, kLog>(v[j + k], u[j + k], sum);
      store_share<V>(dx, s, at, out);
    }
  }
}

template <class T, bool kLog, class Reduce>
DEVICE void softmax_grad_in_two_passes(const SoftmaxArgs& a, const Share& s, Reduce&& reduce) {
  using C = ComputeOf<T>;
  const auto y = global<const T>(a.in), g = global<const T>(a.grad);
  const auto dx = global<T>(a.out);
  double part = 0;
  for (int64_t i = s.first; i < s.n; i += s.step) {
    const T yi = y[s.base + i * s.stride], gi = g[s.base + i * s.stride];
    part += gradient_term<T, kLog>(compute(yi), compute(gi));
  }
  const C sum = static_cast<C>(reduce(part, Plus()));
  for (int64_t i = s.first; i < s.n; i += s.step) {
    const T yi = y[s.base + i * s.stride], gi = g[s.base + i * s.stride];
    dx[s.base + i * s.stride] = gradient<T, kLog>(compute(yi), compute(gi), sum);
  }
}

// ---- kernels

enum class Storage : uint8_t { registers, none };

// Lines of neighbouring elements; a team of `width` threads for each.
template <class T, bool kLog, bool kGrad, int V, Storage kStorage>
KERNEL softmax_of_rows(SoftmaxArgs a, int width) {
  const Team team = this_team(width);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / width) + team.index;
  const Share s{row * a.n, team.lane * V, width * V, row < a.outer ? a.n : 0, 1};
  const auto reduce = [&team](auto v, auto merge) { return team_reduce(team, v, merge); };
  if constexpr (kStorage == Storage::registers) {
    if constexpr (kGrad) {
      softmax_grad_in_registers<T, kLog, V>(a, s, reduce);
    } else {
      softmax_in_registers<T, kLog, V>(a, s, reduce);
    }
  } else if constexpr (kGrad) {
    softmax_grad_in_two_passes<T, kLog>(a, s, reduce);
  } else {
    softmax_in_two_passes<T, kLog>(a, s, reduce);
  }
}

// Lines side by side: threads along x take neighbouring lines, those along y share a line.
template <class T, bool kLog, bool kGrad, Storage kStorage>
KERNEL softmax_of_columns(SoftmaxArgs a) {
  const int64_t line = static_cast<int64_t>(blockIdx.x) * kColumnTile + threadIdx.x;
  const bool live = line < a.outer * a.inner;
  const Share s{line / a.inner * a.n * a.inner + line % a.inner, threadIdx.y, kColumnParts,
                live ? a.n : 0, a.inner};
  const auto reduce = [](auto v, auto merge) { return column_reduce(v, merge); };
  if constexpr (kStorage == Storage::registers) {
    if constexpr (kGrad) {
      softmax_grad_in_registers<T, kLog, 1>(a, s, reduce);
    } else {
      softmax_in_registers<T, kLog, 1>(a, s, reduce);
    }
  } else if constexpr (kGrad) {
    softmax_grad_in_two_passes<T, kLog>(a, s, reduce);
  } else {
    softmax_in_two_passes<T, kLog>(a, s, reduce);
  }
}

// A block for each row, which waits in shared memory.
template <class T, bool kLog, int V>
KERNEL softmax_of_staged_rows(SoftmaxArgs a) {
  using C = ComputeOf<T>;
  DYNAMIC_SHARED(T, staged);
  const Team team = this_team(kStagedThreads);
  const int64_t base = static_cast<int64_t>(blockIdx.x) * a.n;
  const int n = static_cast<int>(a.n), step = kStagedThreads * V, first = team.lane * V;
  const auto x = global<const T>(a.in);
  const auto y = global<T>(a.out);
  C m = -std::numeric_limits<C>::infinity();
  for (int i = first; i < n; i += step) {
    const Vec<T, V> in = load<V>(x, base + i);
    for (int k = 0; k < V; ++k) m = Larger()(m, compute(in[k]));
    store(staged, i, in);
  }
  m = team_reduce(team, m, Larger());
  double total = 0;
  for (int i = first; i < n; i += step) {
    Vec<T, V> in = load<V>(staged, i);
    C part = 0;
    for (int k = 0; k < V; ++k) {
      const C e = exp_for<T>(compute(in[k]) - m);
      part += e;
      if constexpr (!kLog && !kIsHalf<T>) in[k] = e;
    }
    total += static_cast<double>(part);
    if constexpr (!kLog && !kIsHalf<T>) store(staged, i, in);
  }
  total = team_reduce(team, total, Plus());
  const C last = static_cast<C>(kLog ? math::log(total) : 1 / total);
  for (int i = first; i < n; i += step) {
    const Vec<T, V> in = load<V>(staged, i);
    Vec<T, V> out;
    for (int k = 0; k < V; ++k) {
      if constexpr (kLog) {
        out[k] = static_cast<T>(compute(in[k]) - m - last);
      } else if constexpr (kIsHalf<T>) {
        out[k] = static_cast<T>(exp_for<T>(compute(in[k]) - m) * last);
      } else {
        out[k] = in[k] * last;
      }
    }
    store(y, base + i, out);
  }
}

// ---- launches

// Threads for a row of n elements that are read V at a time.
inline int row_width(int64_t n, int v) {
  const int narrow = power_of_two_from((n + v - 1) / v, 32);
  return n <= 32 * kRowElements
             ? narrow
             : power_of_two_from((n + kRowElements - 1) / kRowElements, kRowThreads);
}
template <class T>
bool wide_rows(const SoftmaxArgs& a) {
  return a.n % kWide<T> == 0 && aligned16(a.in) && aligned16(a.out) &&
         (!a.grad || aligned16(a.grad));
}

template <class T, bool kLog, bool kGrad, int V, Storage kStorage>
void launch_rows(const SoftmaxArgs& a, int width) {
  const int64_t blocks = blocks_for(a.outer, kRowThreads / width);
  launch({.name = kGrad ? "softmax_backward" : "softmax",
          .grid = {static_cast<unsigned>(blocks)},
          .block = {kRowThreads}},
         softmax_of_rows<T, kLog, kGrad, V, kStorage>, a, width);
}
template <class T, bool kLog, bool kGrad, Storage kStorage>
void launch_columns(const SoftmaxArgs& a) {
  const int64_t blocks = blocks_for(a.outer * a.inner, kColumnTile);
  launch({.name = kGrad ? "softmax_backward" : "softmax",
          .grid = {static_cast<unsigned>(blocks)},
          .block = {kColumnTile, kColumnParts}},
         softmax_of_columns<T, kLog, kGrad, kStorage>, a);
}
template <class T, bool kLog, int V>
void launch_staged(const SoftmaxArgs& a) {
  launch({.name = "softmax",
          .grid = {static_cast<unsigned>(a.outer)},
          .block = {kStagedThreads},
          .shared = a.n * static_cast<int64_t>(sizeof(T))},
         softmax_of_staged_rows<T, kLog, V>, a);
}

template <class T, bool kLog, bool kGrad>
void softmax_any(const SoftmaxArgs& a) {
  if (a.outer == 0 || a.n == 0 || a.inner == 0) return;
  constexpr int V = kWide<T>;
  const bool vectors = wide_rows<T>(a);
  if (a.inner > 1) {
    if (a.n <= kColumnParts * kRowElements) {
      return launch_columns<T, kLog, kGrad, Storage::registers>(a);
    }
    return launch_columns<T, kLog, kGrad, Storage::none>(a);
  }
  if (a.n <= kRowThreads * kRowElements) {
    return vectors ? launch_rows<T, kLog, kGrad, V, Storage::registers>(a, row_width(a.n, V))
                   : launch_rows<T, kLog, kGrad, 1, Storage::registers>(a, row_width(a.n, 1));
  }
  if constexpr (!kGrad) {
    if (a.n * static_cast<int64_t>(sizeof(T)) <= dynamic_shared_memory()) {
      return vectors ? launch_staged<T, kLog, V>(a) : launch_staged<T, kLog, 1>(a);
    }
  }
  launch_rows<T, kLog, kGrad, 1, Storage::none>(a, kRowThreads);
}

template <class T>
void set_rows(DType t) {
  kernels::softmax.set(kDevice, t, &softmax_any<T, false, false>);
  kernels::log_softmax.set(kDevice, t, &softmax_any<T, true, false>);
  kernels::softmax_backward.set(kDevice, t, &softmax_any<T, false, true>);
  kernels::log_softmax_backward.set(kDevice, t, &softmax_any<T, true, true>);
}

inline Ladder<SoftmaxArgs> softmax_ladder();  // ladder_softmax.cuh

void register_rows_kernels() {
  ladders_to_fill(kDevice).softmax = softmax_ladder();
  set_rows<double>(DType::f64);
  set_rows<float>(DType::f32);
  set_rows<BFloat16>(DType::bf16);
  set_rows<Float16>(DType::f16);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET

#include <cutaway/cuda/kernels/ladder_softmax.cuh>
