#include <fmt/format.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/cast.h>
#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/index.h>
#include <cutaway/autograd/ops/index_tools.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/products.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: scatter_samples.cpp.
void scatter_samples(SampleList&);
void scatter_fill_samples(SampleList&);
void scatter_add_samples(SampleList&);
void scatter_mean_samples(SampleList&);
void scatter_prod_samples(SampleList&);
void scatter_amax_samples(SampleList&);
void scatter_amin_samples(SampleList&);

namespace {

struct FillAttrs : IndexAttrs {
  double value = 0;
  int64_t integer = 0;
  bool floating = true;
};
struct ReduceAttrs : IndexAttrs {
  bool include_self = true;
};

// Checks x, index and (if given) src; returns the dimension.
int check_scatter(const Call& c, int64_t dim_given, const Tensor* src) {
  c.require_same_device();
  const Tensor &x = c.in(0), &index = c.in(1);
  const int dim = normalize_dim(c.op.name, dim_given, x.dim());
  bool fits = index.dim() == x.dim() && (!src || src->dim() == x.dim());
  for (int d = 0; fits && d < x.dim(); ++d) {
    fits = (d == dim || index.sizes()[d] <= x.sizes()[d]) &&
           (!src || index.sizes()[d] <= src->sizes()[d]);
  }
  if (!fits) {
    throw ShapeError(c.op.name,
                     fmt::format("x, index and src must have as many dimensions, and index "
                                 "must fit into src, and into x outside of dim {}; got x "
                                 "{}, index {}, src {}",
                                 dim, to_string(x.sizes()), to_string(index.sizes()),
                                 src ? to_string(src->sizes()) : "number"),
                     "index_add() and index_copy() take a vector as index");
  }
  if (src) require_same_type(c.op.name, x, *src);
  return dim;
}

// The common part of the kernel's arguments; `index` holds dense values.
template <class Args>
void fill_args(Args& s, const Tensor& out, int dim, const Tensor& index, const Tensor* src) {
  s.rank = std::max(out.dim(), 1);
  s.dim = dim;
  s.sizes[0] = 1;
  for (int d = 0; d < out.dim(); ++d) {
    s.sizes[d] = index.sizes()[d];
    s.out_strides[d] = out.strides()[d];
    if (src) s.src_strides[d] = src->strides()[d];
  }
  s.n = out.dim() ? out.sizes()[dim] : 1;
  s.index = index.data<int64_t>();
  s.src = src ? src->raw() : nullptr;
  s.out = out.raw();
}

// The index of rows, where x, index and src have the same sizes but for `dim` and all elements of a
// row share one index (a column that was expanded); undefined otherwise.
Tensor row_index(const Tensor& x, int dim, const Tensor& index, const Tensor& src) {
  if (x.dim() < 2 || index.numel() == 0 || src.sizes() != index.sizes()) return {};
  Tensor rows = index;
  bool expanded = false;
  for (int d = x.dim() - 1; d >= 0; --d) {
    if (d == dim) continue;
    const int64_t n = index.sizes()[d];
    if (n != x.sizes()[d] || (n > 1 && index.strides()[d] != 0)) return {};
    expanded = expanded || n > 1;
    rows = narrow(rows, d, 0, 1);
  }
  if (!expanded) return {};
  return index_values("scatter_add", flatten(rows));
}

// Adds whole rows of src, as index_add does.
void add_rows(const Tensor& out, int dim, const Tensor& rows, const Tensor& given, bool self) {
  const Tensor src = contiguous_raw(given);
  ReduceRowsArgs r;
  r.index = rows.data<int64_t>();
  r.in = src.raw();
  r.out = out.raw();
  r.outer = out.sizes().slice(0, dim).numel();
  r.n = out.sizes()[dim];
  r.count = rows.numel();
  r.inner = out.sizes().slice(dim + 1, out.dim()).numel();
  r.include_self = self;
  r.atomics = !context().deterministic;
  kernels::reduce_rows(out.device(), out.dtype(), r);
}

// g for src, whose elements beyond the index took no part.
Tensor fit(const Tensor& g, const Shape& sizes) {
  if (g.sizes() == sizes) return g;
  Tensor out = g;
  for (int d = 0; d < sizes.rank(); ++d) {
    const int64_t more = sizes[d] - g.sizes()[d];
    if (more == 0) continue;
    Shape extra = out.sizes();
    extra[d] = more;
    out = cat({out, zeros_like_sizes(extra, g)}, d);
  }
  return out;
}

// ---- overwriting

// The index with -1 in place of every element that a later one overwrites.
Tensor survivors(const Shape& sizes, int64_t dim, const Tensor& index) {
  const NoGradGuard constants;
  const Opts integers{.dtype = DType::i64, .device = index.device()};
  const Tensor order = reshape(arange(0, index.numel(), 1, integers), index.sizes());
  const Tensor last = scatter(zeros(sizes, integers), dim, index, order);
  return where(eq(gather(last, dim, index), order), index, Scalar(-1));
}

void scatter_forward(Call& c) {
  const Tensor &x = c.in(0), &src = c.in(2);
  const auto& a = c.attrs<IndexAttrs>();
  const int dim = check_scatter(c, a.dim, &src);
  const Tensor index = index_values(c.op.name, c.in(1));
  check_index(c.op.name, index, x.dim() ? x.sizes()[dim] : 1, a.skip);
  const Tensor& out = copy_to_out(c);
  if (c.meta()) return;
  if (index.numel()) {
    ScatterArgs s;
    fill_args(s, out, dim, index, &src);
    kernels::scatter(out.device(), out.dtype(), s);
  }
  if (c.record) c.save(survivors(out.sizes(), dim, index));
}

void scatter_backward(Backward& b) {
  const int64_t dim = b.attrs<IndexAttrs>().dim;
  const Tensor& g = b.upstream();
  if (b.needs(0)) b.set(0, scatter(g, dim, b.input(1), Scalar(0.0)));
  if (b.needs(2)) b.set(2, fit(gather_or_zero(g, dim, b.extra(0)), b.input_sizes(2)));
}

void scatter_fill_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto& a = c.attrs<FillAttrs>();
  const int dim = check_scatter(c, a.dim, nullptr);
  const Tensor index = index_values(c.op.name, c.in(1));
  check_index(c.op.name, index, x.dim() ? x.sizes()[dim] : 1, a.skip);
  const Tensor& out = copy_to_out(c);
  if (c.meta() || index.numel() == 0) return;
  const Scalar scalar = a.floating ? Scalar(a.value) : Scalar(a.integer);
  const Tensor value = full({1}, scalar, {.dtype = out.dtype(), .device = out.device()});
  ScatterArgs s;
  fill_args(s, out, dim, index, nullptr);
  s.value = value.raw();
  kernels::scatter(out.device(), out.dtype(), s);
}

