#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/reduction.h>
#include <cutaway/autograd/ops/shape.h>

namespace cutaway {

void sum_samples(SampleList&);

namespace {

void sum_backward(Backward& b) {
  const Reduced r(b);
  b.set(0, expand(r.restore(b.upstream()), r.sizes));
}

const OpRecord kSum{
    .name = "sum",
    .signature = "sum(x, dims?, {keepdim}) → y",
    .meaning = "Sum over dimensions.",
    .formula = "y = Σ x",
    .shapes = "x [...]   y: the dimensions not in dims",
    .dtypes = kAllTypes,
    .forward = [](Call& c) { reduce_into(c, kernels::sum, sum_type(c.in(0).dtype())); },
    .backward_text = "dx = g, repeated over dims",
    .backward = sum_backward,
    .samples = sum_samples,
    .onnx = [](OnnxCall& c) { onnx_reduce(c, "ReduceSum", c.type()); },
};

}  // namespace

Tensor sum(TensorArg x, ReduceOptions o) { return run(kSum, {x}, over_all(o.keepdim)); }
Tensor sum(TensorArg x, const Shape& dims, ReduceOptions o) {
  return run(kSum, {x}, over(dims, o.keepdim));
}
Tensor sum(TensorArg x, int64_t dim, ReduceOptions o) { return sum(x, Shape{dim}, o); }

Tensor sum_to(TensorArg x, const Shape& sizes) {
  const Shape& from = x->sizes();
  const int lead = from.rank() - sizes.rank();
  Shape dims;
  bool fits = lead >= 0;
  for (int d = 0; fits && d < from.rank(); ++d) {
    const bool repeated = d < lead || (sizes[d - lead] == 1 && from[d] != 1);
    fits = repeated || sizes[d - lead] == from[d];
    if (repeated) dims.push_back(d);
  }
  CallScope scope(x.site);
  if (!fits) {
    throw ShapeError("sum_to", "sizes must broadcast to x; got x " + to_string(from) + ", sizes " +
                                   to_string(sizes));
  }
  if (dims.empty()) return *x;
  Tensor y = sum(x, dims, {.keepdim = true});
  return lead == 0 ? y : reshape(y, sizes);
}

void register_sum_ops(std::vector<const OpRecord*>& list) { list.push_back(&kSum); }

}  // namespace cutaway
