#pragma once
#include <cutaway/core/kernels/loss.h>
#include <cutaway/cuda/device/exponential.h>
#include <cutaway/cuda/device/scratch.h>
#include <cutaway/cuda/device/team.h>
#include <cutaway/cuda/device/walk.h>

// Cross entropy: scores are read once forward (maximum and sum of exponentials in one pass), read
// and their gradient written once backward. The sum over rows is a fixed tree of f64.
namespace cutaway::cuda::CUTAWAY_TARGET {

inline constexpr int kLossThreads = 256;
inline constexpr int64_t kLossRows = 4096;  // added by one block

// A running maximum and the sum of exp(x − maximum).
template <class T>
struct ExpSum {
  ComputeOf<T> high;
  double sum;
};
template <class T>
DEVICE ExpSum<T> with_score(ExpSum<T> s, ComputeOf<T> x) {
  if (x == -std::numeric_limits<ComputeOf<T>>::infinity()) return s;
  if (x > s.high) {
    // 1 + ∞ − ∞ is NaN.
    const double one = static_cast<double>(1 + (x - x));
    return {x, s.sum * static_cast<double>(exp_for<T>(s.high - x)) + one};
  }
  return {s.high, s.sum + static_cast<double>(exp_for<T>(x - s.high))};
}
template <class T>
DEVICE double sum_above(ExpSum<T> s, ComputeOf<T> high) {
  return s.high == high ? s.sum : s.sum * static_cast<double>(exp_for<T>(s.high - high));
}
template <class T>
DEVICE ExpSum<T> merge_sums(ExpSum<T> a, ExpSum<T> b) {
  const ComputeOf<T> high = a.high > b.high ? a.high : b.high;
  return {high, sum_above(a, high) + sum_above(b, high)};
}
template <class T>
DEVICE double log_of(ExpSum<T> s) {
  if (s.high == -std::numeric_limits<ComputeOf<T>>::infinity()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return static_cast<double>(s.high) + math::log(s.sum);
}

// A row as one thread sees it: which of its classes are the thread's.
struct LossRow {
  int64_t row, first, stride;  // number; its first score; from one class to the next
  int lane, lanes;
  bool exists;
};

// Calls body(class, width) for the classes of the thread: V neighbours at an aligned place, or one
// class at the ends of the row. V > 1 needs a stride of 1.
template <int V, class F>
DEVICE void for_classes(const LossRow& r, int64_t n, F&& body) {
  using One = std::integral_constant<int, 1>;
  if (!r.exists) return;
  if constexpr (V == 1) {
    for (int64_t c = r.lane; c < n; c += r.lanes) body(c, One());
  } else {
    const int64_t head = (V - r.first % V) % V, begin = head < n ? head : n;
    const int64_t end = begin + (n - begin) / V * V;
    for (int64_t c = r.lane; c < begin; c += r.lanes) body(c, One());
    for (int64_t c = begin + r.lane * V; c < end; c += r.lanes * V) {
      body(c, std::integral_constant<int, V>());
    }
    for (int64_t c = end + r.lane; c < n; c += r.lanes) body(c, One());
  }
}
template <int W, class T>
DEVICE Vec<std::remove_const_t<T>, W> load_classes(Global<T> x, const LossRow& r, int64_t c) {
  if constexpr (W == 1) {
    const std::remove_const_t<T> v = x[r.first + c * r.stride];
    return {{v}};
  } else {
    return load<W>(x, r.first + c);
  }
}

// What the target of a row says: its class, −1 when the row is ignored or its target is soft, and
// the weight of that class.
struct RowTarget {
  int64_t target = -1;
  double weight = 0;
  bool ignored = false;
};
template <class T>
DEVICE double weight_of(const CrossEntropyArgs& a, int64_t c) {
  if (!a.weight) return 1;
  const T w = global<const T>(a.weight)[c];
  return wide(w);
}
template <class T>
DEVICE RowTarget target_of(const CrossEntropyArgs& a, int64_t row) {
  if (!a.target) return {};
  const int64_t target = global<const int64_t>(a.target)[row];
  if (target == a.ignore_index) return {-1, 0, true};
  return {target, weight_of<T>(a, target), false};
}
// True if only the target has a share.
DEVICE bool single_share(const CrossEntropyArgs& a) { return !a.soft && a.smoothing == 0; }
// q_c · weight_c; `at` is the element of x.
template <class T>
DEVICE double share_of(const CrossEntropyArgs& a, const RowTarget& t, int64_t c, int64_t at) {
  if (single_share(a)) return c == t.target ? t.weight : 0;
  double q = c == t.target ? 1 : 0;
  if (a.soft) {
    const T soft = global<const T>(a.soft)[at];
    q = wide(soft);
  }
  const double base = a.smoothing / static_cast<double>(a.classes);
  return ((1 - a.smoothing) * q + base) * weight_of<T>(a, c);
}

// Sums over rows, where they are needed: of losses, and of the weights of targets.
struct LossSums {
  double total, divisor;
};
DEVICE LossSums merge_losses(LossSums a, LossSums b) {
  return {a.total + b.total, a.divisor + b.divisor};
}
DEVICE LossSums reduce_losses(LossSums s) {
  return team_reduce(this_team(kLossThreads), s,
                     [](LossSums a, LossSums b) { return merge_losses(a, b); });
}

// ---- forward

template <class T, int V, class Reduce>
DEVICE void loss_of_row(const CrossEntropyArgs& a, double* losses, const LossRow& r,
                        Reduce&& reduce) {
  const auto x = global<const T>(a.x);
  const RowTarget t = r.exists ? target_of<T>(a, r.row) : RowTarget();
  double lse = 0;
  if (!a.normalized) {
    ExpSum<T> sum{-std::numeric_limits<ComputeOf<T>>::infinity(), 0};
    for_classes<V>(r, a.classes, [&](int64_t c, auto width) {
      const auto v = load_classes<width>(x, r, c);
      for (int k = 0; k < width; ++k) sum = with_score(sum, compute(v.v[k]));
    });
    lse = log_of(reduce(sum, [](ExpSum<T> p, ExpSum<T> q) { return merge_sums(p, q); }));
  }
  double loss = 0;
  if (single_share(a)) {
    if (r.exists && !t.ignored && r.lane == 0 && t.weight != 0) {
      const T score = x[r.first + t.target * r.stride];
      loss = t.weight * (lse - wide(score));
    }
  } else {
    for_classes<1>(r, t.ignored ? 0 : a.classes, [&](int64_t c, auto) {
      const int64_t at = r.first + c * r.stride;
      const double share = share_of<T>(a, t, c, at);
      if (share == 0) return;  // adds nothing, whatever the score
      const T score = x[at];
      loss += share * (lse - wide(score));
    });
    loss = reduce(loss, Plus());
  }
  if (!r.exists || r.lane != 0) return;
  global<double>(a.stats)[r.row] = lse;
  if (a.reduce) {
    global<double>(losses)[r.row] = loss;
  } else {
    global<T>(a.y)[r.row] = T(loss);
  }
}

// ---- backward: dx_c = g (S exp(x_c − lse) − share_c), S the sum of shares

template <class T, int V, class Reduce>
DEVICE void gradient_of_row(const CrossEntropyArgs& a, const LossRow& r, Reduce&& reduce) {
  using C = ComputeOf<T>;
  const auto x = global<const T>(a.x);
  const auto grad = global<T>(a.grad);
  const RowTarget t = r.exists ? target_of<T>(a, r.row) : RowTarget();
  double shares = t.weight;
  if (!single_share(a)) {
    shares = 0;
    for_classes<1>(r, a.classes, [&](int64_t c, auto) {
      shares += share_of<T>(a, t, c, r.first + c * r.stride);
    });
    shares = reduce(shares, Plus());
  }
  if (!r.exists) return;
  const auto stats = global<const double>(a.stats);
  double g = 0;
  if (!t.ignored) {
    const T upstream = global<const T>(a.upstream)[a.reduce ? 0 : r.row];
    g = wide(upstream);
    if (a.reduce && a.mean) {
      const double divisor = stats[a.outer * a.inner];
      // The mean of nothing is NaN, but its gradient is 0.
      g = (divisor == 0 ? 0 : 1 / divisor) * g;
    }
  }
  // lse in two parts: one number of type C would lose the digits that matter for large scores.
  const double lse = stats[r.row];
  const C scale = static_cast<C>(g), total = static_cast<C>(a.normalized ? 0 : shares);
  const C high = static_cast<C>(lse), low = static_cast<C>(lse - static_cast<double>(high));
  for_classes<V>(r, a.classes, [&](int64_t c, auto width) {
    Vec<T, width> v{};
    if (!a.normalized && !t.ignored) v = load_classes<width>(x, r, c);
    for (int k = 0; k < width; ++k) {
      C d = 0;
      if (!t.ignored) {
        const C share = static_cast<C>(share_of<T>(a, t, c + k, r.first + (c + k) * r.stride));
        const C p = a.normalized ? C(0) : exp_for<T>((compute(v.v[k]) - high) - low);
        d = scale * (total * p - share);
      }
      v.v[k] = T(d);
    }
    if constexpr (width == 1) {
      grad[r.first + c * r.stride] = v.v[0];
    } else {
      store(grad, r.first + c, v);
    }
  });
}

// ---- kernels

template <class T, int V, bool Forward, class Reduce>
DEVICE void loss_body(const CrossEntropyArgs& a, double* losses, const LossRow& r,
                      Reduce&& reduce) {
  if constexpr (Forward) {
    loss_of_row<T, V>(a, losses, r, reduce);
  } else {
    gradient_of_row<T, V>(a, r, reduce);
  }
}

// Neighbouring classes (inner = 1): a team of `width` threads for each row.
template <class T, int V, bool Forward>
KERNEL loss_of_rows(CrossEntropyArgs a, double* losses, int width) {
  const Team team = this_team(width);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kLossThreads / width) + team.index;
  const LossRow r{row, row * a.classes, 1, team.lane, width, row < a.outer};
  loss_body<T, V, Forward>(a, losses, r,
                           [&team](auto v, auto merge) { return team_reduce(team, v, merge); });
}

// Classes that are apart: neighbouring rows side by side, the threads (x, 0), (x, 1), … share one.
template <class T, bool Forward>
KERNEL loss_of_columns(CrossEntropyArgs a, double* losses) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t o = row / a.inner;
  const LossRow r{row,
                  o * a.classes * a.inner + row % a.inner,
                  a.inner,
                  static_cast<int>(threadIdx.y),
                  static_cast<int>(blockDim.y),
                  row < a.outer * a.inner};
  loss_body<T, 1, Forward>(a, losses, r,
                           [](auto v, auto merge) { return column_reduce(v, merge); });
}

