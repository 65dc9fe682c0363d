#include <fmt/format.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/cast.h>
#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/index.h>
#include <cutaway/autograd/ops/index_tools.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

// Ops whose index is a vector: whole rows are added, written or reduced.
namespace cutaway {

// Samples: segment_samples.cpp.
void index_add_samples(SampleList&);
void index_copy_samples(SampleList&);
void segment_sum_samples(SampleList&);
void segment_mean_samples(SampleList&);
void segment_max_samples(SampleList&);
void segment_min_samples(SampleList&);

namespace {

// Checks x, index, src of index_add and index_copy; returns the dimension.
int check_rows(const Call& c, int64_t dim_given) {
  c.require_same_device();
  const Tensor &x = c.in(0), &index = c.in(1), &src = c.in(2);
  const int dim = normalize_dim(c.op.name, dim_given, x.dim());
  Shape want = x.sizes();
  if (x.dim()) want[dim] = index.numel();
  if (index.dim() > 1 || x.dim() == 0 || src.sizes() != want) {
    throw ShapeError(c.op.name, fmt::format("needs a vector as index and one slice of src for each "
                                            "entry; got x {}, index {}, src {}, need src {}",
                                            to_string(x.sizes()), to_string(index.sizes()),
                                            to_string(src.sizes()), to_string(want)));
  }
  require_same_type(c.op.name, x, src);
  return dim;
}

void fill_args(TakeRowsArgs& r, const Tensor& out, int dim, const Tensor& index,
               const Tensor& src) {
  r.index = index.data<int64_t>();
  r.in = src.raw();
  r.out = out.raw();
  r.outer = out.sizes().slice(0, dim).numel();
  r.n = out.sizes()[dim];
  r.count = index.numel();
  r.inner = out.sizes().slice(dim + 1, out.dim()).numel();
}

void index_add_forward(Call& c) {
  c.require_dtype(0);
  const auto& a = c.attrs<IndexAttrs>();
  const int dim = check_rows(c, a.dim);
  const Tensor index = index_values(c.op.name, c.in(1));
  check_index(c.op.name, index, c.in(0).sizes()[dim], a.skip);
  const Tensor& out = copy_to_out(c);
  if (c.meta() || c.in(2).numel() == 0) return;
  const Tensor src = contiguous_raw(c.in(2));
  ReduceRowsArgs r;
  fill_args(r, out, dim, index, src);
  r.atomics = !context().deterministic;
  kernels::reduce_rows(out.device(), out.dtype(), r);
}

void index_add_backward(Backward& b) {
  const Tensor& g = b.upstream();
  if (b.needs(0)) b.set(0, g);
  if (b.needs(2)) b.set(2, take_or_zero(g, b.attrs<IndexAttrs>().dim, b.input(1)));
}

// The index with -1 for every entry that a later one overwrites.
Tensor survivors(int64_t n, const Tensor& index) {
  const NoGradGuard constants;
  const Opts integers{.dtype = DType::i64, .device = index.device()};
  const Tensor order = arange(0, index.numel(), 1, integers);
  const Tensor last = index_copy(zeros({n}, integers), 0, index, order);
  return where(eq(index_select(last, 0, index), order), index, Scalar(-1));
}

void index_copy_forward(Call& c) {
  const auto& a = c.attrs<IndexAttrs>();
  const int dim = check_rows(c, a.dim);
  const Tensor index = index_values(c.op.name, c.in(1));
  check_index(c.op.name, index, c.in(0).sizes()[dim], a.skip);
  const Tensor& out = copy_to_out(c);
  if (c.meta()) return;
  if (c.in(2).numel()) {
    const Tensor src = contiguous_raw(c.in(2));
    PutRowsArgs r;
    fill_args(r, out, dim, index, src);
    kernels::put_rows(out.device(), out.dtype(), r);
  }
  if (c.record) c.save(survivors(out.sizes()[dim], index));
}

void index_copy_backward(Backward& b) {
  const int64_t dim = b.attrs<IndexAttrs>().dim;
  const Tensor &g = b.upstream(), index = b.input(1);
  if (b.needs(0)) {
    Shape sizes = g.sizes();
    sizes[normalize_dim("index_copy", dim, g.dim())] = index.numel();
    b.set(0, index_copy(g, dim, index, zeros_like_sizes(sizes, g)));
  }
  if (b.needs(2)) b.set(2, take_or_zero(g, dim, b.extra(0)));
}

// ---- segments

struct SegmentAttrs {
  int64_t segments;
};

// ids [N] seen as the index of a gather along dimension 0, with the sizes of x.
Tensor spread(const Tensor& ids, const Shape& sizes) {
  Shape column = Shape::filled(sizes.rank(), 1);
  column[0] = sizes[0];
  return expand(reshape(ids, column), sizes);
}

// As in scatter_reduce: the ids with -1 for values that are not the extreme of their segment, and
// how many share it (at least 1).
void save_ties(Call& c, const Tensor& ids) {
  const NoGradGuard constants;
  const Tensor x = c.in(0).detach(), out = c.outputs[0].detach(), at = spread(ids, x.sizes());
  const Tensor ties = where(same_or_nan(x, index_select(out, 0, ids)), at, Scalar(-1));
  const Opts integers{.dtype = DType::i64, .device = x.device()};
  const Tensor once = ones(x.sizes(), integers), none = zeros(out.sizes(), integers);
  c.save(ties);
  c.save(maximum(scatter_add_skipping(none, 0, ties, once), ones_like(none)));
}

template <ScatterMode mode>
void segment_forward(Call& c) {
  c.require_dtype(0);
  c.require_same_device();
  const Tensor &x = c.in(0), &ids = c.in(1);
  const int64_t segments = c.attrs<SegmentAttrs>().segments;
  if (x.dim() == 0 || ids.dim() != 1 || ids.numel() != x.sizes()[0]) {
    throw ShapeError(c.op.name, fmt::format("needs one id for each row; got x {}, ids {}",
                                            to_string(x.sizes()), to_string(ids.sizes())));
  }
  if (segments < 0) {
    throw ValueError(c.op.name,
                     fmt::format("the number of segments must not be negative; got {}", segments));
  }
  const Tensor index = index_values(c.op.name, ids);
  check_index(c.op.name, index, segments);
  Shape sizes = x.sizes();
  sizes[0] = segments;
  Tensor& out = c.out(0, sizes, x.dtype());
  if (c.meta()) return;
  out = zeros_like_sizes(sizes, x);
  Tensor counts;
  if (mode == ScatterMode::mean && c.record) {
    counts = ones({segments}, {.dtype = DType::i64, .device = x.device()});
  }
  if (x.numel()) {
    const Tensor dense = contiguous_raw(x);
    ReduceRowsArgs r;
    fill_args(r, out, 0, index, dense);
    r.mode = mode;
    r.atomics = !context().deterministic;
    r.include_self = r.atomics && mode == ScatterMode::sum;  // zeros, which atomics can add to
    r.counts = counts.defined() ? counts.data<int64_t>() : nullptr;
    kernels::reduce_rows(out.device(), out.dtype(), r);
  }
  if (!c.record) return;
  if (mode == ScatterMode::mean) c.save(counts);
  if (mode == ScatterMode::amax || mode == ScatterMode::amin) save_ties(c, index);
}

void onnx_segment_sum(OnnxCall& c) {
  const Shape& sizes = c.in().sizes();
  Shape column = Shape::filled(sizes.rank(), 1);
  column[0] = sizes[0];
  const std::string ids = c.node("Reshape", {c.cast(1, DType::i64), c.list(column)});
  c.result(c.node("ScatterElements",
                  {c.constant(zeros(c.out().sizes(), {.dtype = c.type()})),
                   c.node("Expand", {ids, c.list(sizes)}), c.name(0)},
                  {{"axis", int64_t(0)}, {"reduction", "add"}}));
}

void segment_sum_backward(Backward& b) { b.set(0, index_select(b.upstream(), 0, b.input(1))); }

void segment_mean_backward(Backward& b) {
  const Tensor& g = b.upstream();
  Shape column = Shape::filled(g.dim(), 1);
  column[0] = g.sizes()[0];
  const Tensor counts = cast(reshape(b.extra(0), column), g.dtype());
  b.set(0, index_select(g / counts, 0, b.input(1)));
}

void segment_extreme_backward(Backward& b) {
  const Tensor& g = b.upstream();
  b.set(0, gather_or_zero(g / cast(b.extra(1), g.dtype()), 0, b.extra(0)));
}

const OpRecord kIndexAdd{.name = "index_add",
                         .signature = "index_add(x, dim, index, src) → y",
                         .meaning = "A copy of x with slices added at an index.",
                         .formula = "y[…, t, …] = x[…, t, …] + Σ src[…, k, …] with index[k] = t",
                         .shapes = "x [..., n, ...]   index [K]   src [..., K, ...]   y as x",
                         .dtypes = kNumbers,
                         .save_inputs = 0b010,
                         .forward = index_add_forward,
                         .backward_text = "dx = g, dsrc = index_select(g, dim, index)",
                         .backward = index_add_backward,
                         .samples = index_add_samples};

const OpRecord kIndexCopy{.name = "index_copy",
                          .signature = "index_copy(x, dim, index, src) → y",
                          .meaning = "A copy of x with slices written at an index; the last wins.",
                          .formula = "y = x, but y[…, index[k], …] = src[…, k, …]",
                          .shapes = "x [..., n, ...]   index [K]   src [..., K, ...]   y as x",
                          .dtypes = kAllTypes,
                          .save_inputs = 0b010,
                          .forward = index_copy_forward,
                          .backward_text = "dx = g, 0 where written; dsrc = g where it survived",
                          .backward = index_copy_backward,
                          .samples = index_copy_samples};

const OpRecord kSegmentSum{.name = "segment_sum",
                           .signature = "segment_sum(x, ids, segments) → y",
                           .meaning = "The sum of the rows of each segment.",
                           .formula = "y_s = Σ x_i with ids_i = s",
                           .shapes = "x [N, ...]   ids [N]   y [segments, ...]",
                           .dtypes = kNumbers,
                           .save_inputs = 0b10,
                           .forward = segment_forward<ScatterMode::sum>,
                           .backward_text = "dx_i = g[ids_i]",
                           .backward = segment_sum_backward,
                           .samples = segment_sum_samples,
                           .onnx = onnx_segment_sum};

const OpRecord kSegmentMean{.name = "segment_mean",
                            .signature = "segment_mean(x, ids, segments) → y",
                            .meaning = "The mean of the rows of each segment, 0 without rows.",
                            .formula = "y_s = Σ x_i / number of i, with ids_i = s",
                            .shapes = "x [N, ...]   ids [N]   y [segments, ...]",
                            .dtypes = kNumbers,
                            .save_inputs = 0b10,
                            .forward = segment_forward<ScatterMode::mean>,
                            .backward_text = "dx_i = g[ids_i] / count[ids_i]",
                            .backward = segment_mean_backward,
                            .samples = segment_mean_samples};

const OpRecord kSegmentMax{.name = "segment_max",
                           .signature = "segment_max(x, ids, segments) → y",
                           .meaning = "The largest elements of each segment, 0 without rows.",
                           .formula = "y_s = max x_i with ids_i = s",
                           .shapes = "x [N, ...]   ids [N]   y [segments, ...]",
                           .dtypes = kNumbers,
                           .forward = segment_forward<ScatterMode::amax>,
                           .backward_text = "g, shared by the elements that are the largest",
                           .backward = segment_extreme_backward,
                           .samples = segment_max_samples};

const OpRecord kSegmentMin{.name = "segment_min",
                           .signature = "segment_min(x, ids, segments) → y",
                           .meaning = "The smallest elements of each segment, 0 without rows.",
                           .formula = "y_s = min x_i with ids_i = s",
                           .shapes = "x [N, ...]   ids [N]   y [segments, ...]",
                           .dtypes = kNumbers,
                           .forward = segment_forward<ScatterMode::amin>,
                           .backward_text = "g, shared by the elements that are the smallest",
                           .backward = segment_extreme_backward,
                           .samples = segment_min_samples};

}  // namespace

Tensor index_add(TensorArg x, int64_t dim, TensorArg index, TensorArg src) {
  return run(kIndexAdd, {x, index, src}, IndexAttrs{dim});
}
Tensor index_add_skipping(Tensor x, int64_t dim, const Tensor& index, const Tensor& src) {
  return run(kIndexAdd, {std::move(x), index, src}, IndexAttrs{dim, true});
}
Tensor index_copy(TensorArg x, int64_t dim, TensorArg index, TensorArg src) {
  return run(kIndexCopy, {x, index, src}, IndexAttrs{dim});
}
Tensor segment_sum(TensorArg x, TensorArg ids, int64_t segments) {
  return run(kSegmentSum, {x, ids}, SegmentAttrs{segments});
}
Tensor segment_mean(TensorArg x, TensorArg ids, int64_t segments) {
  return run(kSegmentMean, {x, ids}, SegmentAttrs{segments});
}
Tensor segment_max(TensorArg x, TensorArg ids, int64_t segments) {
  return run(kSegmentMax, {x, ids}, SegmentAttrs{segments});
}
Tensor segment_min(TensorArg x, TensorArg ids, int64_t segments) {
  return run(kSegmentMin, {x, ids}, SegmentAttrs{segments});
}

void register_segment_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(),
              {&kIndexAdd, &kIndexCopy, &kSegmentSum, &kSegmentMean, &kSegmentMax, &kSegmentMin});
}

}  // namespace cutaway
