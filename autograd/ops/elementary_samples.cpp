#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/elementary.h>

namespace cutaway {

void exp_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return exp(x); };
  const UnaryReference f = [](double x) { return std::exp(x); };
  unary_samples(list, op, f, {-3, 3});
}
void exp2_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return exp2(x); };
  const UnaryReference f = [](double x) { return std::exp2(x); };
  unary_samples(list, op, f);
}
void expm1_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return expm1(x); };
  const UnaryReference f = [](double x) { return std::expm1(x); };
  unary_samples(list, op, f);
}
void log_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return log(x); };
  const UnaryReference f = [](double x) { return std::log(x); };
  unary_samples(list, op, f, {0.3, 5});
}
void log2_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return log2(x); };
  const UnaryReference f = [](double x) { return std::log2(x); };
  unary_samples(list, op, f, {0.3, 5});
}
void log10_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return log10(x); };
  const UnaryReference f = [](double x) { return std::log10(x); };
  unary_samples(list, op, f, {0.3, 5});
}
void log1p_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return log1p(x); };
  const UnaryReference f = [](double x) { return std::log1p(x); };
  unary_samples(list, op, f, {-0.6, 5});
}
void sqrt_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sqrt(x); };
  const UnaryReference f = [](double x) { return std::sqrt(x); };
  unary_samples(list, op, f, {0.3, 5});
}
void rsqrt_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return rsqrt(x); };
  const UnaryReference f = [](double x) { return 1 / std::sqrt(x); };
  unary_samples(list, op, f, {0.3, 5});
}
void sin_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sin(x); };
  const UnaryReference f = [](double x) { return std::sin(x); };
  unary_samples(list, op, f, {-7, 7});
}
void cos_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return cos(x); };
  const UnaryReference f = [](double x) { return std::cos(x); };
  unary_samples(list, op, f, {-7, 7});
}
void tan_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return tan(x); };
  const UnaryReference f = [](double x) { return std::tan(x); };
  unary_samples(list, op, f, {-1.2, 1.2});
}
void asin_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return asin(x); };
  const UnaryReference f = [](double x) { return std::asin(x); };
  unary_samples(list, op, f, {-0.85, 0.85});
}
void acos_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return acos(x); };
  const UnaryReference f = [](double x) { return std::acos(x); };
  unary_samples(list, op, f, {-0.85, 0.85});
}
void atan_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return atan(x); };
  const UnaryReference f = [](double x) { return std::atan(x); };
  unary_samples(list, op, f);
}
void sinh_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sinh(x); };
  const UnaryReference f = [](double x) { return std::sinh(x); };
  unary_samples(list, op, f);
}
void cosh_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return cosh(x); };
  const UnaryReference f = [](double x) { return std::cosh(x); };
  unary_samples(list, op, f);
}
void tanh_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return tanh(x); };
  const UnaryReference f = [](double x) { return std::tanh(x); };
  unary_samples(list, op, f);
}
void asinh_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return asinh(x); };
  const UnaryReference f = [](double x) { return std::asinh(x); };
  unary_samples(list, op, f);
}
void acosh_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return acosh(x); };
  const UnaryReference f = [](double x) { return std::acosh(x); };
  unary_samples(list, op, f, {1.2, 4});
}
void atanh_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return atanh(x); };
  const UnaryReference f = [](double x) { return std::atanh(x); };
  unary_samples(list, op, f, {-0.85, 0.85});
}
void sigmoid_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sigmoid(x); };
  const UnaryReference f = [](double x) { return 1 / (1 + std::exp(-x)); };
  unary_samples(list, op, f, {-5, 5});
}
void floor_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return floor(x); };
  const UnaryReference f = [](double x) { return std::floor(x); };
  unary_samples(list, op, f, {-2.5, 2.5, {-2, -1, 0, 1, 2}});
  integer_samples(list, op, f, -100, 100);
}
void ceil_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return ceil(x); };
  const UnaryReference f = [](double x) { return std::ceil(x); };
  unary_samples(list, op, f, {-2.5, 2.5, {-2, -1, 0, 1, 2}});
  integer_samples(list, op, f, -100, 100);
}
void round_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return round(x); };
  const UnaryReference f = [](double x) { return std::nearbyint(x); };
  unary_samples(list, op, f, {-3, 3, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}});
  integer_samples(list, op, f, -100, 100);
}
void trunc_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return trunc(x); };
  const UnaryReference f = [](double x) { return std::trunc(x); };
  unary_samples(list, op, f, {-2.5, 2.5, {-2, -1, 0, 1, 2}});
  integer_samples(list, op, f, -100, 100);
}
void frac_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return frac(x); };
  const UnaryReference f = [](double x) { return x - std::trunc(x); };
  unary_samples(list, op, f, {-2.5, 2.5, {-2, -1, 0, 1, 2}});
}

}  // namespace cutaway
