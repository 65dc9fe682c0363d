#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/activation.h>

namespace cutaway {

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double limited(double x, double low, double high) { return std::fmin(std::fmax(x, low), high); }

}  // namespace

void relu_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return relu(x); };
  const UnaryReference f = [](double x) { return std::fmax(x, 0); };
  unary_samples(list, op, f, {-2, 2, {0}});
}
void leaky_relu_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return leaky_relu(x, 0.1); };
  const UnaryReference f = [](double x) { return x > 0 ? x : 0.1 * x; };
  unary_samples(list, op, f, {-2, 2, {0}});
}
void elu_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return elu(x, 0.7); };
  const UnaryReference f = [](double x) { return x > 0 ? x : 0.7 * std::expm1(x); };
  unary_samples(list, op, f, {-2, 2, {0}});
}
void selu_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return selu(x); };
  const UnaryReference f = [](double x) {
    return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
  };
  unary_samples(list, op, f, {-2, 2, {0}});
}
void celu_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return celu(x, 1.5); };
  const UnaryReference f = [](double x) { return x > 0 ? x : 1.5 * std::expm1(x / 1.5); };
  unary_samples(list, op, f, {-2, 2, {0}});
  list.error(
      "alpha 0", [] { celu(zeros({2}), 0); }, "[celu] alpha must not be 0; got 0");
}
void hardtanh_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return hardtanh(x, -0.5, 1); };
  const UnaryReference f = [](double x) { return limited(x, -0.5, 1); };
  unary_samples(list, op, f, {-2, 2, {-0.5, 1}});
  list.error(
      "empty interval", [] { hardtanh(zeros({2}), 1, -1); },
      "[hardtanh] low must not exceed high; got 1 and -1");
}
void relu6_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return relu6(x); };
  const UnaryReference f = [](double x) { return limited(x, 0, 6); };
  unary_samples(list, op, f, {-3, 9, {0, 6}});
}
void hardsigmoid_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return hardsigmoid(x); };
  const UnaryReference f = [](double x) { return limited(x / 6 + 0.5, 0, 1); };
  unary_samples(list, op, f, {-5, 5, {-3, 3}});
}
void hardswish_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return hardswish(x); };
  const UnaryReference f = [](double x) { return x * limited(x / 6 + 0.5, 0, 1); };
  unary_samples(list, op, f, {-5, 5, {-3, 3}});
}
void silu_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return silu(x); };
  const UnaryReference f = [](double x) { return x * logistic(x); };
  unary_samples(list, op, f, {-5, 5});
}
void gelu_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return gelu(x); };
  const UnaryReference f = [](double x) { return x * 0.5 * std::erfc(-x * M_SQRT1_2); };
  unary_samples(list, op, f, {-4, 4});
}
void gelu_tanh_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return gelu_tanh(x); };
  const UnaryReference f = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  unary_samples(list, op, f, {-4, 4});
}
void softplus_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return softplus(x, 2); };
  const UnaryReference f = [](double x) { return std::log1p(std::exp(2 * x)) / 2; };
  unary_samples(list, op, f, {-4, 4});
  list.error(
      "beta 0", [] { softplus(zeros({2}), 0); }, "[softplus] beta must not be 0; got 0");
}
void log_sigmoid_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return log_sigmoid(x); };
  const UnaryReference f = [](double x) { return -std::log1p(std::exp(-x)); };
  unary_samples(list, op, f, {-4, 4});
}
void mish_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return mish(x); };
  const UnaryReference f = [](double x) { return x * std::tanh(std::log1p(std::exp(x))); };
  unary_samples(list, op, f, {-4, 4});
}
void softsign_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return softsign(x); };
  const UnaryReference f = [](double x) { return x / (1 + std::fabs(x)); };
  unary_samples(list, op, f, {-2, 2, {0}});
}

}  // namespace cutaway
