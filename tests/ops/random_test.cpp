#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
constexpr DType kFloats[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const Values& v) {
  Moments m;
  for (double x : v) m.mean += x / double(v.size());
  for (double x : v) m.variance += (x - m.mean) * (x - m.mean) / double(v.size());
  return m;
}

TEST(Random, UniformAndNormalHaveTheirMoments) {
  for (const DType t : kFloats) {
    Generator g{.seed = 5};
    const Values u = rand({200000}, {.dtype = t}, &g).to_vector();
    EXPECT_NEAR(moments(u).mean, 0.5, 0.004) << name_of(t);
    EXPECT_NEAR(moments(u).variance, 1.0 / 12, 0.001) << name_of(t);
    EXPECT_GE(*std::min_element(u.begin(), u.end()), 0);
    EXPECT_LT(*std::max_element(u.begin(), u.end()), 1) << name_of(t);
    const Values z = randn({200000}, {.dtype = t}, &g).to_vector();
    EXPECT_NEAR(moments(z).mean, 0, 0.012) << name_of(t);
    EXPECT_NEAR(moments(z).variance, 1, 0.02) << name_of(t);
  }
}

TEST(Random, FC_2276_PermutationsAndRanges) {
  EXPECT_EQ(randperm(0).numel(), 0);
  EXPECT_EQ(randperm(1).to_vector(), Values{0});
  std::map<Values, int> orders;
  for (uint64_t seed = 0; seed < 60000; ++seed) {
    Generator g{.seed = seed};
    ++orders[randperm(3, {.dtype = DType::i64}, &g).to_vector()];
  }
  ASSERT_EQ(orders.size(), 6u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 10000, 4 * 91);
  EXPECT_THROW(randint(3, 3, {2}), ValueError);
  EXPECT_THROW(randperm(-1), ValueError);
  const Values wide = randint(0, int64_t(1) << 33, {1000}).to_vector();
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), 0x1p32);
  const Values small = randint(-2, 3, {1000}).to_vector();
  EXPECT_EQ(*std::min_element(small.begin(), small.end()), -2);
  EXPECT_EQ(*std::max_element(small.begin(), small.end()), 2);
}

TEST(Random, FC_af26_WeightZeroIsNeverDrawn) {
  const Tensor weights = tensor({0, 10, 3, 0});
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Generator g{.seed = seed};
    Values drawn = multinomial(weights, 2, {}, &g).to_vector();
    std::sort(drawn.begin(), drawn.end());
    ASSERT_EQ(drawn, (Values{1, 2}));
  }
  EXPECT_THROW(multinomial(weights, 4), ValueError);
  Generator g{.seed = 4};
  int ones = 0;
  const Values many = multinomial(weights, 1000000, {.replacement = true}, &g).to_vector();
  for (double v : many) {
    ASSERT_TRUE(v == 1 || v == 2);
    ones += v == 1;
  }
  EXPECT_NEAR(ones / 1e6, 10.0 / 13, 0.002);
  EXPECT_THROW(multinomial(tensor({0, 0}), 1), ValueError);
  EXPECT_THROW(multinomial(tensor({-1, 2}), 1), ValueError);
  EXPECT_THROW(multinomial(tensor({std::nan(""), 2}), 1), ValueError);
  const Tensor tiny = full({50}, 1e-35);
  EXPECT_EQ(multinomial(tiny, 50, {}, &g).numel(), 50);
  EXPECT_EQ(multinomial(stack({weights, weights}, 0), 2, {}, &g).sizes(), (Shape{2, 2}));
}

TEST(Random, FC_c907_SameNumbersForAnySplit) {
  const int before = num_threads();
  const int64_t n = 5 * kGrain + 3;
  std::vector<Values> masks, normals;
  for (const int threads : {1, 2, 7}) {
    set_num_threads(threads);
    Generator g{.seed = 8};
    masks.push_back(dropout(ones({n}), 0.5, &g).to_vector());
    normals.push_back(randn({n}, {}, &g).to_vector());
  }
  set_num_threads(before);
  EXPECT_TRUE(masks[0] == masks[1] && masks[0] == masks[2]);
  EXPECT_TRUE(normals[0] == normals[1] && normals[0] == normals[2]);

  Generator a{.seed = 8}, b{.seed = 8};
  Values first = randn({1000}, {}, &a).to_vector();
  first.resize(10);
  EXPECT_EQ(first, randn({10}, {}, &b).to_vector());

  manual_seed(3);
  rand({5});
  randn({7});
  randint(0, 9, {3});
  const Generator saved = default_generator();
  const Values next = rand({20}).to_vector();
  default_generator() = saved;
  EXPECT_EQ(rand({20}).to_vector(), next);
}

TEST(Random, FC_da2b_BernoulliAtTheEnds) {
  for (const DType t : {DType::f32, DType::bf16}) {
    Generator g{.seed = 1};
    for (const double p : {0.0, 1.0}) {
      const Values v = bernoulli(full({1000000}, p, {.dtype = t}), &g).to_vector();
      for (double x : v) ASSERT_EQ(x, p);
    }
  }
  EXPECT_THROW(bernoulli(full({3}, 1.5)), ValueError);
  EXPECT_THROW(bernoulli(full({3}, std::nan(""))), ValueError);
  EXPECT_THROW(dropout(ones({3}), std::nan("")), ValueError);
}

TEST(Random, DropoutKeepsTheExpectation) {
  Generator g{.seed = 6};
  const Values y = dropout(ones({200000}), 0.3, &g).to_vector();
  double zeros = 0;
  for (double v : y) {
    ASSERT_TRUE(v == 0 || std::fabs(v - 1 / 0.7) < 1e-6);
    zeros += v == 0;
  }
  EXPECT_NEAR(zeros / 200000, 0.3, 0.005);
}

TEST(Random, DropoutRepeatsItsChoiceInEveryOrder) {
  const Tensor x = full({1000}, 2, {.dtype = DType::f64}).set_requires_grad();
  const Tensor y = dropout(x, 0.5);
  const Tensor g = grad({y * y}, {x}, {.create_graph = true}, {ones_like(y)})[0];
  const Tensor h = grad({g}, {x}, {}, {ones_like(x)})[0];
  const Values value = y.to_vector(), first = g.to_vector(), second = h.to_vector();
  for (size_t i = 0; i < value.size(); ++i) {
    const double factor = value[i] / 2;  // 0 or 2
    ASSERT_EQ(first[i], 2 * value[i] * factor);
    ASSERT_EQ(second[i], 2 * factor * factor);
  }
}

TEST(Random, OverwritingKeepsTheRulesOfInPlaceOps) {
  Tensor w = zeros({50}).set_requires_grad();
  EXPECT_THROW(random_normal_(w), AutogradError);
  {
    const NoGradGuard guard;
    random_uniform_(w, -2, 3);
  }
  for (double v : w.to_vector()) EXPECT_TRUE(v >= -2 && v < 3);
  EXPECT_THROW(random_uniform_(w, 1, 0), ValueError);
  EXPECT_THROW(randn({2}, {.dtype = DType::i64}), DTypeError);
}

}  // namespace
}  // namespace cutaway
