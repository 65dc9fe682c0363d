// The checkers must find planted faults, otherwise they check nothing.
#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/function.h>
#include <cutaway/autograd/functional.h>
#include <cutaway/autograd/gradcheck.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

constexpr Opts kLeaf{.dtype = DType::f64, .device = {}, .requires_grad = true};

// A derivative that is right only for an upstream gradient of ones.
struct WrongForUpstream : Function {
  Tensors forward(FunctionContext& ctx, const Tensors& in) override {
    ctx.save(in[0]);
    return {in[0] * in[0]};
  }
  Tensors backward(FunctionContext& ctx, const Tensors&) override { return {ctx.saved(0) * 2.0}; }
};

// First order right, second order wrong: the factor is a constant.
struct WrongSecond : Function {
  Tensors forward(FunctionContext& ctx, const Tensors& in) override {
    ctx.save(in[0]);
    return {in[0] * in[0]};
  }
  Tensors backward(FunctionContext& ctx, const Tensors& up) override {
    return {up[0] * ctx.saved(0).detach() * 2.0};
  }
};

TEST(Gradcheck, accepts_what_is_right) {
  const auto fn = [](const Tensors& in) { return Tensors{tanh(in[0]) * exp(in[1])}; };
  const Tensors in{tensor({0.3, -0.2}, kLeaf), tensor({0.1, 0.7}, kLeaf)};
  const GradcheckReport first = gradcheck(fn, in), second = gradgradcheck(fn, in);
  EXPECT_TRUE(first.ok) << first.message;
  EXPECT_TRUE(second.ok) << second.message;
}

TEST(Gradcheck, finds_a_rule_that_ignores_the_upstream_gradient) {
  const auto fn = [](const Tensors& in) { return apply<WrongForUpstream>({in[0]}); };
  const GradcheckReport report = gradcheck(fn, {tensor({0.3, -0.2}, kLeaf)});
  EXPECT_FALSE(report.ok);
  EXPECT_NE(report.message.find("analytic"), std::string::npos);
}

TEST(Gradcheck, finds_a_wrong_second_derivative) {
  const auto fn = [](const Tensors& in) { return apply<WrongSecond>({in[0]}); };
  const Tensors in{tensor({0.3, -0.2}, kLeaf)};
  EXPECT_TRUE(gradcheck(fn, in).ok);
  EXPECT_FALSE(gradgradcheck(fn, in).ok);
}

TEST(Gradcheck, wants_f64) {
  const auto fn = [](const Tensors& in) { return Tensors{in[0] * 2.0}; };
  EXPECT_THROW(gradcheck(fn, {tensor({1}, {.requires_grad = true})}), DTypeError);
}

TEST(Functional, derivatives_of_a_cubic) {
  const auto f = [](const Tensor& x) { return (x * x * x).sum(); };
  const Tensor x = tensor({1, 2}, {.dtype = DType::f64}),
               v = tensor({1, -1}, {.dtype = DType::f64});
  EXPECT_EQ(hessian(f, x).to_vector(), (std::vector<double>{6, 0, 0, 12}));
  EXPECT_EQ(hvp(f, x, v).to_vector(), (std::vector<double>{6, -12}));
  const auto square = [](const Tensor& t) { return t * t; };
  EXPECT_EQ(jacobian(square, x).to_vector(), (std::vector<double>{2, 0, 0, 4}));
  EXPECT_EQ(jvp(square, x, v).to_vector(), (std::vector<double>{2, -4}));
  EXPECT_EQ(vjp(square, x, v).to_vector(), (std::vector<double>{2, -4}));
  EXPECT_THROW(hessian(square, x), ShapeError);
}

}  // namespace
}  // namespace cutaway
