#include <cutaway/autograd/ops/sort.h>

#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/index_tools.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/sort.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: sort_samples.cpp.
void sort_samples(SampleList&);
void argsort_samples(SampleList&);
void topk_samples(SampleList&);
void unique_samples(SampleList&);
void searchsorted_samples(SampleList&);

namespace {

struct SortAttrs {
  int64_t dim;
  int64_t k;  // -1: all
  bool descending;
};

[[noreturn, gnu::cold]] void fail_length(const char* op, const Tensor& x) {
  throw ShapeError(op, "lines must be shorter than 2^32 elements; got x " + to_string(x.sizes()));
}

// Sorts lines of x along dim, with k of them kept, into values and indices (undefined: not wanted).
void sort_lines(const char* op, const Tensor& x, int dim, const SortAttrs& a, const Tensor& values,
                const Tensor& indices) {
  SortArgs s;
  s.n = x.dim() ? x.sizes()[dim] : 1;
  s.k = a.k < 0 ? s.n : a.k;
  if (s.n >= int64_t(1) << 32) fail_length(op, x);
  if (s.k == 0 || x.numel() == 0) return;
  const Tensor dense = contiguous_raw(x);
  s.outer = x.sizes().slice(0, dim).numel();
  s.inner = x.dim() ? x.sizes().slice(dim + 1, x.dim()).numel() : 1;
  s.in = dense.raw();
  s.values = values.defined() ? values.raw() : nullptr;
  s.indices = indices.data<int64_t>();
  s.descending = a.descending;
  kernels::sort(x.device(), x.dtype(), s);
}

void sort_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto& a = c.attrs<SortAttrs>();
  const int dim = normalize_dim(c.op.name, a.dim, x.dim());
  const int64_t n = x.dim() ? x.sizes()[dim] : 1;
  Shape sizes = x.sizes();
  if (a.k >= 0) {
    if (a.k > n) {
      throw ValueError(c.op.name,
                       fmt::format("k must lie in 0 … {}, the size of dimension {}; got k {} "
                                   "for x {}",
                                   n, dim, a.k, to_string(x.sizes())));
    }
    if (x.dim()) {
      sizes[dim] = a.k;
    } else if (a.k == 0) {
      sizes = {0};
    }
  }
  const Tensor& values = c.out(0, sizes, x.dtype());
  const Tensor& indices = c.out(1, sizes, DType::i64);
  if (c.meta()) return;
  sort_lines(c.op.name, x, dim, a, values, indices);
  c.save(indices);
}

void sort_backward(Backward& b) {
  const Tensor& g = b.upstream();
  const Shape& sizes = b.input_sizes(0);
  if (g.dim() != sizes.rank()) return b.set(0, zeros_like_sizes(sizes, g));  // none of a 0-d tensor
  b.set(0,
        scatter_add_skipping(zeros_like_sizes(sizes, g), b.attrs<SortAttrs>().dim, b.extra(0), g));
}

void argsort_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto& a = c.attrs<SortAttrs>();
  const int dim = normalize_dim(c.op.name, a.dim, x.dim());
  const Tensor& indices = c.out(0, x.sizes(), DType::i64);
  if (!c.meta()) sort_lines(c.op.name, x, dim, a, {}, indices);
}

void unique_forward(Call& c) {
  const Tensor& x = c.in(0);
  refuse_meta(c.op.name, x);
  const int64_t n = x.numel();
  const Opts integers{.dtype = DType::i64, .device = x.device()};
  const Tensor flat = make_view(contiguous_raw(x), Layout::contiguous({n}));
  const Tensor sorted = empty({n}, {.dtype = x.dtype(), .device = x.device()});
  const Tensor order = empty({n}, integers), counts = empty({n}, integers);
  const Tensor values = empty({n}, {.dtype = x.dtype(), .device = x.device()});
  const Tensor& inverse = c.out(1, x.sizes(), DType::i64);
  int64_t groups = 0;
  if (n > 0) {
    sort_lines(c.op.name, flat, 0, {0, -1, false}, sorted, order);
    UniqueArgs u;
    u.sorted = sorted.raw();
    u.order = order.data<int64_t>();
    u.n = n;
    u.values = values.raw();
    u.inverse = inverse.data<int64_t>();
    u.counts = counts.data<int64_t>();
    u.groups = &groups;
    kernels::unique(x.device(), x.dtype(), u);
  }
  // Exact copies, so that a few groups do not keep a long buffer.
  const Tensor& kept = c.out(0, {groups}, x.dtype());
  const Tensor& kept_counts = c.out(2, {groups}, DType::i64);
  copy_elements(kept, make_view(values, values.layout().slice(0, 0, groups, 1)));
  copy_elements(kept_counts, make_view(counts, counts.layout().slice(0, 0, groups, 1)));
}

struct SearchAttrs {
  bool right;
};

void searchsorted_forward(Call& c) {
  c.require_same_device();
  const Tensor &sorted = c.in(0), &values = c.in(1);
  const bool shared = sorted.dim() == 1;
  const bool fits = shared || (sorted.dim() > 0 && sorted.dim() == values.dim() &&
                               sorted.sizes().slice(0, sorted.dim() - 1) ==
                                   values.sizes().slice(0, values.dim() - 1));
  if (!fits) {
    throw ShapeError(c.op.name,
                     fmt::format("needs a vector, or rows with the leading sizes of values; "
                                 "got sorted {}, values {}",
                                 to_string(sorted.sizes()), to_string(values.sizes())));
  }
  const DType common = promote(sorted.dtype(), values.dtype());
  const Tensor& out = c.out(0, values.sizes(), DType::i64);
  if (c.meta() || out.numel() == 0) return;
  const Tensor a = cast_raw(sorted, common), b = cast_raw(values, common);
  SearchArgs s;
  s.sorted = a.raw();
  s.values = b.raw();
  s.out = out.data<int64_t>();
  s.shared = shared;
  s.n = sorted.sizes().back();
  s.m = values.dim() ? values.sizes().back() : 1;
  s.rows = values.numel() / s.m;
  s.right = c.attrs<SearchAttrs>().right;
  kernels::search_sorted(values.device(), common, s);
}

