#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Tensor of(DType t, std::initializer_list<double> v) { return tensor(v, {.dtype = t}); }
Tensor f64(std::initializer_list<double> v) { return of(DType::f64, v); }
Tensor f32(std::initializer_list<double> v) { return of(DType::f32, v); }
Tensor leaf(std::initializer_list<double> v) { return f64(v).set_requires_grad(); }

// NaN equals NaN, and −0 differs from 0.
void expect_values(const Tensor& t, const Values& want) {
  const Values got = t.to_vector();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    } else {
      EXPECT_EQ(got[i], want[i]) << "element " << i;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i])) << "sign of element " << i;
    }
  }
}
void expect_near(const Tensor& t, const Values& want, double relative) {
  const Values got = t.to_vector();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i])) {
      EXPECT_EQ(got[i], want[i]) << "element " << i;
    } else {
      EXPECT_NEAR(got[i], want[i], relative * std::fabs(want[i])) << "element " << i;
    }
  }
}
Values gradient(const Tensor& y, const Tensor& x) {
  return grad({y}, {x}, {}, {ones_like(y)})[0].to_vector();
}
// All elements of `v`, repeated until vector loops and their tails both run.
Tensor repeated(DType t, double v, int64_t n) { return full({n}, v, {.dtype = t}); }

