#include <cutaway/nn/optim/ema.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>

namespace cutaway::optim {
namespace {

const Opts kF64{.dtype = DType::f64};

TEST(Ema, FollowsItsFormula) {
  for (const bool warmup : {false, true}) {
    Tensor x = tensor({1.0, -2.0}, kF64).set_requires_grad();
    Ema ema({{"x", x}}, {.decay = 0.4, .warmup = warmup});
    double a = 1, b = -2;
    for (int t = 1; t <= 10; ++t) {
      NoGradGuard no_grad;
      x.copy_(tensor({0.5 * t, 3.0 - t}, kF64));
      ema.update();
      const double d = warmup ? std::min(0.4, (1.0 + t) / (10.0 + t)) : 0.4;
      a = d * a + (1 - d) * 0.5 * t;
      b = d * b + (1 - d) * (3.0 - t);
      EXPECT_NEAR(ema.averages()[0].value.to_vector()[0], a, 1e-14) << t;
      EXPECT_NEAR(ema.averages()[0].value.to_vector()[1], b, 1e-14) << t;
    }
    EXPECT_EQ(ema.updates(), 10);
  }
}
TEST(Ema, HalfWeightsAreAveragedInF32) {
  Tensor x = tensor({1.0}, {.dtype = DType::bf16});
  Ema ema({{"x", x}}, {.decay = 0.999});
  x.fill_(2);
  for (int t = 0; t < 10; ++t) ema.update();
  EXPECT_EQ(ema.averages()[0].value.dtype(), DType::f32);
  EXPECT_NEAR(ema.averages()[0].value.item(), 2 - std::pow(0.999, 10), 1e-6);
}
TEST(Ema, SwapsInAndOut) {
  Tensor x = tensor({1.0, 5.0}, kF64).set_requires_grad();
  Ema ema({{"x", x}}, {.decay = 0.5});
  {
    NoGradGuard no_grad;
    x.copy_(tensor({3.0, 5.0}, kF64));
  }
  ema.update();
  try {
    const Ema::Swap swap(ema);
    EXPECT_EQ(x.to_vector(), (std::vector<double>{2, 5}));
    throw std::runtime_error("leaves the scope");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(x.to_vector(), (std::vector<double>{3, 5}));
  EXPECT_EQ(ema.averages()[0].value.to_vector(), (std::vector<double>{2, 5}));
  EXPECT_TRUE(x.requires_grad());
}
TEST(Ema, StateBelongsToNames) {
  Tensor a = tensor({1.0}, kF64), b = tensor({2.0}, kF64);
  Ema first({{"a", a}, {"b", b}}, {.decay = 0.5, .warmup = true});
  a.fill_(7);
  first.update();
  Ema second({{"b", b}, {"a", a}}, {.decay = 0.5, .warmup = true});
  second.load_state_dict(first.state_dict());
  b.fill_(-4);
  first.update();
  second.update();
  EXPECT_EQ(first.averages()[0].value.item(), second.averages()[1].value.item());
  EXPECT_EQ(first.averages()[1].value.item(), second.averages()[0].value.item());
  EXPECT_EQ(second.updates(), 2);

  nn::NamedTensors state = first.state_dict();
  state.pop_back();
  EXPECT_THROW(second.load_state_dict(state), ValueError);
  state.push_back({"b.average", zeros({2}, kF64)});
  EXPECT_THROW(second.load_state_dict(state), ShapeError);
  state = first.state_dict();
  state.push_back({"c.average", zeros({1}, kF64)});
  EXPECT_THROW(second.load_state_dict(state), ValueError);
  EXPECT_THROW(Ema({{"a", a}}, {.decay = 1}), ValueError);
  EXPECT_THROW(Ema({{"a", a}, {"a", b}}), ValueError);
}

}  // namespace
}  // namespace cutaway::optim
