#pragma once
#include <cutaway/core/cpu/vector.h>
#include <cutaway/core/math/error_function.h>
#include <cutaway/core/math/exponential.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// The functions of core/math that are written in lanes, for vectors, and loops over them.
namespace cutaway::math {

template <>
struct Lanes<cpu::CUTAWAY_VARIANT::Vector<float>> {
  using V = cpu::CUTAWAY_VARIANT::Vector<float>;
  using M = typename cpu::CUTAWAY_VARIANT::VectorOf<float>::Mask;
  typedef uint32_t U __attribute__((vector_size(cpu::CUTAWAY_VARIANT::kVectorBytes)));  // wraps

  CUTAWAY_HD static V all(float x) { return V{} + x; }
#if defined(__AVX512F__)
  // The forms without a mask make g++ 12 warn of its own header.
  static constexpr __mmask16 kAll = 0xffff;
  CUTAWAY_HD static V madd(V a, V b, V c) { return V(_mm512_fmadd_ps(a, b, c)); }
  CUTAWAY_HD static V at_most(V limit, V x) { return V(_mm512_maskz_min_ps(kAll, limit, x)); }
  CUTAWAY_HD static V at_least(V limit, V x) { return V(_mm512_maskz_max_ps(kAll, limit, x)); }
  CUTAWAY_HD static V scale(V x, V t) { return V(_mm512_maskz_scalef_ps(kAll, x, t - 0x1.8p23f)); }
#else
#if defined(__FMA__)
  CUTAWAY_HD static V madd(V a, V b, V c) { return V(_mm256_fmadd_ps(a, b, c)); }
#else
  CUTAWAY_HD static V madd(V a, V b, V c) { return a * b + c; }
#endif
  CUTAWAY_HD static V at_most(V limit, V x) { return limit < x ? limit : x; }
  CUTAWAY_HD static V at_least(V limit, V x) { return limit > x ? limit : x; }
  CUTAWAY_HD static V scale(V x, V t) {
    const U k = U(t) - 0x4b400000u, half = U(M(k) >> 1);
    return x * V((half + 127u) << 23) * V((k - half + 127u) << 23);
  }
#endif
  CUTAWAY_HD static V select(M take, V a, V b) { return take ? a : b; }
  CUTAWAY_HD static V abs(V x) { return V(M(x) & 0x7fffffff); }
  CUTAWAY_HD static V with_sign(V magnitude, V sign) {
    return V((M(magnitude) & 0x7fffffff) | (M(sign) & int32_t(0x80000000u)));
  }
  CUTAWAY_HD static V product_rest(V a, V b, V p) {
#if defined(__FMA__)
    return madd(a, b, -p);
#else
    V rest;
    for (int i = 0; i < cpu::CUTAWAY_VARIANT::kVectorLanes<float>; ++i) {
      rest[i] = Lanes<float>::product_rest(a[i], b[i], p[i]);
    }
    return rest;
#endif
  }
  CUTAWAY_HD static V split(V x, V& rest) {
    const U from = U(x) - 0x3f3504f3u;
    rest = V((from & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    return __builtin_convertvector(M(from) >> 23, V);
  }
};

}  // namespace cutaway::math

namespace cutaway::cpu::CUTAWAY_VARIANT {

// y[i] = f(x[i], …), i < n, f of vectors: the last ones are padded with zeros.
template <class F, class... X>
[[gnu::always_inline]] inline void map_vectors(F&& f, int64_t n, float* y, const X*... x) {
  constexpr int64_t kStep = kVectorLanes<float>;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) store_vector(y + i, f(load_vector(x + i)...));
  if (i == n) return;
  const auto rest = [&](const float* from) {
    alignas(64) float room[kStep] = {};
    for (int64_t j = 0; j < n - i; ++j) room[j] = from[i + j];
    return load_vector(room);
  };
  const Vector<float> last = f(rest(x)...);
  for (int64_t j = 0; j < n - i; ++j) y[i + j] = last[j];
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
