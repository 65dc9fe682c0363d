#include <cutaway/core/cpu/reduce_loop.h>

#include <cmath>
#include <limits>

// Truth values and norms along dimensions.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

template <class T>
bool nonzero(T x) {
  if constexpr (kIsHalf<T>) return (x.bits & 0x7fff) != 0;
  return compute(x) != ComputeOf<T>(0);
}

template <class T>
struct Any {
  using In = T;
  using Acc = uint32_t;
  using Out = bool;
  static constexpr bool kContext = false;
  static Acc identity() { return 0; }
  static Acc add(Acc a, T x, double) { return a | nonzero(x); }
  static Acc merge(Acc a, Acc b) { return a | b; }
  static Out finish(Acc a, const ReduceArgs&, int64_t) { return a != 0; }
};

template <class T>
struct All : Any<T> {
  using Acc = uint32_t;
  static Acc identity() { return 1; }
  static Acc add(Acc a, T x, double) { return a & nonzero(x); }
  static Acc merge(Acc a, Acc b) { return a & b; }
};

template <class T>
struct CountNonzero {
  using In = T;
  using Acc = int64_t;
  using Out = int64_t;
  static constexpr bool kContext = false;
  static Acc identity() { return 0; }
  static Acc add(Acc a, T x, double) { return a + nonzero(x); }
  static Acc merge(Acc a, Acc b) { return a + b; }
  static Out finish(Acc a, const ReduceArgs&, int64_t) { return a; }
};

template <class T>
double magnitude(T x) {
  return std::fabs(double(compute(x)));
}

template <class T>
struct Norm0 : Sum<T> {
  static double add(double a, T x, double) { return a + nonzero(x); }
};
template <class T>
struct Norm1 : Sum<T> {
  static double add(double a, T x, double) { return a + magnitude(x); }
};
// Squares of x / context; f64 values are scaled by their largest one, so that no square overflows.
template <class T>
struct Norm2 : Sum<T> {
  static constexpr bool kContext = std::is_same_v<T, double>;
  static double add(double a, T x, double scale) {
    const double v = kContext ? double(compute(x)) * scale : double(compute(x));
    return a + v * v;
  }
  static T finish(double a, const ReduceArgs& args, int64_t o) {
    if constexpr (kContext) return T(std::sqrt(a) / args.context[o]);
    return T(std::sqrt(a));
  }
};
template <class T>
struct NormP : Sum<T> {
  static constexpr bool kContext = true;  // the order, the same for every output
  static double add(double a, T x, double p) { return a + std::pow(magnitude(x), p); }
  static T finish(double a, const ReduceArgs& args, int64_t) { return T(std::pow(a, 1 / args.p)); }
};
template <class T, int kSign>
struct NormInf : Sum<T> {
  static double identity() { return kSign > 0 ? 0 : std::numeric_limits<double>::infinity(); }
  static double add(double a, T x, double) { return merge(a, magnitude(x)); }
  static double merge(double a, double b) { return Extreme<double, kSign>::merge(a, b); }
};

// A power of two that brings the largest element near 1; 1 where no square leaves the range.
template <class T>
struct NormScale : NormInf<T, 1> {
  using Out = double;
  static double finish(double a, const ReduceArgs&, int64_t) {
    const bool safe = (a > 1e-140 && a < 1e140) || a == 0 || !std::isfinite(a);
    const int exponent = std::ilogb(a);
    return safe ? 1.0 : std::ldexp(1.0, exponent < -1000 ? 1000 : -exponent);
  }
};

template <class T>
void reduce_norm2(const ReduceArgs& a) {
  if constexpr (Norm2<T>::kContext) {
    Scratch<double> scale(a.outputs);
    ReduceArgs first = a;
    first.out = scale.get();
    reduce<NormScale<T>>(first);
    ReduceArgs second = a;
    second.context = scale.get();
    reduce<Norm2<T>>(second);
  } else {
    reduce<Norm2<T>>(a);
  }
}

template <class T>
void reduce_norm(const ReduceArgs& a) {
  if (a.p == 2) return reduce_norm2<T>(a);
  if (a.p == 1) return reduce<Norm1<T>>(a);
  if (a.p == 0) return reduce<Norm0<T>>(a);
  if (std::isinf(a.p)) return a.p > 0 ? reduce<NormInf<T, 1>>(a) : reduce<NormInf<T, -1>>(a);
  Scratch<double> order(a.outputs);
  for (int64_t o = 0; o < a.outputs; ++o) order[o] = a.p;
  ReduceArgs b = a;
  b.context = order.get();
  reduce<NormP<T>>(b);
}

template <class T>
void set_truth(DType t) {
  kernels::any.set(DeviceKind::cpu, t, &reduce<Any<T>>);
  kernels::all.set(DeviceKind::cpu, t, &reduce<All<T>>);
  kernels::count_nonzero.set(DeviceKind::cpu, t, &reduce<CountNonzero<T>>);
}

template <class T>
void set_norm(DType t) {
  set_truth<T>(t);
  kernels::norm.set(DeviceKind::cpu, t, &reduce_norm<T>);
}

}  // namespace

void register_magnitude_kernels() {
  set_norm<double>(DType::f64);
  set_norm<float>(DType::f32);
  set_norm<BFloat16>(DType::bf16);
  set_norm<Float16>(DType::f16);
  set_truth<int64_t>(DType::i64);
  set_truth<int32_t>(DType::i32);
  set_truth<uint8_t>(DType::u8);
  set_truth<uint8_t>(DType::i8);  // only the bits matter
  set_truth<uint8_t>(DType::boolean);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
