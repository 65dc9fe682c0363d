#include <cutaway/autograd/ops/norm.h>
#include <cutaway/autograd/ops/norm_reference.h>

namespace cutaway {
namespace {

// Rows are made of the last `dims` dimensions.
Tensors row_norm_ref(const Tensors& in, int dims, const NormReference& r) {
  const Shape sizes = in[0].sizes();
  const int from = sizes.rank() - dims;
  const Shape lead = sizes.slice(0, from), row = sizes.slice(from, sizes.rank());
  const NormPlace place = [=](const Shape& i) {
    return std::pair(flat_index(lead, i.slice(0, from)), flat_index(row, i.slice(from, i.rank())));
  };
  return norm_ref(in, lead.numel(), place, r);
}

void add_layer(SampleList& list, const char* label, Tensors in, int dims, double eps = 1e-5) {
  in.resize(3);
  Sample& s = list.add(
      label, std::move(in),
      [=](const Tensors& t) -> Tensors {
        const Shape row = t[0].sizes().slice(t[0].dim() - dims, t[0].dim());
        return {layer_norm(t[0], row, t[1], t[2], {.eps = eps})};
      },
      [=](const Tensors& t) { return row_norm_ref(t, dims, {.eps = eps}); });
  s.grad = s.grad_grad = in_reach_of_checks(s);
}

void add_rms(SampleList& list, const char* label, Tensors in, int dims, double eps = 1e-6) {
  in.resize(2);
  Sample& s = list.add(
      label, std::move(in),
      [=](const Tensors& t) -> Tensors {
        const Shape row = t[0].sizes().slice(t[0].dim() - dims, t[0].dim());
        return {rms_norm(t[0], row, t[1], {.eps = eps})};
      },
      [=](const Tensors& t) { return row_norm_ref(t, dims, {.eps = eps, .centered = false}); });
  s.grad = s.grad_grad = in_reach_of_checks(s);
}

}  // namespace

void layer_norm_samples(SampleList& list) {
  add_layer(list, "plain", {list.randn({3, 5})}, 1);
  add_layer(list, "weight and bias", {list.randn({3, 4}), list.randn({4}), list.randn({4})}, 1);
  add_layer(list, "weight only", {list.randn({2, 4}), list.randn({4})}, 1);
  add_layer(list, "bias only", {list.randn({2, 4}), Tensor(), list.randn({4})}, 1);
  add_layer(list, "two dims", {list.randn({2, 2, 3}), list.randn({2, 3}), list.randn({2, 3})}, 2);
  add_layer(list, "one row", {list.randn({6})}, 1, 1e-3);
  add_layer(list, "no rows", {list.randn({0, 4}), list.randn({4}), list.randn({4})}, 1);
  add_layer(list, "empty rows", {list.randn({2, 0})}, 1);
  add_layer(list, "long rows", {list.randn({5, 1031}), list.randn({1031}), list.randn({1031})}, 1);
  add_layer(list, "many rows", {list.randn({900, 100}), list.randn({100}), list.randn({100})}, 1);
  list.error(
      "sizes",
      [] {
        layer_norm(zeros({2, 3}), {4});
      },
      "[layer_norm] the last sizes of x must be the normalized ones; got x [2,3], normalized [4]");
  list.error(
      "weight",
      [] {
        layer_norm(zeros({2, 3}), {3}, zeros({2}));
      },
      "[layer_norm] weight must have the normalized sizes; got weight [2], x [2,3], need [3]");
  list.error(
      "type",
      [] {
        layer_norm(zeros({2, 3}), {3}, zeros({3}, {.dtype = DType::f64}));
      },
      "[layer_norm] weight must have the type of x; got weight f64, x f32");
}

void rms_norm_samples(SampleList& list) {
  add_rms(list, "plain", {list.randn({3, 5})}, 1);
  add_rms(list, "weight", {list.randn({3, 4}), list.randn({4})}, 1);
  add_rms(list, "two dims", {list.randn({2, 2, 3}), list.randn({2, 3})}, 2, 1e-2);
  add_rms(list, "no rows", {list.randn({0, 4}), list.randn({4})}, 1);
  add_rms(list, "long rows", {list.randn({5, 1031}), list.randn({1031})}, 1);
  list.error(
      "sizes",
      [] {
        rms_norm(zeros({2, 3}), {2, 2});
      },
      "[rms_norm] the last sizes of x must be the normalized ones; got x [2,3], normalized [2,2]");
}

}  // namespace cutaway
