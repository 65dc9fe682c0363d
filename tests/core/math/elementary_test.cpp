#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <cutaway/core/math/elementary.h>
#include <cutaway/core/math/half.h>

#include <tests/core/math/function_table.h>

namespace cutaway::math_test {
namespace {

using std::abs;
const float kInf = INFINITY, kNan = NAN;

uint32_t bits(float x) { return math::detail::bits(x); }
float from_bits(uint64_t u) { return math::detail::from_bits(static_cast<uint32_t>(u)); }

const Unary& find(const Variant& v, const std::string& name) {
  for (const Unary& f : v.unary) {
    if (name == f.name) return f;
  }
  throw std::out_of_range(name);
}
const Binary& find_binary(const Variant& v, const std::string& name) {
  for (const Binary& f : v.binary) {
    if (name == f.name) return f;
  }
  throw std::out_of_range(name);
}

// f over x in a vector loop of at least 16 elements.
std::vector<float> apply(const Unary& f, std::vector<float> x) {
  const size_t n = x.size();
  x.resize(std::max<size_t>(n, 16), x.back());
  std::vector<float> y(x.size());
  f.loop(x.data(), y.data(), static_cast<int64_t>(x.size()));
  y.resize(n);
  return y;
}

// Distance in units in the last place of the f32 nearest to `want`.
double ulps(float got, double want) {
  const float near = static_cast<float>(want);
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : 1e9;
  if (got == near) return 0;
  const double top = std::isinf(got) ? std::copysign(0x1p128, got) : got;
  int e;
  std::frexp(std::isinf(near) ? 0x1.fffffep127f : near, &e);
  return abs(top - want) / std::ldexp(1.0, std::max(e, -125) - 24);
}

struct Accuracy {
  const char* name;
  double (*exact)(double);
  double bound;  // ulp
};
double sigmoid64(double x) { return 1 / (1 + std::exp(-x)); }
double silu64(double x) { return x < -1000 ? -0.0 : x * sigmoid64(x); }
double softplus64(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-abs(x))); }
double cdf64(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
double gelu64(double x) { return x < -1000 ? -0.0 : x * cdf64(x); }
double gelu_tanh64(double x) {
  return x < -1000 ? -0.0 : x * sigmoid64(1.59576912160573071176 * (x + 0.044715 * x * x * x));
}
double relu64(double x) { return x > 0 || std::isnan(x) ? x : 0; }
double sign64(double x) { return std::isnan(x) ? x : (x > 0) - (x < 0); }
double rsqrt64(double x) { return 1 / std::sqrt(x); }

const Accuracy kAccuracy[] = {
    {"exp", std::exp, 1.1},          {"expm1", std::expm1, 1.6},     {"log", std::log, 1.0},
    {"log1p", std::log1p, 1.0},      {"sigmoid", sigmoid64, 2.4},    {"tanh", std::tanh, 1.4},
    {"softplus", softplus64, 1.7},   {"silu", silu64, 3.0},          {"erf", std::erf, 1.3},
    {"erfc", std::erfc, 6.2},        {"normal_cdf", cdf64, 6.2},     {"gelu", gelu64, 6.2},
    {"gelu_tanh", gelu_tanh64, 3.3}, {"sin", std::sin, 1.7},         {"cos", std::cos, 1.7},
    {"tan", std::tan, 0.52},         {"asin", std::asin, 0.52},      {"acos", std::acos, 0.52},
    {"atan", std::atan, 0.52},       {"sinh", std::sinh, 0.52},      {"cosh", std::cosh, 0.52},
    {"asinh", std::asinh, 0.52},     {"acosh", std::acosh, 0.52},    {"atanh", std::atanh, 0.52},
    {"exp2", std::exp2, 0.52},       {"log2", std::log2, 0.52},      {"log10", std::log10, 0.52},
    {"sqrt", std::sqrt, 0.51},       {"rsqrt", rsqrt64, 1.6},        {"round", std::nearbyint, 0},
    {"floor", std::floor, 0},        {"ceil", std::ceil, 0},         {"trunc", std::trunc, 0},
    {"relu", relu64, 0},             {"sign", sign64, 0},            {"abs", std::fabs, 0},
};

// Every exponent, both signs, subnormals, infinities and NaN, in one vector loop.
TEST(Elementary, StaysWithinTheStatedErrorOverTheWholeRange) {
  std::vector<float> x;
  for (uint64_t u = 0; u <= 0xffffffffu; u += 262139) x.push_back(from_bits(u));
  for (float v : {0.0f, -0.0f, kInf, -kInf, kNan, 1e-45f, -1e-45f, 1.0f, -1.0f}) x.push_back(v);
  for (float v = -20; v < 20; v += 0.0077f) x.push_back(v);
  std::vector<float> y(x.size());
  for (const Variant& v : variants()) {
    for (const Accuracy& a : kAccuracy) {
      find(v, a.name).loop(x.data(), y.data(), static_cast<int64_t>(x.size()));
      double worst = 0;
      float at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double e = ulps(y[i], a.exact(x[i]));
        if (e > worst) worst = e, at = x[i];
      }
      EXPECT_LE(worst, a.bound) << v.name << ' ' << a.name << " at " << at;
    }
  }
}