constexpr DType kFloats[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

TEST(Elementwise, FC_32a7_NanGoesThrough) {
  for (const DType t : kFloats) {
    for (const int64_t n : {1, 17, 600}) {
      const Tensor nan = repeated(t, kNan, n), one = repeated(t, 1, n);
      const Tensor results[] = {
          relu(nan),         clamp(nan, 0, 1),  maximum(nan, one),    maximum(one, nan),
          minimum(nan, one), minimum(one, nan), clamp(one, nan, one), clamp(one, one, nan)};
      for (const Tensor& r : results) {
        for (double v : r.to_vector()) ASSERT_TRUE(std::isnan(v)) << name_of(t) << " " << n;
      }
      EXPECT_EQ(fmax(nan, one).to_vector(), Values(size_t(n), 1));
      EXPECT_EQ(fmin(one, nan).to_vector(), Values(size_t(n), 1));
    }
  }
}

TEST(Elementwise, FC_4629_SoftplusFarFromZero) {
  Tensor x = f32({-100, -20, 0, 20, 100, 1000}).set_requires_grad();
  const Tensor y = softplus(x);
  expect_near(y, {3.7835e-44, 2.0611537e-9, 0.6931472, 20, 100, 1000}, 2e-2);
  expect_near(y.slice(0, 1, 6), {2.0611537e-9, 0.6931472, 20, 100, 1000}, 1e-6);
  expect_near(tensor(std::span<const double>(gradient(y, x))).slice(0, 1, 6),
              {2.061e-9, 0.5, 1, 1, 1}, 1e-3);
  expect_near(softplus(f32({20, 50, 100}), 5), {20, 50, 100}, 1e-6);
  for (double v : softplus(of(DType::f16, {12, 200, -12})).to_vector()) {
    EXPECT_TRUE(std::isfinite(v));
  }
}

TEST(Elementwise, FC_504b_RoundingAndSigns) {
  expect_values(round(f32({0.5, 1.5, 2.5, -0.5, -1.5})), {0, 2, 2, -0.0, -2});
  expect_values(sqrt(f32({-0.0})), {-0.0});
  expect_values(div(1, f32({-0.0})), {-kInf});
  expect_near(atan2(f64({0, -0.0}), f64({-1, -1})), {M_PI, -M_PI}, 1e-15);
  expect_values(sign(f32({0, -3, 2, kNan})), {0, -1, 1, kNan});
}

TEST(Elementwise, FC_9254_ExpAtTheEnds) {
  const Tensor x = f32({88.72, 88.8, -87.3, -103.9, -104, kNan, kInf, -kInf});
  const Tensor twice = cat({x, x}, 0);
  const Values y = exp(twice).to_vector();
  for (size_t i = 0; i < 16; i += 8) {
    EXPECT_NEAR(y[i], 3.39318e38, 1e33);
    EXPECT_EQ(y[i + 1], kInf);
    EXPECT_NEAR(y[i + 2], 1.21924e-38, 1e-42);
    EXPECT_NEAR(y[i + 3], 1.4e-45, 1e-46);
    EXPECT_EQ(y[i + 4], 0);
    EXPECT_TRUE(std::isnan(y[i + 5]));
    EXPECT_EQ(y[i + 6], kInf);
    EXPECT_EQ(y[i + 7], 0);
  }
}

TEST(Elementwise, FC_b27c_TwoGelus) {
  const Tensor x = f64({1, -1, 3});
  expect_near(gelu(x), {0.841344746, -0.158655254, 2.995950306}, 1e-8);
  expect_near(gelu_tanh(x), {0.841191991, -0.158808009, 2.996362608}, 1e-8);
}

TEST(Elementwise, FC_f879_SineOfLargeArguments) {
  expect_near(sin(f32({1e6, 1e10})), {-0.3499935, -0.4875060}, 1e-6);
  expect_near(sin(f32({3.1415927})), {-8.7422777e-8}, 1e-5);
  const Tensor mixed = f32({1e-30, 1e8, 1, 0.5});
  expect_near(sin(mixed), {1e-30, 0.9316390, 0.8414710, 0.4794255}, 1e-6);
  expect_near(cos(mixed), {1, -0.3633851, 0.5403023, 0.8775826}, 1e-6);
}

TEST(Elementwise, FC_054b_PowWithNegativeBase) {
  const Tensor a = leaf({-2, -2}), b = leaf({2, 3});
  const Tensor y = pow(a, b);
  expect_values(y, {4, -8});
  EXPECT_EQ(gradient(pow(a, b), a), (Values{-4, 12}));
  for (double v : gradient(y, b)) EXPECT_TRUE(std::isnan(v));
  expect_values(pow(f64({-8, 1, kNan}), f64({1.0 / 3, kNan, 0})), {kNan, 1, 1});
  EXPECT_THROW(pow(of(DType::i64, {2}), of(DType::i64, {-1})), ValueError);
  EXPECT_THROW(pow(of(DType::i64, {2}), -1), ValueError);
}

TEST(Elementwise, FC_259e_GradientsExactlyAtZero) {
  const Tensor x = leaf({0});
  EXPECT_EQ(gradient(relu(x), x), Values{0});
  EXPECT_EQ(gradient(abs(x), x), Values{0});
  EXPECT_EQ(gradient(sign(x), x), Values{0});
  EXPECT_EQ(gradient(leaky_relu(x, 0.1), x), Values{0.1});
  EXPECT_EQ(gradient(elu(x, 1), x), Values{1});
  EXPECT_EQ(gradient(silu(x), x), Values{0.5});
  EXPECT_EQ(gradient(softplus(x), x), Values{0.5});
}

TEST(Elementwise, FC_b8b0_PowAtBaseZero) {
  const Tensor a = leaf({0, 0, 2, 0}), b = leaf({0, 2, 0, 0.5});
  for (const bool create_graph : {false, true}) {  // the fast rule and the composite one
    const Tensor y = pow(a, b);
    expect_values(y, {1, 0, 1, 0});
    const Tensors g = grad({y}, {a, b}, {.create_graph = create_graph}, {ones_like(y)});
    expect_values(g[0], {0, 0, 0, kInf});
    expect_near(g[1], {0, 0, 0.69314718055994531, 0}, 1e-15);
  }
}

TEST(Elementwise, FC_cfad_HigherDerivativesOfPowers) {
  for (const double at : {0.0, -2.0}) {
    const Tensor x = leaf({at, at});
    for (const int s : {0, 1, 2}) {
      const Tensor g = grad({pow(x, s)}, {x}, {.create_graph = true}, {ones_like(x)})[0];
      if (!g.requires_grad()) {
        EXPECT_LT(s, 2);
        continue;
      }
      const Tensor h =
          grad({g}, {x}, {.create_graph = true, .allow_unused = true}, {ones_like(x)})[0];
      if (!h.defined()) continue;
      EXPECT_EQ(h.to_vector(), Values(2, s == 2 ? 2 : 0));
    }
  }
}

TEST(Elementwise, FC_151a_MostNegativeInteger) {
  const double lowest = -2147483648.0;
  const Tensor x = of(DType::i32, {lowest}), minus = of(DType::i32, {-1});
  EXPECT_EQ(floor_divide(x, minus).to_vector(), Values{lowest});
  EXPECT_EQ(remainder(x, minus).to_vector(), Values{0});
  EXPECT_EQ(floor_divide(x, -1).to_vector(), Values{lowest});
  EXPECT_EQ(abs(x).to_vector(), Values{lowest});
  EXPECT_EQ(abs(of(DType::i8, {-128})).to_vector(), Values{-128});
  try {
    floor_divide(of(DType::i32, {1}), of(DType::i32, {0}));
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("division by zero"), std::string::npos);
  }
  EXPECT_EQ(
      floor_divide(of(DType::i64, {7, -7, 7, -7}), of(DType::i64, {2, 2, -2, -2})).to_vector(),
      (Values{3, -4, -4, 3}));
}

