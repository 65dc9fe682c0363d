#include <cutaway/core/math/philox.h>
#include <cutaway/core/math/random_normal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace cutaway::math {
namespace {

TEST(Philox, FC_71c9_KnownAnswers) {
  struct Case {
    uint64_t block, stream, seed;
    uint32_t want[4];
  };
  const Case cases[] = {
      {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {~0ull, ~0ull, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822,
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Case& c : cases) {
    const Philox4 got = philox4(c.seed, c.stream, c.block);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(got.word[i], c.want[i]);
  }
}

TEST(Philox, WordsOfAnElementFollowTheRule) {
  const Philox4 high = philox4(5, 3, 100 + 2), low = philox4(5, 3 | kTwinStream, 100 + 2);
  EXPECT_EQ(random_u32(5, 3, 100, 11), high.word[3]);
  EXPECT_EQ(random_u64(5, 3, 100, 11), uint64_t{high.word[3]} << 32 | low.word[3]);
}

TEST(Philox, UniformEndsAndGrid) {
  EXPECT_EQ(uniform_f32(0), 0.0f);
  EXPECT_EQ(uniform_f32(~0u), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform_f32(0x80000000u), 0.5f);
  EXPECT_EQ(uniform_f64(0), 0.0);
  EXPECT_EQ(uniform_f64(~uint64_t{0}), 1.0 - 0x1p-53);
  EXPECT_EQ(uniform_f64(uint64_t{1} << 11), 0x1p-53);
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t w = random_u64(1, 2, 3, i);
    EXPECT_EQ(uniform_f64(w), std::ldexp(static_cast<double>(w >> 11), -53));
    // f64 and f32 draws of the same generator agree in their leading bits.
    const double gap = uniform_f64(w) - uniform_f32(random_u32(1, 2, 3, i));
    EXPECT_GE(gap, 0);
    EXPECT_LT(gap, 0x1p-24);
  }
}

TEST(Philox, UniformMoments) {
  const int n = 1 << 18;
  double sum = 0, squares = 0, lag = 0, last = 0;
  for (int i = 0; i < n; ++i) {
    const double u = uniform_f32(random_u32(7, 0, 0, i)) - 0.5;
    sum += u, squares += u * u, lag += u * last, last = u;
  }
  EXPECT_LT(std::abs(sum / n), 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_LT(std::abs(squares / n - 1.0 / 12), 5 * std::sqrt(1.0 / 180 / n));
  EXPECT_LT(std::abs(lag / n), 5.0 / 12 / std::sqrt(n));
}

TEST(Philox, FC_da2b_BernoulliWithProbabilityZeroAndOne) {
  for (uint64_t i = 0; i < 1000000; ++i) {
    const uint32_t w = random_u32(11, 0, 0, i);
    ASSERT_FALSE(bernoulli(w, 0.0f));
    ASSERT_TRUE(bernoulli(w, 1.0f));
  }
  EXPECT_FALSE(bernoulli(0, 0.0f));
  EXPECT_TRUE(bernoulli(~0u, 1.0f));
}

// The bits may not depend on compiler flags, vector width or device.
TEST(Normal, BitsAreFixed) {
  uint64_t h32 = 0, h64 = 0;
  for (uint64_t b = 0; b < (1u << 18); ++b) {
    const Normal4<float> z = normal4(philox4(42, 7, b));
    const Normal4<double> d = normal4(philox4x64(42, 7, b));
    for (int j = 0; j < 4; ++j) {
      h32 = h32 * 6364136223846793005u + detail::bits(z.value[j]);
      h64 = h64 * 6364136223846793005u + detail::bits(d.value[j]);
    }
  }
  EXPECT_EQ(h32, 0x23da892dbcf9f445u);
  EXPECT_EQ(h64, 0x41709e2fde85e197u);
}

TEST(Normal, AgreesWithTheFormula) {
  const double two_pi = 6.283185307179586477;
  for (uint64_t b = 0; b < 20000; ++b) {
    const Philox4 p = philox4(3, 0, b);
    const Philox4x64 q = philox4x64(3, 0, b);
    const Normal4<float> z = normal4(p);
    const Normal4<double> d = normal4(q);
    for (int j = 0; j < 4; j += 2) {
      const double r = std::sqrt(-2 * std::log((p.word[j] + 0.5) * 0x1p-32));
      const double angle = two_pi * p.word[j + 1] * 0x1p-32;
      EXPECT_NEAR(z.value[j], r * std::cos(angle), 1e-5);
      EXPECT_NEAR(z.value[j + 1], r * std::sin(angle), 1e-5);
      const double r64 = std::sqrt(-2 * std::log(uniform_f64(q.word[j]) + 0x1p-54));
      const double angle64 = two_pi * uniform_f64(q.word[j + 1]);
      EXPECT_NEAR(d.value[j], r64 * std::cos(angle64), 1e-13);
      EXPECT_NEAR(d.value[j + 1], r64 * std::sin(angle64), 1e-13);
    }
  }
}

TEST(Normal, MomentsAndTails) {
  const int n = 1 << 18;
  double sum[4] = {};
  int beyond = 0;
  for (int i = 0; i < n; ++i) {
    const double z = normal_f32(9, 1, 0, i);
    double power = z;
    for (double& s : sum) s += power, power *= z;
    beyond += std::abs(z) > 3;
  }
  const double root = std::sqrt(static_cast<double>(n));
  EXPECT_LT(std::abs(sum[0] / n), 5 / root);
  EXPECT_LT(std::abs(sum[1] / n - 1), 5 * std::sqrt(2.0) / root);
  EXPECT_LT(std::abs(sum[2] / n), 5 * std::sqrt(15.0) / root);
  EXPECT_LT(std::abs(sum[3] / n - 3), 5 * std::sqrt(96.0) / root);
  const double p = 0.0026997961;
  EXPECT_LT(std::abs(beyond - n * p), 5 * std::sqrt(n * p));
}

TEST(Normal, ExtremeWordsStayFinite) {
  const Normal4<float> low = normal4(Philox4{{0, 0, ~0u, ~0u}});
  EXPECT_NEAR(low.value[0], std::sqrt(2 * 33 * std::log(2.0)), 1e-5);
  EXPECT_EQ(low.value[1], 0.0f);
  EXPECT_EQ(low.value[2], 0.0f);
  const Normal4<double> wide = normal4(Philox4x64{{0, 0, ~uint64_t{0}, ~uint64_t{0}}});
  EXPECT_NEAR(wide.value[0], std::sqrt(2 * 54 * std::log(2.0)), 1e-13);
  EXPECT_LT(std::abs(wide.value[2]), 1e-7);
}

TEST(Normal, FC_c907_NumbersDependOnTheElementOnly) {
  std::vector<float> all(1000);
  for (uint64_t b = 0; b < 250; ++b) {
    const Normal4<float> z = normal4(philox4(1, 2, 77 + b));
    for (int j = 0; j < 4; ++j) all[4 * b + j] = z.value[j];
  }
  for (const uint64_t i : {0, 1, 6, 7, 15, 16, 17, 999}) {
    EXPECT_EQ(all[i], normal_f32(1, 2, 77, i));
    EXPECT_EQ(uniform_f32(philox4(1, 2, 77 + i / 4).word[i % 4]),
              uniform_f32(random_u32(1, 2, 77, i)));
  }
}

}  // namespace
}  // namespace cutaway::math