TEST(Elementary, DerivativesOfSiluAndGelu) {
  struct Pair {
    const char* name;
    double (*exact)(double);
  };
  const Pair pairs[] = {
      {"silu_grad",
       [](double x) { return sigmoid64(x) * (1 + x * sigmoid64(-x)); }},
      {"gelu_grad",
       [](double x) { return cdf64(x) + x * 0.39894228040143267794 * std::exp(-0.5 * x * x); }},
      {"gelu_tanh_grad", [](double x) {
         const double k = 1.59576912160573071176, z = k * (x + 0.044715 * x * x * x);
         const double dz = k * (1 + 0.134145 * x * x);
         return sigmoid64(z) * (1 + x * sigmoid64(-z) * dz);
       }}};
  for (const Variant& v : variants()) {
    for (const Pair& p : pairs) {
      const Unary& f = find(v, p.name);
      for (float x = -30; x < 30; x += 0.00123f) {
        ASSERT_NEAR(f.one(x), p.exact(x), 2.6e-7) << v.name << ' ' << p.name << ' ' << x;
      }
      EXPECT_EQ(f.one(kInf), 1.0f) << p.name;
      EXPECT_EQ(f.one(-kInf), 0.0f) << p.name;
      EXPECT_EQ(f.one(0.0f), 0.5f) << p.name;
      EXPECT_TRUE(std::isnan(f.one(kNan))) << p.name;
    }
  }
  // The f64 forms against four-point differences of the functions.
  const double h = 1e-3;
  const auto slope = [h](auto f, double x) {
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
  };
  for (double x = -6; x < 6; x += 0.37) {
    EXPECT_NEAR(math::silu_grad(x), slope([](double t) { return math::silu(t); }, x), 1e-11);
    EXPECT_NEAR(math::gelu_grad(x), slope([](double t) { return math::gelu(t); }, x), 1e-11);
    EXPECT_NEAR(math::gelu_tanh_grad(x), slope([](double t) { return math::gelu_tanh(t); }, x),
                1e-11);
  }
}

