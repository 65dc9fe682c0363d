#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/pointwise.h>

namespace cutaway {
namespace {

double floor_quotient(double a, double b) { return std::floor(a / b); }
double floor_remainder(double a, double b) { return a - b * std::floor(a / b); }
const Domain kPositive{0.5, 3};
// Quotients by kDivisors stay away from whole numbers, where ⌊ ⌋ jumps.
const Domain kDividends{2.2, 2.6}, kDivisors{0.95, 1.05};

}  // namespace

void add_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return add(a, b); };
  binary_samples(list, op, [](double a, double b) { return a + b; });
  integer_samples(list, op, [](double a, double b) { return a + b; }, -50, 50, -50);
  broadcast_error(list, op, "add");
}
void add_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return add(x, 1.5); };
  unary_samples(list, op, [](double x) { return x + 1.5; });
}
void add_scaled_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return add_scaled(a, b, 2); };
  binary_samples(list, op, [](double a, double b) { return a + 2 * b; });
  integer_samples(list, op, [](double a, double b) { return a + 2 * b; }, -50, 50, -50);
  broadcast_error(list, op, "add_scaled");
}
void sub_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return sub(a, b); };
  binary_samples(list, op, [](double a, double b) { return a - b; });
  integer_samples(list, op, [](double a, double b) { return a - b; }, -50, 50, -50);
  broadcast_error(list, op, "sub");
  list.error("booleans", [] { sub(zeros({2}, {.dtype = DType::boolean}), zeros({2}, {.dtype = DType::boolean})); },
             "[sub] does not work on bool; got [2] bool, [2] bool");
}
void rsub_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sub(1.5, x); };
  unary_samples(list, op, [](double x) { return 1.5 - x; });
}
void mul_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return mul(a, b); };
  binary_samples(list, op, [](double a, double b) { return a * b; });
  integer_samples(list, op, [](double a, double b) { return a * b; }, -50, 50, -50);
  broadcast_error(list, op, "mul");
}
void mul_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return mul(x, -2.5); };
  unary_samples(list, op, [](double x) { return -2.5 * x; });
}
void div_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return div(a, b); };
  binary_samples(list, op, [](double a, double b) { return a / b; }, {}, kPositive);
  broadcast_error(list, op, "div");
}
void div_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return div(x, 4); };
  unary_samples(list, op, [](double x) { return x / 4; });
}
void rdiv_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return div(3, x); };
  unary_samples(list, op, [](double x) { return 3 / x; }, kPositive);
}
void floor_divide_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return floor_divide(a, b); };
  binary_samples(list, op, floor_quotient, kDividends, kDivisors);
  integer_samples(list, op, floor_quotient, -50, 50, 1);
  broadcast_error(list, op, "floor_divide");
  list.error("integer zero", [] { floor_divide(zeros({2}, {.dtype = DType::i32}), zeros({2}, {.dtype = DType::i32})); },
             "[floor_divide] division by zero");
}
void floor_divide_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return floor_divide(x, 0.75); };
  unary_samples(list, op, [](double x) { return std::floor(x / 0.75); }, {0.85, 1.4});
  list.error("integer zero", [] { floor_divide(zeros({2}, {.dtype = DType::i32}), 0); },
             "[floor_divide_scalar] division by zero");
}
void remainder_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return remainder(a, b); };
  binary_samples(list, op, floor_remainder, kDividends, kDivisors);
  integer_samples(list, op, floor_remainder, -50, 50, 1);
  broadcast_error(list, op, "remainder");
  list.error("integer zero", [] { remainder(zeros({2}, {.dtype = DType::i32}), zeros({2}, {.dtype = DType::i32})); },
             "[remainder] division by zero");
}
void remainder_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return remainder(x, -0.75); };
  unary_samples(list, op, [](double x) { return floor_remainder(x, -0.75); }, {0.85, 1.4});
  list.error("integer zero", [] { remainder(zeros({2}, {.dtype = DType::i32}), 0); },
             "[remainder_scalar] division by zero");
}
void neg_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return neg(x); };
  unary_samples(list, op, [](double x) { return -x; });
  integer_samples(list, op, [](double x) { return -x; }, -50, 50);
}
void reciprocal_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return reciprocal(x); };
  unary_samples(list, op, [](double x) { return 1 / x; }, kPositive);
}
void abs_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return abs(x); };
  unary_samples(list, op, [](double x) { return std::fabs(x); }, {-2, 2, {0}});
  integer_samples(list, op, [](double x) { return std::fabs(x); }, -50, 50);
}
void sign_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return sign(x); };
  unary_samples(list, op, [](double x) { return x > 0 ? 1.0 : -1.0; }, {-2, 2, {0}});
  integer_samples(list, op, [](double x) { return x > 0 ? 1.0 : -1.0; }, 1, 50);
}
void square_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return square(x); };
  unary_samples(list, op, [](double x) { return x * x; });
  integer_samples(list, op, [](double x) { return x * x; }, -50, 50);
}

}  // namespace cutaway
