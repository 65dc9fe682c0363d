#include <fmt/format.h>

#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/reduction.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Largest, smallest and middle elements, and where they stand. Samples: extreme_samples.cpp.
void amax_samples(SampleList&);
void amin_samples(SampleList&);
void max_samples(SampleList&);
void min_samples(SampleList&);
void argmax_samples(SampleList&);
void argmin_samples(SampleList&);
void median_samples(SampleList&);
void nanmedian_samples(SampleList&);

namespace {

// ---- values only

void extreme_forward(Call& c, Kernel<ReduceArgs>& kernel) {
  const Shape& sizes = c.in(0).sizes();
  require_elements(c.op.name, sizes, reduced_mask(c.op.name, c.attrs<ReduceAttrs>(), sizes));
  reduce_into(c, kernel, c.in(0).dtype());
}

// Elements equal to the result share its gradient evenly; of a NaN result, the NaN.
void shared_backward(Backward& b) {
  const Shape sizes = b.input_sizes(0);
  const uint32_t mask = reduced_mask("backward", b.attrs<ReduceAttrs>(), sizes);
  const Tensor x = b.input(0).detach(), y = with_reduced_dims(b.output(), sizes, mask).detach();
  const Tensor hit = logical_or(eq(x, y), logical_and(ne(x, x), ne(y, y))).to(x.dtype());
  const Tensor g = with_reduced_dims(b.upstream(), sizes, mask);
  b.set(0, hit * (g / sum(hit, mask_dims(mask), {.keepdim = true})));
}

// Result i is where the extreme stands.
void onnx_position(OnnxCall& c, const char* type, int i) {
  const auto& a = c.attrs<ReduceAttrs>();
  if (a.all && c.in().dim() != 1) {
    if (a.keepdim) c.refuse("keeps no dimensions of all elements in ONNX");
    const std::string flat = c.node("Reshape", {c.name(0), c.list({-1})});
    return c.result(i, c.node(type, {flat}, {{"axis", 0}, {"keepdims", 0}}));
  }
  const int64_t axis = a.all ? 0 : c.dim(a.dims[0]);
  c.result(i, c.node(type, {c.name(0)}, {{"axis", axis}, {"keepdims", int(a.keepdim)}}));
}

const OpRecord kAmax{
    .name = "amax",
    .signature = "amax(x, dims?, {keepdim}) → y",
    .meaning = "Largest element over dimensions; NaN wins.",
    .formula = "y = max x",
    .shapes = "x [...]   y: the dimensions not in dims",
    .dtypes = kAllTypes,
    .save_inputs = 1,
    .save_outputs = 1,
    .forward = [](Call& c) { extreme_forward(c, kernels::amax); },
    .backward_text = "dx = g / m where x = y, m the number of such x; 0 elsewhere",
    .backward = shared_backward,
    .samples = amax_samples,
    .onnx = [](OnnxCall& c) { onnx_reduce(c, "ReduceMax", c.type()); },
};
const OpRecord kAmin{
    .name = "amin",
    .signature = "amin(x, dims?, {keepdim}) → y",
    .meaning = "Smallest element over dimensions; NaN wins.",
    .formula = "y = min x",
    .shapes = "x [...]   y: the dimensions not in dims",
    .dtypes = kAllTypes,
    .save_inputs = 1,
    .save_outputs = 1,
    .forward = [](Call& c) { extreme_forward(c, kernels::amin); },
    .backward_text = "dx = g / m where x = y, m the number of such x; 0 elsewhere",
    .backward = shared_backward,
    .samples = amin_samples,
    .onnx = [](OnnxCall& c) { onnx_reduce(c, "ReduceMin", c.type()); },
};

// ---- value and index along one dimension

// The index of the result in row-major order of the reduced dimensions.
void find_into(const Tensor& x, const Tensor& value, const Tensor& index, uint32_t mask) {
  ReduceArgs a = reduce_args(x, index, mask, true);
  a.value = value.raw();
  kernels::find_first(x.device(), x.dtype(), a);
}

void pair_forward(Call& c, Kernel<ReduceArgs>& kernel) {
  const auto& attrs = c.attrs<ReduceAttrs>();
  c.require_dtype(0);
  const Tensor& x = c.in(0);
  const uint32_t mask = reduced_mask(c.op.name, attrs, x.sizes());
  require_elements(c.op.name, x.sizes(), mask);
  const Shape sizes = reduced_sizes(x.sizes(), mask, attrs.keepdim);
  const Tensor value = c.out(0, sizes, x.dtype());
  const Tensor index = c.out(1, sizes, DType::i64);
  if (c.meta()) return;
  kernel(x.device(), x.dtype(), reduce_args(x, value, mask));
  find_into(x, value, index, mask);
}

// The gradient goes to the place the index names.
void pair_backward(Backward& b) {
  const Shape sizes = b.input_sizes(0);
  const uint32_t mask = reduced_mask("backward", b.attrs<ReduceAttrs>(), sizes);
  if (mask == 0) return b.set(0, b.upstream());
  const int dim = int(mask_dims(mask)[0]);
  const Tensor index = with_reduced_dims(b.output(1), sizes, mask);
  const Tensor here = eq(positions(sizes, dim, index.device()), index);
  b.set(0, where(here, with_reduced_dims(b.upstream(), sizes, mask), 0.0));
}

const OpRecord kMax{
    .name = "max",
    .signature = "max(x, dim, {keepdim}) → y, indices",
    .meaning = "Largest element along a dimension, and the first place where it stands; NaN wins.",
    .formula = "y = max_i x_i,  indices = argmax_i x_i",
    .shapes = "x [..., n, ...]   y, indices [..., ...]",
    .dtypes = kAllTypes,
    .outputs = 2,
    .save_outputs = 2,
    .forward = [](Call& c) { pair_forward(c, kernels::amax); },
    .backward_text = "dx_i = g where i = indices, 0 elsewhere",
    .backward = pair_backward,
    .samples = max_samples,
    .onnx =
        [](OnnxCall& c) {
          onnx_reduce(c, "ReduceMax", c.type());
          onnx_position(c, "ArgMax", 1);
        },
};
const OpRecord kMin{
    .name = "min",
    .signature = "min(x, dim, {keepdim}) → y, indices",
    .meaning = "Smallest element along a dimension, and the first place where it stands; NaN wins.",
    .formula = "y = min_i x_i,  indices = argmin_i x_i",
    .shapes = "x [..., n, ...]   y, indices [..., ...]",
    .dtypes = kAllTypes,
    .outputs = 2,
    .save_outputs = 2,
    .forward = [](Call& c) { pair_forward(c, kernels::amin); },
    .backward_text = "dx_i = g where i = indices, 0 elsewhere",
    .backward = pair_backward,
    .samples = min_samples,
    .onnx =
        [](OnnxCall& c) {
          onnx_reduce(c, "ReduceMin", c.type());
          onnx_position(c, "ArgMin", 1);
        },
};

void arg_forward(Call& c, Kernel<ReduceArgs>& kernel) {
  const auto& attrs = c.attrs<ReduceAttrs>();
  c.require_dtype(0);
  const Tensor& x = c.in(0);
  const uint32_t mask = reduced_mask(c.op.name, attrs, x.sizes());
  require_elements(c.op.name, x.sizes(), mask);
  const Shape sizes = reduced_sizes(x.sizes(), mask, attrs.keepdim);
  const Tensor index = c.out(0, sizes, DType::i64);
  if (c.meta()) return;
  const Tensor value = empty(sizes, {.dtype = x.dtype(), .device = x.device()});
  kernel(x.device(), x.dtype(), reduce_args(x, value, mask));
  find_into(x, value, index, mask);
}

const OpRecord kArgmax{
    .name = "argmax",
    .signature = "argmax(x, dim?, {keepdim}) → indices",
    .meaning = "Index of the first largest element, of the first NaN if there is one.",
    .formula = "indices = argmax_i x_i",
    .shapes = "x [..., n, ...]   indices [..., ...], i64",
    .dtypes = kAllTypes,
    .forward = [](Call& c) { arg_forward(c, kernels::amax); },
    .no_gradient = "the result is an index",
    .samples = argmax_samples,
    .onnx = [](OnnxCall& c) { onnx_position(c, "ArgMax", 0); },
};
const OpRecord kArgmin{
    .name = "argmin",
    .signature = "argmin(x, dim?, {keepdim}) → indices",
    .meaning = "Index of the first smallest element, of the first NaN if there is one.",
    .formula = "indices = argmin_i x_i",
    .shapes = "x [..., n, ...]   indices [..., ...], i64",
    .dtypes = kAllTypes,
    .forward = [](Call& c) { arg_forward(c, kernels::amin); },
    .no_gradient = "the result is an index",
    .samples = argmin_samples,
    .onnx = [](OnnxCall& c) { onnx_position(c, "ArgMin", 0); },
};

// ---- median

// With a dimension: values and indices. Without: the value; output 1 is not there.
void median_forward(Call& c, bool skip_nan) {
  const auto& attrs = c.attrs<ReduceAttrs>();
  c.require_dtype(0);
  const Shape from = c.in(0).sizes();
  const uint32_t mask = reduced_mask(c.op.name, attrs, from);
  require_elements(c.op.name, from, mask);
  const Shape sizes = reduced_sizes(from, mask, attrs.keepdim);
  const Tensor value = c.out(0, sizes, c.in(0).dtype());
  const Tensor index = c.out(1, sizes, DType::i64);
  if (c.meta()) return;
  const Tensor x = contiguous_raw(c.in(0));
  MedianArgs a{
      .in = x.raw(), .value = value.raw(), .index = index.data<int64_t>(), .skip_nan = skip_nan};
  if (attrs.all) {
    a.n = x.numel();
  } else if (mask) {
    const int dim = int(mask_dims(mask)[0]);
    a.outer = from.slice(0, dim).numel();
    a.n = from[dim];
    a.inner = from.slice(dim + 1, from.rank()).numel();
  }
  kernels::median(x.device(), x.dtype(), a);
}

void median_backward(Backward& b) {
  if (b.attrs<ReduceAttrs>().all) return shared_backward(b);
  pair_backward(b);
}

const OpRecord kMedian{
    .name = "median",
    .signature = "median(x, dim?, {keepdim}) → y, indices",
    .meaning = "Lower middle element and where it stands; NaN wins.",
    .formula = "y = x sorted at place ⌊(n − 1)/2⌋",
    .shapes = "x [..., n, ...]   y, indices [..., ...]",
    .dtypes = kAllTypes,
    .outputs = 2,
    .save_inputs = 1,
    .save_outputs = 3,
    .forward = [](Call& c) { median_forward(c, false); },
    .backward_text = "to the index; without a dimension, shared evenly among equal elements",
    .backward = median_backward,
    .samples = median_samples,
};
const OpRecord kNanmedian{
    .name = "nanmedian",
    .signature = "nanmedian(x, dim?, {keepdim}) → y, indices",
    .meaning = "Lower middle element of those that are not NaN, and where it stands.",
    .formula = "y = x sorted at place ⌊(m − 1)/2⌋, m the number of x that are not NaN",
    .shapes = "x [..., n, ...]   y, indices [..., ...]",
    .dtypes = kAllTypes,
    .outputs = 2,
    .save_inputs = 1,
    .save_outputs = 3,
    .forward = [](Call& c) { median_forward(c, true); },
    .backward_text = "to the index; without a dimension, shared evenly among equal elements",
    .backward = median_backward,
    .samples = nanmedian_samples,
};

ValuesIndices run_pair(const OpRecord& op, const TensorArg& x, const ReduceAttrs& attrs) {
  Tensors out = run_many(op, {*x}, attrs, x.site);
  return {std::move(out[0]), std::move(out[1])};
}

}  // namespace

