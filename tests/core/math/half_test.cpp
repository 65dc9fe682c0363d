#include <cutaway/core/math/half.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

namespace cutaway {
namespace {

static_assert(std::is_trivially_copyable_v<BFloat16> && std::is_trivially_copyable_v<Float16>);
static_assert(!std::is_convertible_v<float, BFloat16> && !std::is_convertible_v<Float16, float>);

// A plain reference: the value of a bit pattern with `exponent` and `fraction` bits, built with
// ldexp; and the nearest pattern to x, found by bisection over the ordered finite patterns.
struct Format {
  int exponent, fraction;
  double value(uint32_t pattern) const {
    const int bias = (1 << (exponent - 1)) - 1;
    const int e = static_cast<int>(pattern >> fraction), m = pattern & ((1 << fraction) - 1);
    if (e == 0) return std::ldexp(m, 1 - bias - fraction);
    return std::ldexp(m + (1 << fraction), e - bias - fraction);
  }
  uint32_t infinity() const { return ((1u << exponent) - 1) << fraction; }
  uint32_t nearest(long double x) const {  // x ≥ 0, finite
    uint32_t low = 0, high = infinity();   // value(low) ≤ x; infinity() counts as the next value
    while (high - low > 1) {
      const uint32_t mid = (low + high) / 2;
      (static_cast<long double>(value(mid)) <= x ? low : high) = mid;
    }
    const long double half = (static_cast<long double>(value(low)) + value(high)) / 2;
    if (x == half) return low % 2 == 0 ? low : high;
    return x < half ? low : high;
  }
};
constexpr Format kBf16{8, 7}, kF16{5, 10};

TEST(Half, EveryPatternSurvivesTheWayToFloatAndBack) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const auto h = Float16::from_bits(static_cast<uint16_t>(b));
    const auto g = BFloat16::from_bits(static_cast<uint16_t>(b));
    const bool h_nan = (b & 0x7fff) > 0x7c00, g_nan = (b & 0x7fff) > 0x7f80;
    EXPECT_EQ(std::isnan(static_cast<float>(h)), h_nan);
    EXPECT_EQ(std::isnan(static_cast<float>(g)), g_nan);
    // A signalling NaN comes back quiet.
    EXPECT_EQ(Float16(static_cast<float>(h)).bits, h_nan ? b | 0x200 : b);
    EXPECT_EQ(BFloat16(static_cast<float>(g)).bits, g_nan ? b | 0x40 : b);
    EXPECT_EQ(Float16(static_cast<double>(h)).bits, h_nan ? b | 0x200 : b);
  }
}

TEST(Half, EveryPatternHasItsValue) {
  for (uint32_t b = 0; b < 0x7c00; ++b) {
    EXPECT_EQ(static_cast<double>(Float16::from_bits(static_cast<uint16_t>(b))), kF16.value(b));
  }
  for (uint32_t b = 0; b < 0x7f80; ++b) {
    EXPECT_EQ(static_cast<double>(BFloat16::from_bits(static_cast<uint16_t>(b))), kBf16.value(b));
  }
  EXPECT_TRUE(std::signbit(static_cast<float>(Float16::from_bits(0x8000))));
}

TEST(Half, FloatRoundsToTheNearestEven) {
  for (uint64_t u = 0; u < 0x7f800000u; u += 10007) {
    const float x = math::detail::from_bits(static_cast<uint32_t>(u));
    ASSERT_EQ(Float16(x).bits, kF16.nearest(x)) << x;
    ASSERT_EQ(BFloat16(x).bits, kBf16.nearest(x)) << x;
    ASSERT_EQ(Float16(-x).bits, kF16.nearest(x) | 0x8000u) << x;
    ASSERT_EQ(BFloat16(-x).bits, kBf16.nearest(x) | 0x8000u) << x;
  }
}

// All midpoints of neighbours, and the doubles next to them: where a second rounding would show.
TEST(Half, FC_20de_DoubleRoundsOnceAroundEveryMidpoint) {
  const auto check = [](const Format& format, auto convert) {
    for (uint32_t b = 0; b < format.infinity(); b += format.fraction == 7 ? 3 : 1) {
      const double mid = (format.value(b) + format.value(b + 1)) / 2;
      for (const double x : {std::nextafter(mid, 0.0), mid, std::nextafter(mid, 1e300)}) {
        ASSERT_EQ(convert(x), format.nearest(x)) << x;
        ASSERT_EQ(convert(-x), format.nearest(x) | 0x8000u) << x;
      }
    }
  };
  check(kF16, [](double x) { return Float16(x).bits; });
  check(kBf16, [](double x) { return BFloat16(x).bits; });
  EXPECT_EQ(static_cast<double>(Float16(1 + 0x1p-11 + 0x1p-30)), 1.0009765625);
}

