#include <cutaway/nn/optim/lbfgs.h>

#include <gtest/gtest.h>

#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::optim {
namespace {

const Opts kF64{.dtype = DType::f64};
Tensor start_point() { return tensor({-1.2, 1.0}, kF64).set_requires_grad(); }
Lbfgs::Closure rosenbrock(Tensor x) {
  return [x]() mutable {
    x.zero_grad();
    const Tensor a = 1.0 - x[0], b = x[1] - x[0] * x[0];
    const Tensor loss = a * a + b * b * 100.0;
    loss.backward();
    return loss;
  };
}

// Points after each of eight steps of three iterations, made with PyTorch 1.13 in f64.
TEST(Lbfgs, FollowsPyTorch) {
  const std::vector<std::vector<double>> wolfe{
      {-1.024531930346, 1.071619620267}, {-1.028879534832, 1.065502951685},
      {-1.020308480394, 1.035276986647}, {-0.942470488029, 0.851667315389},
      {-0.745620376466, 0.509284410307}, {-0.464393877923, 0.18448166414},
      {-0.261883523912, 0.044272552645}, {-0.000958303283, 0.015813036826}};
  const std::vector<std::vector<double>> plain{
      {-1.120836033897, 1.032637210938}, {-1.105565141753, 1.039818512641},
      {-1.092812818115, 1.04600148898},  {-1.082144034388, 1.051116024861},
      {-1.073187912744, 1.055172021794}, {-1.065629865351, 1.058230722772},
      {-1.05920604588, 1.060381131804},  {-1.053696098215, 1.061722371685}};
  for (const bool search : {true, false}) {
    const Tensor x = start_point();
    Lbfgs o({{"x", x}},
            {.lr = search ? 1 : 0.1, .max_iter = 3, .history_size = 4, .strong_wolfe = search});
    for (size_t i = 0; i < 8; ++i) {
      o.step(rosenbrock(x));
      const std::vector<double>& want = (search ? wolfe : plain)[i];
      for (size_t k = 0; k < 2; ++k) EXPECT_NEAR(x.to_vector()[k], want[k], 1e-9) << i;
    }
    EXPECT_EQ(o.evaluations(), search ? 25 : 24);
    EXPECT_EQ(o.iterations(), search ? 15 : 16);
  }
}
TEST(Lbfgs, EndsInTheValleyOfRosenbrock) {
  const Tensor x = start_point();
  Lbfgs o({{"x", x}}, {.max_iter = 100, .tolerance_change = 1e-16, .strong_wolfe = true});
  EXPECT_NEAR(o.step(rosenbrock(x)), 24.2, 1e-12);
  EXPECT_NEAR(x.to_vector()[0], 1, 1e-6);
  EXPECT_NEAR(x.to_vector()[1], 1, 1e-6);
}
// min ‖A w − b‖² over two parameters, one of them used through a transpose; exact answer known.
TEST(Lbfgs, SolvesLeastSquares) {
  const Tensor a = tensor({1, 2, 0, 1, 3, 1, 2, 0, 1, 1, 1, 4}, {4, 3}, kF64);
  const Tensor want = tensor({0.5, -2, 3}, {3, 1}, kF64);
  const Tensor b = matmul(a, want) + 7.0;
  Tensor w = zeros({1, 3}, kF64).set_requires_grad();
  Tensor bias = zeros({}, kF64).set_requires_grad();
  Lbfgs o(
      {{"w", w}, {"bias", bias}},
      {.max_iter = 200, .tolerance_grad = 1e-11, .tolerance_change = 1e-16, .strong_wolfe = true});
  o.step([&] {
    w.zero_grad();
    bias.zero_grad();
    const Tensor r = matmul(a, w.t()) + bias - b;
    const Tensor loss = (r * r).sum();
    loss.backward();
    return loss;
  });
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(w.to_vector()[i], want.to_vector()[i], 1e-7);
  EXPECT_NEAR(bias.item(), 7, 1e-7);
}

TEST(Lbfgs, GoesOnFromItsState) {
  const LbfgsOptions options{.max_iter = 4, .history_size = 3, .strong_wolfe = true};
  const Tensor x = start_point();
  Lbfgs first({{"x", x}}, options);
  for (int i = 0; i < 3; ++i) first.step(rosenbrock(x));
  const Tensor y = x.detach().clone().set_requires_grad();
  Lbfgs second({{"x", y}}, options);
  second.load_state_dict(first.state_dict());
  for (int i = 0; i < 3; ++i) {
    first.step(rosenbrock(x));
    second.step(rosenbrock(y));
    EXPECT_EQ(x.to_vector(), y.to_vector()) << i;
  }
  EXPECT_EQ(first.iterations(), second.iterations());
  nn::NamedTensors state = first.state_dict();
  state.pop_back();
  EXPECT_THROW(second.load_state_dict(state), ValueError);
  state = first.state_dict();
  state.push_back({"more", scalar_tensor(1)});
  EXPECT_THROW(second.load_state_dict(state), ValueError);
  state = first.state_dict();
  state[1].value = zeros({3}, kF64);
  EXPECT_THROW(second.load_state_dict(state), ShapeError);
}

TEST(Lbfgs, RejectsWhatCannotBe) {
  const nn::NamedTensors p{{"x", start_point()}};
  EXPECT_THROW(Lbfgs(p, {.lr = -1}), ValueError);
  EXPECT_THROW(Lbfgs(p, {.max_iter = 0}), ValueError);
  EXPECT_THROW(Lbfgs(p, {.max_eval = -1}), ValueError);
  EXPECT_THROW(Lbfgs(p, {.tolerance_grad = NAN}), ValueError);
  EXPECT_THROW(Lbfgs(p, {.history_size = 0}), ValueError);
  EXPECT_THROW(Lbfgs({{"x", p[0].value * 2.0}}, {}), AutogradError);
}
// A loss that is not finite ends the step and leaves the point.
TEST(Lbfgs, StopsAtNaN) {
  Tensor x = tensor({1.0}, kF64).set_requires_grad();
  Lbfgs o({{"x", x}}, {.strong_wolfe = true});
  o.step([&] {
    x.zero_grad();
    const Tensor loss = (x * NAN).sum();
    loss.backward();
    return loss;
  });
  EXPECT_EQ(x.item(), 1);
}

}  // namespace
}  // namespace cutaway::optim
