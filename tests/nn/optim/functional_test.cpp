#include <cutaway/nn/optim/functional.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/gradcheck.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::optim {
namespace {

using Step =
    std::function<functional::Stepped(const Tensors&, const Tensors&, const functional::State&)>;

Tensor wave(int64_t n, double seed) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(std::sin(seed + 0.7 * double(i)));
  return tensor(std::span<const double>(v), {.dtype = DType::f64});
}

const std::vector<SgdOptions> kSgd{
    {.lr = 0.1},
    {.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.2},
    {.lr = 0.1, .momentum = 0.9, .nesterov = true, .maximize = true}};
const std::vector<AdamOptions> kAdam{
    {.lr = 0.1},
    {.lr = 0.1, .weight_decay = 0.2, .amsgrad = true},
    {.lr = 0.1, .beta1 = 0.5, .beta2 = 0.8, .eps = 1e-3, .maximize = true}};

std::vector<Step> all_steps() {
  std::vector<Step> list;
  for (const SgdOptions& o : kSgd) {
    list.push_back([o](const auto&... a) { return functional::sgd_step(a..., o); });
  }
  for (const bool decoupled : {false, true}) {
    for (const AdamOptions& o : kAdam) {
      list.push_back(
          [o, decoupled](const auto&... a) { return functional::adam_step(a..., o, decoupled); });
    }
  }
  return list;
}

// The loss after two steps, as a function of the first parameters and of what the inner loss needs.
TEST(Functional, DerivativesGoThroughTwoSteps) {
  for (const Step& step : all_steps()) {
    const GradcheckFn fn = [&](const Tensors& in) {
      Tensors p{in[0], in[1]};
      functional::State state;
      for (int t = 0; t < 2; ++t) {
        const Tensor r = p[0] * in[2] + p[1];
        const Tensor loss = (r * r * r).sum() + (p[0] * p[0]).sum();
        const Tensors g = grad(loss, p, {.create_graph = true});
        functional::Stepped next = step(p, g, state);
        p = next.parameters;
        state = next.state;
      }
      return p;
    };
    const Tensors in{wave(3, 1).set_requires_grad(), wave(3, 2).set_requires_grad(),
                     wave(3, 3).set_requires_grad()};
    const GradcheckReport report = gradcheck(fn, in, {.rtol = 1e-5, .atol = 1e-7});
    EXPECT_TRUE(report.ok) << report.message;
  }
}

// Five steps on which both must agree; the second parameter has no gradient in one of them.
void agree(Optimizer& optimizer, const NamedTensors& named, const Step& step) {
  Tensors p{named[0].value.detach().clone(), named[1].value.detach().clone()};
  functional::State state;
  for (int t = 0; t < 5; ++t) {
    Tensors g{wave(4, t), t == 2 ? Tensor() : wave(2, 3 + t)};
    for (size_t i = 0; i < 2; ++i) {
      Tensor x = named[i].value;
      x.zero_grad();
      if (g[i].defined()) x.set_grad(g[i]);
    }
    optimizer.step();
    functional::Stepped next = step(p, g, state);
    p = next.parameters;
    state = next.state;
    for (size_t i = 0; i < 2; ++i) {
      const auto got = p[i].to_vector(), want = named[i].value.to_vector();
      for (size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-13) << t;
    }
  }
}
NamedTensors two() {
  return {{"a", wave(4, 9).set_requires_grad()}, {"b", wave(2, 8).set_requires_grad()}};
}

TEST(Functional, AgreesWithTheOptimisers) {
  const std::vector<Step> steps = all_steps();
  size_t next = 0;
  for (const SgdOptions& o : kSgd) {
    const NamedTensors p = two();
    Sgd sgd(p, o);
    agree(sgd, p, steps[next++]);
  }
  for (const bool decoupled : {false, true}) {
    for (const AdamOptions& o : kAdam) {
      const NamedTensors p = two();
      Adam adam(p, o, decoupled);
      agree(adam, p, steps[next++]);
    }
  }
}

TEST(Functional, DerivativeAtNoMomentIsFinite) {
  const Tensor x = tensor({1.0}, {.dtype = DType::f64}).set_requires_grad();
  const Tensor g = x * 0.0;
  const auto next = functional::adam_step({x}, {g}, {}, {});
  EXPECT_EQ(grad(next.parameters[0].sum(), {x})[0].item(), 1);
}
TEST(Functional, RejectsWhatCannotBe) {
  const Tensor x = wave(2, 1);
  EXPECT_THROW(functional::sgd_step({x}, {}, {}, {}), ValueError);
  EXPECT_THROW(functional::adam_step({x}, {wave(3, 1)}, {}, {}), ShapeError);
  EXPECT_THROW(functional::adam_step({x}, {x}, {}, {.beta1 = 1}), ValueError);
  EXPECT_THROW(functional::sgd_step({x}, {x}, {}, {.lr = -1}), ValueError);
}

}  // namespace
}  // namespace cutaway::optim