// A vector loop, its tail and a single call give the same bits, for every length and position.
TEST(Elementary, LoopsTailsAndSingleCallsAgreeBitForBit) {
  for (const Variant& v : variants()) {
    for (const Unary& f : v.unary) {
      for (const int64_t n : {1, 7, 16, 17, 1000}) {
        std::vector<float> x(n), y(n);
        for (int64_t i = 0; i < n; ++i) {
          x[i] = i % 2 ? from_bits(2654435761u * uint64_t(i + n)) : float(i - n / 2) * 0.037f;
        }
        f.loop(x.data(), y.data(), n);
        for (int64_t i = 0; i < n; ++i) {
          const float one = f.one(x[i]);
          if (std::isnan(one) && std::isnan(y[i])) continue;
          ASSERT_EQ(bits(y[i]), bits(one)) << v.name << ' ' << f.name << ' ' << x[i];
        }
      }
    }
    for (const Binary& f : v.binary) {
      std::vector<float> a(33), b(33), y(33);
      for (int i = 0; i < 33; ++i) a[i] = (i - 9) * 0.3f, b[i] = float((i * 7) % 13 - 6);
      f.loop(a.data(), b.data(), y.data(), 33);
      for (int i = 0; i < 33; ++i) {
        const float one = f.one(a[i], b[i]);
        if (std::isnan(one) && std::isnan(y[i])) continue;
        ASSERT_EQ(bits(y[i]), bits(one)) << v.name << ' ' << f.name << ' ' << a[i] << ' ' << b[i];
      }
    }
  }
}

TEST(Elementary, OddFunctionsKeepNegativeZero) {
  for (const Variant& v : variants()) {
    for (const char* name : {"expm1", "log1p", "tanh", "erf", "sin", "tan", "asin", "atan", "sinh",
                             "asinh", "atanh", "sqrt", "round", "floor", "ceil", "trunc", "gelu",
                             "silu", "gelu_tanh", "sin_bounded"}) {
      EXPECT_EQ(bits(find(v, name).one(-0.0f)), 0x80000000u) << v.name << ' ' << name;
    }
  }
}

TEST(Elementary, FC_9254_ExpAtTheEndsOfTheRange) {
  for (const Variant& v : variants()) {
    const std::vector<float> y = apply(
        find(v, "exp"), {88.72f, 88.8f, -87.3f, -103.9f, -104, kNan, kInf, -kInf, 88.7228f});
    EXPECT_NEAR(y[0], 3.39318e38, 1e33);
    EXPECT_EQ(y[1], kInf);
    EXPECT_NEAR(y[2], 1.21924e-38, 1e-43);
    EXPECT_EQ(y[3], 1.4e-45f);
    EXPECT_EQ(y[4], 0.0f);
    EXPECT_TRUE(std::isnan(y[5]));
    EXPECT_EQ(y[6], kInf);
    EXPECT_EQ(y[7], 0.0f);
    EXPECT_LT(y[8], kInf);
  }
}

TEST(Elementary, FC_f879_SinAndCosOfLargeArguments) {
  for (const Variant& v : variants()) {
    const Unary &sin = find(v, "sin"), &cos = find(v, "cos");
    EXPECT_NEAR(sin.one(1e6f), -0.3499935, 1e-6);
    EXPECT_NEAR(sin.one(1e10f), -0.4875060, 1e-6);
    EXPECT_NEAR(sin.one(3.1415927f) / -8.7422777e-8, 1, 1e-5);
    for (float x : {kInf, -kInf, kNan}) {
      EXPECT_TRUE(std::isnan(sin.one(x)));
      EXPECT_TRUE(std::isnan(cos.one(x)));
    }
    // One row whose lanes hold very different magnitudes, in every rotation.
    const float lane[] = {1e-30f, 1e8f, 1, 0.5f, 3e38f};
    const double want_sin[] = {1e-30, 0.9316390, 0.8414710, 0.4794255, std::sin(double{3e38f})};
    const double want_cos[] = {1, -0.3633851, 0.5403023, 0.8775826, std::cos(double{3e38f})};
    for (int turn = 0; turn < 5; ++turn) {
      std::vector<float> x(17), s(17), c(17);
      for (int i = 0; i < 17; ++i) x[i] = lane[(i + turn) % 5];
      v.rows.sin_row(x.data(), s.data(), 17);
      v.rows.cos_row(x.data(), c.data(), 17);
      for (int i = 0; i < 17; ++i) {
        const int k = (i + turn) % 5;
        EXPECT_NEAR(s[i], want_sin[k], k == 0 ? 1e-36 : 1e-6) << v.name;
        EXPECT_NEAR(c[i], want_cos[k], 1e-6) << v.name;
      }
    }
  }
}

