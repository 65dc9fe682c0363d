#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/compare.h>

namespace cutaway {

void eq_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return eq(a, b); };
  const BinaryReference f = [](double a, double b) -> double { return a == b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3, -3);
  broadcast_error(list, op, "eq");
}
void ne_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return ne(a, b); };
  const BinaryReference f = [](double a, double b) -> double { return a != b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3, -3);
  broadcast_error(list, op, "ne");
}
void lt_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return lt(a, b); };
  const BinaryReference f = [](double a, double b) -> double { return a < b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3, -3);
  broadcast_error(list, op, "lt");
}
void le_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return le(a, b); };
  const BinaryReference f = [](double a, double b) -> double { return a <= b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3, -3);
  broadcast_error(list, op, "le");
}
void gt_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return gt(a, b); };
  const BinaryReference f = [](double a, double b) -> double { return a > b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3, -3);
  broadcast_error(list, op, "gt");
}
void ge_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return ge(a, b); };
  const BinaryReference f = [](double a, double b) -> double { return a >= b; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3, -3);
  broadcast_error(list, op, "ge");
}
void eq_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return eq(x, 1); };
  const UnaryReference f = [](double x) -> double { return x == 1; };
  unary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3);
}
void ne_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return ne(x, 1); };
  const UnaryReference f = [](double x) -> double { return x != 1; };
  unary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3);
}
void lt_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return lt(x, 1); };
  const UnaryReference f = [](double x) -> double { return x < 1; };
  unary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3);
}
void le_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return le(x, 1); };
  const UnaryReference f = [](double x) -> double { return x <= 1; };
  unary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3);
}
void gt_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return gt(x, 1); };
  const UnaryReference f = [](double x) -> double { return x > 1; };
  unary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3);
}
void ge_scalar_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return ge(x, 1); };
  const UnaryReference f = [](double x) -> double { return x >= 1; };
  unary_samples(list, op, f);
  integer_samples(list, op, f, -3, 3);
}
void logical_and_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return logical_and(a, b); };
  const BinaryReference f = [](double a, double b) -> double { return a != 0 && b != 0; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -2, 2, -2);
  broadcast_error(list, op, "logical_and");
}
void logical_or_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return logical_or(a, b); };
  const BinaryReference f = [](double a, double b) -> double { return a != 0 || b != 0; };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -2, 2, -2);
  broadcast_error(list, op, "logical_or");
}
void logical_xor_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return logical_xor(a, b); };
  const BinaryReference f = [](double a, double b) -> double { return (a != 0) != (b != 0); };
  binary_samples(list, op, f);
  integer_samples(list, op, f, -2, 2, -2);
  broadcast_error(list, op, "logical_xor");
}
void logical_not_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return logical_not(x); };
  const UnaryReference f = [](double x) -> double { return x == 0; };
  unary_samples(list, op, f);
  integer_samples(list, op, f, -2, 2);
}
void isnan_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return isnan(x); };
  unary_samples(list, op, [](double) { return 0.0; });
  integer_samples(
      list, op, [](double) { return 0.0; }, -9, 9);
  list.add(
      "special values", {tensor({NAN, INFINITY, -INFINITY, 0, 1}, {.dtype = DType::f64})},
      [](const Tensors& in) { return Tensors{isnan(in[0])}; },
      [](const Tensors& in) {
        return Tensors{map_reference(in, [](const double* x) -> double { return std::isnan(*x); })};
      });
}
void isinf_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return isinf(x); };
  unary_samples(list, op, [](double) { return 0.0; });
  integer_samples(
      list, op, [](double) { return 0.0; }, -9, 9);
  list.add(
      "special values", {tensor({NAN, INFINITY, -INFINITY, 0, 1}, {.dtype = DType::f64})},
      [](const Tensors& in) { return Tensors{isinf(in[0])}; },
      [](const Tensors& in) {
        return Tensors{map_reference(in, [](const double* x) -> double { return std::isinf(*x); })};
      });
}
void isfinite_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return isfinite(x); };
  unary_samples(list, op, [](double) { return 1.0; });
  integer_samples(
      list, op, [](double) { return 1.0; }, -9, 9);
  list.add(
      "special values", {tensor({NAN, INFINITY, -INFINITY, 0, 1}, {.dtype = DType::f64})},
      [](const Tensors& in) { return Tensors{isfinite(in[0])}; },
      [](const Tensors& in) {
        return Tensors{
            map_reference(in, [](const double* x) -> double { return std::isfinite(*x); })};
      });
}
void bitwise_and_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return bitwise_and(a, b); };
  integer_samples(
      list, op, [](double a, double b) { return double(int64_t(a) & int64_t(b)); }, -100, 100, -9);
  list.error(
      "floats", [op] { op(zeros({2}), zeros({2})); },
      "[bitwise_and] does not work on f32; got [2] f32, [2] f32");
}
void bitwise_or_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return bitwise_or(a, b); };
  integer_samples(
      list, op, [](double a, double b) { return double(int64_t(a) | int64_t(b)); }, -100, 100, -9);
  list.error(
      "floats", [op] { op(zeros({2}), zeros({2})); },
      "[bitwise_or] does not work on f32; got [2] f32, [2] f32");
}
void bitwise_xor_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); };
  integer_samples(
      list, op, [](double a, double b) { return double(int64_t(a) ^ int64_t(b)); }, -100, 100, -9);
  list.error(
      "floats", [op] { op(zeros({2}), zeros({2})); },
      "[bitwise_xor] does not work on f32; got [2] f32, [2] f32");
}
void bitwise_not_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return bitwise_not(x); };
  integer_samples(
      list, op, [](double x) { return double(~int64_t(x)); }, -100, 100);
  list.error(
      "floats", [op] { op(zeros({2})); }, "[bitwise_not] does not work on f32; got [2] f32");
}
void shift_left_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& n) { return shift_left(a, n); };
  integer_samples(
      list, op, [](double a, double n) { return a * std::exp2(n); }, 1, 20, 0);
}
void shift_right_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& n) { return shift_right(a, n); };
  integer_samples(
      list, op, [](double a, double n) { return std::floor(a / std::exp2(n)); }, -90, 20, 0);
}

}  // namespace cutaway
