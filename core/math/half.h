#pragma once
#include <cutaway/core/math/config.h>

#include <limits>

// 16-bit floating types. They store; arithmetic is done in f32 by the caller. Conversion to them
// rounds to nearest, ties to even, exactly once from every source type, and never flushes
// subnormals. NaN stays NaN (quieted, top payload bits kept, as the F16C instructions do).

namespace cutaway {
namespace math::detail {

// bf16: upper half of an f32.
CUTAWAY_HD uint16_t bf16_bits(float x) {
  const uint32_t u = bits(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const uint32_t nan = (u >> 16) | 0x40u;
  return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}
CUTAWAY_HD float bf16_value(uint16_t b) { return from_bits(static_cast<uint32_t>(b) << 16); }

// f16: 5 exponent bits, 10 fraction bits.
CUTAWAY_HD uint16_t f16_bits(float x) {
  const uint32_t u = bits(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  const uint32_t normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
  // Below 2^-14 the sum with 0.5 rounds at 2^-24, the spacing of f16 subnormals.
  const uint32_t tiny = bits(from_bits(a) + 0.5f) - 0x3f000000u;
  const uint32_t nan = 0x7e00u | ((a >> 13) & 0x3ffu);
  uint32_t h = a < 0x38800000u ? tiny : normal;
  h = a >= 0x477ff000u ? 0x7c00u : h;  // from 65520 on
  h = a > 0x7f800000u ? nan : h;
  return static_cast<uint16_t>(sign | h);
}
CUTAWAY_HD float f16_value(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, a = h & 0x7fffu;
  const uint32_t normal = (a << 13) + 0x38000000u;
  const uint32_t nan = (a << 13) | 0x7fc00000u;
  const uint32_t tiny = bits(static_cast<float>(static_cast<int32_t>(a)) * 0x1p-24f);
  uint32_t u = a < 0x400u ? tiny : normal;
  u = a >= 0x7c00u ? 0x7f800000u : u;
  u = a > 0x7c00u ? nan : u;
  return from_bits(u | sign);
}

// Rounds to odd: toward zero, then the last bit set when anything was lost. A value rounded so can
// be rounded again to a type with at least two bits less as if it were the original.
CUTAWAY_HD float round_to_odd(double x) {
  const float near = static_cast<float>(x);
  const double back = near;
  const uint32_t up = abs_of(back) > abs_of(x) ? 1u : 0u;
  const uint32_t lost = back < x || back > x ? 1u : 0u;  // false for NaN
  return from_bits((bits(near) - up) | lost);
}
// The double nearest to v from f16's and bf16's point of view: exact below 2^53, rounded to odd
// above.
CUTAWAY_HD double round_to_odd(int64_t v) {
  const uint64_t a = v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  const uint64_t top = (a >> 11) | ((a & 0x7ffu) != 0 ? 1u : 0u);
  const double wide = static_cast<double>(static_cast<int64_t>(top)) * 2048.0;
  const double near = a < (1ull << 53) ? static_cast<double>(static_cast<int64_t>(a)) : wide;
  return v < 0 ? -near : near;
}

}  // namespace math::detail

// bfloat16: 8 exponent bits, 7 fraction bits.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  CUTAWAY_HD explicit BFloat16(float x) : bits(math::detail::bf16_bits(x)) {}
  CUTAWAY_HD explicit BFloat16(double x) : BFloat16(math::detail::round_to_odd(x)) {}
  CUTAWAY_HD explicit BFloat16(int64_t x) : BFloat16(math::detail::round_to_odd(x)) {}
  CUTAWAY_HD explicit BFloat16(int32_t x) : BFloat16(static_cast<double>(x)) {}
  CUTAWAY_HD explicit BFloat16(uint8_t x) : BFloat16(static_cast<float>(x)) {}
  CUTAWAY_HD explicit BFloat16(int8_t x) : BFloat16(static_cast<float>(x)) {}
  CUTAWAY_HD explicit BFloat16(bool x) : BFloat16(x ? 1.0f : 0.0f) {}
  CUTAWAY_HD static constexpr BFloat16 from_bits(uint16_t b) {
    BFloat16 x{};
    x.bits = b;
    return x;
  }
  CUTAWAY_HD explicit operator float() const { return math::detail::bf16_value(bits); }
  CUTAWAY_HD explicit operator double() const { return math::detail::bf16_value(bits); }
};

// IEEE binary16.
struct Float16 {
  uint16_t bits;

