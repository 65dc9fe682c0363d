#include <cutaway/nn/optim/scaler.h>

#include <gtest/gtest.h>

#include <cmath>

#include <cutaway/autograd/autocast.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/nn/sched/plateau.h>

namespace cutaway::optim {
namespace {

Tensor weight(std::vector<double> values) {
  Tensor w = tensor(values);
  w.set_requires_grad();
  return w;
}

TEST(GradScaler, a_step_is_that_without_scaling) {
  Tensor a = weight({1, -2, 3}), b = weight({1, -2, 3});
  Sgd plain({{"w", a}}, {.lr = 0.1}), scaled({{"w", b}}, {.lr = 0.1});
  GradScaler scaler({.init_scale = 1024});
  for (int i = 0; i < 3; ++i) {
    sum(a * a * a).backward();
    plain.step_and_zero();
    scaler.scale(sum(b * b * b)).backward();
    EXPECT_TRUE(scaler.step(scaled));
    scaled.zero_grad();
  }
  EXPECT_EQ(a.to_vector(), b.to_vector());  // a power of two changes no bit
}

TEST(GradScaler, small_gradients_survive_f16) {
  const auto gradient = [](double scale) {
    Tensor w = full({8, 8}, 0.5);
    w.set_requires_grad();
    Sgd sgd({{"w", w}}, {.lr = 1});
    GradScaler scaler({.init_scale = scale});
    const Tensor x = full({4, 8}, 1e-3);
    Tensor loss;
    {
      const AutocastGuard autocast(DType::f16);
      loss = mean(matmul(x, w).to(DType::f32)) * 1e-5;
    }
    scaler.scale(loss).backward();
    scaler.unscale(sgd);
    return w.grad().to_vector()[0];
  };
  // Of each product: 1e-5/32, below what f16 holds (6e-8) after rounding; each weight sums four.
  const double want = 4 * 1e-3 * 1e-5 / 32;
  EXPECT_EQ(gradient(1.0 / 4096), 0);
  EXPECT_NEAR(gradient(65536), want, want * 0.01);
}

TEST(GradScaler, overflow_leaves_the_step_out_and_lowers_the_scale) {
  Tensor w = weight({2});
  AdamW adam({{"w", w}}, {.lr = 0.1});
  GradScaler scaler({.init_scale = 64, .growth_interval = 2});
  scaler.scale(sum(w * std::numeric_limits<double>::infinity())).backward();
  EXPECT_FALSE(scaler.step(adam));
  adam.zero_grad();
  EXPECT_EQ(w.item(), 2);
  EXPECT_EQ(scaler.current_scale(), 32);
  EXPECT_EQ(scaler.skipped(), 1);
  for (int i = 0; i < 2; ++i) {
    scaler.scale(sum(w * w)).backward();
    EXPECT_TRUE(scaler.step(adam));
    adam.zero_grad();
  }
  EXPECT_EQ(scaler.current_scale(), 64);
  EXPECT_LT(w.item(), 2);
}

TEST(GradScaler, clipping_between_unscale_and_step) {
  Tensor w = weight({3, 4});
  Sgd sgd({{"w", w}}, {.lr = 1});
  GradScaler scaler;
  scaler.scale(sum(w * w)).backward();
  EXPECT_TRUE(scaler.unscale(sgd));
  EXPECT_THROW(scaler.unscale(sgd), ValueError);
  EXPECT_NEAR(clip_grad_norm(sgd.parameters(), 1), 10, 1e-4);
  EXPECT_TRUE(scaler.step(sgd));
  EXPECT_NEAR(w.to_vector()[0], 3 - 0.6, 1e-5);
}

TEST(GradScaler, state_and_options) {
  GradScaler a({.init_scale = 8}), b;
  b.load_state_dict(a.state_dict());
  EXPECT_EQ(b.current_scale(), 8);
  nn::NamedTensors state = a.state_dict();
  state[0].value = full({}, -1.0);
  EXPECT_THROW(b.load_state_dict(state), ValueError);
  EXPECT_THROW(b.load_state_dict({}), ValueError);
  EXPECT_EQ(b.current_scale(), 8);
  EXPECT_THROW(GradScaler({.init_scale = 0}), ValueError);
  EXPECT_THROW(GradScaler({.growth = 0.5}), ValueError);
  EXPECT_THROW(GradScaler({.backoff = 0}), ValueError);
  EXPECT_THROW(GradScaler({.growth_interval = 0}), ValueError);
}

TEST(Plateau, falls_when_the_loss_does_not) {
  sched::Plateau p({.factor = 0.5, .patience = 1, .min_factor = 0.2});
  EXPECT_EQ(p.step(1), 1);
  EXPECT_EQ(p.step(0.5), 1);
  EXPECT_EQ(p.step(0.5), 1);    // let pass
  EXPECT_EQ(p.step(0.6), 0.5);  // the second in a row
  sched::Plateau q;
  q.load_state_dict(p.state_dict());
  EXPECT_EQ(q.factor(), 0.5);
  EXPECT_EQ(p.step(0.4), 0.5);
  EXPECT_EQ(p.step(NAN), 0.5);
  EXPECT_EQ(p.step(0.4), 0.25);
  p.step(1);
  EXPECT_EQ(p.step(1), 0.2);
  EXPECT_THROW(p.load_state_dict({}), ValueError);
  EXPECT_THROW(sched::Plateau({.factor = 1}), ValueError);
  EXPECT_THROW(sched::Plateau({.patience = -1}), ValueError);
}

}  // namespace
}  // namespace cutaway::optim