void scatter_fill_backward(Backward& b) {
  b.set(0, scatter(b.upstream(), b.attrs<FillAttrs>().dim, b.input(1), Scalar(0.0)));
}

// ---- reducing

// What the gradients of amax and amin need: the index with -1 for values that are not the result,
// which old values are, and how many share each place.
void save_ties(Call& c, const Tensor& x, const Tensor& index, int64_t dim, bool include_self) {
  const NoGradGuard constants;
  const Tensor out = c.outputs[0].detach();
  Tensor src = c.in(2).detach();
  for (int d = 0; d < src.dim(); ++d) src = narrow(src, d, 0, index.sizes()[d]);
  const Tensor ties = where(same_or_nan(src, gather(out, dim, index)), index, Scalar(-1));
  Tensor old = include_self
                   ? same_or_nan(x.detach(), out)
                   : scatter(ones(x.sizes(), {DType::boolean, x.device()}), dim, index, Scalar(0));
  const Tensor once = ones(index.sizes(), {.dtype = DType::i64, .device = x.device()});
  c.save(ties);
  c.save(old);
  c.save(scatter_add_skipping(cast(old, DType::i64), dim, ties, once));
}

// The sum over rows that share an index.
void add_row_sums(Call& c, int dim, const Tensor& rows, const ReduceAttrs& a) {
  check_index(c.op.name, rows, c.in(0).sizes()[dim], a.skip);
  const Tensor& out = copy_to_out(c);
  if (!c.meta()) add_rows(out, dim, rows, c.in(2), a.include_self);
}

