#pragma once
#include <cutaway/cuda/kernels/reduce_loop.cuh>

#include <cmath>

// Truth values and norms along dimensions.
namespace cutaway::cuda::CUTAWAY_TARGET {

template <class T>
DEVICE bool nonzero(T x) {
  if constexpr (kIsHalf<T>) {
    return (x.bits & 0x7fff) != 0;
  } else {
    return x != T(0);
  }
}
template <class T>
DEVICE double magnitude(T x) {
  return math::detail::abs_of(wide(x));
}

template <class T>
struct Any : Sum<T> {
  using Acc = unsigned;
  DEVICE Acc identity() { return 0; }
  DEVICE Acc add(Acc a, T x, NoContext, Where) { return a | (nonzero(x) ? 1u : 0u); }
  DEVICE Acc merge(Acc a, Acc b) { return a | b; }
  DEVICE void finish(const ReduceArgs& args, int64_t o, Acc a) {
    global<uint8_t>(args.out)[o] = static_cast<uint8_t>(a);
  }
};
template <class T>
struct All : Any<T> {
  DEVICE unsigned identity() { return 1; }
  DEVICE unsigned add(unsigned a, T x, NoContext, Where) { return a & (nonzero(x) ? 1u : 0u); }
  DEVICE unsigned merge(unsigned a, unsigned b) { return a & b; }
};
template <class T>
struct CountNonzero : Sum<T> {
  using Acc = int64_t;
  DEVICE Acc identity() { return 0; }
  DEVICE Acc add(Acc a, T x, NoContext, Where) { return a + (nonzero(x) ? 1 : 0); }
  DEVICE Acc merge(Acc a, Acc b) { return a + b; }
  DEVICE void finish(const ReduceArgs& args, int64_t o, Acc a) { global<int64_t>(args.out)[o] = a; }
};

template <class T>
struct Norm0 : Sum<T> {
  DEVICE double add(double a, T x, NoContext, Where) { return a + (nonzero(x) ? 1 : 0); }
};
template <class T>
struct Norm1 : Sum<T> {
  DEVICE double add(double a, T x, NoContext, Where) { return a + magnitude(x); }
};
template <class T>
struct Norm2 : Sum<T> {
  DEVICE double add(double a, T x, NoContext, Where) { return a + wide(x) * wide(x); }
  DEVICE void finish(const ReduceArgs& args, int64_t o, double a) {
    global<T>(args.out)[o] = static_cast<T>(math::detail::sqrt_of(a));
  }
};
template <class T>
struct NormP : Sum<T> {
  using Heavy = void;
  DEVICE double context(const ReduceArgs& a, int64_t, int64_t) { return a.p; }
  DEVICE double add(double a, T x, double p, Where) { return a + std::pow(magnitude(x), p); }
  DEVICE void finish(const ReduceArgs& args, int64_t o, double a) {
    global<T>(args.out)[o] = static_cast<T>(std::pow(a, 1 / args.p));
  }
};
template <class T, int kSign>
struct NormInf : Sum<T> {
  DEVICE double identity() { return kSign > 0 ? 0 : std::numeric_limits<double>::infinity(); }
  DEVICE double add(double a, T x, NoContext, Where) { return merge(a, magnitude(x)); }
  DEVICE double merge(double a, double b) { return Extreme<double, kSign>::merge(a, b); }
};

// f64 values are scaled by a power of two that brings the largest one near 1, where a square would
// leave the range.
struct NormScale : NormInf<double, 1> {
  DEVICE void finish(const ReduceArgs& args, int64_t o, double a) {
    const bool finite = a <= std::numeric_limits<double>::max();
    const bool safe = (a > 1e-140 && a < 1e140) || a == 0 || !finite;
    const int exponent = safe ? 0 : std::ilogb(a);
    const double scale = std::ldexp(1.0, exponent < -1000 ? 1000 : -exponent);
    global<double>(args.out)[o] = safe ? 1.0 : scale;
  }
};
struct ScaledNorm2 : Sum<double> {
  DEVICE double context(const ReduceArgs& a, int64_t o, int64_t) {
    return global<const double>(a.context)[o];
  }
  DEVICE double add(double a, double x, double scale, Where) {
    return a + (x * scale) * (x * scale);
  }
  DEVICE void finish(const ReduceArgs& args, int64_t o, double a) {
    const double scale = global<const double>(args.context)[o];
    global<double>(args.out)[o] = math::detail::sqrt_of(a) / scale;
  }
};

template <class T>
void reduce_norm2(const ReduceArgs& a) {
  if constexpr (std::is_same_v<T, double>) {
    DeviceArray<double> scale(a.outputs);
    ReduceArgs first = a;
    first.out = scale.get();
    reduce<NormScale>(first);
    ReduceArgs second = a;
    second.context = scale.get();
    reduce<ScaledNorm2>(second);
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
  reduce<NormP<T>>(a);
}

template <class T>
void set_truth(DType t) {
  kernels::any.set(kDevice, t, &reduce<Any<T>>);
  kernels::all.set(kDevice, t, &reduce<All<T>>);
  kernels::count_nonzero.set(kDevice, t, &reduce<CountNonzero<T>>);
}
template <class T>
void set_norm(DType t) {
  set_truth<T>(t);
  kernels::norm.set(kDevice, t, &reduce_norm<T>);
}

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

}  // namespace cutaway::cuda::CUTAWAY_TARGET
