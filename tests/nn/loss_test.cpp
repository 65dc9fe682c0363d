#include <cutaway/autograd/ops/loss.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const Opts kF64{.dtype = DType::f64};

Tensor f64(std::initializer_list<double> v) { return tensor(v, kF64); }
Tensor leaf(Tensor t) { return t.set_requires_grad(); }
Tensor classes(std::initializer_list<int64_t> v) {
  return index_tensor(std::span(v.begin(), v.size()));
}

void expect_near(const Tensor& got, std::initializer_list<double> want, double tolerance = 1e-6) {
  const std::vector<double> g = got.to_vector();
  ASSERT_EQ(g.size(), want.size());
  for (size_t i = 0; i < g.size(); ++i) {
    const double w = want.begin()[i];
    if (std::isnan(w)) {
      EXPECT_TRUE(std::isnan(g[i])) << i;
    } else if (std::isinf(w)) {
      EXPECT_EQ(g[i], w) << i;
    } else {
      EXPECT_NEAR(g[i], w, tolerance) << i;
    }
  }
}
// The gradient of the sum of `loss` in x.
Tensor slope(const Tensor& loss, const Tensor& x) { return grad(sum(loss), {x})[0]; }

TEST(LossCases, FC_4436_ShapesThatHappenToBroadcast) {
  try {
    mse_loss(zeros({3, 1}), tensor({0, 1, 2}));
    FAIL() << "no exception";
  } catch (const ShapeError& e) {
    const std::string text = e.what();
    EXPECT_NE(
        text.find("[mse_loss] prediction and target must have equal sizes; got [3,1] and [3]"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("squeeze"), std::string::npos);
  }
}

TEST(LossCases, FC_67b0_MeanOfNothing) {
  const Tensor x = leaf(zeros({0}));
  EXPECT_TRUE(std::isnan(mse_loss(x, zeros({0})).item()));
  EXPECT_EQ(mse_loss(x, zeros({0}), {Reduction::sum}).item(), 0);
  EXPECT_EQ(slope(mse_loss(x, zeros({0})), x).numel(), 0);
  // A margin loss over the violating triplets only, of which there are none.
  const Tensor margins = leaf(f64({-1, -2}));
  const Tensor violating = masked_select(margins, margins > 0);
  EXPECT_TRUE(std::isnan(mean(violating).item()));
  EXPECT_EQ(sum(violating).item(), 0);
  expect_near(slope(mean(violating), margins), {0, 0}, 0);
  expect_near(slope(sum(masked_select(margins, margins > 0)), margins), {0, 0}, 0);
}

TEST(LossCases, FC_73e7_ExtremeLogits) {
  const Tensor x = leaf(tensor({-120, -120, 120, 120})), t = tensor({0, 1, 0, 1});
  const Tensor y = binary_cross_entropy_with_logits(x, t, {.reduction = Reduction::none});
  expect_near(y, {0, 120, 120, 0});
  expect_near(slope(y, x), {0, -1, 1, 0});
  const Tensor zero = leaf(zeros({2}));
  const Tensor at_zero =
      binary_cross_entropy_with_logits(zero, tensor({0, 1}), {.reduction = Reduction::none});
  expect_near(at_zero, {0.6931472, 0.6931472});
  expect_near(slope(at_zero, zero), {0.5, -0.5});
}

TEST(LossCases, FC_78e2_InfiniteLogits) {
  const Tensor x = leaf(tensor({kInf, -kInf}));
  const BceLogitsOptions o{.reduction = Reduction::none};
  const Tensor agree = binary_cross_entropy_with_logits(x, tensor({1, 0}), o);
  expect_near(agree, {0, 0});
  expect_near(slope(agree, x), {0, 0});
  expect_near(binary_cross_entropy_with_logits(x, tensor({0, 1}), o), {kInf, kInf});
}

TEST(LossCases, FC_7c6c_SmoothL1WithBetaZero) {
  const Tensor x = leaf(f64({0, 2, -3}));
  const Tensor y = smooth_l1_loss(x, zeros_like(x), {0, Reduction::none});
  expect_near(y, {0, 2, 3});
  expect_near(slope(y, x), {0, 1, -1});
  const Tensor z = leaf(f64({0.5, 2, -0.25}));
  const Tensor smooth = smooth_l1_loss(z, zeros_like(z), {0.5, Reduction::none});
  expect_near(smooth, {0.25, 1.75, 0.0625});
  expect_near(slope(smooth, z), {1, 1, -0.5});
  const Tensor huber = huber_loss(z, zeros_like(z), {0.5, Reduction::none});
  expect_near(huber, {0.125, 0.875, 0.03125});
  expect_near(slope(huber, z), {0.5, 0.5, -0.25});
  EXPECT_THROW(huber_loss(z, z, {.delta = 0}), ValueError);
  EXPECT_THROW(smooth_l1_loss(z, z, {.beta = -1}), ValueError);
}

TEST(LossCases, FC_9264_IgnoredRows) {
  for (const double smoothing : {0.0, 0.3}) {
    const Tensor x = leaf(tensor({2, 0, 0, 0, 1, 0}, {2, 3}, kF64));
    const Tensor y = cross_entropy(x, classes({0, -100}), {.label_smoothing = smoothing});
    expect_near(y, {smoothing == 0 ? 0.2395448 : 0.6395448});
    expect_near(slope(y, x)[1], {0, 0, 0}, 0);
  }
}

TEST(LossCases, FC_9374_KlDivWithZeroTargets) {
  const Tensor x = leaf(f64({std::log(0.5), std::log(0.25), -kInf}));
  const Tensor t = f64({0, 0.25, 0});
  const Tensor y = kl_div(x, t, {.reduction = Reduction::none});
  expect_near(y, {0, 0, 0});
  expect_near(slope(y, x), {0, -0.25, 0});
  const Tensor log_form = kl_div(x, f64({-kInf, std::log(0.25), -kInf}),
                                 {.log_target = true, .reduction = Reduction::none});
  expect_near(log_form, {0, 0, 0});
  expect_near(slope(log_form, x), {0, -0.25, 0});
}

TEST(LossCases, FC_9486_InfiniteScoreOfAnotherClass) {
  const Tensor x = leaf(tensor({0, -kInf, 0}, {1, 3}, kF64));
  const Tensor y = cross_entropy(x, classes({0}));
  expect_near(y, {std::log(2)});
  expect_near(slope(y, x), {-0.5, 0, 0.5});
  const Tensor soft = cross_entropy(x, tensor({0.5, 0, 0.5}, {1, 3}, kF64));
  expect_near(soft, {std::log(2)});
  expect_near(slope(soft, x), {0, 0, 0});
  expect_near(cross_entropy(x, classes({0}), {.label_smoothing = 0.1}), {kInf});
}

TEST(LossCases, FC_bd3c_EveryTargetIgnored) {
  const Tensor x = leaf(ones({2, 3}));
  const Tensor t = classes({-100, -100});
  const Tensor mean = cross_entropy(x, t);
  EXPECT_TRUE(std::isnan(mean.item()));
  expect_near(slope(cross_entropy(x, t), x), {0, 0, 0, 0, 0, 0}, 0);
  expect_near(grad(mean, {x}, {.create_graph = true})[0], {0, 0, 0, 0, 0, 0}, 0);
  const Tensor sum = cross_entropy(x, t, {.reduction = Reduction::sum});
  EXPECT_EQ(sum.item(), 0);
  expect_near(slope(sum, x), {0, 0, 0, 0, 0, 0}, 0);
  expect_near(cross_entropy(x, t, {.reduction = Reduction::none}), {0, 0}, 0);
  const Tensor none = zeros({0}, {.dtype = DType::i64});
  EXPECT_TRUE(std::isnan(cross_entropy(zeros({0, 3}), none).item()));
  EXPECT_EQ(cross_entropy(zeros({0, 3}), none, {.reduction = Reduction::sum}).item(), 0);
}

TEST(LossCases, FC_d199_PosWeightKeepsStability) {
  const Tensor x = leaf(tensor({0, -120})), t = tensor({0, 1});
  const auto loss = [&](double w) {
    return binary_cross_entropy_with_logits(
        x, t, {.pos_weight = tensor({w}), .reduction = Reduction::none});
  };
  expect_near(loss(1), {0.6931472, 120});
  expect_near(loss(3), {0.6931472, 360});
  expect_near(slope(loss(3), x), {0.5, -3});
}

TEST(LossCases, FC_ece1_MeanDividesByTheWeights) {
  const Tensor x = tensor({2, 0, 0, 0, 1, 0}, {2, 3}, kF64), w = f64({1, 2, 5});
  const auto loss = [&](std::initializer_list<int64_t> t, double smoothing) {
    return cross_entropy(x, classes(t), {.weight = w, .label_smoothing = smoothing});
  };
  expect_near(loss({0, 1}, 0), {0.4474781});
  expect_near(loss({0, 1}, 0.3), {1.1908318});
  expect_near(loss({0, -100}, 0.3), {1.7593171});
}

TEST(LossCases, LargeScoresKeepTheirDigits) {
  const Tensor x = leaf(tensor({30000, 30001}, {1, 2}));
  const Tensor y = cross_entropy(x, classes({0}));
  expect_near(y, {1.3132617});
  expect_near(slope(y, x), {-0.7310586, 0.7310586});
}

TEST(Loss, BinaryCrossEntropyAtTheEnds) {
  const Tensor p = leaf(f64({0, 1, 0.25}));
  const Tensor y = binary_cross_entropy(p, f64({1, 1, 0.5}), {.reduction = Reduction::none});
  expect_near(y, {100, 0, -0.5 * std::log(0.25) - 0.5 * std::log(0.75)});
  const std::vector<double> g = slope(y, p).to_vector();
  for (const double v : g) EXPECT_TRUE(std::isfinite(v));
  EXPECT_NEAR(g[2], -0.5 / 0.25 + 0.5 / 0.75, 1e-12);
  EXPECT_THROW(binary_cross_entropy(f64({1.5}), f64({1})), ValueError);
}

TEST(Loss, GaussianAndPoisson) {
  const Tensor x = f64({1, 2}), t = f64({0, 4}), v = f64({2, 0.5});
  const double a = 0.5 * (std::log(2) + 0.5), b = 0.5 * (std::log(0.5) + 8);
  expect_near(gaussian_nll_loss(x, t, v), {(a + b) / 2}, 1e-12);
  expect_near(gaussian_nll_loss(x, t, v, {.full = true}), {(a + b + std::log(2 * M_PI)) / 2},
              1e-12);
  EXPECT_THROW(gaussian_nll_loss(x, t, f64({-1, 1})), ValueError);
  const PoissonNllOptions none{.reduction = Reduction::none};
  expect_near(poisson_nll_loss(x, t, none), {std::exp(1), std::exp(2) - 8}, 1e-12);
  const double stirling = 4 * std::log(4) - 4 + 0.5 * std::log(8 * M_PI);
  expect_near(poisson_nll_loss(x, t, {.full = true, .reduction = Reduction::none}),
              {std::exp(1), std::exp(2) - 8 + stirling}, 1e-12);
  expect_near(poisson_nll_loss(x, t, {.log_input = false, .reduction = Reduction::none}),
              {1, 2 - 4 * std::log(2 + 1e-8)}, 1e-12);
}

TEST(Loss, HingeAndSoftMargin) {
  const Tensor x = f64({0.5, -2, 3}), y = f64({1, -1, -1});
  expect_near(hinge_embedding_loss(x, y, {.margin = 1, .reduction = Reduction::none}), {0.5, 3, 0});
  expect_near(soft_margin_loss(x, y, {Reduction::none}),
              {std::log1p(std::exp(-0.5)), std::log1p(std::exp(-2)), 3 + std::log1p(std::exp(-3))},
              1e-12);
}

}  // namespace
}  // namespace cutaway
