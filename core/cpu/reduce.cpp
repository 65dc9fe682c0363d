#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/math/exponential.h>

#include <cmath>

// Sums, products, moments and sums of exponentials along dimensions.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

template <class T>
struct Mean : Sum<T> {
  static T finish(double a, const ReduceArgs& args, int64_t) { return T(a / double(args.count)); }
};

// The mean kept in f64, for the second pass of a variance.
template <class T>
struct WideMean : Sum<T> {
  using Out = double;
  static double finish(double a, const ReduceArgs& args, int64_t) { return a / double(args.count); }
};

template <class T>
struct Prod : Sum<T> {
  using Acc = SumAcc<T>;
  static Acc identity() { return 1; }
  static Acc add(Acc a, T x, double) { return a * Acc(compute(x)); }
  static Acc merge(Acc a, Acc b) { return a * b; }
};

template <class T>
struct Variance : Sum<T> {
  static constexpr bool kContext = true;
  static double add(double a, T x, double mean) {
    const double d = double(compute(x)) - mean;
    return a + d * d;
  }
  static double value(double a, const ReduceArgs& args) {
    const double freedom = double(args.count) - args.p;
    return a / (freedom > 0 ? freedom : 0);
  }
  static T finish(double a, const ReduceArgs& args, int64_t) { return T(value(a, args)); }
};

template <class T>
struct Deviation : Variance<T> {
  static T finish(double a, const ReduceArgs& args, int64_t) {
    return T(std::sqrt(Variance<T>::value(a, args)));
  }
};

template <class T, template <class> class R>
void reduce_moments(const ReduceArgs& a) {
  Scratch<double> mean(a.outputs);
  ReduceArgs first = a;
  first.out = mean.get();
  reduce<WideMean<T>>(first);
  ReduceArgs second = a;
  second.context = mean.get();
  reduce<R<T>>(second);
}

// Largest element as the reference point of a sum of exponentials; 0 where that is infinite.
template <class T>
struct Anchor : Extreme<T, 1> {
  using Out = double;
  static double finish(ComputeOf<T> a, const ReduceArgs&, int64_t) {
    return std::isinf(a) ? 0.0 : double(a);
  }
};

template <class T>
struct SumExp : Sum<T> {
  using Heavy = void;
  static constexpr bool kContext = true;
  static double add(double a, T x, double anchor) {
    using C = ComputeOf<T>;
    return a + double(math::exp(C(compute(x) - C(anchor))));
  }
  static T finish(double a, const ReduceArgs& args, int64_t o) {
    return T(std::log(a) + args.context[o]);
  }
};

template <class T>
void reduce_logsumexp(const ReduceArgs& a) {
  Scratch<double> anchor(a.outputs);
  ReduceArgs first = a;
  first.out = anchor.get();
  reduce<Anchor<T>>(first);
  ReduceArgs second = a;
  second.context = anchor.get();
  reduce<SumExp<T>>(second);
}

template <class T>
void set_sums(DType t) {
  kernels::sum.set(DeviceKind::cpu, t, &reduce<Sum<T>>);
  kernels::prod.set(DeviceKind::cpu, t, &reduce<Prod<T>>);
}

template <class T>
void set_floating(DType t) {
  const auto cpu = DeviceKind::cpu;
  set_sums<T>(t);
  kernels::mean.set(cpu, t, &reduce<Mean<T>>);
  kernels::var.set(cpu, t, &reduce_moments<T, Variance>);
  kernels::std_dev.set(cpu, t, &reduce_moments<T, Deviation>);
  kernels::logsumexp.set(cpu, t, &reduce_logsumexp<T>);
}

}  // namespace

void register_reduce_kernels() {
  set_floating<double>(DType::f64);
  set_floating<float>(DType::f32);
  set_floating<BFloat16>(DType::bf16);
  set_floating<Float16>(DType::f16);
  set_sums<int64_t>(DType::i64);
  set_sums<int32_t>(DType::i32);
  set_sums<uint8_t>(DType::u8);
  set_sums<int8_t>(DType::i8);
  set_sums<uint8_t>(DType::boolean);  // true is 1
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
