#include <cutaway/autograd/autocast.h>

#include <gtest/gtest.h>
#include <optional>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/checkpoint.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/record.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && all(eq(a, b)).item<bool>();
}

struct Layer {
  Tensor w = randn({6, 5}).set_requires_grad();
  Tensor x = randn({4, 5});
};

TEST(Autocast, ProductsComputeInTheLowTypeAndParametersKeepTheirs) {
  const Layer l;
  Tensor y;
  {
    AutocastGuard autocast;
    y = linear(l.x, l.w);
  }
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_TRUE(same_bits(y, linear(l.x.to(DType::bf16), l.w.detach().to(DType::bf16))));
  sum(y).backward();
  EXPECT_EQ(l.w.grad().dtype(), DType::f32);
  EXPECT_EQ(linear(l.x, l.w).dtype(), DType::f32);
}

TEST(Autocast, GuardsNestAndSwitchOff) {
  const Layer l;
  AutocastGuard outer(DType::f16);
  {
    AutocastGuard off(DType::f32);
    EXPECT_EQ(linear(l.x, l.w).dtype(), DType::f32);
    AutocastGuard inner;
    EXPECT_EQ(linear(l.x, l.w).dtype(), DType::bf16);
  }
  EXPECT_EQ(linear(l.x, l.w).dtype(), DType::f16);
  EXPECT_EQ(softmax(linear(l.x, l.w), -1).dtype(), DType::f32);
}

TEST(Autocast, OtherTypesAreRefused) {
  EXPECT_THROW(AutocastGuard(DType::f64), DTypeError);
  EXPECT_THROW(AutocastGuard(DType::i64), DTypeError);
  EXPECT_EQ(context().autocast, 0);
}

// Uses of one parameter share its converted values, not its gradients: these are added in f32.
TEST(Autocast, GradientsOfManyUsesAreAddedInTheTypeOfTheParameter) {
  const Layer l;
  const Tensor g = randn({4, 6}).to(DType::bf16);
  Tensor one;
  {
    AutocastGuard autocast;
    one = grad({linear(l.x, l.w)}, {l.w}, {}, {g})[0];
  }
  Tensor total;
  {
    AutocastGuard autocast;
    for (int i = 0; i < 300; ++i) {
      const Tensor y = linear(l.x, l.w);
      y.backward(g);
    }
  }
  const Tensor error = max(abs(l.w.grad() - one * 300.0) / (abs(one) + 1e-6));
  EXPECT_LT(error.item<double>(), 300 * 1e-5);  // in bf16 the sum would stop growing at 256
}

TEST(Autocast, ChangedParametersAreConvertedAgain) {
  const Layer l;
  AutocastGuard autocast;
  const Tensor before = linear(l.x, l.w).detach();
  {
    NoGradGuard no_grad;
    Tensor w = l.w;
    w.mul_(2.0);
  }
  EXPECT_TRUE(same_bits(linear(l.x, l.w).detach(), before * 2.0));
}

TEST(Autocast, ValuesConvertedInsideAGuardAreGoneWithIt) {
  const Layer l;
  Tensor y;
  const auto storage_count = [&] { return l.w.storage()->refs.load(); };
  const auto before = storage_count();
  {
    AutocastGuard autocast;
    y = linear(l.x, l.w).detach();
  }
  EXPECT_EQ(storage_count(), before);
}

TEST(Autocast, CheckpointedAndPlainRegionsHaveTheSameGradients) {
  const Layer l;
  const auto region = [&](const Tensors& in) {
    return Tensors{tanh(linear(tanh(linear(in[0], l.w)), transpose(l.w, 0, 1)))};
  };
  Tensors grads;
  for (const bool checkpointed : {false, true}) {
    Tensor w = l.w;
    w.zero_grad();
    Tensor loss;
    {
      AutocastGuard autocast;
      const Tensors out = checkpointed ? checkpoint(region, {l.x}) : region({l.x});
      loss = sum(out[0]);
    }
    loss.backward();
    grads.push_back(w.grad().clone());
  }
  EXPECT_TRUE(same_bits(grads[0], grads[1]));
}

// With the guard inside the step and around it.
TEST(Autocast, RecordedStepsConvertAgainInEachReplay) {
  for (const bool around : {false, true}) {
    const Layer l;
    const auto body = [&](const Tensors& in) {
      std::optional<AutocastGuard> inside;
      if (!around) inside.emplace();
      return sum(linear(in[0], l.w) * linear(in[0], l.w));
    };
    RecordedStep step = record(body);
    AutocastGuard outside(around ? DType::bf16 : DType::f32);
    NoGradGuard no_grad;
    for (int i = 0; i < 4; ++i) {
      Tensor w = l.w;
      w.add_(0.5);
      EXPECT_TRUE(same_bits(step({l.x})[0], body({l.x}))) << i << step.why_eager();
    }
    EXPECT_TRUE(step.replayed()) << step.why_eager();
  }
}

}  // namespace
}  // namespace cutaway