template <class T>
DEVICE void finish_loss(const CrossEntropyArgs& a, LossSums s) {
  const int64_t rows = a.outer * a.inner;
  const double divisor = a.soft ? static_cast<double>(rows) : s.divisor;
  global<double>(a.stats)[rows] = divisor;
  if (a.reduce) global<T>(a.y)[0] = T(a.mean ? s.total / divisor : s.total);
}

// Sums of kLossRows rows each; a single block goes on to the result.
template <class T>
KERNEL add_rows(CrossEntropyArgs a, const double* losses, LossSums* parts) {
  const int64_t rows = a.outer * a.inner, begin = static_cast<int64_t>(blockIdx.x) * kLossRows;
  const int64_t end = begin + kLossRows < rows ? begin + kLossRows : rows;
  LossSums s{0, 0};
  for (int64_t row = begin + threadIdx.x; row < end; row += kLossThreads) {
    if (a.reduce) s.total += global<const double>(losses)[row];
    s.divisor += target_of<T>(a, row).weight;
  }
  s = reduce_losses(s);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) {
    finish_loss<T>(a, s);
  } else {
    global<LossSums>(parts)[blockIdx.x] = s;
  }
}
template <class T>
KERNEL add_parts(CrossEntropyArgs a, const LossSums* parts, int64_t n) {
  LossSums s{0, 0};
  for (int64_t i = threadIdx.x; i < n; i += kLossThreads) {
    const LossSums part = global<const LossSums>(parts)[i];
    s = merge_losses(s, part);
  }
  s = reduce_losses(s);
  if (threadIdx.x == 0) finish_loss<T>(a, s);
}

