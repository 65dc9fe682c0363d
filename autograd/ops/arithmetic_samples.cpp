#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/pointwise.h>

namespace cutaway {

namespace {

double floor_quotient(double a, double b) { return std::floor(a / b); }
double floor_remainder(double a, double b) { return a - b * std::floor(a / b); }
const Domain kPositive{0.5, 3};
// Quotients of the two stay away from whole numbers, where ⌊ ⌋ jumps.
const Domain kDividends{2.2, 2.6}, kDivisors{0.95, 1.05};

}  // namespace

void add_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return add(a, b); };
  const BinaryReference f = [](double a, double b) { return a + b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -50, 50, -50);
  broadcast_error(list, op, "add");
}
void add_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return add(x, 1.5); };
  const UnaryReference f = [](double x) { return x + 1.5; };
  unary_samples(list, op, f);
}
void add_scaled_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return add_scaled(a, b, 2); };
  const BinaryReference f = [](double a, double b) { return a + 2 * b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -50, 50, -50);
  broadcast_error(list, op, "add_scaled");
}
void sub_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return sub(a, b); };
  const BinaryReference f = [](double a, double b) { return a - b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -50, 50, -50);
  broadcast_error(list, op, "sub");
  const Tensor truths = zeros({2}, {.dtype = DType::boolean});
  list.error(
      "booleans", [truths] { sub(truths, truths); },
      "[sub] does not work on bool; got [2] bool, [2] bool");
}
void rsub_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sub(1.5, x); };
  const UnaryReference f = [](double x) { return 1.5 - x; };
  unary_samples(list, op, f);
}
void mul_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return mul(a, b); };
  const BinaryReference f = [](double a, double b) { return a * b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -50, 50, -50);
  broadcast_error(list, op, "mul");
}
void mul_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return mul(x, -2.5); };
  const UnaryReference f = [](double x) { return -2.5 * x; };
  unary_samples(list, op, f);
}
void div_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return div(a, b); };
  const BinaryReference f = [](double a, double b) { return a / b; };
  binary_samples(list, op, f, {}, kPositive);
  broadcast_error(list, op, "div");
}
void div_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return div(x, 4); };
  const UnaryReference f = [](double x) { return x / 4; };
  unary_samples(list, op, f);
}
void rdiv_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return div(3, x); };
  const UnaryReference f = [](double x) { return 3 / x; };
  unary_samples(list, op, f, kPositive);
}
void floor_divide_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return floor_divide(a, b); };
  const BinaryReference f = [](double a, double b) { return floor_quotient(a, b); };
  binary_samples(list, op, f, kDividends, kDivisors);
  integer_samples(list, op, f, -50, 50, 1);
  broadcast_error(list, op, "floor_divide");
  const Tensor whole = zeros({2}, {.dtype = DType::i32});
  list.error(
      "integer zero", [whole] { floor_divide(whole, whole); }, "[floor_divide] division by zero");
}
void floor_divide_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return floor_divide(x, 0.75); };
  const UnaryReference f = [](double x) { return std::floor(x / 0.75); };
  unary_samples(list, op, f, {0.85, 1.4});
  const Tensor whole = zeros({2}, {.dtype = DType::i32});
  list.error(
      "integer zero", [whole] { floor_divide(whole, 0); },
      "[floor_divide_scalar] division by zero");
}
void remainder_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return remainder(a, b); };
  const BinaryReference f = [](double a, double b) { return floor_remainder(a, b); };
  binary_samples(list, op, f, kDividends, kDivisors);
  integer_samples(list, op, f, -50, 50, 1);
  broadcast_error(list, op, "remainder");
  const Tensor whole = zeros({2}, {.dtype = DType::i32});
  list.error(
      "integer zero", [whole] { remainder(whole, whole); }, "[remainder] division by zero");
}
void remainder_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return remainder(x, -0.75); };
  const UnaryReference f = [](double x) { return floor_remainder(x, -0.75); };
  unary_samples(list, op, f, {0.85, 1.4});
  const Tensor whole = zeros({2}, {.dtype = DType::i32});
  list.error(
      "integer zero", [whole] { remainder(whole, 0); }, "[remainder_scalar] division by zero");
}
void neg_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return neg(x); };
  const UnaryReference f = [](double x) { return -x; };
  unary_samples(list, op, f);
  integer_samples(list, op, f, -50, 50);
}
void reciprocal_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return reciprocal(x); };
  const UnaryReference f = [](double x) { return 1 / x; };
  unary_samples(list, op, f, kPositive);
}
void abs_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return abs(x); };
  const UnaryReference f = [](double x) { return std::fabs(x); };
  unary_samples(list, op, f, {-2, 2, {0}});
  integer_samples(list, op, f, -50, 50);
}
void sign_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sign(x); };
  const UnaryReference f = [](double x) { return x > 0 ? 1.0 : -1.0; };
  unary_samples(list, op, f, {-2, 2, {0}});
  integer_samples(list, op, f, 1, 50);
}
void square_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return square(x); };
  const UnaryReference f = [](double x) { return x * x; };
  unary_samples(list, op, f);
  integer_samples(list, op, f, -50, 50);
}

}  // namespace cutaway