// ---- the functions

Tensor amax(TensorArg x, ReduceOptions o) { return run(kAmax, {x}, over_all(o.keepdim)); }
Tensor amax(TensorArg x, const Shape& dims, ReduceOptions o) {
  return run(kAmax, {x}, over(dims, o.keepdim));
}
Tensor amax(TensorArg x, int64_t dim, ReduceOptions o) {
  return run(kAmax, {x}, over({dim}, o.keepdim));
}
Tensor amin(TensorArg x, ReduceOptions o) { return run(kAmin, {x}, over_all(o.keepdim)); }
Tensor amin(TensorArg x, const Shape& dims, ReduceOptions o) {
  return run(kAmin, {x}, over(dims, o.keepdim));
}
Tensor amin(TensorArg x, int64_t dim, ReduceOptions o) {
  return run(kAmin, {x}, over({dim}, o.keepdim));
}

Tensor max(TensorArg x) { return amax(x); }
ValuesIndices max(TensorArg x, int64_t dim, ReduceOptions o) {
  return run_pair(kMax, x, over({dim}, o.keepdim));
}
Tensor min(TensorArg x) { return amin(x); }
ValuesIndices min(TensorArg x, int64_t dim, ReduceOptions o) {
  return run_pair(kMin, x, over({dim}, o.keepdim));
}

Tensor argmax(TensorArg x) { return run(kArgmax, {x}, ReduceAttrs{}); }
Tensor argmax(TensorArg x, int64_t dim, ReduceOptions o) {
  return run(kArgmax, {x}, over({dim}, o.keepdim));
}
Tensor argmin(TensorArg x) { return run(kArgmin, {x}, ReduceAttrs{}); }
Tensor argmin(TensorArg x, int64_t dim, ReduceOptions o) {
  return run(kArgmin, {x}, over({dim}, o.keepdim));
}

Tensor median(TensorArg x) { return run_pair(kMedian, x, {}).values; }
ValuesIndices median(TensorArg x, int64_t dim, ReduceOptions o) {
  return run_pair(kMedian, x, over({dim}, o.keepdim));
}
Tensor nanmedian(TensorArg x) { return run_pair(kNanmedian, x, {}).values; }
ValuesIndices nanmedian(TensorArg x, int64_t dim, ReduceOptions o) {
  return run_pair(kNanmedian, x, over({dim}, o.keepdim));
}

void register_extreme_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(),
              {&kAmax, &kAmin, &kMax, &kMin, &kArgmax, &kArgmin, &kMedian, &kNanmedian});
}

}  // namespace cutaway