TEST(Half, FC_20de_IntegersRoundOnce) {
  EXPECT_EQ(static_cast<double>(BFloat16(int32_t{1077936129})), 1082130432.0);
  EXPECT_EQ(static_cast<double>(BFloat16(int64_t{1077936129})), 1082130432.0);
  for (int shift = 0; shift < 63; ++shift) {
    const int64_t top = int64_t{1} << shift;
    for (int64_t part : {top >> 8, top >> 9, top >> 11, top >> 12, (top >> 8) + (top >> 9)}) {
      for (int64_t step : {-1, 0, 1}) {
        const int64_t v = top + part + step;
        if (v < 0) continue;
        const long double x = static_cast<long double>(v);
        ASSERT_EQ(BFloat16(v).bits, kBf16.nearest(x)) << v;
        ASSERT_EQ(BFloat16(-v).bits, kBf16.nearest(x) | (v == 0 ? 0u : 0x8000u)) << v;
        ASSERT_EQ(Float16(v).bits, kF16.nearest(x)) << v;
        if (v > INT32_MAX) continue;
        ASSERT_EQ(BFloat16(static_cast<int32_t>(v)).bits, kBf16.nearest(x)) << v;
        ASSERT_EQ(Float16(static_cast<int32_t>(v)).bits, kF16.nearest(x)) << v;
      }
    }
  }
  EXPECT_EQ(static_cast<double>(BFloat16(INT64_MIN)), -0x1p63);
  EXPECT_EQ(static_cast<double>(BFloat16(INT32_MIN)), -0x1p31);
  EXPECT_EQ(static_cast<float>(BFloat16(uint8_t{255})), 255.0f);
  EXPECT_EQ(static_cast<float>(Float16(int8_t{-128})), -128.0f);
}

TEST(Half, FC_e8e5_OverflowTiesAndSubnormals) {
  const float in[] = {65504, 65519, 65520, 2049, 2051, 6e-8f, 2.98e-8f, 0x1p-15f};
  const float out[] = {65504, 65504, INFINITY, 2048, 2052, 5.9604645e-8f, 0, 3.0517578e-5f};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(static_cast<float>(Float16(in[i])), out[i]) << in[i];
    EXPECT_EQ(static_cast<float>(Float16(static_cast<double>(in[i]))), out[i]) << in[i];
  }
}

TEST(Half, SpecialValues) {
  EXPECT_EQ(Float16(INFINITY).bits, 0x7c00);
  EXPECT_EQ(BFloat16(-INFINITY).bits, 0xff80);
  EXPECT_EQ(Float16(1e300).bits, 0x7c00);
  EXPECT_EQ(BFloat16(-1e300).bits, 0xff80);
  EXPECT_EQ(BFloat16(3.4e38f).bits, 0x7f80);
  EXPECT_EQ(Float16(1e-300).bits, 0);
  EXPECT_EQ(BFloat16(-1e-300).bits, 0x8000);
  EXPECT_EQ(Float16(-0.0).bits, 0x8000);
  for (const double nan : {std::nan(""), -std::nan("")}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(Float16(nan))));
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(nan))));
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(static_cast<float>(nan)))));
  }
  // A NaN whose payload lies in the bits that are cut off must not become infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(math::detail::from_bits(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(math::detail::from_bits(0xff800001u)))));
}

TEST(Half, LoopsGiveTheSameBitsAsSingleValues) {
  for (const int n : {1, 7, 16, 17, 1000}) {
    std::vector<float> x(n);
    std::vector<BFloat16> b(n);
    std::vector<Float16> h(n);
    for (int i = 0; i < n; ++i) x[i] = math::detail::from_bits(2654435761u * (i + 1));
    for (int i = 0; i < n; ++i) math::store(b[i], x[i]);
    for (int i = 0; i < n; ++i) math::store(h[i], x[i]);
    for (int i = 0; i < n; ++i) {
      volatile float one = x[i];
      EXPECT_EQ(b[i].bits, BFloat16(one).bits);
      EXPECT_EQ(h[i].bits, Float16(one).bits);
    }
  }
}

}  // namespace
}  // namespace cutaway