template <ScatterMode mode>
void scatter_reduce_forward(Call& c) {
  c.require_dtype(0);
  const Tensor &x = c.in(0), &src = c.in(2);
  const auto& a = c.attrs<ReduceAttrs>();
  const int dim = check_scatter(c, a.dim, &src);
  if (mode == ScatterMode::sum) {
    const Tensor rows = row_index(x, dim, c.in(1), src);
    if (rows.defined()) return add_row_sums(c, dim, rows, a);
  }
  const Tensor index = index_values(c.op.name, c.in(1));
  check_index(c.op.name, index, x.dim() ? x.sizes()[dim] : 1, a.skip);
  const Tensor before = c.record && mode != ScatterMode::sum ? x.detach() : Tensor();
  const Tensor& out = copy_to_out(c);
  if (c.meta()) return;
  Tensor counts;
  if (mode == ScatterMode::mean && c.record) {
    counts = ones(out.sizes(), {.dtype = DType::i64, .device = x.device()});
  }
  if (index.numel()) {
    ScatterReduceArgs s;
    fill_args(s, out, dim, index, &src);
    s.mode = mode;
    s.include_self = a.include_self;
    s.atomics = !context().deterministic;
    s.counts = counts.defined() ? counts.data<int64_t>() : nullptr;
    kernels::scatter_reduce(out.device(), out.dtype(), s);
  }
  if (!c.record) return;
  if (mode == ScatterMode::mean) c.save(counts);
  if (mode == ScatterMode::amax || mode == ScatterMode::amin) {
    save_ties(c, before, index, dim, a.include_self);
  }
}

// g where the old value counts, zero where it was replaced.
Tensor old_part(Backward& b, const Tensor& g) {
  const auto& a = b.attrs<ReduceAttrs>();
  return a.include_self ? g : scatter(g, a.dim, b.input(1), Scalar(0.0));
}

void scatter_add_backward(Backward& b) {
  const auto& a = b.attrs<ReduceAttrs>();
  const Tensor& g = b.upstream();
  if (b.needs(0)) b.set(0, old_part(b, g));
  if (b.needs(2)) b.set(2, fit(gather_or_zero(g, a.dim, b.input(1)), b.input_sizes(2)));
}

void scatter_mean_backward(Backward& b) {
  const Tensor g = b.upstream() / cast(b.extra(0), b.upstream().dtype());
  if (b.needs(0)) b.set(0, old_part(b, g));
  if (b.needs(2)) {
    b.set(2, fit(gather(g, b.attrs<ReduceAttrs>().dim, b.input(1)), b.input_sizes(2)));
  }
}

void scatter_extreme_backward(Backward& b) {
  const Tensor g = b.upstream() / cast(b.extra(2), b.upstream().dtype());
  if (b.needs(0)) b.set(0, where(b.extra(1), g, Scalar(0.0)));
  if (b.needs(2)) {
    b.set(2, fit(gather_or_zero(g, b.attrs<ReduceAttrs>().dim, b.extra(0)), b.input_sizes(2)));
  }
}