  Float16() = default;
  CUTAWAY_HD explicit Float16(float x) : bits(math::detail::f16_bits(x)) {}
  CUTAWAY_HD explicit Float16(double x) : Float16(math::detail::round_to_odd(x)) {}
  CUTAWAY_HD explicit Float16(int64_t x) : Float16(math::detail::round_to_odd(x)) {}
  CUTAWAY_HD explicit Float16(int32_t x) : Float16(static_cast<double>(x)) {}
  CUTAWAY_HD explicit Float16(uint8_t x) : Float16(static_cast<float>(x)) {}
  CUTAWAY_HD explicit Float16(int8_t x) : Float16(static_cast<float>(x)) {}
  CUTAWAY_HD explicit Float16(bool x) : Float16(x ? 1.0f : 0.0f) {}
  CUTAWAY_HD static constexpr Float16 from_bits(uint16_t b) {
    Float16 x{};
    x.bits = b;
    return x;
  }
  CUTAWAY_HD explicit operator float() const { return math::detail::f16_value(bits); }
  CUTAWAY_HD explicit operator double() const { return math::detail::f16_value(bits); }
};

namespace math {
// out = x, rounded. In a loop under `#pragma omp simd` write 16-bit results with this and not with
// `y[i] = BFloat16(v)`: g++ 12 gives up on the temporary object there.
CUTAWAY_HD void store(BFloat16& out, float x) { out.bits = detail::bf16_bits(x); }
CUTAWAY_HD void store(Float16& out, float x) { out.bits = detail::f16_bits(x); }
CUTAWAY_HD void store(float& out, float x) { out = x; }
CUTAWAY_HD void store(BFloat16& out, double x) {
  out.bits = detail::bf16_bits(detail::round_to_odd(x));
}
CUTAWAY_HD void store(Float16& out, double x) {
  out.bits = detail::f16_bits(detail::round_to_odd(x));
}
CUTAWAY_HD void store(float& out, double x) { out = static_cast<float>(x); }
CUTAWAY_HD void store(double& out, double x) { out = x; }
}  // namespace math

static_assert(sizeof(BFloat16) == 2 && sizeof(Float16) == 2);

}  // namespace cutaway

template <>
struct std::numeric_limits<cutaway::BFloat16> {
  static constexpr bool is_specialized = true, has_infinity = true, is_integer = false;
  static constexpr int digits = 8;
  static constexpr cutaway::BFloat16 max() { return cutaway::BFloat16::from_bits(0x7f7f); }
  static constexpr cutaway::BFloat16 lowest() { return cutaway::BFloat16::from_bits(0xff7f); }
  static constexpr cutaway::BFloat16 min() { return cutaway::BFloat16::from_bits(0x0080); }
  static constexpr cutaway::BFloat16 epsilon() { return cutaway::BFloat16::from_bits(0x3c00); }
  static constexpr cutaway::BFloat16 infinity() { return cutaway::BFloat16::from_bits(0x7f80); }
  static constexpr cutaway::BFloat16 quiet_NaN() { return cutaway::BFloat16::from_bits(0x7fc0); }
};

template <>
struct std::numeric_limits<cutaway::Float16> {
  static constexpr bool is_specialized = true, has_infinity = true, is_integer = false;
  static constexpr int digits = 11;
  static constexpr cutaway::Float16 max() { return cutaway::Float16::from_bits(0x7bff); }
  static constexpr cutaway::Float16 lowest() { return cutaway::Float16::from_bits(0xfbff); }
  static constexpr cutaway::Float16 min() { return cutaway::Float16::from_bits(0x0400); }
  static constexpr cutaway::Float16 epsilon() { return cutaway::Float16::from_bits(0x1400); }
  static constexpr cutaway::Float16 infinity() { return cutaway::Float16::from_bits(0x7c00); }
  static constexpr cutaway::Float16 quiet_NaN() { return cutaway::Float16::from_bits(0x7e00); }
};
