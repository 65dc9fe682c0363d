#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/cpu/vector.h>
#include <cutaway/core/kernels/scan.h>

#include <cmath>
#include <limits>

// Running sums, products, extremes and first-order recurrences. Neighbouring lists (inner > 1) are
// walked side by side; threads take lists, so their number changes nothing.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kSideBySide = 256;

// Calls body(first element of the lists, number of lists) for all blocks of neighbouring lists.
template <class F>
void for_lists(const ScanArgs& a, F&& body) {
  const int64_t width = a.inner < kSideBySide ? a.inner : kSideBySide;
  const int64_t blocks = a.inner > 0 ? (a.inner + width - 1) / width : 0;
  if (a.n == 0) return;
  parallel_for(a.outer * blocks, 1 + kGrain / (a.n * width + 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * width;
      body(i / blocks * a.n * a.inner + first, a.inner - first < width ? a.inner - first : width);
    }
  });
}

int64_t place(const ScanArgs& a, int64_t i) { return (a.reverse ? a.n - 1 - i : i) * a.inner; }

// One list of neighbouring elements. S: In, Acc, Out, start(), step(acc, x).
template <class S>
void scan_list(const ScanArgs& a, const typename S::In* x, typename S::Out* y) {
  using Out = typename S::Out;
  typename S::Acc acc = S::start();
  const int64_t first = a.reverse ? a.n - 1 : 0, step = a.reverse ? -1 : 1;
  for (int64_t i = 0, at = first; i < a.n; ++i, at += step) {
    const typename S::Acc next = S::step(acc, compute(x[at]));
    y[at] = Out(a.exclusive ? acc : next);
    acc = next;
  }
}

template <class T>
struct RunningSum {
  using In = T;
  using Acc = SumAcc<T>;
  using Out = SumOut<T>;
  static Acc start() { return 0; }
  static Acc step(Acc a, ComputeOf<T> x) { return a + Acc(x); }
};
// v moved up by S lanes; zeros come in.
template <int S, int... J>
[[gnu::always_inline]] inline Vector<double> moved_up(Vector<double> v,
                                                      std::integer_sequence<int, J...>) {
  constexpr int kL = int(sizeof...(J));
  return __builtin_shufflevector(v, Vector<double>{}, (J < S ? kL : J - S)...);
}
template <int... J>
[[gnu::always_inline]] inline Vector<double> last_everywhere(Vector<double> v,
                                                             std::integer_sequence<int, J...>) {
  return __builtin_shufflevector(v, v, (int(sizeof...(J)) - 1 + 0 * J)...);
}

// Running sums of n neighbours, some at a time: those of a vector by itself, and what came before
// it. So each waits for one addition a vector, not one an element.
template <class T>
void sum_list(const T* x, T* y, int64_t n) {
  constexpr int kL = kVectorLanes<double>;
  constexpr auto kLane = std::make_integer_sequence<int, kL>{};
  typedef T Part __attribute__((vector_size(kL * sizeof(T)), aligned(sizeof(T)), may_alias));
  Vector<double> before{};
  int64_t i = 0;
  for (; i + kL <= n; i += kL) {
    auto v = __builtin_convertvector(*reinterpret_cast<const Part*>(x + i), Vector<double>);
    v += moved_up<1>(v, kLane);
    if constexpr (kL > 2) v += moved_up<2>(v, kLane);
    if constexpr (kL > 4) v += moved_up<4>(v, kLane);
    *reinterpret_cast<Part*>(y + i) = __builtin_convertvector(v + before, Part);
    before += last_everywhere(v, kLane);
  }
  double sum = before[0];
  for (; i < n; ++i) y[i] = T(sum += double(x[i]));
}

template <class S>
void scan(const ScanArgs& a) {
  using T = typename S::In;
  using Acc = typename S::Acc;
  using Out = typename S::Out;
  for_lists(a, [&](int64_t first, int64_t lists) {
    const T* x = static_cast<const T*>(a.in) + first;
    Out* y = static_cast<Out*>(a.out) + first;
    if constexpr (std::is_same_v<S, RunningSum<T>> && std::is_floating_point_v<T>) {
      if (a.inner == 1 && !a.reverse && !a.exclusive) return sum_list(x, y, a.n);
    }
    if (a.inner == 1) return scan_list<S>(a, x, y);
    Acc acc[kSideBySide];
    for (int64_t k = 0; k < lists; ++k) acc[k] = S::start();
    for (int64_t i = 0; i < a.n; ++i) {
      const int64_t at = place(a, i);
      const T* row = x + at;
      Out* out = y + at;
      if (a.exclusive) {
        for (int64_t k = 0; k < lists; ++k) {
          out[k] = Out(acc[k]);
          acc[k] = S::step(acc[k], compute(row[k]));
        }
      } else {
        for (int64_t k = 0; k < lists; ++k) {
          acc[k] = S::step(acc[k], compute(row[k]));
          out[k] = Out(acc[k]);
        }
      }
    }
  });
}

