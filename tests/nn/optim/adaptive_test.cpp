#include <cutaway/nn/optim/adaptive.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/nn/sched/schedule.h>

namespace cutaway::optim {
namespace {

using Values = std::vector<double>;

Tensor f64(const Values& v) { return tensor(std::span<const double>(v), {.dtype = DType::f64}); }
Values wave(int64_t n, double seed) {
  Values v;
  for (int64_t i = 0; i < n; ++i) v.push_back(std::sin(seed + 0.7 * double(i)));
  return v;
}

// One element's state and the formula of its step, in plain doubles.
struct Element {
  double x = 0, a = 0, b = 0, c = 0;
};
using Rule = std::function<void(Element&, double gradient, int t)>;

// Ten steps against the rule.
void follow(const std::function<std::unique_ptr<Optimizer>(NamedTensors)>& make, const Rule& rule,
            double start_a = 0) {
  Tensor x = f64(wave(23, 1)).set_requires_grad();
  std::vector<Element> want;
  for (const double v : wave(23, 1)) want.push_back({v, start_a});
  const auto optimizer = make({{"x", x}});
  for (int t = 1; t <= 10; ++t) {
    const Values g = wave(23, 2.3 * t);
    x.set_grad(f64(g));
    optimizer->step();
    const Values got = x.to_vector();
    for (size_t i = 0; i < want.size(); ++i) {
      rule(want[i], g[i], t);
      EXPECT_NEAR(got[i], want[i].x, 1e-12) << i << " in step " << t;
    }
  }
}

TEST(Rmsprop, FollowsItsFormula) {
  for (const bool centered : {false, true}) {
    for (const double mu : {0.0, 0.6}) {
      const RmspropOptions o{.lr = 0.02,
                             .alpha = 0.9,
                             .eps = 1e-3,
                             .weight_decay = 0.1,
                             .momentum = mu,
                             .centered = centered};
      follow([&](NamedTensors p) { return std::make_unique<Rmsprop>(std::move(p), o); },
             [&](Element& e, double g, int) {
               g += 0.1 * e.x;
               e.a = 0.9 * e.a + 0.1 * g * g;
               e.b = 0.9 * e.b + 0.1 * g;
               const double v = centered ? std::max(e.a - e.b * e.b, 0.0) : e.a;
               e.c = mu * e.c + g / (std::sqrt(v) + 1e-3);
               e.x -= 0.02 * e.c;
             });
    }
  }
}
TEST(Adagrad, FollowsItsFormula) {
  const AdagradOptions o{
      .lr = 0.3, .lr_decay = 0.2, .weight_decay = 0.1, .initial_accumulator_value = 0.5};
  follow([&](NamedTensors p) { return std::make_unique<Adagrad>(std::move(p), o); },
         [&](Element& e, double g, int t) {
           g += 0.1 * e.x;
           e.a += g * g;
           e.x -= 0.3 / (1 + 0.2 * (t - 1)) * g / (std::sqrt(e.a) + 1e-10);
         },
         0.5);
}
TEST(Lion, FollowsItsFormula) {
  for (const bool maximize : {false, true}) {
    const LionOptions o{.lr = 0.02, .weight_decay = 0.3, .maximize = maximize};
    follow([&](NamedTensors p) { return std::make_unique<Lion>(std::move(p), o); },
           [&](Element& e, double g, int) {
             if (maximize) g = -g;
             const double c = 0.9 * e.a + 0.1 * g;
             e.x = (1 - 0.02 * 0.3) * e.x - 0.02 * (c > 0 ? 1 : (c < 0 ? -1 : 0));
             e.a = 0.99 * e.a + 0.01 * g;
           });
  }
  // A gradient of 0 without a moment moves nothing but by the decay.
  Tensor x = f64({2}).set_requires_grad();
  Lion lion({{"x", x}}, {.lr = 0.5, .weight_decay = 0.5});
  x.set_grad(f64({0}));
  lion.step();
  EXPECT_EQ(x.item(), 1.5);
}

std::vector<std::unique_ptr<Optimizer>> one_of_each(const NamedTensors& p) {
  std::vector<std::unique_ptr<Optimizer>> list;
  list.push_back(
      std::make_unique<Rmsprop>(p, RmspropOptions{.lr = 0.01, .momentum = 0.5, .centered = true}));
  list.push_back(std::make_unique<Rmsprop>(p, RmspropOptions{.momentum = 0.5}));
  list.push_back(std::make_unique<Adagrad>(
      p, AdagradOptions{.lr_decay = 0.1, .initial_accumulator_value = 0.1}));
  list.push_back(std::make_unique<Lion>(p, LionOptions{.weight_decay = 0.1}));
  return list;
}
constexpr size_t kKinds = 4;

void steps(Optimizer& o, Tensor x, int from, int to) {
  for (int t = from; t < to; ++t) {
    x.set_grad(f64(wave(x.numel(), t)).to(x.dtype()));
    o.step();
  }
}

TEST(Adaptive, OneThreadIsTwo) {
  const int before = num_threads();
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (size_t k = 0; k < kKinds; ++k) {
      Values first;
      for (const int threads : {1, 2}) {
        set_num_threads(threads);
        Tensor x = f64(wave(100'003, 1)).to(type).set_requires_grad();
        steps(*one_of_each({{"x", x}})[k], x, 0, 3);
        if (threads == 1) first = x.to_vector();
        EXPECT_EQ(x.to_vector(), first) << k << " " << int(type);
      }
    }
  }
  set_num_threads(before);
}

TEST(Adaptive, StateGoesRound) {
  for (size_t k = 0; k < kKinds; ++k) {
    Tensor x = f64(wave(5, 1)).set_requires_grad();
    const auto whole = std::move(one_of_each({{"x", x}})[k]);
    steps(*whole, x, 0, 4);
    Tensor y = x.detach().clone().set_requires_grad();
    const auto second = std::move(one_of_each({{"x", y}})[k]);
    second->load_state_dict(whole->state_dict());
    steps(*whole, x, 4, 8);
    steps(*second, y, 4, 8);
    EXPECT_EQ(x.to_vector(), y.to_vector()) << k;
    // The moments of another optimiser do not fit.
    const auto other = std::move(one_of_each({{"x", y}})[(k + 2) % kKinds]);
    EXPECT_THROW(other->load_state_dict(whole->state_dict()), ValueError) << k;
  }
}

// A variance that rounding would take below 0 is 0.
TEST(Rmsprop, CentredVarianceIsNotNegative) {
  Tensor x = zeros({1000}).set_requires_grad();
  Rmsprop o({{"x", x}}, {.alpha = 0.5, .centered = true});
  for (int t = 0; t < 100; ++t) {
    x.set_grad(full({1000}, 0.1));
    o.step();
  }
  for (const double v : x.to_vector()) ASSERT_TRUE(std::isfinite(v));
}

TEST(Adaptive, RejectsWhatCannotBe) {
  const NamedTensors p{{"x", f64({1}).set_requires_grad()}};
  EXPECT_THROW(Rmsprop(p, {.alpha = -1}), ValueError);
  EXPECT_THROW(Rmsprop(p, {.eps = NAN}), ValueError);
  EXPECT_THROW(Rmsprop(p, {.momentum = -0.1}), ValueError);
  EXPECT_THROW(Rmsprop(p, {.weight_decay = -1}), ValueError);
  EXPECT_THROW(Adagrad(p, {.lr_decay = -1}), ValueError);
  EXPECT_THROW(Adagrad(p, {.initial_accumulator_value = -1}), ValueError);
  EXPECT_THROW(Adagrad(p, {.eps = -1}), ValueError);
  EXPECT_THROW(Lion(p, {.beta1 = 1}), ValueError);
  EXPECT_THROW(Lion(p, {.beta2 = -0.1}), ValueError);
  EXPECT_THROW(Lion(p, {.lr = -1}), ValueError);
}

NamedTensors layers() {
  return {{"fc.weight", f64({1, 2}).set_requires_grad()},
          {"fc.bias", f64({3}).set_requires_grad()},
          {"norm1.weight", f64({4}).set_requires_grad()}};
}
void give_gradients(const NamedTensors& p) {
  for (Named n : p) n.value.set_grad(f64(Values(size_t(n.value.numel()), 1)));
}

TEST(Groups, FactorAndDecayByName) {
  for (const bool capturable : {false, true}) {
    const NamedTensors p = layers();
    Sgd sgd(p, {.lr = 0.1, .weight_decay = 0.5});
    sgd.set_capturable(capturable);
    sgd.set_groups({{.names = {"*.bias"}, .weight_decay = 0},
                    {.names = {"norm?.*", "fc.bias"}, .lr_factor = 0.5}});
    give_gradients(p);
    sgd.step();
    EXPECT_EQ(p[0].value.to_vector(), (Values{1 - 0.1 * 1.5, 2 - 0.1 * 2}));
    EXPECT_DOUBLE_EQ(p[1].value.item(), 3 - 0.1);
    EXPECT_DOUBLE_EQ(p[2].value.item(), 4 - 0.05 * 3);
  }
}
TEST(Groups, SchedulesKeepTheRatios) {
  Sgd sgd(layers(), {.lr = 0.1});
  sgd.set_groups({{.names = {"norm*"}, .lr_factor = 0.25}});
  sched::Scheduler scheduler(sgd, sched::exponential(0.5));
  for (int t = 0; t < 3; ++t, scheduler.step()) {
    EXPECT_DOUBLE_EQ(sgd.lr_of("fc.bias"), 0.1 * std::pow(0.5, t));
    EXPECT_DOUBLE_EQ(sgd.lr_of("norm1.weight"), 0.025 * std::pow(0.5, t));
  }
}
TEST(Groups, AreSavedAndLoaded) {
  const NamedTensors p = layers(), q = layers();
  AdamW a(p, {.lr = 0.1, .weight_decay = 0.3}), b(q, {.lr = 0.1, .weight_decay = 0.3});
  a.set_groups({{.names = {"*.bias", "norm*"}, .lr_factor = 2, .weight_decay = 0}});
  b.set_groups({{.names = {"fc.weight"}, .lr_factor = 7}});
  give_gradients(p);
  give_gradients(q);
  b.load_state_dict(a.state_dict());
  EXPECT_DOUBLE_EQ(b.lr_of("fc.bias"), 0.2);
  EXPECT_DOUBLE_EQ(b.lr_of("fc.weight"), 0.1);
  a.step();
  b.step();
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_EQ(p[i].value.to_vector(), q[i].value.to_vector());
  }
  // A state without groups leaves them.
  AdamW plain(layers(), {.lr = 0.1});
  b.load_state_dict(plain.state_dict());
  EXPECT_DOUBLE_EQ(b.lr_of("fc.bias"), 0.2);
}
TEST(Groups, RejectWhatCannotBe) {
  Sgd sgd(layers(), {.lr = 0.1});
  sgd.set_groups({{.names = {"fc.*"}, .lr_factor = 3}});
  EXPECT_THROW(sgd.set_groups({{.names = {"fc.biases"}}}), ValueError);
  EXPECT_THROW(sgd.set_groups({{.names = {"*"}, .lr_factor = -1}}), ValueError);
  EXPECT_THROW(sgd.set_groups({{.names = {"*"}, .weight_decay = NAN}}), ValueError);
  EXPECT_THROW(sgd.lr_of("nothing"), ValueError);
  EXPECT_DOUBLE_EQ(sgd.lr_of("fc.bias"), 0.1 * 3);  // a failure changes nothing
  EXPECT_THROW(
      sgd.load_state_dict({{"fc.bias.lr_factor", scalar_tensor(-1, {.dtype = DType::f64})}}),
      ValueError);
}

}  // namespace
}  // namespace cutaway::optim
