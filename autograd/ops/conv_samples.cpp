#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/conv.h>
#include <cutaway/autograd/ops/conv_family.h>
#include <cutaway/autograd/ops/sample_tools.h>

namespace cutaway {
namespace {

// One case: sizes of x and weight, geometry. Everything is computed by the definition, one product
// at a time.
struct Case {
  const char* label;
  Shape x, w;
  ConvGeometry q;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"1-d", {2, 3, 7}, {4, 3, 3}, {{1}, {1}, {1}, 1}},
      {"1-d strided dilated", {1, 2, 9}, {3, 2, 3}, {{2}, {2}, {2}, 1}},
      {"2-d", {2, 2, 5, 4}, {3, 2, 3, 2}, {{1, 1}, {0, 0}, {1, 1}, 1}},
      {"2-d padded strided", {1, 3, 5, 6}, {2, 3, 3, 3}, {{2, 1}, {1, 2}, {1, 1}, 1}},
      {"2-d uneven stride leaves a rest", {1, 1, 6, 5}, {2, 1, 2, 3}, {{3, 2}, {0, 1}, {1, 1}, 1}},
      {"groups", {2, 4, 4, 4}, {6, 2, 2, 3}, {{1, 1}, {1, 1}, {1, 1}, 2}},
      {"depthwise", {2, 3, 5, 5}, {3, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 3}},
      {"depthwise multiplier strided", {1, 2, 6, 5}, {4, 1, 2, 3}, {{2, 2}, {1, 1}, {1, 2}, 2}},
      {"1x1", {2, 4, 3, 3}, {3, 4, 1, 1}, {{1, 1}, {0, 0}, {1, 1}, 1}},
      {"3-d", {1, 2, 3, 4, 3}, {2, 2, 2, 2, 2}, {{1, 2, 1}, {1, 0, 1}, {1, 1, 1}, 1}},
      {"no samples", {0, 2, 4, 4}, {3, 2, 3, 3}, {{1, 1}, {0, 0}, {1, 1}, 1}},
  };
  return list;
}

Shape result_sizes(const Case& k) {
  Shape y{k.x[0], k.w[0]};
  for (int d = 0; d < k.q.stride.rank(); ++d) {
    y.push_back((k.x[2 + d] + 2 * k.q.padding[d] - k.q.dilation[d] * (k.w[2 + d] - 1) - 1) /
                    k.q.stride[d] +
                1);
  }
  return y;
}

// Calls f(index of x, index of w, index of y) for every product of the definition.
template <class F>
void for_products(const Case& k, F&& f) {
  const Shape y_sizes = result_sizes(k);
  const int64_t k_group = k.w[0] / k.q.groups;
  for_each_index(y_sizes, [&](const Shape& y) {
    for_each_index(k.w.slice(1, k.w.rank()), [&](const Shape& tap) {
      Shape x{y[0], y[1] / k_group * k.w[1] + tap[0]}, w{y[1]};
      w.push_back(tap[0]);
      bool inside = true;
      for (int d = 0; d < k.q.stride.rank(); ++d) {
        x.push_back(y[2 + d] * k.q.stride[d] + tap[1 + d] * k.q.dilation[d] - k.q.padding[d]);
        w.push_back(tap[1 + d]);
        inside = inside && x.back() >= 0 && x.back() < k.x[2 + d];
      }
      if (inside)
        f(size_t(flat_index(k.x, x)), size_t(flat_index(k.w, w)), size_t(flat_index(y_sizes, y)));
    });
  });
}

Tensors conv_reference(const Case& k, const Tensors& in) {
  const Ref x(in[0]), w(in[1]);
  Ref y(result_sizes(k));
  for_products(k, [&](size_t i, size_t t, size_t o) { y.v[o] += x.v[i] * w.v[t]; });
  if (in.size() > 2) {
    const Ref bias(in[2]);
    const int64_t plane = y.inner(1);
    for (size_t o = 0; o < y.v.size(); ++o) y.v[o] += bias.v[o / size_t(plane) % size_t(k.w[0])];
  }
  return {y.tensor()};
}

