#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/cpu/strided_copy.h>

#include <cstring>

#include <cutaway/core/math/rows.h>

// copy (with conversion) and fill; the other elementwise kernels stand in files of their own.

namespace cutaway::cpu::CUTAWAY_VARIANT {

void register_pointwise_activation_kernels();
void register_pointwise_arithmetic_kernels();
void register_pointwise_compare_kernels();
void register_pointwise_float_kernels();
void register_pointwise_special_kernels();
void register_random_kernels();

namespace {

template <class To, class From>
void convert_loop(int64_t n, void* out, const void* const* in, const PointwiseArgs&) {
  const From* x = static_cast<const From*>(in[0]);
  if constexpr (std::is_same_v<To, bool>) {
    uint8_t* y = static_cast<uint8_t*>(out);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = math::truth(x[i]);
  } else {
    To* y = static_cast<To*>(out);
    if constexpr (requires { math::convert_row(x, y, n); }) {
      math::convert_row(x, y, n);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = math::convert<To>(x[i]);
    }
  }
}
// Bytes as they are; booleans have no other values than 0 and 1.
void bytes_loop(int64_t n, void* out, const void* const* in, const PointwiseArgs& a) {
  std::memmove(out, in[0], size_t(n * size_of(a.other)));
}

template <class To>
Loop convert_from(DType from) {
  switch (from) {
    case DType::f64:
      return convert_loop<To, double>;
    case DType::f32:
      return convert_loop<To, float>;
    case DType::bf16:
      return convert_loop<To, BFloat16>;
    case DType::f16:
      return convert_loop<To, Float16>;
    case DType::i64:
      return convert_loop<To, int64_t>;
    case DType::i32:
      return convert_loop<To, int32_t>;
    case DType::u8:
      return convert_loop<To, uint8_t>;
    case DType::i8:
      return convert_loop<To, int8_t>;
    case DType::boolean:
      return convert_loop<To, bool>;
  }
  return nullptr;
}

// out[i] = in0[i] of type `other`, converted.
template <class To, DType kTo>
void copy(const PointwiseArgs& a) {
  const uint8_t bytes = uint8_t(size_of(a.other));
  if (a.other == kTo) {
    if (!copy_strided(a, bytes)) run_plan(a, {bytes_loop, 1, {{bytes}, {bytes}}});
    return;
  }
  run_plan(a, {convert_from<To>(a.other), 1, {{sizeof(To)}, {bytes}}});
}

template <class T>
void fill_loop(int64_t n, void* out, const void* const*, const PointwiseArgs& a) {
  T value;
  if constexpr (std::is_integral_v<T>) {
    value = T(a.integer[0]);
  } else {
    value = T(a.scalar[0]);
  }
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = value;
}
template <class T>
void fill(const PointwiseArgs& a) {
  run_plan(a, {fill_loop<T>, 0, {{sizeof(T)}}});
}
void fill_bool(const PointwiseArgs& a) {
  PointwiseArgs b = a;
  b.integer[0] = a.integer[0] != 0;
  fill<uint8_t>(b);
}

template <class T, DType kType>
void register_type() {
  kernels::copy.set(DeviceKind::cpu, kType, &copy<T, kType>);
  if constexpr (kType == DType::boolean) {
    kernels::fill.set(DeviceKind::cpu, kType, &fill_bool);
  } else {
    kernels::fill.set(DeviceKind::cpu, kType, &fill<T>);
  }
}

}  // namespace

void register_pointwise_kernels() {
  register_type<double, DType::f64>();
  register_type<float, DType::f32>();
  register_type<BFloat16, DType::bf16>();
  register_type<Float16, DType::f16>();
  register_type<int64_t, DType::i64>();
  register_type<int32_t, DType::i32>();
  register_type<uint8_t, DType::u8>();
  register_type<int8_t, DType::i8>();
  register_type<bool, DType::boolean>();
  register_pointwise_activation_kernels();
  register_pointwise_arithmetic_kernels();
  register_pointwise_compare_kernels();
  register_pointwise_float_kernels();
  register_pointwise_special_kernels();
  register_random_kernels();
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
