#pragma once
#include <cutaway/core/math/half.h>
#include <cutaway/core/math/trig.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

// Loops over rows that need more than a scalar functor to run at vector speed. For CPU kernels
// only; the functions take the instruction set of the file that includes them, so they have
// internal linkage. in and out may be the same row of one type, and must not overlap otherwise.

namespace cutaway::math {

// out[i] = in[i], i < n: every element is converted by the rules of half.h, whatever the CPU.
[[maybe_unused]] static void convert_row(const float* in, BFloat16* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i].bits = detail::bf16_bits(in[i]);
}
[[maybe_unused]] static void convert_row(const BFloat16* in, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = detail::bf16_value(in[i].bits);
}
[[maybe_unused]] static void convert_row(const float* in, Float16* out, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), h);
  }
#endif
  for (; i < n; ++i) out[i].bits = detail::f16_bits(in[i]);
}
[[maybe_unused]] static void convert_row(const Float16* in, float* out, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(h));
  }
#endif
  for (; i < n; ++i) out[i] = detail::f16_value(in[i].bits);
}

namespace detail {

// Blocks without an element beyond kTrigBound take the vector loop, others one element at a time.
// Both give the same bits for the same element, so neighbours never matter.
template <class Bounded, class Full>
inline __attribute__((always_inline)) void trig_row(const float* in, float* out, int64_t n,
                                                    Bounded bounded, Full full) {
  constexpr int64_t kBlock = 256;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = begin + kBlock < n ? begin + kBlock : n;
    uint32_t largest = 0;  // bit patterns of magnitudes are ordered as the magnitudes
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t a = bits(in[i]) & 0x7fffffffu;
      largest = a > largest ? a : largest;
    }
    if (largest <= bits(kTrigBound)) {
      for (int64_t i = begin; i < end; ++i) out[i] = bounded(in[i]);
    } else {
      for (int64_t i = begin; i < end; ++i) out[i] = full(in[i]);
    }
  }
}

}  // namespace detail

// out[i] = sin(in[i]) and cos(in[i]), bit for bit those of trig.h.
[[maybe_unused]] static void sin_row(const float* in, float* out, int64_t n) {
  detail::trig_row(
      in, out, n, [](float x) { return sin_bounded(x); }, [](float x) { return sin(x); });
}
[[maybe_unused]] static void cos_row(const float* in, float* out, int64_t n) {
  detail::trig_row(
      in, out, n, [](float x) { return cos_bounded(x); }, [](float x) { return cos(x); });
}

}  // namespace cutaway::math
