#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/pointwise.h>

namespace cutaway {

void where_samples(SampleList& list) {
  const OpFn call = [](const Tensors& in) { return Tensors{where(in[0], in[1], in[2])}; };
  const OpFn reference = [](const Tensors& in) {
    return Tensors{map_reference(in, [](const double* x) { return x[0] != 0 ? x[1] : x[2]; })};
  };
  list.add("[]", {list.bools({}), list.randn({}), list.randn({})}, call, reference);
  list.add("[0,3]", {list.bools({0, 3}), list.randn({0, 3}), list.randn({3})}, call, reference);
  list.add("[17]", {list.bools({17}), list.randn({17}), list.randn({17})}, call, reference);
  list.add("broadcast", {list.bools({2, 1, 4}), list.randn({3, 1}), list.randn({4})}, call,
           reference);
  list.add("5000", {list.bools({5000}), list.randn({5000}), list.randn({5000})}, call, reference)
      .grad = false;
  list.add("integers", {list.bools({70}), list.integers({70}, -9, 9), list.integers({70}, -9, 9)},
           call, reference);
  list.error(
      "mask of another type", [] { where(zeros({2}), zeros({2}), zeros({2})); },
      "[where] the mask must be boolean; got [2] f32, need bool");
}

void masked_fill_samples(SampleList& list) {
  const OpFn call = [](const Tensors& in) { return Tensors{masked_fill(in[0], in[1], -1.5)}; };
  const OpFn reference = [](const Tensors& in) {
    return Tensors{map_reference(in, [](const double* x) { return x[1] != 0 ? -1.5 : x[0]; })};
  };
  list.add("[]", {list.randn({}), list.bools({})}, call, reference);
  list.add("[0,3]", {list.randn({0, 3}), list.bools({3})}, call, reference);
  list.add("[17]", {list.randn({17}), list.bools({17})}, call, reference);
  list.add("broadcast", {list.randn({3, 1}), list.bools({2, 1, 4})}, call, reference);
  list.add("5000", {list.randn({5000}), list.bools({5000})}, call, reference).grad = false;
  list.error(
      "mask of another type", [] { masked_fill(zeros({2}), zeros({2}), 0); },
      "[masked_fill] the mask must be boolean; got [2] f32, need bool");
}

namespace {

// Three operands: equal sizes, broadcast sizes, many elements.
void ternary_samples(SampleList& list, Tensor (*op)(const Tensor&, const Tensor&, const Tensor&),
                     double (*f)(double, double, double), const Domain& third) {
  const OpFn call = [op](const Tensors& in) { return Tensors{op(in[0], in[1], in[2])}; };
  const OpFn reference = [f](const Tensors& in) {
    return Tensors{map_reference(in, [f](const double* x) { return f(x[0], x[1], x[2]); })};
  };
  const auto add = [&](const Shape& a, const Shape& b, const Shape& c) -> Sample& {
    return list.add(to_string(a) + " " + to_string(b) + " " + to_string(c),
                    {list.randn(a), list.randn(b), domain_values(list, c, third)}, call, reference);
  };
  add({}, {}, {});
  add({0, 3}, {3}, {});
  add({17}, {17}, {17});
  add({2, 1, 4}, {3, 1}, {4});
  add({5000}, {5000}, {5000}).grad = false;
}

}  // namespace

void lerp_samples(SampleList& list) {
  ternary_samples(
      list, [](const Tensor& a, const Tensor& b, const Tensor& w) { return lerp(a, b, w); },
      [](double a, double b, double w) { return a + w * (b - a); }, {-0.5, 1.5});
}
void addcmul_samples(SampleList& list) {
  ternary_samples(
      list, [](const Tensor& x, const Tensor& a, const Tensor& b) { return addcmul(x, a, b, 0.5); },
      [](double x, double a, double b) { return x + 0.5 * a * b; }, {-2, 2});
}
void addcdiv_samples(SampleList& list) {
  ternary_samples(
      list, [](const Tensor& x, const Tensor& a, const Tensor& b) { return addcdiv(x, a, b, 0.5); },
      [](double x, double a, double b) { return x + 0.5 * a / b; }, {0.5, 3});
}

void maximum_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return maximum(a, b); };
  const BinaryReference f = [](double a, double b) { return std::fmax(a, b); };
  // Operands from intervals that hardly meet, so that none are equal, in both orders.
  binary_samples(list, op, f, {-2, 1}, {1.1, 2});
  binary_samples(list, op, f, {1.1, 2}, {-2, 1});
  integer_samples(list, op, f, -50, 50, -50);
  broadcast_error(list, op, "maximum");
}
void minimum_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return minimum(a, b); };
  const BinaryReference f = [](double a, double b) { return std::fmin(a, b); };
  // Operands from intervals that hardly meet, so that none are equal, in both orders.
  binary_samples(list, op, f, {-2, 1}, {1.1, 2});
  binary_samples(list, op, f, {1.1, 2}, {-2, 1});
  integer_samples(list, op, f, -50, 50, -50);
  broadcast_error(list, op, "minimum");
}
void fmax_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return fmax(a, b); };
  const BinaryReference f = [](double a, double b) { return std::fmax(a, b); };
  // Operands from intervals that hardly meet, so that none are equal, in both orders.
  binary_samples(list, op, f, {-2, 1}, {1.1, 2});
  binary_samples(list, op, f, {1.1, 2}, {-2, 1});
  integer_samples(list, op, f, -50, 50, -50);
  broadcast_error(list, op, "fmax");
}
void fmin_samples(SampleList& list) {
  const Binary op = [](const Tensor& a, const Tensor& b) { return fmin(a, b); };
  const BinaryReference f = [](double a, double b) { return std::fmin(a, b); };
  // Operands from intervals that hardly meet, so that none are equal, in both orders.
  binary_samples(list, op, f, {-2, 1}, {1.1, 2});
  binary_samples(list, op, f, {1.1, 2}, {-2, 1});
  integer_samples(list, op, f, -50, 50, -50);
  broadcast_error(list, op, "fmin");
}
void clamp_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return clamp(x, -0.5, 1.0); };
  unary_samples(list, op, [](double x) { return std::fmin(std::fmax(x, -0.5), 1.0); },
                {-2, 2, {-0.5, 1}});
  unary_samples(
      list, [](const Tensor& x) { return clamp_min(x, 0.25); },
      [](double x) { return std::fmax(x, 0.25); }, {-2, 2, {0.25}});
  unary_samples(
      list, [](const Tensor& x) { return clamp_max(x, 0.25); },
      [](double x) { return std::fmin(x, 0.25); }, {-2, 2, {0.25}});
  integer_samples(
      list, [](const Tensor& x) { return clamp(x, -3, 4); },
      [](double x) { return std::fmin(std::fmax(x, -3), 4); }, -9, 9);
}
void clamp_tensors_samples(SampleList& list) {
  const OpFn call = [](const Tensors& in) { return Tensors{clamp(in[0], in[1], in[2])}; };
  const OpFn reference = [](const Tensors& in) {
    return Tensors{
        map_reference(in, [](const double* x) { return std::fmin(std::fmax(x[0], x[1]), x[2]); })};
  };
  const Tensor x = tensor({-2, -1, 0.3, 0.2, 1.4, 2, 0.7, -0.4}, {2, 4}, {.dtype = DType::f64});
  const Tensor low = tensor({-1.5, -0.5, 0.1, 0.4}, {.dtype = DType::f64});
  list.add("within, below, above", {x, low, add(low, 0.8)}, call, reference);
  list.add("crossed bounds", {x, low, sub(low, 0.8)}, call, reference);
  list.add("5000", {list.randn({5000}), list.uniform({5000}, -1, 0), list.uniform({5000}, 0, 1)},
           call, reference)
      .grad = false;
}

}  // namespace cutaway