TEST(Elementwise, FC_15c9_IntegersWrap) {
  const Tensor top = of(DType::i32, {2147483647});
  EXPECT_EQ(add(top, 1).to_vector(), Values{-2147483648.0});
  EXPECT_EQ(mul(top, top).to_vector(), Values{1});
  EXPECT_EQ(neg(of(DType::i32, {-2147483648.0})).to_vector(), Values{-2147483648.0});
}

TEST(Elementwise, FC_1742_ComparingIntegersBeyondTheFloatGrid) {
  EXPECT_EQ(eq(of(DType::i64, {16777217}), f32({16777216})).to_vector(), Values{1});
  EXPECT_EQ(arange(16777216, 16777219, 1, {.dtype = DType::f32}).to_vector(),
            (Values{16777216, 16777216, 16777218}));
  EXPECT_EQ(lt(of(DType::u8, {1}), -1).to_vector(), Values{0});
  EXPECT_EQ(gt(of(DType::u8, {1}), -1).to_vector(), Values{1});
  EXPECT_EQ(ne(of(DType::u8, {255}), 511).to_vector(), Values{1});
  const Tensor big = index_tensor(std::vector<int64_t>{(int64_t(1) << 53) + 1});
  EXPECT_EQ(eq(big, f64({0x1p53})).to_vector(), Values{1});
  EXPECT_EQ(eq(big, 0x1p53).to_vector(), Values{0});  // a literal has its mathematical value
  const Tensor n = of(DType::i32, {2, 3});
  EXPECT_EQ(lt(n, 2.5).to_vector(), (Values{1, 0}));
  EXPECT_EQ(ge(n, 2.5).to_vector(), (Values{0, 1}));
  EXPECT_EQ(eq(n, 2.5).to_vector(), (Values{0, 0}));
  EXPECT_EQ(le(n, kInf).to_vector(), (Values{1, 1}));
  EXPECT_EQ(gt(n, kNan).to_vector(), (Values{0, 0}));
  EXPECT_EQ(eq(of(DType::bf16, {0.1}), 0.1).to_vector(), Values{1});
}

TEST(Elementwise, FC_20de_NoDoubleRounding) {
  const Tensor x = f64({1 + 0x1p-11 + 0x1p-30});
  EXPECT_EQ(x.to(DType::f16).to_vector(), Values{1.0009765625});
  EXPECT_EQ(of(DType::i32, {1077936129}).to(DType::bf16).to_vector(), Values{1082130432});
}

TEST(Elementwise, FC_6f7a_BytesAndBooleans) {
  const Tensor a = of(DType::u8, {200, 1, 0}), b = of(DType::u8, {100, 2, 1});
  EXPECT_EQ(add(a, b).to_vector(), (Values{44, 3, 1}));
  EXPECT_EQ(sub(a, b).to_vector(), (Values{100, 255, 255}));
  EXPECT_EQ(neg(of(DType::u8, {1})).to_vector(), Values{255});
  const Tensor t = of(DType::boolean, {1});
  const Tensor sum = add(t, t);
  EXPECT_EQ(sum.dtype(), DType::boolean);
  EXPECT_EQ(sum.to_vector(), Values{1});
  try {
    sub(t, t);
    FAIL();
  } catch (const DTypeError& e) {
    EXPECT_NE(std::string(e.what()).find("logical_xor"), std::string::npos);
  }
}

