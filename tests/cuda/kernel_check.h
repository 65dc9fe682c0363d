#pragma once
#include <gtest/gtest.h>
#include <cmath>
#include <random>
#include <type_traits>
#include <vector>

#include <cutaway/core/kernel.h>
#include <cutaway/core/math/half.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/options.h>

#include <tests/cuda/emu_buffer.h>
#include <tests/cuda/orders.h>

// What tests of kernel families share: the same arguments for the CPU kernel and the emulated one.
namespace cutaway::cuda::emu {

inline constexpr Device kEmu{DeviceKind::emu, 0};

template <class T>
inline constexpr bool kFloating = !std::is_integral_v<T>;

template <class T>
double number(T x) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) return float(x);
  return double(x);
}

// Numbers around `center`; integers in [−9, 9] (or [0, 9]), with many equal ones.
template <class T>
std::vector<T> random_values(int64_t n, unsigned seed, double center = 0, double spread = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(center, spread);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) {
    if constexpr (std::is_same_v<T, bool>) {
      x = random() % 3 != 0;
    } else if constexpr (std::is_unsigned_v<T>) {
      x = T(random() % 10);
    } else if constexpr (std::is_integral_v<T>) {
      x = T(int(random() % 19) - 9);
    } else {
      x = T(normal(random));
    }
  }
  return v;
}

// The same numbers in another type. What the emulator must give is computed in f64 on the CPU.
template <class To, class From>
std::vector<To> converted(const std::vector<From>& v) {
  std::vector<To> out;
  out.reserve(v.size());
  for (const From x : v) out.push_back(To(double(x)));
  return out;
}

// How far results of T may be apart, relative to 1 + |x|.
template <class T>
double tolerance() {
  if constexpr (std::is_same_v<T, double>) return 1e-12;
  if constexpr (std::is_same_v<T, float>) return 2e-6;
  if constexpr (std::is_same_v<T, Float16>) return 2e-3;
  if constexpr (std::is_same_v<T, BFloat16>) return 1.6e-2;
  return 0;
}

template <class T>
void expect_close(const std::vector<T>& got, const std::vector<T>& want, double tol,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const double a = number(T(got[i])), b = number(T(want[i]));
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    ASSERT_LE(std::fabs(a - b), tol * (1 + std::fabs(b)))
        << what << ", element " << i << ": " << a << " and " << b;
  }
}
template <class T>
void expect_close(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  expect_close(got, want, tolerance<T>(), what);
}

// Runs `body` with lanes and blocks in each order.
template <class F>
void in_each_order(F&& body) {
  for (const Order order : tested_orders()) {
    const OptionsScope scope({.order = order, .seed = 7});
    body();
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Bytes of global memory that `body` moves, and its bank conflicts.
struct Traffic {
  int64_t read = 0, written = 0, conflicts = 0, launches = 0;
  int64_t bytes() const { return read + written; }
};
template <class F>
Traffic traffic_of(F&& body) {
  const OptionsScope scope({.check = false, .count = true});
  take_collected();
  body();
  Traffic t;
  for (const Collected& c : take_collected()) {
    t.read += c.counters.bytes_read();
    t.written += c.counters.bytes_written();
    t.conflicts += c.counters.bank_conflicts();
    ++t.launches;
  }
  return t;
}

// Calls f(T(), dtype) for the floating types.
template <class F>
void for_floating_types(F&& f) {
  f(double(), DType::f64);
  f(float(), DType::f32);
  f(BFloat16(0.0f), DType::bf16);
  f(Float16(0.0f), DType::f16);
}
// The same for the integer types and bool (as bytes).
template <class F>
void for_integer_types(F&& f) {
  f(int64_t(), DType::i64);
  f(int32_t(), DType::i32);
  f(uint8_t(), DType::u8);
  f(int8_t(), DType::i8);
}

}  // namespace cutaway::cuda::emu