// Each value gets g times the product of all others at its place.
void scatter_prod_backward(Backward& b) {
  const auto& a = b.attrs<ReduceAttrs>();
  const Tensor x = b.input(0), index = index_values("scatter_prod", b.input(1)), &g = b.upstream();
  Tensor src = b.input(2);
  const Shape src_sizes = src.sizes();
  for (int d = 0; d < src.dim(); ++d) src = narrow(src, d, 0, index.sizes()[d]);
  const Opts integers{.dtype = DType::i64, .device = x.device()};
  const Tensor places = reshape(arange(0, x.numel(), 1, integers), x.sizes());
  const Tensor hit = flatten(gather(places, a.dim, index));
  Tensor values = flatten(src), at = hit;
  if (a.include_self) {
    values = cat({values, flatten(x)});
    at = cat({hit, flatten(places)});
  }
  const Tensor others = products_of_others(values, at);
  const int64_t n = hit.numel();
  if (b.needs(0)) {
    b.set(0, a.include_self ? g * reshape(slice(others, 0, n), x.sizes()) : old_part(b, g));
  }
  if (b.needs(2)) {
    const Tensor part = reshape(slice(others, 0, 0, n), src.sizes());
    b.set(2, fit(gather(g, a.dim, index) * part, src_sizes));
  }
}

void onnx_scatter(OnnxCall& c, const IndexAttrs& a, const char* reduction) {
  if (a.skip) c.refuse("skips indices, which ONNX cannot");
  c.result(c.node("ScatterElements", {c.name(0), c.name(1), c.name(2)},
                  {{"axis", c.dim(a.dim)}, {"reduction", reduction}}));
}

const OpRecord kScatter{
    .name = "scatter",
    .signature = "scatter(x, dim, index, src) → y",
    .meaning = "A copy of x with src written at an index; the last one wins.",
    .formula = "y = x, but y[…, index[…, i, …], …] = src[…, i, …]",
    .shapes = "x [..., n, ...]   index, src [..., k, ...]   y as x",
    .dtypes = kAllTypes,
    .save_inputs = 0b010,
    .forward = scatter_forward,
    .backward_text = "dx = g, 0 where written; dsrc = g where it survived",
    .backward = scatter_backward,
    .samples = scatter_samples,
    .onnx = [](OnnxCall& c) { onnx_scatter(c, c.attrs<IndexAttrs>(), "none"); }};

const OpRecord kScatterFill{.name = "scatter_fill",
                            .signature = "scatter(x, dim, index, value) → y",
                            .meaning = "A copy of x with one value written at an index.",
                            .formula = "y = x, but y[…, index[…, i, …], …] = value",
                            .shapes = "x [..., n, ...]   index [..., k, ...]   y as x",
                            .dtypes = kAllTypes,
                            .save_inputs = 0b010,
                            .forward = scatter_fill_forward,
                            .backward_text = "dx = g, 0 where written",
                            .backward = scatter_fill_backward,
                            .samples = scatter_fill_samples};

const OpRecord kScatterAdd{.name = "scatter_add",
                           .signature = "scatter_add(x, dim, index, src) → y",
                           .meaning = "A copy of x with src added at an index.",
                           .formula = "y_t = x_t + Σ of the src whose index is t",
                           .shapes = "x [..., n, ...]   index, src [..., k, ...]   y as x",
                           .dtypes = kNumbers,
                           .save_inputs = 0b010,
                           .forward = scatter_reduce_forward<ScatterMode::sum>,
                           .backward_text = "dx = g, dsrc = gather(g, dim, index)",
                           .backward = scatter_add_backward,
                           .samples = scatter_add_samples,
                           .onnx = [](OnnxCall& c) {
                             if (!c.attrs<ReduceAttrs>().include_self)
                               c.refuse("needs include_self in ONNX");
                             onnx_scatter(c, c.attrs<ReduceAttrs>(), "add");
                           }};

const OpRecord kScatterMean{.name = "scatter_mean",
                            .signature = "scatter_reduce(x, dim, index, src, {mode = mean}) → y",
                            .meaning = "The mean of the values that meet at a place.",
                            .formula = "y_t = (x_t + Σ src) / (1 + number of src)",
                            .shapes = "x [..., n, ...]   index, src [..., k, ...]   y as x",
                            .dtypes = kNumbers,
                            .save_inputs = 0b010,
                            .forward = scatter_reduce_forward<ScatterMode::mean>,
                            .backward_text = "dx = g / count, dsrc = gather(g / count, dim, index)",
                            .backward = scatter_mean_backward,
                            .samples = scatter_mean_samples};

