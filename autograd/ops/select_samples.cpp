#include <cutaway/autograd/ops/pointwise_samples.h>

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
  list.add("broadcast", {list.bools({2, 1, 4}), list.randn({3, 1}), list.randn({4})}, call, reference);
  list.add("5000", {list.bools({5000}), list.randn({5000}), list.randn({5000})}, call, reference)
      .grad = false;
  list.add("integers", {list.bools({70}), list.integers({70}, -9, 9), list.integers({70}, -9, 9)}, call,
           reference);
  list.error("mask of another type", [] { where(zeros({2}), zeros({2}), zeros({2})); },
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
  list.error("mask of another type", [] { masked_fill(zeros({2}), zeros({2}), 0); },
             "[masked_fill] the mask must be boolean; got [2] f32, need bool");
}

}  // namespace cutaway