TEST(Rows, SinAndCosHaveTheBitsOfTheScalarForms) {
  for (const Variant& v : variants()) {
    for (const int64_t n : {0, 1, 7, 16, 17, 255, 256, 257, 3000}) {
      std::vector<float> x(n), s(n), c(n);
      for (int64_t i = 0; i < n; ++i) {
        const bool wild = i % 700 == 5;
        x[i] = wild ? from_bits(2654435761u * uint64_t(i)) : float(i * 40503 % 65536) - 3e4f;
      }
      v.rows.sin_row(x.data(), s.data(), n);
      c = x;  // in place
      v.rows.cos_row(c.data(), c.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        const float want_s = find(v, "sin").one(x[i]), want_c = find(v, "cos").one(x[i]);
        if (std::isnan(want_s)) continue;
        ASSERT_EQ(bits(s[i]), bits(want_s)) << x[i];
        ASSERT_EQ(bits(c[i]), bits(want_c)) << x[i];
      }
    }
  }
}

TEST(Rows, ConversionsHaveTheBitsOfTheScalarForms) {
  std::vector<float> x;
  for (uint64_t u = 0; u <= 0xffffffffu; u += 65521) x.push_back(from_bits(u));
  std::vector<uint16_t> all(65536), h(x.size()), b(x.size());
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  for (const Variant& v : variants()) {
    v.rows.to_f16(x.data(), h.data(), static_cast<int64_t>(x.size()));
    v.rows.to_bf16(x.data(), b.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(h[i], Float16(x[i]).bits) << v.name << ' ' << x[i];
      ASSERT_EQ(b[i], BFloat16(x[i]).bits) << v.name << ' ' << x[i];
    }
    for (const int64_t n : {1, 7, 16, 17, 65536}) {
      std::vector<float> f(n), g(n);
      const uint16_t* from = all.data() + 65536 - n;
      v.rows.from_f16(from, f.data(), n);
      v.rows.from_bf16(from, g.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(bits(f[i]), bits(static_cast<float>(Float16::from_bits(from[i]))));
        ASSERT_EQ(bits(g[i]), bits(static_cast<float>(BFloat16::from_bits(from[i]))));
      }
    }
  }
}

TEST(Elementary, FC_4629_SoftplusFarFromZero) {
  for (const Variant& v : variants()) {
    const std::vector<float> x{-100, -20, 0, 20, 100, 1000};
    const std::vector<float> y = apply(find(v, "softplus"), x), d = apply(find(v, "sigmoid"), x);
    const double want[] = {3.7835e-44, 2.0611537e-9, 0.6931472, 20, 100, 1000};
    const double slope[] = {3.78e-44, 2.061e-9, 0.5, 1, 1, 1};
    EXPECT_NEAR(y[0], want[0], 1.5e-45);
    EXPECT_NEAR(d[0], slope[0], 1.5e-45);
    for (int i = 1; i < 6; ++i) {
      EXPECT_NEAR(y[i] / want[i], 1, 1e-6);
      EXPECT_NEAR(d[i] / slope[i], 1, 1e-3);
    }
    const Unary& f = find(v, "softplus");
    const float beta = 5;
    EXPECT_EQ(f.one(20 * beta) / beta, 20.0f);
    EXPECT_EQ(f.one(50 * beta) / beta, 50.0f);
    EXPECT_EQ(f.one(100 * beta) / beta, 100.0f);
  }
}

