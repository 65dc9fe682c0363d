#include <cutaway/core/math/integer.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace cutaway::math {
namespace {

TEST(Integer, FC_151a_MostNegativeNumber) {
  EXPECT_EQ(floor_div_int(INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(floor_mod_int(INT32_MIN, -1), 0);
  EXPECT_EQ(trunc_div_int(INT64_MIN, int64_t{-1}), INT64_MIN);
  EXPECT_EQ(trunc_mod_int(INT64_MIN, int64_t{-1}), 0);
  EXPECT_EQ(floor_div_int(int8_t{-128}, int8_t{-1}), -128);
  EXPECT_EQ(wrap_abs(INT32_MIN), INT32_MIN);
  EXPECT_EQ(wrap_abs(int8_t{-128}), -128);
  EXPECT_EQ(wrap_neg(INT64_MIN), INT64_MIN);
}

TEST(Integer, FC_15c9_SumsAndProductsWrap) {
  EXPECT_EQ(wrap_add(INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(wrap_sub(INT32_MIN, 1), INT32_MAX);
  EXPECT_EQ(wrap_mul(int64_t{1} << 62, int64_t{2}), INT64_MIN);
  EXPECT_EQ(wrap_mul(INT32_MAX, INT32_MAX), 1);
  EXPECT_EQ(wrap_mul(int8_t{100}, int8_t{3}), 44);
}

TEST(Integer, FC_6f7a_UnsignedBytes) {
  EXPECT_EQ(wrap_add(uint8_t{200}, uint8_t{100}), 44);
  EXPECT_EQ(wrap_sub(uint8_t{1}, uint8_t{2}), 255);
  EXPECT_EQ(wrap_neg(uint8_t{1}), 255);
  EXPECT_EQ(wrap_abs(uint8_t{255}), 255);
  EXPECT_EQ(floor_div_int(uint8_t{255}, uint8_t{255}), 1);
  EXPECT_EQ(floor_mod_int(uint8_t{7}, uint8_t{4}), 3);
}

// All pairs of i8 against wider arithmetic.
TEST(Integer, AllBytePairs) {
  for (int a = -128; a < 128; ++a) {
    for (int b = -128; b < 128; ++b) {
      const auto x = static_cast<int8_t>(a), y = static_cast<int8_t>(b);
      ASSERT_EQ(wrap_add(x, y), static_cast<int8_t>(a + b));
      ASSERT_EQ(wrap_sub(x, y), static_cast<int8_t>(a - b));
      ASSERT_EQ(wrap_mul(x, y), static_cast<int8_t>(a * b));
      if (b == 0) continue;
      const int q = static_cast<int>(std::floor(static_cast<double>(a) / b));
      ASSERT_EQ(floor_div_int(x, y), static_cast<int8_t>(q)) << a << ' ' << b;
      ASSERT_EQ(floor_mod_int(x, y), static_cast<int8_t>(a - q * b)) << a << ' ' << b;
      ASSERT_EQ(trunc_div_int(x, y), static_cast<int8_t>(a / b));
      ASSERT_EQ(trunc_mod_int(x, y), static_cast<int8_t>(a % b));
    }
  }
}

TEST(Integer, Powers) {
  EXPECT_EQ(wrap_pow(3, 4), 81);
  EXPECT_EQ(wrap_pow(0, 0), 1);
  EXPECT_EQ(wrap_pow(-2, 31), INT32_MIN);
  EXPECT_EQ(wrap_pow(int64_t{2}, int64_t{64}), 0);
  EXPECT_EQ(wrap_pow(uint8_t{3}, uint8_t{255}), 171);  // 3^255 mod 256
  EXPECT_EQ(integer_sign(int8_t{-5}), -1);
  EXPECT_EQ(integer_sign(uint8_t{5}), 1);
}

TEST(Saturate, FC_ad73_FloatToInteger) {
  EXPECT_EQ(saturate<int64_t>(2.9), 2);
  EXPECT_EQ(saturate<int64_t>(-2.9), -2);
  EXPECT_EQ(saturate<int64_t>(1e20), INT64_MAX);
  EXPECT_EQ(saturate<int64_t>(-1e20f), INT64_MIN);
  EXPECT_EQ(saturate<int64_t>(NAN), 0);
  EXPECT_EQ(saturate<uint8_t>(300.0f), 255);
  EXPECT_EQ(saturate<uint8_t>(-1.0f), 0);
  EXPECT_TRUE(saturate<bool>(0.5f));
  EXPECT_FALSE(saturate<bool>(-0.0f));
  EXPECT_TRUE(saturate<bool>(std::nan("")));
}

template <class T, class F>
void check_ends() {
  const auto low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const F above = std::ldexp(F(1), std::numeric_limits<T>::digits);
  EXPECT_EQ(saturate<T>(above), high);
  EXPECT_EQ(saturate<T>(std::nextafter(above, F(0))),
            static_cast<T>(std::nextafter(above, F(0))));
  EXPECT_EQ(saturate<T>(F(low)), low);
  EXPECT_EQ(saturate<T>(F(low) - F(0.5)), low);
  EXPECT_EQ(saturate<T>(std::nextafter(F(low), -F(INFINITY))), low);
  EXPECT_EQ(saturate<T>(F(INFINITY)), high);
  EXPECT_EQ(saturate<T>(-F(INFINITY)), low);
  EXPECT_EQ(saturate<T>(F(NAN)), 0);
  EXPECT_EQ(saturate<T>(-F(0)), 0);
  EXPECT_EQ(saturate<T>(F(0.99)), 0);
  EXPECT_EQ(saturate<T>(F(-0.99)), 0);
  EXPECT_EQ(saturate<T>(F(100.7)), 100);
}

TEST(Saturate, EndsOfEveryType) {
  check_ends<int8_t, float>();
  check_ends<int8_t, double>();
  check_ends<uint8_t, float>();
  check_ends<uint8_t, double>();
  check_ends<int32_t, float>();
  check_ends<int32_t, double>();
  check_ends<int64_t, float>();
  check_ends<int64_t, double>();
}

TEST(Saturate, LoopsAgreeWithSingleValues) {
  for (const int n : {1, 7, 16, 17, 1000}) {
    std::vector<float> x(n);
    std::vector<int32_t> y(n);
    std::vector<uint8_t> b(n);
    for (int i = 0; i < n; ++i) x[i] = detail::from_bits(2654435761u * uint32_t(i + 3));
    for (int i = 0; i < n; ++i) y[i] = saturate<int32_t>(x[i]);
    for (int i = 0; i < n; ++i) b[i] = saturate<uint8_t>(x[i]);
    for (int i = 0; i < n; ++i) {
      const double want = std::isnan(x[i]) ? 0 : std::trunc(double{x[i]});
      ASSERT_EQ(y[i], static_cast<int32_t>(std::fmin(std::fmax(want, INT32_MIN), INT32_MAX)));
      ASSERT_EQ(b[i], static_cast<uint8_t>(std::fmin(std::fmax(want, 0), 255)));
    }
  }
}

}  // namespace
}  // namespace cutaway::math
