#pragma once
#include <cutaway/core/math/philox.h>

// Standard normal numbers from Philox blocks by Box and Muller's method:
//   z0 = √(−2 ln u) cos 2πv,  z1 = √(−2 ln u) sin 2πv.
// The words 0, 1 of a block give the elements 0, 1; the words 2, 3 the elements 2, 3. Logarithm,
// sine and cosine are made of IEEE +, ×, ÷, √ and integer steps, each rounded on its own, so that
// CPU variants, emulator and GPUs agree bit for bit. |z| stays below 6.77 in f32, 8.68 in f64.

namespace cutaway::math {
namespace detail {

// a·b + c with two roundings on every device.
template <class T>
CUTAWAY_HD T madd2(T a, T b, T c) {
  return mul_rounded(a, b) + c;
}
template <class T, int N>
CUTAWAY_HD T poly2(T x, const T (&c)[N]) {
  T sum = c[N - 1];
  CUTAWAY_UNROLL
  for (int i = N - 2; i >= 0; --i) sum = madd2(sum, x, c[i]);
  return sum;
}

// ln u for normal u > 0.
CUTAWAY_HD float log_portable(float u) {
  constexpr float kC[] = {0.333333135f,  -0.250001699f, 0.20002225f,  -0.166592136f, 0.142094344f,
                          -0.125521824f, 0.121149823f,  -0.10886202f, 0.0525647365f};
  const uint32_t from = bits(u) - 0x3f3504f3u;  // √½
  const float e = static_cast<float>(static_cast<int32_t>(from) >> 23);
  const float f = from_bits((from & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = mul_rounded(f, f);
  float y = madd2(e, 0x1.0bfbe8p-15f, mul_rounded(mul_rounded(s, f), poly2(f, kC)));
  y = madd2(s, -0.5f, y);
  return madd2(e, 0x1.62ep-1f, f + y);
}
CUTAWAY_HD double log_portable(double u) {
  constexpr double kC[] = {0x1.5555555555592p-1, 0x1.999999997ff39p-2, 0x1.24924941df14cp-2,
                           0x1.c71c52161f26p-3,  0x1.74663c9a5ae26p-3, 0x1.39a1ef70bb9e5p-3,
                           0x1.2f038b427892dp-3};
  constexpr uint64_t kFrom = 0x3fe6a09e667f3bcdu;  // √½
  const uint64_t from = bits(u) - kFrom;
  const double m = from_bits((from & 0xfffffffffffffu) + kFrom);
  // The exponent, −1022 … 0 here, through the low bits of 2^52.
  const double e = from_bits(((from >> 52) ^ 0x800u) | 0x4330000000000000u) - (0x1p52 + 0x800);
  const double s = (m - 1.0) / (m + 1.0), q = mul_rounded(s, s);
  double y = madd2(e, 0x1.a39ef35793c76p-33, mul_rounded(mul_rounded(q, s), poly2(q, kC)));
  y = s + s + y;
  return madd2(e, 0x1.62e42feep-1, y);
}

// The unit vector at an angle of 2π (quarter + θ / (π/2)) / 4, |θ| ≤ π/4.
template <class T>
struct Direction {
  T cos, sin;
};
template <class T>
CUTAWAY_HD Direction<T> turned(uint32_t quarter, T c, T s) {
  const bool swap = (quarter & 1u) != 0;
  const T x = swap ? s : c, y = swap ? c : s;
  return {((quarter + 1u) & 2u) != 0 ? -x : x, (quarter & 2u) != 0 ? -y : y};
}
CUTAWAY_HD Direction<float> direction(uint32_t turn) {
  constexpr float kS[] = {-0x1.555556p-3f, 0x1.111174p-7f, -0x1.a05954p-13f, 0x1.7c2c4ep-19f};
  constexpr float kC[] = {0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e80cp-16f};
  const uint32_t shifted = turn + 0x20000000u;
  const int32_t rest = static_cast<int32_t>(shifted & 0x3fffffffu) - 0x20000000;
  const float t = mul_rounded(static_cast<float>(rest), 0x1.921fb6p-30f);  // 2π / 2^32
  const float q = mul_rounded(t, t);
  const float s = madd2(mul_rounded(q, t), poly2(q, kS), t);
  const float c = madd2(mul_rounded(q, q), poly2(q, kC), madd2(q, -0.5f, 1.0f));
  return turned(shifted >> 30, c, s);
}
CUTAWAY_HD Direction<double> direction(uint64_t turn) {
  constexpr double kS[] = {-0x1.5555555555548p-3, 0x1.111111110f73p-7,   -0x1.a01a019be9216p-13,
                           0x1.71de35552b357p-19, -0x1.ae5e4b83c1907p-26, 0x1.5d8b558713914p-33};
  constexpr double kC[] = {0x1.555555555554bp-5,  -0x1.6c16c16c15013p-10, 0x1.a01a019c8ed07p-16,
                           -0x1.27e4f7f1410dap-22, 0x1.1ee9db8e2ed7fp-29, -0x1.8fa65e90ff5c7p-37};
  const uint32_t shifted = static_cast<uint32_t>(turn >> 32) + 0x20000000u;
  const int32_t high = static_cast<int32_t>(shifted & 0x3fffffffu) - 0x20000000;
  const int32_t low = static_cast<int32_t>((turn >> 1) & 0x7fffffffu);
  const double rest = static_cast<double>(high) + mul_rounded(static_cast<double>(low), 0x1p-31);
  const double t = mul_rounded(rest, 0x1.921fb54442d18p-30);
  const double q = mul_rounded(t, t);
  const double s = madd2(mul_rounded(q, t), poly2(q, kS), t);
  const double c = madd2(mul_rounded(q, q), poly2(q, kC), madd2(q, -0.5, 1.0));
  return turned(shifted >> 30, c, s);
}

CUTAWAY_HD float radius(uint32_t word) {
  const float high = static_cast<float>(static_cast<int32_t>(word >> 8));
  const float low = static_cast<float>(static_cast<int32_t>(word & 0xffu)) + 0.5f;
  const float u = mul_rounded(high, 0x1p-24f) + mul_rounded(low, 0x1p-32f);  // (0, 1]
  return sqrt_of(mul_rounded(log_portable(u), -2.0f));
}
CUTAWAY_HD double radius(uint64_t word) {
  return sqrt_of(mul_rounded(log_portable(uniform_f64(word) + 0x1p-54), -2.0));
}

}  // namespace detail

// The four normal numbers of a block.
template <class T>
struct Normal4 {
  T value[4];
};
CUTAWAY_HD Normal4<float> normal4(const Philox4& p) {
  const float r0 = detail::radius(p.word[0]), r1 = detail::radius(p.word[2]);
  const auto d0 = detail::direction(p.word[1]), d1 = detail::direction(p.word[3]);
  return {{detail::mul_rounded(r0, d0.cos), detail::mul_rounded(r0, d0.sin),
           detail::mul_rounded(r1, d1.cos), detail::mul_rounded(r1, d1.sin)}};
}
CUTAWAY_HD Normal4<double> normal4(const Philox4x64& p) {
  const double r0 = detail::radius(p.word[0]), r1 = detail::radius(p.word[2]);
  const auto d0 = detail::direction(p.word[1]), d1 = detail::direction(p.word[3]);
  return {{detail::mul_rounded(r0, d0.cos), detail::mul_rounded(r0, d0.sin),
           detail::mul_rounded(r1, d1.cos), detail::mul_rounded(r1, d1.sin)}};
}

// Element i of a draw that starts at block `offset`.
CUTAWAY_HD float normal_f32(uint64_t seed, uint64_t stream, uint64_t offset, uint64_t i) {
  return normal4(philox4(seed, stream, offset + i / 4)).value[i % 4];
}
CUTAWAY_HD double normal_f64(uint64_t seed, uint64_t stream, uint64_t offset, uint64_t i) {
  return normal4(philox4x64(seed, stream, offset + i / 4)).value[i % 4];
}

}  // namespace cutaway::math