Tensor conv_call(const Case& k, const Tensors& in) {
  const ConvOptions o{
      .stride = k.q.stride, .padding = k.q.padding, .dilation = k.q.dilation, .groups = k.q.groups};
  const Tensor bias = in.size() > 2 ? in[2] : Tensor();
  switch (k.q.stride.rank()) {
    case 1:
      return conv1d(in[0], in[1], bias, o);
    case 2:
      return conv2d(in[0], in[1], bias, o);
    default:
      return conv3d(in[0], in[1], bias, o);
  }
}

}  // namespace

void conv_samples(SampleList& s) {
  for (const Case& k : cases()) {
    s.add(
        k.label, {s.randn(k.x), s.randn(k.w)},
        [&k](const Tensors& in) { return Tensors{conv_call(k, in)}; },
        [&k](const Tensors& in) { return conv_reference(k, in); });
    s.add(
        std::string(k.label) + " bias", {s.randn(k.x), s.randn(k.w), s.randn({k.w[0]})},
        [&k](const Tensors& in) { return Tensors{conv_call(k, in)}; },
        [&k](const Tensors& in) { return conv_reference(k, in); });
  }
  static const Case large{
      "several blocks", {3, 8, 40, 50}, {6, 8, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}};
  s.add(
       large.label, {s.randn(large.x), s.randn(large.w)},
       [](const Tensors& in) { return Tensors{conv_call(large, in)}; },
       [](const Tensors& in) { return conv_reference(large, in); })
      .grad = false;
  s.error(
      "groups",
      [] {
        conv1d(ones({1, 3, 4}), ones({2, 2, 2}), {}, {.groups = 2});
      },
      "[conv] channels of x must be weight.size(1)·groups, and weight.size(0) a multiple of "
      "groups; got x [1,3,4], "
      "weight [2,2,2], groups 2");
  s.error(
      "kernel too large",
      [] {
        conv2d(ones({1, 1, 2, 2}), ones({1, 1, 3, 3}));
      },
      "[conv] the kernel must fit into the padded input; got x [1,1,2,2], weight [1,1,3,3]");
  s.error(
      "stride",
      [] {
        conv1d(ones({1, 1, 4}), ones({1, 1, 2}), {}, {.stride = 0});
      },
      "stride and dilation must be ≥ 1");
  s.error(
      "bias",
      [] {
        conv1d(ones({1, 1, 4}), ones({2, 1, 2}), ones({3}));
      },
      "bias must be [K]; got bias [3], weight [2,1,2]");
}

void conv_input_grad_samples(SampleList& s) {
  for (const Case& k : cases()) {
    s.add(
        k.label, {s.randn(result_sizes(k)), s.randn(k.w)},
        [&k](const Tensors& in) { return Tensors{conv_input_grad(in[0], in[1], k.q, k.x)}; },
        [&k](const Tensors& in) {
          const Ref g(in[0]), w(in[1]);
          Ref x(k.x);
          for_products(k, [&](size_t i, size_t t, size_t o) { x.v[i] += g.v[o] * w.v[t]; });
          return Tensors{x.tensor()};
        });
  }
  s.error(
      "output padding",
      [] {
        conv_transpose1d(ones({1, 1, 2}), ones({1, 1, 3}), {}, {.stride = 2, .output_padding = 2});
      },
      "output_padding must be smaller than stride or dilation; got [2], stride [2], dilation [1]");
}

void conv_weight_grad_samples(SampleList& s) {
  for (const Case& k : cases()) {
    s.add(
        k.label, {s.randn(k.x), s.randn(result_sizes(k))},
        [&k](const Tensors& in) { return Tensors{conv_weight_grad(in[0], in[1], k.q, k.w)}; },
        [&k](const Tensors& in) {
          const Ref x(in[0]), g(in[1]);
          Ref w(k.w);
          for_products(k, [&](size_t i, size_t t, size_t o) { w.v[t] += x.v[i] * g.v[o]; });
          return Tensors{w.tensor()};
        });
  }
  s.error(
      "gradient sizes",
      [] {
        conv_weight_grad(ones({1, 1, 4}), ones({1, 1, 4}), {{1}, {0}, {1}, 1}, {1, 1, 2});
      },
      "the gradient must have the sizes of the result; got [1,1,4], need [1,1,3]");
}

}  // namespace cutaway