TEST(Elementwise, FC_76ca_SubnormalsInEveryThread) {
  const int before = num_threads();
  set_num_threads(2);
  const int64_t n = 4 * kGrain;
  const Tensor tiny = full({n}, 1e-40);
  const Values product = mul(tiny, 1.0).to_vector();
  const Values small = mul(full({n}, 1e-38), full({n}, 0.1)).to_vector();
  const Values zero = eq(tiny, 0).to_vector();
  for (size_t i = 0; i < size_t(n); ++i) {
    ASSERT_EQ(product[i], double(1e-40f));
    ASSERT_NEAR(small[i], 1e-39, 1e-44);
    ASSERT_EQ(zero[i], 0);
  }
  set_num_threads(before);
}

TEST(Elementwise, FC_ad73_FloatToInteger) {
  for (const DType t : {DType::f64, DType::f32}) {
    EXPECT_EQ(of(t, {2.9, -2.9}).to(DType::i64).to_vector(), (Values{2, -2}));
    EXPECT_EQ(of(t, {1e20, kNan}).to(DType::i64).data<int64_t>()[0], INT64_MAX);
    EXPECT_EQ(of(t, {1e20, kNan}).to(DType::i64).data<int64_t>()[1], 0);
    EXPECT_EQ(of(t, {300, -1}).to(DType::u8).to_vector(), (Values{255, 0}));
    EXPECT_EQ(of(t, {0.5, -0.0, kNan}).to(DType::boolean).to_vector(), (Values{1, 0, 1}));
    // The same in vector loops, their tails, and strided.
    const Tensor many = full({37, 2}, 1e20, {.dtype = t});
    for (double v : many.to(DType::i32).to_vector()) ASSERT_EQ(v, 2147483647);
    for (double v : many.select(1, 1).to(DType::i32).to_vector()) ASSERT_EQ(v, 2147483647);
  }
}

TEST(Elementwise, FC_e8e5_HalfPrecision) {
  const Tensor x = f64({65504, 65519, 65520, 2049, 2051, 6e-8, 2.98e-8, 0x1p-15});
  EXPECT_EQ(x.to(DType::f16).to_vector(),
            (Values{65504, 65504, kInf, 2048, 2052, 0x1p-24, 0, 0x1p-15}));
  EXPECT_EQ(x.to(DType::f32).to(DType::f16).to_vector()[2], kInf);
}

// ---- types

TEST(Promotion, Categories) {
  struct Case {
    DType a, b, sum;
  };
  const Case cases[] = {
      {DType::f32, DType::f64, DType::f64},  {DType::i64, DType::f16, DType::f16},
      {DType::bf16, DType::f16, DType::f32}, {DType::u8, DType::i8, DType::i32},
      {DType::i32, DType::i64, DType::i64},  {DType::boolean, DType::u8, DType::u8},
      {DType::f32, DType::f32, DType::f32}};
  for (const Case& c : cases) {
    EXPECT_EQ(add(of(c.a, {1, 0}), of(c.b, {1, 1})).dtype(), c.sum);
    EXPECT_EQ(add(of(c.b, {1, 0}), of(c.a, {1, 1})).dtype(), c.sum);
  }
}

TEST(Promotion, LiteralsAndZeroDimensionalTensorsNeverWiden) {
  const Tensor half = of(DType::bf16, {1.5, 2});
  EXPECT_EQ((half * 2.0).dtype(), DType::bf16);
  EXPECT_EQ((half + scalar_tensor(1.0, {.dtype = DType::f64})).dtype(), DType::bf16);
  const Tensor n = of(DType::i32, {1, 2});
  EXPECT_EQ((n + 1).dtype(), DType::i32);
  EXPECT_EQ((n + 0.5).dtype(), DType::f32);
  EXPECT_EQ((n + 0.5).to_vector(), (Values{1.5, 2.5}));
  EXPECT_EQ((n + scalar_tensor(1, {.dtype = DType::i64})).dtype(), DType::i32);
  EXPECT_EQ((of(DType::boolean, {1, 0}) + 1).dtype(), DType::i64);
  EXPECT_EQ((n / n).dtype(), DType::f32);
  EXPECT_EQ((1 / n).to_vector(), (Values{1, 0.5}));
  EXPECT_EQ(where(of(DType::boolean, {1, 0}), n, 0.5).dtype(), DType::f32);
}