template <class T, bool Forward>
void launch_rows(const CrossEntropyArgs& a, double* losses) {
  const char* name = Forward ? "cross_entropy" : "cross_entropy_backward";
  if (a.inner > 1) {
    // Several threads for a row only where there are many classes: each of them reads the target.
    const int parts = power_of_two_from(a.classes / 16, 8), tile = kLossThreads / parts;
    const auto blocks = static_cast<unsigned>(blocks_for(a.outer * a.inner, tile));
    return launch({.name = name,
                   .grid = {blocks},
                   .block = {static_cast<unsigned>(tile), static_cast<unsigned>(parts)}},
                  loss_of_columns<T, Forward>, a, losses);
  }
  constexpr int kV = kWide<T>;
  const bool wide = aligned16(a.x) && aligned16(a.grad);
  const int width = power_of_two_from(blocks_for(a.classes, kV), a.classes > 2048 ? 256 : 32);
  const auto blocks = static_cast<unsigned>(blocks_for(a.outer, kLossThreads / width));
  launch({.name = name, .grid = {blocks}, .block = {kLossThreads}},
         wide ? loss_of_rows<T, kV, Forward> : loss_of_rows<T, 1, Forward>, a, losses, width);
}

template <class T>
void cross_entropy(const CrossEntropyArgs& a) {
  const int64_t rows = a.outer * a.inner, blocks = blocks_for(rows > 0 ? rows : 1, kLossRows);
  const DeviceArray<double> losses(a.reduce ? rows : 0);
  const DeviceArray<LossSums> parts(blocks);
  if (rows > 0) launch_rows<T, true>(a, losses.get());
  launch({.name = "cross_entropy_sum",
          .grid = {static_cast<unsigned>(blocks)},
          .block = {kLossThreads}},
         add_rows<T>, a, static_cast<const double*>(losses.get()), parts.get());
  if (blocks == 1) return;
  launch({.name = "cross_entropy_sum", .grid = {1}, .block = {kLossThreads}}, add_parts<T>, a,
         static_cast<const LossSums*>(parts.get()), blocks);
}
template <class T>
void cross_entropy_backward(const CrossEntropyArgs& a) {
  if (a.outer * a.inner * a.classes == 0) return;
  launch_rows<T, false>(a, nullptr);
}

template <class T>
void set_loss(DType t) {
  kernels::cross_entropy.set(kDevice, t, &cross_entropy<T>);
  kernels::cross_entropy_backward.set(kDevice, t, &cross_entropy_backward<T>);
}

void register_loss_kernels() {
  set_loss<double>(DType::f64);
  set_loss<float>(DType::f32);
  set_loss<BFloat16>(DType::bf16);
  set_loss<Float16>(DType::f16);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
