#pragma once
#include <cutaway/core/math/functors.h>
#include <cutaway/cuda/kernels/pointwise_loop.cuh>

// Selection by a mask, copies with conversion, and fill.

namespace cutaway::cuda::CUTAWAY_TARGET {

template <class S>
void set_masked(DType t) {
  kernels::where.set(kDevice, t, &pointwise<math::functor::Where, S, bool, S, S>);
  kernels::masked_fill.set(kDevice, t, &pointwise<math::functor::MaskedFill, S, bool, S>);
}

// Elements as they are stored, converted to type To, which may be 16 bits wide.
template <class To, class From>
struct Convert {
  CUTAWAY_HD Stored<To> operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return math::truth(x);
    } else {
      return math::convert<To>(x);
    }
  }
};

template <class To, class From>
KERNEL convert_dense(PointwiseArgs args) {
  constexpr int V = pointwise_width<To, From>();
  const int64_t i = first_element(V);
  if (i >= args.numel) return;
  const auto x = global<const Stored<From>>(args.in[0]);
  const auto y = global<Stored<To>>(args.out);
  const Convert<To, From> convert;
  if (i + V <= args.numel) {
    const Vec<Stored<From>, V> in = load<V>(x, i);
    Vec<Stored<To>, V> out;
    for (int k = 0; k < V; ++k) out[k] = convert(static_cast<From>(in[k]));
    store(y, i, out);
  } else {
    for (int64_t k = i; k < args.numel; ++k) {
      const Stored<From> value = x[k];
      y[k] = convert(static_cast<From>(value));
    }
  }
}
template <class To, class From>
KERNEL convert_strided(PointwiseArgs args) {
  const int64_t i = first_element(1);
  if (i >= args.numel) return;
  int64_t at[4];
  element_offsets<1>(args, i, at);
  const Stored<From> value = global<const Stored<From>>(args.in[0])[at[1]];
  global<Stored<To>>(args.out)[at[0]] = Convert<To, From>()(static_cast<From>(value));
}
template <class To, class From>
void convert(const PointwiseArgs& a) {
  if (a.numel == 0) return;
  constexpr int kWidth = pointwise_width<To, From>();
  if (is_dense<To, From>(a, kWidth) && a.strides[1][0] == 1) {
    launch(pointwise_launch("copy_dense", blocks_for(a.numel, kWidth)), &convert_dense<To, From>,
           a);
  } else {
    launch(pointwise_launch("copy_strided", a.numel), &convert_strided<To, From>, a);
  }
}

// out[i] = in0[i] of type `other`, converted.
template <class To>
void copy(const PointwiseArgs& a) {
  switch (a.other) {
    case DType::f64:
      return convert<To, double>(a);
    case DType::f32:
      return convert<To, float>(a);
    case DType::bf16:
      return convert<To, BFloat16>(a);
    case DType::f16:
      return convert<To, Float16>(a);
    case DType::i64:
      return convert<To, int64_t>(a);
    case DType::i32:
      return convert<To, int32_t>(a);
    case DType::u8:
      return convert<To, uint8_t>(a);
    case DType::i8:
      return convert<To, int8_t>(a);
    case DType::boolean:
      return convert<To, bool>(a);
  }
}

template <class T>
KERNEL fill_strided(PointwiseArgs args, Stored<T> value) {
  const int64_t i = first_element(1);
  if (i >= args.numel) return;
  int64_t at[4];
  element_offsets<0>(args, i, at);
  global<Stored<T>>(args.out)[at[0]] = value;
}
template <class T>
KERNEL fill_dense(PointwiseArgs args, Stored<T> value) {
  constexpr int V = pointwise_width<T>();
  const int64_t i = first_element(V);
  if (i >= args.numel) return;
  const auto y = global<Stored<T>>(args.out);
  if (i + V <= args.numel) {
    Vec<Stored<T>, V> values;
    for (int k = 0; k < V; ++k) values[k] = value;
    store(y, i, values);
  } else {
    for (int64_t k = i; k < args.numel; ++k) y[k] = value;
  }
}
template <class T>
void fill(const PointwiseArgs& a) {
  if (a.numel == 0) return;
  Stored<T> value;
  if constexpr (std::is_same_v<T, bool>) {
    value = a.integer[0] != 0;
  } else if constexpr (std::is_integral_v<T>) {
    value = T(a.integer[0]);
  } else {
    value = T(a.scalar[0]);
  }
  constexpr int kWidth = pointwise_width<T>();
  if (is_dense<T>(a, kWidth)) {
    launch(pointwise_launch("fill_dense", blocks_for(a.numel, kWidth)), &fill_dense<T>, a, value);
  } else {
    launch(pointwise_launch("fill_strided", a.numel), &fill_strided<T>, a, value);
  }
}

template <class S>
void set_copies(DType t) {
  set_masked<S>(t);
  kernels::copy.set(kDevice, t, &copy<S>);
  kernels::fill.set(kDevice, t, &fill<S>);
}

void register_pointwise_copy_kernels() {
  set_copies<double>(DType::f64);
  set_copies<float>(DType::f32);
  set_copies<BFloat16>(DType::bf16);
  set_copies<Float16>(DType::f16);
  set_copies<int64_t>(DType::i64);
  set_copies<int32_t>(DType::i32);
  set_copies<uint8_t>(DType::u8);
  set_copies<int8_t>(DType::i8);
  set_copies<bool>(DType::boolean);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