TEST(Promotion, GradientsComeBackInTheTypeOfTheOperand) {
  Tensor a = f32({1, 2}).set_requires_grad();
  Tensor b = f64({3, 4}).set_requires_grad();
  const Tensors g = grad({a * b}, {a, b}, {}, {f64({1, 1})});
  EXPECT_EQ(g[0].dtype(), DType::f32);
  EXPECT_EQ(g[1].dtype(), DType::f64);
  EXPECT_EQ(g[0].to_vector(), (Values{3, 4}));
  EXPECT_EQ(g[1].to_vector(), (Values{1, 2}));
}

TEST(Operators, BothSides) {
  const Tensor x = f32({1, 2, 4});
  EXPECT_EQ((x + x).to_vector(), (Values{2, 4, 8}));
  EXPECT_EQ((1 - x).to_vector(), (Values{0, -1, -3}));
  EXPECT_EQ((x - 1).to_vector(), (Values{0, 1, 3}));
  EXPECT_EQ((2 * x).to_vector(), (Values{2, 4, 8}));
  EXPECT_EQ((8 / x).to_vector(), (Values{8, 4, 2}));
  EXPECT_EQ((-x).to_vector(), (Values{-1, -2, -4}));
  EXPECT_EQ((x == 2).to_vector(), (Values{0, 1, 0}));
  EXPECT_EQ((2 < x).to_vector(), (Values{0, 0, 1}));
  EXPECT_EQ((x != x).to_vector(), (Values{0, 0, 0}));
  EXPECT_EQ((x >= 2.0).to_vector(), (Values{0, 1, 1}));
}

TEST(Elementwise, BroadcastWalksOfEveryKind) {
  // Short rows, long rows, repeated rows, transposed operands, all against plain indexing.
  for (const int64_t columns : {3, 70, 600}) {
    const Tensor a = arange(0, 5 * columns, 1, {.dtype = DType::f32}).reshape({5, columns});
    const Tensor row = arange(0, columns, 1, {.dtype = DType::f32});
    const Tensor column = arange(0, 5, 1, {.dtype = DType::f32}).reshape({5, 1});
    const Tensor turned =
        arange(0, 5 * columns, 1, {.dtype = DType::f32}).reshape({columns, 5}).t();
    const Values sum = (a + row * column + turned).to_vector();
    for (int64_t r = 0; r < 5; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_EQ(sum[size_t(r * columns + c)], r * columns + c + r * c + c * 5 + r);
      }
    }
  }
}

// Results too large for a cache are streamed past it, line by line: the ends are not whole lines.
TEST(Elementwise, LargeResultsOfEveryAlignment) {
  const int64_t n = (int64_t(5) << 20) + 13;  // 20 MiB
  const Tensor all = arange(0, double(n + 3), 1, {.dtype = DType::f32});
  const int threads = num_threads();
  for (const int64_t begin : {0, 1, 3}) {
    const Tensor x = all.slice(0, begin, begin + n);
    for (const int t : {1, 2}) {
      set_num_threads(t);
      const Tensor y = neg(x), flag = gt(x, 1000.0);
      Tensor z = ones({n + 1}, {.dtype = DType::f32});
      z.slice(0, 1, n + 1).mul_(x);  // in place, and not at the beginning of a line
      const float* got = y.data<float>();
      const float* product = z.data<float>();
      int64_t wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        const auto want = float(begin + i);
        wrong += got[i] != -want || product[i + 1] != want;
      }
      EXPECT_EQ(wrong, 0) << begin;
      EXPECT_EQ(product[0], 1);
      EXPECT_EQ(sum(flag.to(DType::i64)).item(), double(begin + n - 1001));
    }
    set_num_threads(threads);
  }
}

TEST(Elementwise, ErrorsNameTheCallSite) {
  try {
    f32({1, 2}) + f32({1, 2, 3});
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_NE(std::string(e.what()).find("elementwise_test.cpp"), std::string::npos) << e.what();
  }
  EXPECT_THROW(add(Tensor(), f32({1})), ValueError);
  EXPECT_THROW(add(f32({1}), Tensor()), ValueError);
  EXPECT_THROW(relu(Tensor()), ValueError);
}

}  // namespace
}  // namespace cutaway
