#pragma once
#include <cutaway/cuda/device/exponential.h>
#include <cutaway/cuda/kernels/reduce_loop.cuh>

// Sums, products, moments and sums of exponentials along dimensions.
namespace cutaway::cuda::CUTAWAY_TARGET {

template <class T>
struct Mean : Sum<T> {
  DEVICE void finish(const ReduceArgs& args, int64_t o, double a) {
    global<T>(args.out)[o] = static_cast<T>(a / static_cast<double>(args.count));
  }
};

template <class T>
struct Prod : Sum<T> {
  using Acc = SumAcc<T>;
  DEVICE Acc identity() { return 1; }
  DEVICE Acc add(Acc a, T x, NoContext, Where) { return a * static_cast<Acc>(compute(x)); }
  DEVICE Acc merge(Acc a, Acc b) { return a * b; }
};

// Variance or its root, from Σ (x − mean)².
template <class T, bool kRoot>
DEVICE void write_variance(const ReduceArgs& args, int64_t o, double spread) {
  const double freedom = static_cast<double>(args.count) - args.p;
  const double variance = spread / (freedom > 0 ? freedom : 0);
  global<T>(args.out)[o] = static_cast<T>(kRoot ? math::detail::sqrt_of(variance) : variance);
}
template <class T, bool kRoot>
struct ShiftedVariance : Shifted<T> {
  DEVICE void finish(const ReduceArgs& args, int64_t o, ShiftedSums a) {
    write_variance<T, kRoot>(args, o, Shifted<T>::spread(a, static_cast<double>(args.count)));
  }
};
template <class T, bool kRoot>
struct Variance : Spread<T> {
  DEVICE void finish(const ReduceArgs& args, int64_t o, double a) {
    write_variance<T, kRoot>(args, o, a);
  }
};
template <class T, bool kRoot>
void reduce_variance(const ReduceArgs& a) {
  if constexpr (std::is_same_v<T, double>) {
    DeviceArray<double> mean(a.outputs);
    ReduceArgs first = a;
    first.out = mean.get();
    reduce<WideMean<T>>(first);
    ReduceArgs second = a;
    second.context = mean.get();
    reduce<Variance<T, kRoot>>(second);
  } else {
    reduce<ShiftedVariance<T, kRoot>>(a);
  }
}

// A running maximum m, and the sum of exp(x − m).
struct Exponentials {
  double m, sum;
};
template <class T>
struct LogSumExp {
  using Heavy = void;
  using In = T;
  using Acc = Exponentials;
  using C = ComputeOf<T>;
  static constexpr double kInf = std::numeric_limits<double>::infinity();
  DEVICE NoContext context(const ReduceArgs&, int64_t, int64_t) { return {}; }
  DEVICE Acc identity() { return {-kInf, 0}; }
  // exp(a − b) for a ≤ b.
  DEVICE double ratio(double a, double b) {
    return a == b ? 1.0 : static_cast<double>(math::exp(static_cast<C>(a) - static_cast<C>(b)));
  }
  DEVICE Acc add(Acc a, T element, NoContext, Where) {
    const double x = wide(element);
    if (x == -kInf) return a;
    if (x > a.m) return {x, a.sum * ratio(a.m, x) + 1};
    return {a.m, a.sum + ratio(x, a.m)};
  }
  DEVICE Acc merge(Acc a, Acc b) {
    const double m = a.m > b.m ? a.m : b.m;
    return {m, a.sum * ratio(a.m, m) + b.sum * ratio(b.m, m)};
  }
  DEVICE void finish(const ReduceArgs& args, int64_t o, Acc a) {
    global<T>(args.out)[o] = static_cast<T>(math::log(a.sum) + a.m);
  }
};

template <class T>
void set_sums(DType t) {
  kernels::sum.set(kDevice, t, &reduce<Sum<T>>);
  kernels::prod.set(kDevice, t, &reduce<Prod<T>>);
}
template <class T>
void set_floating_sums(DType t) {
  set_sums<T>(t);
  kernels::mean.set(kDevice, t, &reduce<Mean<T>>);
  kernels::var.set(kDevice, t, &reduce_variance<T, false>);
  kernels::std_dev.set(kDevice, t, &reduce_variance<T, true>);
  kernels::logsumexp.set(kDevice, t, &reduce<LogSumExp<T>>);
}

void register_reduce_kernels() {
  set_floating_sums<double>(DType::f64);
  set_floating_sums<float>(DType::f32);
  set_floating_sums<BFloat16>(DType::bf16);
  set_floating_sums<Float16>(DType::f16);
  set_sums<int64_t>(DType::i64);
  set_sums<int32_t>(DType::i32);
  set_sums<uint8_t>(DType::u8);
  set_sums<int8_t>(DType::i8);
  set_sums<uint8_t>(DType::boolean);  // true is 1
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
