#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include <cutaway/core/device.h>
#include <cutaway/core/kernel.h>
#include <cutaway/core/math/half.h>
#include <cutaway/cuda/emu/options.h>

#include <tests/cuda/emu_buffer.h>
#include <tests/cuda/orders.h>

// For tests that run a kernel on the CPU and on the emulated GPU with the same arguments.
namespace cutaway::cuda::emu {

inline constexpr Device kEmuDevice{DeviceKind::emu, 0};

// The same values in the memory of both devices.
template <class T>
class Both {
 public:
  explicit Both(std::vector<T> values) : cpu_(std::move(values)), emu_(cpu_) {}
  Both(size_t n, T value) : Both(std::vector<T>(n, value)) {}
  T* on(DeviceKind kind) { return kind == DeviceKind::emu ? emu_.get() : cpu_.data(); }
  const std::vector<T>& cpu() const { return cpu_; }
  std::vector<T> emu() const { return emu_.values(); }

  // Every bit is the same.
  void expect_same(const char* what) const {
    const std::vector<T> values = emu();
    for (size_t i = 0; i < cpu_.size(); ++i) {
      if (std::memcmp(&values[i], &cpu_[i], sizeof(T)) == 0) continue;
      ADD_FAILURE() << what << ": element " << i << " of " << cpu_.size() << " is "
                    << double(values[i]) << " on emu, " << double(cpu_[i]) << " on cpu";
      return;
    }
  }
  // |emu − cpu| ≤ tolerance · (1 + |cpu|); NaN equals NaN.
  void expect_near(double tolerance, const char* what) const {
    const std::vector<T> values = emu();
    for (size_t i = 0; i < cpu_.size(); ++i) {
      const double a = double(values[i]), b = double(cpu_[i]);
      if ((a != a && b != b) || a == b) continue;
      if (std::abs(a - b) <= tolerance * (1 + std::abs(b))) continue;
      ADD_FAILURE() << what << ": element " << i << " of " << cpu_.size() << " is " << a
                    << " on emu, " << b << " on cpu";
      return;
    }
  }

 private:
  std::vector<T> cpu_;
  Buffer<T> emu_;
};

template <class T>
struct TypeOf;
template <>
struct TypeOf<double> {
  static constexpr DType value = DType::f64;
  static constexpr double kTolerance = 1e-14;
};
template <>
struct TypeOf<float> {
  static constexpr DType value = DType::f32;
  static constexpr double kTolerance = 2e-6;
};
template <>
struct TypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
  static constexpr double kTolerance = 1e-2;
};
template <>
struct TypeOf<Float16> {
  static constexpr DType value = DType::f16;
  static constexpr double kTolerance = 2e-3;
};
template <>
struct TypeOf<int64_t> {
  static constexpr DType value = DType::i64;
  static constexpr double kTolerance = 0;
};
template <>
struct TypeOf<int32_t> {
  static constexpr DType value = DType::i32;
  static constexpr double kTolerance = 0;
};
template <>
struct TypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
  static constexpr double kTolerance = 0;
};
template <>
struct TypeOf<int8_t> {
  static constexpr DType value = DType::i8;
  static constexpr double kTolerance = 0;
};

// n numbers around zero, the same for the same seed; whole ones for integers.
template <class T>
std::vector<T> some(size_t n, uint64_t seed = 1, double scale = 2) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> spread(-scale, scale);
  std::vector<T> v(n);
  for (T& x : v) {
    const double u = spread(random);
    if constexpr (std::is_integral_v<T>) {
      x = T(int64_t(u * 10));
    } else {
      x = T(u);
    }
  }
  return v;
}
// n indices in [low, high).
inline std::vector<int64_t> some_indices(size_t n, int64_t low, int64_t high, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> spread(low, high - 1);
  std::vector<int64_t> v(n);
  for (int64_t& i : v) i = spread(random);
  return v;
}

// Calls body(T()) for the types.
template <class... T, class F>
void for_types(F&& body) {
  (body(T()), ...);
}
template <class F>
void for_floats(F&& body) {
  for_types<double, float, BFloat16, Float16>(body);
}
template <class F>
void for_numbers(F&& body) {
  for_types<double, float, BFloat16, Float16, int64_t, int32_t, uint8_t, int8_t>(body);
}

// Runs `body` with lanes and blocks in each order.
template <class F>
void in_three_orders(F&& body) {
  for (const Order order : tested_orders()) {
    const OptionsScope scope({.order = order, .seed = 7});
    body();
  }
}

// Runs `kernel` on both devices with the arguments that make(kind) gives.
template <class Args, class F>
void run_both(Kernel<Args>& kernel, DType dtype, F&& make) {
  for (Device device : {kCpu, kEmuDevice}) kernel(device, dtype, make(device.kind));
}

}  // namespace cutaway::cuda::emu
