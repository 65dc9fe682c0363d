#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/compare.h>

namespace cutaway {

void eq_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return eq(a, b); };
  binary_samples(list, op, [](double a, double b) -> double { return a == b; });
  integer_samples(list, op, [](double a, double b) -> double { return a == b; }, -3, 3, -3);
  broadcast_error(list, op, "eq");
}
void ne_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return ne(a, b); };
  binary_samples(list, op, [](double a, double b) -> double { return a != b; });
  integer_samples(list, op, [](double a, double b) -> double { return a != b; }, -3, 3, -3);
  broadcast_error(list, op, "ne");
}
void lt_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return lt(a, b); };
  binary_samples(list, op, [](double a, double b) -> double { return a < b; });
  integer_samples(list, op, [](double a, double b) -> double { return a < b; }, -3, 3, -3);
  broadcast_error(list, op, "lt");
}
void le_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return le(a, b); };
  binary_samples(list, op, [](double a, double b) -> double { return a <= b; });
  integer_samples(list, op, [](double a, double b) -> double { return a <= b; }, -3, 3, -3);
  broadcast_error(list, op, "le");
}
void gt_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return gt(a, b); };
  binary_samples(list, op, [](double a, double b) -> double { return a > b; });
  integer_samples(list, op, [](double a, double b) -> double { return a > b; }, -3, 3, -3);
  broadcast_error(list, op, "gt");
}
void ge_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return ge(a, b); };
  binary_samples(list, op, [](double a, double b) -> double { return a >= b; });
  integer_samples(list, op, [](double a, double b) -> double { return a >= b; }, -3, 3, -3);
  broadcast_error(list, op, "ge");
}
void eq_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return eq(x, 1); };
  unary_samples(list, op, [](double x) -> double { return x == 1; });
  integer_samples(list, op, [](double x) -> double { return x == 1; }, -3, 3);
}
void ne_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return ne(x, 1); };
  unary_samples(list, op, [](double x) -> double { return x != 1; });
  integer_samples(list, op, [](double x) -> double { return x != 1; }, -3, 3);
}
void lt_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return lt(x, 1); };
  unary_samples(list, op, [](double x) -> double { return x < 1; });
  integer_samples(list, op, [](double x) -> double { return x < 1; }, -3, 3);
}
void le_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return le(x, 1); };
  unary_samples(list, op, [](double x) -> double { return x <= 1; });
  integer_samples(list, op, [](double x) -> double { return x <= 1; }, -3, 3);
}
void gt_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return gt(x, 1); };
  unary_samples(list, op, [](double x) -> double { return x > 1; });
  integer_samples(list, op, [](double x) -> double { return x > 1; }, -3, 3);
}
void ge_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return ge(x, 1); };
  unary_samples(list, op, [](double x) -> double { return x >= 1; });
  integer_samples(list, op, [](double x) -> double { return x >= 1; }, -3, 3);
}
void logical_and_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return logical_and(a, b); };
  binary_samples(list, op, [](double a, double b) -> double { return (a != 0) && (b != 0); });
  integer_samples(list, op, [](double a, double b) -> double { return (a != 0) && (b != 0); }, -2, 2, -2);
  broadcast_error(list, op, "logical_and");
}
void logical_or_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return logical_or(a, b); };
  binary_samples(list, op, [](double a, double b) -> double { return (a != 0) || (b != 0); });
  integer_samples(list, op, [](double a, double b) -> double { return (a != 0) || (b != 0); }, -2, 2, -2);
  broadcast_error(list, op, "logical_or");
}
void logical_xor_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return logical_xor(a, b); };
  binary_samples(list, op, [](double a, double b) -> double { return (a != 0) != (b != 0); });
  integer_samples(list, op, [](double a, double b) -> double { return (a != 0) != (b != 0); }, -2, 2, -2);
  broadcast_error(list, op, "logical_xor");
}
void logical_not_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return logical_not(x); };
  unary_samples(list, op, [](double x) -> double { return x == 0; });
  integer_samples(list, op, [](double x) -> double { return x == 0; }, -2, 2);
}

}  // namespace cutaway