TEST(Elementary, FC_b27c_TheTwoGelusDiffer) {
  EXPECT_NEAR(math::gelu(1.0), 0.841344746, 1e-9);
  EXPECT_NEAR(math::gelu(-1.0), -0.158655254, 1e-9);
  EXPECT_NEAR(math::gelu(3.0), 2.995950306, 1e-9);
  EXPECT_NEAR(math::gelu_tanh(1.0), 0.841191991, 1e-9);
  EXPECT_NEAR(math::gelu_tanh(-1.0), -0.158808009, 1e-9);
  EXPECT_NEAR(math::gelu_tanh(3.0), 2.996362608, 1e-9);
}

TEST(Elementary, FC_504b_RoundNegativeZeroAndSigns) {
  for (const Variant& v : variants()) {
    const std::vector<float> y = apply(find(v, "round"), {0.5f, 1.5f, 2.5f, -0.5f, -1.5f});
    const float want[] = {0, 2, 2, -0.0f, -2};
    for (int i = 0; i < 5; ++i) EXPECT_EQ(bits(y[i]), bits(want[i]));
    EXPECT_EQ(bits(find(v, "sqrt").one(-0.0f)), 0x80000000u);
    EXPECT_EQ(find(v, "sign").one(0.0f), 0.0f);
    const Binary& angle = find_binary(v, "atan2");
    EXPECT_EQ(angle.one(0.0f, -1), 3.1415927f);
    EXPECT_EQ(angle.one(-0.0f, -1), -3.1415927f);
    // ceil and trunc of small fractions have zero results with the sign of the argument.
    EXPECT_EQ(bits(find(v, "ceil").one(-0.9f)), 0x80000000u);
    EXPECT_EQ(bits(find(v, "trunc").one(-0.9f)), 0x80000000u);
    EXPECT_EQ(bits(find(v, "floor").one(0.9f)), 0u);
  }
  EXPECT_EQ(bits(static_cast<float>(math::round(-0.5))), 0x80000000u);
  EXPECT_EQ(math::round(2.5), 2.0);
  EXPECT_EQ(math::floor(-1e300), -1e300);
  EXPECT_EQ(math::ceil(4503599627370495.5), 4503599627370496.0);
}

TEST(Elementary, FC_32a7_NaNGoesThroughReluClampMaxAndMin) {
  for (const Variant& v : variants()) {
    for (const int n : {1, 17}) {
      const std::vector<float> nan(n, kNan), one(n, 1.0f);
      std::vector<float> y(n);
      const auto all_nan = [&y] {
        return std::all_of(y.begin(), y.end(), [](float f) { return std::isnan(f); });
      };
      find(v, "relu").loop(nan.data(), y.data(), n);
      EXPECT_TRUE(all_nan());
      for (const char* name : {"max", "min"}) {
        find_binary(v, name).loop(nan.data(), one.data(), y.data(), n);
        EXPECT_TRUE(all_nan());
        find_binary(v, name).loop(one.data(), nan.data(), y.data(), n);
        EXPECT_TRUE(all_nan());
      }
    }
  }
  EXPECT_TRUE(std::isnan(math::clamp(kNan, 0.0f, 1.0f)));
  EXPECT_TRUE(std::isnan(math::clamp(0.0f, kNan, 1.0f)));
  EXPECT_TRUE(std::isnan(math::clamp(0.0f, 0.0f, kNan)));
  EXPECT_TRUE(std::isnan(math::max(math::max(-kInf, kInf), kNan)));
  EXPECT_EQ(math::clamp(3.0, 0.0, 1.0), 1.0);
  EXPECT_EQ(math::relu(-2.0f), 0.0f);
}

