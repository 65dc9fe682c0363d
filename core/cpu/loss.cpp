#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/kernels/loss.h>
#include <cutaway/core/math/exponential.h>

#include <cmath>
#include <limits>

// Cross entropy in one pass over the scores forward and one backward. Rows are independent, the sum
// over rows is made in order, so the number of threads changes nothing.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kLanes = 16;        // classes of one row side by side
constexpr int64_t kSideBySide = 128;  // rows side by side where classes are apart (inner > 1)

// Rows that are neighbours in memory: `count` of them, the first at element `first` of x and at
// `row` of the targets.
struct Block {
  int64_t first, row, count;
};

template <class F>
void for_blocks(const CrossEntropyArgs& a, F&& body) {
  if (a.inner == 0 || a.outer == 0) return;
  const int64_t width = a.inner < kSideBySide ? a.inner : kSideBySide;
  const int64_t blocks = (a.inner + width - 1) / width;
  const int64_t grain = 1 + kGrain / 8 / (a.classes * width + 1);
  parallel_for(a.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % blocks * width, left = a.inner - at;
      const int64_t o = i / blocks;
      body(Block{o * a.classes * a.inner + at, o * a.inner + at, left < width ? left : width});
    }
  });
}

// log Σ exp of n neighbouring scores.
template <class T>
double lse_of_row(const T* x, int64_t n) {
  using C = ComputeOf<T>;
  C high = -std::numeric_limits<C>::infinity();
#pragma omp simd reduction(max : high)
  for (int64_t c = 0; c < n; ++c) high = compute(x[c]) > high ? compute(x[c]) : high;
  double sums[kLanes] = {};
  for (int64_t c = 0; c < n; c += kLanes) {
    C part[kLanes];
    const int64_t here = n - c < kLanes ? n - c : kLanes;
    for (int64_t l = 0; l < here; ++l) part[l] = compute(x[c + l]) - high;
    for (int64_t l = here; l < kLanes; ++l) part[l] = -std::numeric_limits<C>::infinity();
#pragma omp simd
    for (int64_t l = 0; l < kLanes; ++l) part[l] = math::exp(part[l]);
    for (int64_t l = 0; l < kLanes; ++l) sums[l] += double(part[l]);
  }
  double sum = 0;
  for (int64_t l = 0; l < kLanes; ++l) sum += sums[l];
  return double(high) + std::log(sum);
}

// The same for `count` rows side by side, classes `inner` apart.
template <class T>
void lse_of_columns(const T* x, int64_t n, int64_t inner, int64_t count, double* lse) {
  using C = ComputeOf<T>;
  C high[kSideBySide];
  double sum[kSideBySide];
  for (int64_t k = 0; k < count; ++k) {
    high[k] = -std::numeric_limits<C>::infinity();
    sum[k] = 0;
  }
  for (int64_t c = 0; c < n; ++c) {
    const T* row = x + c * inner;
#pragma omp simd
    for (int64_t k = 0; k < count; ++k) {
      const C v = compute(row[k]);
      high[k] = v > high[k] ? v : high[k];
    }
  }
  for (int64_t c = 0; c < n; ++c) {
    const T* row = x + c * inner;
#pragma omp simd
    for (int64_t k = 0; k < count; ++k) sum[k] += double(math::exp(compute(row[k]) - high[k]));
  }
  for (int64_t k = 0; k < count; ++k) lse[k] = double(high[k]) + std::log(sum[k]);
}

// What the targets of a row say.
template <class T>
struct Targets {
  const CrossEntropyArgs& a;
  const T* weight;
  const T* soft;
  double base;  // share of every class by smoothing

  explicit Targets(const CrossEntropyArgs& args)
      : a(args),
        weight(static_cast<const T*>(args.weight)),
        soft(static_cast<const T*>(args.soft)),
        base(args.smoothing / double(args.classes)) {}
  bool ignored(int64_t row) const { return a.target && a.target[row] == a.ignore_index; }
  double weight_of(int64_t c) const { return weight ? double(compute(weight[c])) : 1; }
  // q_c · weight_c; `at` is the element of x.
  double share(int64_t row, int64_t c, int64_t at) const {
    const double t = soft ? double(compute(soft[at])) : double(a.target[row] == c);
    return ((1 - a.smoothing) * t + base) * weight_of(c);
  }
  // The only class with a share, or −1.
  int64_t only(int64_t row) const { return soft || base != 0 ? -1 : a.target[row]; }
};

