#include <fmt/format.h>

#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/index.h>
#include <cutaway/autograd/ops/index_tools.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/pointwise_args.h>
#include <cutaway/core/tensor_ops.h>

// Ops that choose elements by value. Flat positions do the work: they turn a mask into an index.
namespace cutaway {

// Samples: mask_samples.cpp.
void nonzero_samples(SampleList&);
void masked_select_samples(SampleList&);
void masked_scatter_samples(SampleList&);

namespace {

void nonzero_forward(Call& c) {
  const Tensor& x = c.in(0);
  refuse_meta(c.op.name, x);
  const Tensor flat = nonzero_positions(contiguous_raw(x));
  Tensor& out = c.out(0, {flat.numel(), x.dim()}, DType::i64);
  if (out.numel() == 0) return;
  // Column d holds flat / (sizes after d) mod size d.
  int64_t inner = 1;
  for (int d = x.dim() - 1; d >= 0; --d) {
    const Tensor column = make_view(out, out.layout().select(1, d));
    PointwiseArgs p = pointwise_args(column, {&flat});
    p.scalar[0] = double(inner);
    p.integer[0] = inner;
    kernels::floor_divide_scalar(out.device(), DType::i64, p);
    p = pointwise_args(column, {&column});
    p.scalar[0] = double(x.sizes()[d]);
    p.integer[0] = x.sizes()[d];
    kernels::remainder_scalar(out.device(), DType::i64, p);
    inner *= x.sizes()[d];
  }
}

void require_mask(const Call& c, const Tensor& mask) {
  c.require_same_device();
  if (mask.dtype() != DType::boolean) {
    throw DTypeError(c.op.name,
                     fmt::format("the mask must be bool; got {} {}", name_of(mask.dtype()),
                                 to_string(mask.sizes())),
                     "compare, as in x > 0");
  }
}

// Flat positions of a mask spread over `sizes`.
Tensor positions(const Tensor& mask, const Shape& sizes) {
  return nonzero_positions(contiguous_raw(make_view(mask, mask.layout().expand(sizes))));
}

void masked_select_forward(Call& c) {
  const Tensor &x = c.in(0), &mask = c.in(1);
  require_mask(c, mask);
  const Shape sizes = broadcast(c.op.name, x.sizes(), mask.sizes());
  refuse_meta(c.op.name, x);
  const Tensor at = positions(mask, sizes);
  const Tensor dense = contiguous_raw(make_view(x, x.layout().expand(sizes)));
  Tensor& out = c.out(0, {at.numel()}, x.dtype());
  if (at.numel() > 0) {
    TakeRowsArgs t;
    t.index = at.data<int64_t>();
    t.in = dense.raw();
    t.out = out.raw();
    t.outer = t.inner = 1;
    t.n = dense.numel();
    t.count = at.numel();
    kernels::take_rows(x.device(), x.dtype(), t);
  }
  c.save(at);
  c.save(make_view(mask, mask.layout().expand(sizes)));
}

void masked_select_backward(Backward& b) {
  const Tensor &g = b.upstream(), mask = b.extra(1);
  const Tensor flat = index_add_skipping(zeros_like_sizes({mask.numel()}, g), 0, b.extra(0), g);
  b.set(0, reshape(flat, mask.sizes()));
}

void masked_scatter_forward(Call& c) {
  const Tensor &x = c.in(0), &mask = c.in(1), &src = c.in(2);
  require_mask(c, mask);
  require_same_type(c.op.name, x, src);
  const Shape sizes = broadcast(c.op.name, x.sizes(), mask.sizes());
  if (sizes != x.sizes()) {
    throw ShapeError(c.op.name, fmt::format("the mask must broadcast to x; got mask {}, x {}",
                                            to_string(mask.sizes()), to_string(x.sizes())));
  }
  if (x.is_meta()) {
    c.out(0, sizes, x.dtype());
    return;
  }
  const Tensor at = positions(mask, sizes);
  if (at.numel() > src.numel()) {
    throw ShapeError(c.op.name,
                     fmt::format("src needs an element for each true place; got {} for {}",
                                 src.numel(), at.numel()));
  }
  const Tensor& out = copy_to_out(c);
  if (at.numel() > 0) {
    const Tensor values = contiguous_raw(src);
    PutRowsArgs p;
    p.index = at.data<int64_t>();
    p.in = values.raw();
    p.out = out.raw();
    p.outer = p.inner = 1;
    p.n = out.numel();
    p.count = at.numel();
    kernels::put_rows(out.device(), out.dtype(), p);
  }
  c.save(at);
}

void masked_scatter_backward(Backward& b) {
  const Tensor& g = b.upstream();
  if (b.needs(0)) b.set(0, masked_fill(g, b.input(1), Scalar(0.0)));
  if (b.needs(2)) {
    const Tensor taken = index_select(flatten(g), 0, b.extra(0));
    const Shape& sizes = b.input_sizes(2);
    const Tensor rest = zeros_like_sizes({sizes.numel() - taken.numel()}, g);
    b.set(2, reshape(cat({taken, rest}), sizes));
  }
}

const OpRecord kNonzero{.name = "nonzero",
                        .signature = "nonzero(x) → indices",
                        .meaning = "Indices of the elements that are not zero, in order.",
                        .formula = "rows i with x[i] ≠ 0",
                        .shapes = "x [d_0, ...]   y [count, dimensions]",
                        .dtypes = kAllTypes,
                        .forward = nonzero_forward,
                        .no_gradient = "indices are integers",
                        .samples = nonzero_samples};

const OpRecord kMaskedSelect{.name = "masked_select",
                             .signature = "masked_select(x, mask) → y",
                             .meaning = "The elements where a mask is true, in order.",
                             .formula = "y = x_i for the i with mask_i",
                             .shapes = "x, mask broadcast   y [count]",
                             .dtypes = kAllTypes,
                             .forward = masked_select_forward,
                             .backward_text = "dx = zeros with g where the mask is true",
                             .backward = masked_select_backward,
                             .samples = masked_select_samples};

const OpRecord kMaskedScatter{
    .name = "masked_scatter",
    .signature = "masked_scatter(x, mask, src) → y",
    .meaning = "A copy of x with the true places filled from src, in order.",
    .formula = "y_i = src_k for the k-th i with mask_i, else x_i",
    .shapes = "x [...]   mask broadcasts to x   src [≥ count]   y as x",
    .dtypes = kAllTypes,
    .save_inputs = 0b010,
    .forward = masked_scatter_forward,
    .backward_text = "dx = g, 0 where written; dsrc = g there, in order",
    .backward = masked_scatter_backward,
    .samples = masked_scatter_samples};

}  // namespace

Tensor nonzero(TensorArg x) { return run(kNonzero, {x}); }
Tensors where(TensorArg condition) {
  const CallScope scope(condition.site);
  return unbind(nonzero(*condition), 1);
}
Tensor masked_select(TensorArg x, TensorArg mask) { return run(kMaskedSelect, {x, mask}); }
Tensor masked_scatter(TensorArg x, TensorArg mask, TensorArg src) {
  return run(kMaskedScatter, {x, mask, src});
}

void register_mask_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kNonzero, &kMaskedSelect, &kMaskedScatter});
}

}  // namespace cutaway