template <class T>
struct RunningProd : RunningSum<T> {
  using Acc = SumAcc<T>;
  static Acc start() { return 1; }
  static Acc step(Acc a, ComputeOf<T> x) { return a * Acc(x); }
};
template <class T>
struct RunningLogSumExp : RunningSum<T> {
  static double start() { return -std::numeric_limits<double>::infinity(); }
  static double step(double a, ComputeOf<T> x) {
    const double b = double(x), high = a > b ? a : b, low = a > b ? b : a;
    if (a != a || b != b) return a + b;
    return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
  }
};

// The last of equal extremes is kept, and of several NaN the last.
template <class T, int kSign>
void running_extreme(const ScanArgs& a) {
  using C = ComputeOf<T>;
  for_lists(a, [&](int64_t first, int64_t lists) {
    for (int64_t k = 0; k < lists; ++k) {
      const T* x = static_cast<const T*>(a.in) + first + k;
      T* y = static_cast<T*>(a.out) + first + k;
      int64_t best = 0;
      for (int64_t i = 0; i < a.n; ++i) {
        const C now = compute(x[i * a.inner]), held = compute(x[best * a.inner]);
        const bool reaches = kSign > 0 ? now >= held : now <= held;
        if (now != now || (held == held && reaches)) best = i;
        y[i * a.inner] = x[best * a.inner];
        if (a.index) a.index[first + k + i * a.inner] = best;
      }
    }
  });
}

template <class T>
void linear_scan(const ScanArgs& a) {
  for_lists(a, [&](int64_t first, int64_t lists) {
    const T* x = static_cast<const T*>(a.in) + first;
    const T* factor = static_cast<const T*>(a.factor) + first;
    T* y = static_cast<T*>(a.out) + first;
    double acc[kSideBySide];
    for (int64_t k = 0; k < lists; ++k) acc[k] = 0;
    for (int64_t i = 0; i < a.n; ++i) {
      const int64_t at = place(a, i);
      const T* f = factor + (a.shifted && i > 0 ? place(a, i - 1) : at);
      for (int64_t k = 0; k < lists; ++k) {
        // Before the first element there is nothing: no product, so that an infinite factor is no
        // NaN.
        const double carried = i > 0 ? double(compute(f[k])) * acc[k] : 0;
        acc[k] = double(compute(x[at + k])) + carried;
        y[at + k] = T(acc[k]);
      }
    }
  });
}

// Gradient of a product: of each element the product of those before times that of those after.
template <class T>
void prod_backward(const ProdGradArgs& a) {
  parallel_for(a.outer, 1 + kGrain / (a.n + 1), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const T* x = static_cast<const T*>(a.in) + o * a.n;
      T* grad = static_cast<T*>(a.grad) + o * a.n;
      Scratch<double> before(a.n);
      double product = 1;
      for (int64_t i = 0; i < a.n; ++i) {
        before[i] = product;
        product *= double(compute(x[i]));
      }
      product = double(compute(static_cast<const T*>(a.upstream)[o]));
      for (int64_t i = a.n - 1; i >= 0; --i) {
        grad[i] = T(before[i] * product);
        product *= double(compute(x[i]));
      }
    }
  });
}

template <class T>
void set_all_types(DType t) {
  const auto cpu = DeviceKind::cpu;
  kernels::cumsum.set(cpu, t, &scan<RunningSum<T>>);
  kernels::cumprod.set(cpu, t, &scan<RunningProd<T>>);
  kernels::cummax.set(cpu, t, &running_extreme<T, 1>);
  kernels::cummin.set(cpu, t, &running_extreme<T, -1>);
}

template <class T>
void set_floating(DType t) {
  const auto cpu = DeviceKind::cpu;
  set_all_types<T>(t);
  kernels::logcumsumexp.set(cpu, t, &scan<RunningLogSumExp<T>>);
  kernels::linear_scan.set(cpu, t, &linear_scan<T>);
  kernels::prod_backward.set(cpu, t, &prod_backward<T>);
}

}  // namespace

void register_scan_kernels() {
  set_floating<double>(DType::f64);
  set_floating<float>(DType::f32);
  set_floating<BFloat16>(DType::bf16);
  set_floating<Float16>(DType::f16);
  set_all_types<int64_t>(DType::i64);
  set_all_types<int32_t>(DType::i32);
  set_all_types<uint8_t>(DType::u8);
  set_all_types<int8_t>(DType::i8);
  set_all_types<uint8_t>(DType::boolean);  // true is 1
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