TEST(Elementary, FC_054b_FC_b8b0_PowFollowsC99) {
  const float values[] = {0.0f,  -0.0f,  1,     -1,    2,     -2,         3,           -3,
                          0.5f,  -0.5f,  kInf,  -kInf, kNan,  1e30f,      -1e30f,      1e-40f,
                          2.5f,  -1e-40f, 1e-10f, -8,  1.0f / 3,
                          16777215.0f, -16777215.0f, 8388609};
  for (const Variant& v : variants()) {
    const Binary& pow = find_binary(v, "pow");
    EXPECT_EQ(pow.one(-2, 2), 4.0f);
    EXPECT_EQ(pow.one(-2, 3), -8.0f);
    EXPECT_TRUE(std::isnan(pow.one(-8, 1.0f / 3)));
    EXPECT_EQ(pow.one(1, kNan), 1.0f);
    EXPECT_EQ(pow.one(kNan, 0), 1.0f);
    EXPECT_EQ(pow.one(0, 0), 1.0f);
    EXPECT_EQ(pow.one(0, 2), 0.0f);
    EXPECT_EQ(pow.one(0, 0.5f), 0.0f);
    for (float x : values) {
      for (float y : values) {
        const double want = std::pow(double{x}, double{y});
        const float got = pow.one(x, y);
        EXPECT_LE(ulps(got, want), 0.52) << x << ' ' << y << " gave " << got;
        if (std::isnan(want)) continue;
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << ' ' << y;
      }
    }
  }
}

TEST(Elementary, Atan2InAllQuadrantsAndAtInfinity) {
  const float values[] = {0.0f, -0.0f, 1, -1, 0.3f, -7, kInf, -kInf, kNan, 1e-40f, 1e38f, -1e-30f};
  for (const Variant& v : variants()) {
    const Binary& f = find_binary(v, "atan2");
    for (float y : values) {
      for (float x : values) {
        const double want = std::atan2(double{y}, double{x});
        EXPECT_LE(ulps(f.one(y, x), want), 0.52) << y << ' ' << x;
        if (std::isnan(want)) continue;
        EXPECT_EQ(std::signbit(f.one(y, x)), std::signbit(want)) << y << ' ' << x;
      }
    }
  }
}

TEST(Elementary, FloatQuotientsRoundDown) {
  EXPECT_EQ(math::floor_div(7.0f, 2.0f), 3.0f);
  EXPECT_EQ(math::floor_div(-7.0f, 2.0f), -4.0f);
  EXPECT_EQ(math::floor_div(7.0f, -2.0f), -4.0f);
  EXPECT_EQ(math::remainder(-7.0f, 2.0f), 1.0f);
  EXPECT_EQ(math::remainder(7.0f, -2.0f), -1.0f);
  EXPECT_EQ(math::remainder(6.0, 3.0), 0.0);
  EXPECT_EQ(math::floor_div(1.0, 0.1), 9.0);  // 0.1 is a little more than a tenth
  EXPECT_EQ(math::floor_div(1.0f, 0.0f), kInf);
  EXPECT_EQ(math::floor_div(-1.0, 0.0), -kInf);
  EXPECT_TRUE(std::isnan(math::floor_div(0.0f, 0.0f)));
  EXPECT_TRUE(std::isnan(math::remainder(1.0f, 0.0f)));
  EXPECT_TRUE(std::signbit(math::floor_div(-0.0, 3.0)));
}

TEST(Elementary, SubnormalsAreNotFlushed) {
  for (const Variant& v : variants()) {
    const float tiny = 1e-40f;
    for (const char* name : {"expm1", "log1p", "tanh", "sin", "tan", "asin", "atan", "sinh",
                             "asinh", "atanh"}) {
      EXPECT_EQ(find(v, name).one(tiny), tiny) << v.name << ' ' << name;
    }
    EXPECT_NEAR(find(v, "log").one(tiny), std::log(double{tiny}), 1e-5);
    EXPECT_EQ(find(v, "gelu").one(2e-40f), 1e-40f);
    EXPECT_EQ(find(v, "silu").one(2e-40f), 1e-40f);
  }
}

}  // namespace
}  // namespace cutaway::math_test
