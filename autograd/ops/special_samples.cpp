#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/special.h>

namespace cutaway {

namespace {

// Σ over k of (x + k)^−power without end: the sum to 10000, the rest by the integral.
double inverse_powers(double x, int power) {
  double sum = 0, y = x;
  for (int k = 0; k < 10000; ++k, y += 1) sum += std::pow(y, -power);
  // Euler and Maclaurin: ∫ + half of the first term + its slope / 12.
  return sum + std::pow(y, 1 - power) / (power - 1) + 0.5 * std::pow(y, -power) +
         power * std::pow(y, -power - 1) / 12;
}
}  // namespace

void erf_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return erf(x); };
  const UnaryReference f = [](double x) { return std::erf(x); };
  unary_samples(list, op, f);
}
void erfc_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return erfc(x); };
  const UnaryReference f = [](double x) { return std::erfc(x); };
  unary_samples(list, op, f);
}
void lgamma_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return lgamma(x); };
  const UnaryReference f = [](double x) { return std::lgamma(x); };
  unary_samples(list, op, f, {0.4, 6});
}
void polygamma_samples(SampleList& list) {
  // ψ′(x) = Σ (x + k)^−2, ψ″(x) = −2 Σ (x + k)^−3; ψ itself by its reflection and a known value.
  const Domain positive{0.4, 6};
  unary_samples(
      list, [](const Tensor& x) { return polygamma(1, x); },
      [](double x) { return inverse_powers(x, 2); }, positive);
  unary_samples(
      list, [](const Tensor& x) { return polygamma(2, x); },
      [](double x) { return -2 * inverse_powers(x, 3); }, positive);
  // ψ(1 − x) − ψ(x) = π cot πx, and ψ(x + 1) − ψ(x) = 1/x.
  const auto values = [](const Tensor& x) { return digamma(x); };
  Sample& known = list.add(
      "digamma at 1 and 1/2", {tensor({1, 0.5, -0.5, 2.5}, {.dtype = DType::f64})},
      [values](const Tensors& in) { return Tensors{values(in[0])}; },
      [](const Tensors&) {
        const double g = 0.57721566490153286061, h = -g - 2 * M_LN2;
        return Tensors{tensor({-g, h, h + 2, h + 2 + 2.0 / 3}, {.dtype = DType::f64})};
      });
  known.grad_grad = false;  // ψ″ is given for x > 0 only
  list.error(
      "negative order", [] { polygamma(-1, zeros({2})); },
      "[polygamma] the order must be in [0, 100]; got -1");
}
void pow_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return pow(a, b); };
  const BinaryReference f = [](double a, double b) { return std::pow(a, b); };
  binary_samples(list, op, f, {0.4, 2.5}, {-2, 2});
  integer_samples(list, op, f, 0, 5, 0);
  broadcast_error(list, op, "pow");
  list.error(
      "negative integer exponent",
      [] {
        const Opts whole{.dtype = DType::i64};
        pow(full({2}, 2, whole), full({2}, -1, whole));
      },
      "[pow] integers to a negative power are not integers");
}
void pow_scalar_samples(SampleList& list) {
  const Domain positive{0.4, 2.5}, any{-2, 2};
  unary_samples(
      list, [](const Tensor& x) { return pow(x, 2.5); }, [](double x) { return std::pow(x, 2.5); },
      positive);
  unary_samples(
      list, [](const Tensor& x) { return pow(x, -1); }, [](double x) { return 1 / x; }, positive);
  unary_samples(
      list, [](const Tensor& x) { return pow(x, 0.5); }, [](double x) { return std::sqrt(x); },
      positive);
  unary_samples(
      list, [](const Tensor& x) { return pow(x, 0); }, [](double) { return 1.0; }, any);
  unary_samples(
      list, [](const Tensor& x) { return pow(x, 1); }, [](double x) { return x; }, any);
  unary_samples(
      list, [](const Tensor& x) { return pow(x, 2); }, [](double x) { return x * x; }, any);
  unary_samples(
      list, [](const Tensor& x) { return pow(x, 5); }, [](double x) { return std::pow(x, 5); },
      any);
  integer_samples(
      list, [](const Tensor& x) { return pow(x, 3); }, [](double x) { return x * x * x; }, -9, 9);
  list.error(
      "negative exponent", [] { pow(full({2}, 2, {.dtype = DType::i64}), -1); },
      "[pow_scalar] integers to a negative power are not integers");
}
void rpow_scalar_samples(SampleList& list) {
  unary_samples(
      list, [](const Tensor& x) { return pow(2.5, x); }, [](double x) { return std::pow(2.5, x); });
  unary_samples(
      list, [](const Tensor& x) { return pow(0, x); }, [](double) { return 0.0; }, {0.4, 2.5});
}
void atan2_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return atan2(a, b); };
  const BinaryReference f = [](double a, double b) { return std::atan2(a, b); };
  binary_samples(list, op, f, {}, {0.3, 2});
  broadcast_error(list, op, "atan2");
}
void hypot_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return hypot(a, b); };
  const BinaryReference f = [](double a, double b) { return std::hypot(a, b); };
  binary_samples(list, op, f, {}, {0.3, 2});
  broadcast_error(list, op, "hypot");
}
void xlogy_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return xlogy(a, b); };
  const BinaryReference f = [](double a, double b) { return a * std::log(b); };
  binary_samples(list, op, f, {}, {0.3, 3});
  broadcast_error(list, op, "xlogy");
}
void logaddexp_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return logaddexp(a, b); };
  const BinaryReference f = [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); };
  binary_samples(list, op, f);
  broadcast_error(list, op, "logaddexp");
}
void copysign_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return copysign(a, b); };
  const BinaryReference f = [](double a, double b) { return std::copysign(a, b); };
  binary_samples(list, op, f, {-2, 2, {0}}, {-2, 2, {0}});
  broadcast_error(list, op, "copysign");
}
void logit_samples(SampleList& list) {
  unary_samples(
      list, [](const Tensor& x) { return logit(x); },
      [](double x) { return std::log(x) - std::log1p(-x); }, {0.1, 0.9});
  unary_samples(
      list, [](const Tensor& x) { return logit(x, 0.25); },
      [](double x) {
        const double p = std::fmin(std::fmax(x, 0.25), 0.75);
        return std::log(p / (1 - p));
      },
      {0.05, 0.95, {0.25, 0.75}});
  list.error(
      "eps too large", [] { logit(zeros({2}), 0.5); }, "[logit] eps must be below 0.5; got 0.5");
}
void nan_to_num_samples(SampleList& list) {
  unary_samples(
      list, [](const Tensor& x) { return nan_to_num(x); }, [](double x) { return x; });
  list.add(
          "replaced", {tensor({NAN, INFINITY, -INFINITY, 2}, {.dtype = DType::f64})},
          [](const Tensors& in) {
            return Tensors{nan_to_num(in[0], {.nan = 1, .high = 3, .low = -4})};
          },
          [](const Tensors&) {
            return Tensors{tensor({1, 3, -4, 2}, {.dtype = DType::f64})};
          })
      .grad = false;
}

}  // namespace cutaway
