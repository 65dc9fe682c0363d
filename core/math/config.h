#pragma once
#include <cstdint>

// Note: scalar functors. Everything in core/math works on one element and is shared by the CPU
// kernels, CUDA and the emulator. CUTAWAY_HD marks such a function: host and device, and always
// inlined. The inlining is needed twice: a loop vectorises only when its body is visible, and an
// out-of-line copy compiled for AVX-512 must never be picked by the linker for a plain caller.
// Hence no code may take the address of a CUTAWAY_HD function; wrap it in a functor instead.
#if defined(__CUDACC__)
#define CUTAWAY_HD __host__ __device__ __forceinline__
#elif defined(__GNUC__) || defined(__clang__)
#define CUTAWAY_HD inline __attribute__((always_inline))
#else
#define CUTAWAY_HD inline
#endif

// Unrolls the loop that follows, whose trip count is a constant up to 16.
#if defined(__CUDACC__)
#define CUTAWAY_UNROLL _Pragma("unroll")
#elif defined(__GNUC__) && !defined(__clang__)
#define CUTAWAY_UNROLL _Pragma("GCC unroll 16")
#else
#define CUTAWAY_UNROLL
#endif

namespace cutaway::math::detail {

// The bit pattern of a float or double, and back.
CUTAWAY_HD uint32_t bits(float x) { return __builtin_bit_cast(uint32_t, x); }
CUTAWAY_HD uint64_t bits(double x) { return __builtin_bit_cast(uint64_t, x); }
CUTAWAY_HD float from_bits(uint32_t u) { return __builtin_bit_cast(float, u); }
CUTAWAY_HD double from_bits(uint64_t u) { return __builtin_bit_cast(double, u); }

// a·b + c, fused where the target has the instruction. Every sum of a product in this folder is
// written with it, so the compiler has nothing left to contract: a vector loop and its scalar
// tail give the same bits whatever -ffp-contract says.
CUTAWAY_HD float madd(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
CUTAWAY_HD double madd(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// a·b, rounded, and never fused with a sum that follows. Random numbers use it to be the same bits
// on every device.
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier) && !defined(__CUDACC__)
#define CUTAWAY_HAS_ASSOC_BARRIER 1
#endif
#endif
CUTAWAY_HD float mul_rounded(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#elif defined(CUTAWAY_HAS_ASSOC_BARRIER)
  return __builtin_assoc_barrier(a * b);
#elif defined(__clang__)
#pragma clang fp contract(off)
  return a * b;
#else
  return a * b;  // needs -ffp-contract=off
#endif
}
CUTAWAY_HD double mul_rounded(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#elif defined(CUTAWAY_HAS_ASSOC_BARRIER)
  return __builtin_assoc_barrier(a * b);
#elif defined(__clang__)
#pragma clang fp contract(off)
  return a * b;
#else
  return a * b;  // needs -ffp-contract=off
#endif
}

// Polynomial c[0] + c[1]·x + … by Horner's rule; the loop is unrolled.
template <class T, int N>
CUTAWAY_HD T poly(T x, const T (&c)[N]) {
  T sum = c[N - 1];
  CUTAWAY_UNROLL
  for (int i = N - 2; i >= 0; --i) sum = madd(sum, x, c[i]);
  return sum;
}

CUTAWAY_HD float abs_of(float x) { return from_bits(bits(x) & 0x7fffffffu); }
CUTAWAY_HD double abs_of(double x) { return from_bits(bits(x) & 0x7fffffffffffffffu); }
// Magnitude of `magnitude`, sign of `sign`.
CUTAWAY_HD float with_sign(float magnitude, float sign) {
  return from_bits((bits(magnitude) & 0x7fffffffu) | (bits(sign) & 0x80000000u));
}
CUTAWAY_HD double with_sign(double magnitude, double sign) {
  return from_bits((bits(magnitude) & 0x7fffffffffffffffu) | (bits(sign) & (uint64_t{1} << 63)));
}

// Correctly rounded square root.
CUTAWAY_HD float sqrt_of(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}
CUTAWAY_HD double sqrt_of(double x) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(x);
#else
  return __builtin_sqrt(x);
#endif
}

inline constexpr float kInfF = __builtin_inff();
inline constexpr float kNanF = __builtin_nanf("");
inline constexpr double kInfD = __builtin_inf();

}  // namespace cutaway::math::detail
