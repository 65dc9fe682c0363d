#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/elementary.h>

namespace cutaway {

void exp_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return exp(x); };
  unary_samples(list, op, [](double x) { return std::exp(x); }, {-3, 3});
}
void expm1_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return expm1(x); };
  unary_samples(list, op, [](double x) { return std::expm1(x); });
}
void log_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return log(x); };
  unary_samples(list, op, [](double x) { return std::log(x); }, {0.3, 5});
}
void log1p_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return log1p(x); };
  unary_samples(list, op, [](double x) { return std::log1p(x); }, {-0.6, 5});
}
void sqrt_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sqrt(x); };
  unary_samples(list, op, [](double x) { return std::sqrt(x); }, {0.3, 5});
}
void rsqrt_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return rsqrt(x); };
  unary_samples(list, op, [](double x) { return 1 / std::sqrt(x); }, {0.3, 5});
}
void tanh_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return tanh(x); };
  unary_samples(list, op, [](double x) { return std::tanh(x); });
}
void sigmoid_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sigmoid(x); };
  unary_samples(list, op, [](double x) { return 1 / (1 + std::exp(-x)); }, {-5, 5});
}
void erf_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return erf(x); };
  unary_samples(list, op, [](double x) { return std::erf(x); });
}

}  // namespace cutaway
