#include <cutaway/autograd/ops/linear.h>
#include <cutaway/autograd/reference.h>

namespace cutaway {
namespace {

Tensors linear_reference(const Tensors& in) {
  const Ref x(in[0]), w(in[1]);
  const int64_t inner = w.sizes[1], out = w.sizes[0];
  Shape sizes = x.sizes;
  sizes[sizes.rank() - 1] = out;
  Ref y(sizes);
  const int64_t rows = sizes.slice(0, sizes.rank() - 1).numel();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = in.size() > 2 ? in[2].to_vector()[size_t(o)] : 0;
      for (int64_t j = 0; j < inner; ++j)
        sum += x.v[size_t(i * inner + j)] * w.v[size_t(o * inner + j)];
      y.v[size_t(i * out + o)] = sum;
    }
  }
  return {y.tensor()};
}

Sample& add_linear(SampleList& list, const char* label, const Shape& x, int64_t out, bool bias) {
  Tensors inputs{list.randn(x), list.randn({out, x.back()})};
  if (bias) inputs.push_back(list.randn({out}));
  return list.add(
      label, std::move(inputs),
      [](const Tensors& in) {
        return Tensors{in.size() > 2 ? linear(in[0], in[1], in[2]) : linear(in[0], in[1])};
      },
      linear_reference);
}

}  // namespace

void linear_samples(SampleList& list) {
  add_linear(list, "rows", {3, 4}, 2, true);
  add_linear(list, "no bias", {3, 4}, 2, false);
  add_linear(list, "one row", {4}, 3, true);
  add_linear(list, "batch of sequences", {2, 3, 2}, 3, true);
  add_linear(list, "one element", {1, 1}, 1, true);
  add_linear(list, "no inputs", {2, 0}, 2, true);
  add_linear(list, "no rows", {0, 3}, 2, true);
  add_linear(list, "no outputs", {2, 3}, 0, true);
  add_linear(list, "blocks", {130, 40}, 520, true).grad = false;
  list.error(
      "sizes",
      [] {
        linear(zeros({2, 3}), zeros({5, 4}));
      },
      "[linear] last size of x and of weight must agree; got x [2,3], weight [5,4]; need "
      "weight [out,3]");
  list.error(
      "transposed",
      [] {
        linear(zeros({32, 784}), zeros({784, 256}));
      },
      "hint: weight looks transposed: it is stored as [out,in]; use weight.t()");
  list.error(
      "bias",
      [] {
        linear(zeros({2, 3}), zeros({5, 3}), zeros({4}));
      },
      "[linear] bias must have one entry for each output; got bias [4], need [5]");
  list.error(
      "rank", [] { linear(zeros({3}), zeros({3})); },
      "[linear] x needs at least one dimension and weight two");
  list.error(
      "types",
      [] {
        linear(zeros({2, 3}), zeros({5, 3}, {.dtype = DType::f64}));
      },
      "[linear] operands must have one type; got x f32, weight f64");
}

}  // namespace cutaway