// Values and indices of TopK as results; -1: not one of them.
void onnx_top(OnnxCall& c, int values, int indices) {
  const auto& a = c.attrs<SortAttrs>();
  if (c.in().dim() == 0) c.refuse("of a single number has no equivalent in ONNX");
  const int64_t axis = c.dim(a.dim), k = a.k < 0 ? c.in().size(axis) : a.k;
  const auto both = c.nodes("TopK", {c.name(0), c.list({k})}, 2,
                            {{"axis", axis}, {"largest", int(a.descending)}, {"sorted", 1}});
  if (values >= 0) c.result(values, both[0]);
  c.result(indices, both[1]);
}

const OpRecord kSort{.name = "sort",
                     .signature = "sort(x, dim = -1, {descending}) → values, indices",
                     .meaning = "Elements in order; stable, NaN last (first when descending).",
                     .formula = "values = x[…, indices, …] ascending",
                     .shapes = "x [..., n, ...]   values, indices as x",
                     .dtypes = kAllTypes,
                     .outputs = 2,
                     .forward = sort_forward,
                     .backward_text = "dx = g, put back to where each element stood",
                     .backward = sort_backward,
                     .samples = sort_samples,
                     .onnx = [](OnnxCall& c) { onnx_top(c, 0, 1); }};

const OpRecord kArgsort{.name = "argsort",
                        .signature = "argsort(x, dim = -1, {descending}) → indices",
                        .meaning = "Where the elements in order stand.",
                        .formula = "x[…, indices, …] ascending",
                        .shapes = "x [..., n, ...]   indices as x",
                        .dtypes = kAllTypes,
                        .forward = argsort_forward,
                        .no_gradient = "indices are integers",
                        .samples = argsort_samples,
                        .onnx = [](OnnxCall& c) { onnx_top(c, -1, 0); }};

const OpRecord kTopk{.name = "topk",
                     .signature = "topk(x, k, dim = -1, {largest = true}) → values, indices",
                     .meaning = "The k largest or smallest elements, best first.",
                     .formula = "values = first k of x sorted",
                     .shapes = "x [..., n, ...]   values, indices [..., k, ...]",
                     .dtypes = kAllTypes,
                     .outputs = 2,
                     .forward = sort_forward,
                     .backward_text = "dx = zeros with g where each element stood",
                     .backward = sort_backward,
                     .samples = topk_samples,
                     .onnx = [](OnnxCall& c) { onnx_top(c, 0, 1); }};

const OpRecord kUnique{
    .name = "unique",
    .signature = "unique(x) → values, inverse, counts",
    .meaning = "The different elements, ascending.",
    .formula = "x[i] = values[inverse[i]]",
    .shapes = "x [...]   values, counts [groups]   inverse as x",
    .dtypes = kAllTypes,
    .outputs = 3,
    .forward = unique_forward,
    .no_gradient = "the number of results depends on values; select from x instead",
    .samples = unique_samples};

const OpRecord kSearchsorted{.name = "searchsorted",
                             .signature = "searchsorted(sorted, values, {right}) → places",
                             .meaning = "Where values would have to be inserted.",
                             .formula = "y = number of sorted elements < value (≤ with right)",
                             .shapes = "sorted [n] or [..., n]   values [..., m]   y as values",
                             .dtypes = kAllTypes,
                             .forward = searchsorted_forward,
                             .no_gradient = "places are integers",
                             .samples = searchsorted_samples};

ValuesIndices run_sort(const OpRecord& op, TensorArg x, const SortAttrs& a) {
  Tensors out = run_many(op, {*x}, a, x.site);
  return {std::move(out[0]), std::move(out[1])};
}

}  // namespace

ValuesIndices sort(TensorArg x, int64_t dim, SortOptions o) {
  return run_sort(kSort, x, {dim, -1, o.descending});
}
Tensor argsort(TensorArg x, int64_t dim, SortOptions o) {
  return run(kArgsort, {x}, SortAttrs{dim, -1, o.descending});
}
ValuesIndices topk(TensorArg x, int64_t k, int64_t dim, TopkOptions o) {
  if (k < 0) {
    const CallScope scope(x.site);
    throw ValueError(
        "topk", fmt::format("k must not be negative; got k {} for x {}", k, to_string(x->sizes())));
  }
  return run_sort(kTopk, x, {dim, k, o.largest});
}
ValuesIndices kthvalue(TensorArg x, int64_t k, int64_t dim) {
  const CallScope scope(x.site);
  if (k < 1) {
    throw ValueError("kthvalue",
                     fmt::format("k counts from 1; got {} for x {}", k, to_string(x->sizes())));
  }
  const ValuesIndices best = topk(*x, k, dim, {.largest = false});
  if (x->dim() == 0) return best;
  return {select(best.values, dim, -1), select(best.indices, dim, -1)};
}
UniqueResult unique(TensorArg x) {
  Tensors out = run_many(kUnique, {*x}, NoAttrs{}, x.site);
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}
Tensor searchsorted(TensorArg sorted, TensorArg values, SearchOptions o) {
  return run(kSearchsorted, {sorted, values}, SearchAttrs{o.right});
}

void register_sort_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kSort, &kArgsort, &kTopk, &kUnique, &kSearchsorted});
}

}  // namespace cutaway