const OpRecord kScatterProd{.name = "scatter_prod",
                            .signature = "scatter_reduce(x, dim, index, src, {mode = prod}) → y",
                            .meaning = "The product of the values that meet at a place.",
                            .formula = "y_t = x_t · Π src",
                            .shapes = "x [..., n, ...]   index, src [..., k, ...]   y as x",
                            .dtypes = kNumbers,
                            .save_inputs = 0b111,
                            .forward = scatter_reduce_forward<ScatterMode::prod>,
                            .backward_text = "d = g · product of the others at the same place",
                            .backward = scatter_prod_backward,
                            .samples = scatter_prod_samples};

const OpRecord kScatterAmax{.name = "scatter_amax",
                            .signature = "scatter_reduce(x, dim, index, src, {mode = amax}) → y",
                            .meaning = "The largest of the values that meet at a place.",
                            .formula = "y_t = max(x_t, src, …)",
                            .shapes = "x [..., n, ...]   index, src [..., k, ...]   y as x",
                            .dtypes = kNumbers,
                            .save_inputs = 0b010,
                            .forward = scatter_reduce_forward<ScatterMode::amax>,
                            .backward_text = "g, shared by the values that are the largest",
                            .backward = scatter_extreme_backward,
                            .samples = scatter_amax_samples};

const OpRecord kScatterAmin{.name = "scatter_amin",
                            .signature = "scatter_reduce(x, dim, index, src, {mode = amin}) → y",
                            .meaning = "The smallest of the values that meet at a place.",
                            .formula = "y_t = min(x_t, src, …)",
                            .shapes = "x [..., n, ...]   index, src [..., k, ...]   y as x",
                            .dtypes = kNumbers,
                            .save_inputs = 0b010,
                            .forward = scatter_reduce_forward<ScatterMode::amin>,
                            .backward_text = "g, shared by the values that are the smallest",
                            .backward = scatter_extreme_backward,
                            .samples = scatter_amin_samples};

const OpRecord& record_of(ScatterMode mode) {
  switch (mode) {
    case ScatterMode::sum:
      return kScatterAdd;
    case ScatterMode::mean:
      return kScatterMean;
    case ScatterMode::prod:
      return kScatterProd;
    case ScatterMode::amax:
      return kScatterAmax;
    case ScatterMode::amin:
      break;
  }
  return kScatterAmin;
}

}  // namespace

Tensor scatter(TensorArg x, int64_t dim, TensorArg index, TensorArg src) {
  return run(kScatter, {x, index, src}, IndexAttrs{dim});
}
Tensor scatter(TensorArg x, int64_t dim, TensorArg index, Scalar value) {
  return run(kScatterFill, {x, index}, FillAttrs{{dim}, value.f, value.i, value.floating});
}
Tensor scatter_add(TensorArg x, int64_t dim, TensorArg index, TensorArg src) {
  return run(kScatterAdd, {x, index, src}, ReduceAttrs{{dim}});
}
Tensor scatter_add_skipping(Tensor x, int64_t dim, const Tensor& index, const Tensor& src) {
  return run(kScatterAdd, {std::move(x), index, src}, ReduceAttrs{{dim, true}});
}
Tensor scatter_reduce(TensorArg x, int64_t dim, TensorArg index, TensorArg src,
                      ScatterReduceOptions o) {
  return run(record_of(o.mode), {x, index, src}, ReduceAttrs{{dim}, o.include_self});
}

void register_scatter_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kScatter, &kScatterFill, &kScatterAdd, &kScatterMean, &kScatterProd,
                           &kScatterAmax, &kScatterAmin});
}

}  // namespace cutaway