template <class T>
double loss_of_row(const Targets<T>& t, const T* x, int64_t first, int64_t row, double lse) {
  const CrossEntropyArgs& a = t.a;
  const int64_t only = t.only(row);
  if (only >= 0) {
    const double weight = t.weight_of(only);
    return weight == 0 ? 0 : weight * (lse - double(compute(x[first + only * a.inner])));
  }
  double loss = 0;
  for (int64_t c = 0; c < a.classes; ++c) {
    const int64_t at = first + c * a.inner;
    const double share = t.share(row, c, at);
    // A class without a share adds nothing, whatever its score.
    if (share != 0) loss += share * (lse - double(compute(x[at])));
  }
  return loss;
}

template <class T>
void cross_entropy(const CrossEntropyArgs& a) {
  const T* x = static_cast<const T*>(a.x);
  const Targets<T> targets(a);
  const int64_t rows = a.outer * a.inner;
  Scratch<double> losses(rows);
  for_blocks(a, [&](const Block& b) {
    double* lse = a.stats + b.row;
    if (a.normalized) {
      for (int64_t k = 0; k < b.count; ++k) lse[k] = 0;
    } else if (a.inner == 1) {
      lse[0] = lse_of_row(x + b.first, a.classes);
    } else {
      lse_of_columns(x + b.first, a.classes, a.inner, b.count, lse);
    }
    for (int64_t k = 0; k < b.count; ++k) {
      const int64_t row = b.row + k;
      losses[row] = targets.ignored(row) ? 0 : loss_of_row(targets, x, b.first + k, row, lse[k]);
    }
  });
  double total = 0, divisor = a.soft ? double(rows) : 0;
  for (int64_t row = 0; row < rows; ++row) {
    total += losses[row];
    if (a.target && !targets.ignored(row)) divisor += targets.weight_of(a.target[row]);
  }
  a.stats[rows] = divisor;
  T* y = static_cast<T*>(a.y);
  if (a.reduce) {
    y[0] = T(a.mean ? total / divisor : total);
  } else {
    for (int64_t row = 0; row < rows; ++row) y[row] = T(losses[row]);
  }
}

// dx_c = g (S exp(x_c − lse) − share_c), S the sum of shares.
template <class T>
void gradient_of_row(const Targets<T>& t, int64_t first, int64_t row, double g, T* grad,
                     ComputeOf<T>* shares) {
  using C = ComputeOf<T>;
  const CrossEntropyArgs& a = t.a;
  const T* x = static_cast<const T*>(a.x) + first;
  const int64_t n = a.classes, inner = a.inner;
  double sum = 0;
  for (int64_t c = 0; c < n; ++c) {
    const double share = t.share(row, c, first + c * inner);
    shares[c] = C(share);
    sum += share;
  }
  // lse in two parts: one number of type C would lose the digits that matter for large scores.
  const C scale = C(g), total = a.normalized ? C(0) : C(sum);
  const C high = C(a.stats[row]), low = C(a.stats[row] - double(high));
  if (a.normalized) {
    for (int64_t c = 0; c < n; ++c) grad[first + c * inner] = T(-scale * shares[c]);
  } else if (inner == 1) {
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) {
      grad[first + c] = T(scale * (total * math::exp((compute(x[c]) - high) - low) - shares[c]));
    }
  } else {
    for (int64_t c = 0; c < n; ++c) {
      const C p = math::exp((compute(x[c * inner]) - high) - low);
      grad[first + c * inner] = T(scale * (total * p - shares[c]));
    }
  }
}

template <class T>
void cross_entropy_backward(const CrossEntropyArgs& a) {
  const T* upstream = static_cast<const T*>(a.upstream);
  T* grad = static_cast<T*>(a.grad);
  const Targets<T> targets(a);
  const double divisor = a.stats[a.outer * a.inner];
  // The mean of nothing is NaN, but its gradient is 0.
  const double factor = !a.reduce || !a.mean ? 1 : divisor == 0 ? 0 : 1 / divisor;
  for_blocks(a, [&](const Block& b) {
    Scratch<ComputeOf<T>> shares(a.classes);
    for (int64_t k = 0; k < b.count; ++k) {
      const int64_t row = b.row + k, first = b.first + k;
      if (targets.ignored(row)) {
        for (int64_t c = 0; c < a.classes; ++c) grad[first + c * a.inner] = T(ComputeOf<T>(0));
      } else {
        const double g = factor * double(compute(upstream[a.reduce ? 0 : row]));
        gradient_of_row(targets, first, row, g, grad, shares.get());
      }
    }
  });
}

template <class T>
void set_kernels(DType t) {
  kernels::cross_entropy.set(DeviceKind::cpu, t, &cross_entropy<T>);
  kernels::cross_entropy_backward.set(DeviceKind::cpu, t, &cross_entropy_backward<T>);
}

}  // namespace

void register_loss_kernels() {
  set_kernels<double>(DType::f64);
  set_kernels<float>(DType::f32);
  set_kernels<BFloat16>(DType::bf16);
  set_kernels<Float16>(DType::f16);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
