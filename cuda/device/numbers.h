#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include <cutaway/core/math/half.h>
#include <cutaway/cuda/device/language.h>

// Which types kernels compute and add up in.
namespace cutaway::cuda::CUTAWAY_TARGET {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;
template <class T>
inline constexpr bool kIsFloating = std::is_floating_point_v<T> || kIsHalf<T>;

// The type one element is computed in: its own, f32 for 16-bit floats.
template <class T>
using ComputeOf = std::conditional_t<kIsHalf<T>, float, T>;
template <class T>
DEVICE ComputeOf<T> compute(T x) {
  return static_cast<ComputeOf<T>>(x);
}
template <class T>
DEVICE double wide(T x) {
  return static_cast<double>(compute(x));
}

// Sums of floating types are f64; those of integers are unsigned, they wrap, and give i64.
template <class T>
using SumAcc = std::conditional_t<kIsFloating<T>, double, uint64_t>;
template <class T>
using SumOut = std::conditional_t<kIsFloating<T>, T, int64_t>;

// Elements in 16 bytes.
template <class T>
inline constexpr int kWide = 16 / static_cast<int>(sizeof(T));

// True if 16-byte accesses at multiples of kWide<T> elements from p are aligned.
inline bool aligned16(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

struct Plus {
  template <class T>
  CUTAWAY_HD T operator()(T a, T b) const {
    return a + b;
  }
};
// The larger one; a NaN wins.
struct Larger {
  template <class T>
  CUTAWAY_HD T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};

}  // namespace cutaway::cuda::CUTAWAY_TARGET
