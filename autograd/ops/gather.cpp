#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/index.h>
#include <cutaway/autograd/ops/index_tools.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/reduce_args.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: gather_samples.cpp.
void gather_samples(SampleList&);
void index_select_samples(SampleList&);
void embedding_samples(SampleList&);
void one_hot_samples(SampleList&);
void bincount_samples(SampleList&);

namespace {

void gather_forward(Call& c) {
  c.require_same_device();
  const Tensor &x = c.in(0), &index = c.in(1);
  const auto& a = c.attrs<IndexAttrs>();
  const int dim = normalize_dim(c.op.name, a.dim, x.dim());
  bool fits = index.dim() == x.dim();
  for (int d = 0; fits && d < x.dim(); ++d) {
    fits = d == dim || index.sizes()[d] <= x.sizes()[d];
  }
  if (!fits) {
    throw ShapeError(c.op.name,
                     fmt::format("index must have as many dimensions as x and fit into it "
                                 "outside of dim {}; got x {}, index {}",
                                 dim, to_string(x.sizes()), to_string(index.sizes())),
                     "take_along_dim() broadcasts, index_select() takes a vector");
  }
  const Tensor values = index_values(c.op.name, index);
  Tensor& out = c.out(0, index.sizes(), x.dtype());
  if (c.meta() || out.numel() == 0) return;
  check_index(c.op.name, values, x.dim() ? x.sizes()[dim] : 1, a.skip);
  GatherArgs g;
  g.rank = std::max(x.dim(), 1);
  g.dim = dim;
  g.sizes[0] = 1;
  for (int d = 0; d < x.dim(); ++d) {
    g.sizes[d] = index.sizes()[d];
    g.in_strides[d] = x.strides()[d];
  }
  g.index = values.data<int64_t>();
  g.in = x.raw();
  g.out = out.raw();
  kernels::gather(x.device(), x.dtype(), g);
}

void gather_backward(Backward& b) {
  const Tensor& g = b.upstream();
  b.set(0, scatter_add_skipping(zeros_like_sizes(b.input_sizes(0), g), b.attrs<IndexAttrs>().dim,
                                b.input(1), g));
}

// Rows of dimension `dim` of x at a dense index, into `out`.
void take_rows(const Tensor& x, int dim, const Tensor& index, const Tensor& out) {
  const Tensor dense = contiguous_raw(x);
  TakeRowsArgs t;
  t.index = index.data<int64_t>();
  t.in = dense.raw();
  t.out = out.raw();
  t.outer = x.sizes().slice(0, dim).numel();
  t.n = x.dim() ? x.sizes()[dim] : 1;
  t.count = index.numel();
  t.inner = x.dim() ? x.sizes().slice(dim + 1, x.dim()).numel() : 1;
  kernels::take_rows(x.device(), x.dtype(), t);
}

void index_select_forward(Call& c) {
  c.require_same_device();
  const Tensor &x = c.in(0), &index = c.in(1);
  const auto& a = c.attrs<IndexAttrs>();
  const int dim = normalize_dim(c.op.name, a.dim, x.dim());
  if (index.dim() > 1 || x.dim() == 0) {
    throw ShapeError(c.op.name,
                     fmt::format("needs x with a dimension and a vector as index; got x {}, "
                                 "index {}",
                                 to_string(x.sizes()), to_string(index.sizes())),
                     "gather() and embedding() take more dimensions");
  }
  const Tensor values = index_values(c.op.name, index);
  Shape sizes = x.sizes();
  sizes[dim] = index.numel();
  Tensor& out = c.out(0, sizes, x.dtype());
  if (c.meta()) return;
  check_index(c.op.name, values, x.sizes()[dim], a.skip);
  if (out.numel()) take_rows(x, dim, values, out);
}

void index_select_backward(Backward& b) {
  const Tensor& g = b.upstream();
  b.set(0, index_add_skipping(zeros_like_sizes(b.input_sizes(0), g), b.attrs<IndexAttrs>().dim,
                              b.input(1), g));
}

struct EmbeddingAttrs {
  bool has_padding;
  int64_t padding;
};

void embedding_forward(Call& c) {
  c.require_same_device();
  const Tensor &weight = c.in(0), &ids = c.in(1);
  const auto [has_padding, padding] = c.attrs<EmbeddingAttrs>();
  if (weight.dim() != 2 || ids.dim() == kMaxRank) {
    throw ShapeError(c.op.name,
                     fmt::format("needs a table [V,D] and ids of at most {} dimensions; got "
                                 "weight {}, ids {}",
                                 kMaxRank - 1, to_string(weight.sizes()), to_string(ids.sizes())));
  }
  const int64_t rows = weight.size(0);
  if (has_padding && (padding < -rows || padding >= rows)) {
    throw IndexError(c.op.name, fmt::format("padding_idx {} is out of range for weight {}", padding,
                                            to_string(weight.sizes())));
  }
  const Tensor values = index_values(c.op.name, ids);
  Shape sizes = ids.sizes();
  sizes.push_back(weight.size(1));
  Tensor& out = c.out(0, sizes, weight.dtype());
  if (c.meta()) return;
  check_index(c.op.name, values, rows);
  if (out.numel()) take_rows(weight, 0, values, out);
}

// ids as a vector with -1 for the padding row.
Tensor counted_ids(const Tensor& ids, bool has_padding, int64_t padding, int64_t rows) {
  const Tensor flat = flatten(ids);
  if (!has_padding) return flat;
  return where(eq(flat, Scalar(padding < 0 ? padding + rows : padding)), Scalar(-1), flat);
}

void embedding_backward(Backward& b) {
  const auto [has_padding, padding] = b.attrs<EmbeddingAttrs>();
  const Tensor& g = b.upstream();
  const Shape& sizes = b.input_sizes(0);
  const Tensor ids = counted_ids(b.input(1), has_padding, padding, sizes[0]);
  b.set(0, index_add_skipping(zeros_like_sizes(sizes, g), 0, ids,
                              reshape(g, {ids.numel(), sizes[1]})));
}

int64_t largest(const Tensor& values) {
  if (values.numel() == 0) return -1;
  const Tensor most = empty({}, {.dtype = DType::i64, .device = values.device()});
  kernels::amax(values.device(), DType::i64, reduce_args(values, most, (1u << values.dim()) - 1));
  return std::max<int64_t>(most.item<int64_t>(), -1);
}

struct OneHotAttrs {
  int64_t classes;
  DType dtype;
};

void one_hot_forward(Call& c) {
  const Tensor& ids = c.in(0);
  auto [classes, dtype] = c.attrs<OneHotAttrs>();
  const Tensor values = index_values(c.op.name, ids);
  if (classes < 0) {
    refuse_meta(c.op.name, ids);
    classes = largest(values) + 1;
  }
  Shape sizes = ids.sizes();
  sizes.push_back(classes);
  Tensor& out = c.out(0, sizes, dtype);
  if (c.meta()) return;
  check_index(c.op.name, values, classes);
  out = zeros(sizes, {.dtype = dtype, .device = ids.device()});
  if (out.numel() == 0) return;
  const Tensor one = full({1}, 1, {.dtype = dtype, .device = ids.device()});
  ScatterArgs s;
  s.rank = 2;
  s.dim = 1;
  s.sizes[0] = values.numel();
  s.sizes[1] = 1;
  s.out_strides[0] = classes;
  s.out_strides[1] = 1;
  s.n = classes;
  s.index = values.data<int64_t>();
  s.value = one.raw();
  s.out = out.raw();
  kernels::scatter(ids.device(), dtype, s);
}

struct BincountAttrs {
  int64_t least;
};

void bincount_forward(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t least = c.attrs<BincountAttrs>().least;
  refuse_meta(c.op.name, x);
  if (x.dim() != 1 || !is_integer(x.dtype())) {
    throw ShapeError(c.op.name, fmt::format("needs a vector of integers; got {} {}",
                                            name_of(x.dtype()), to_string(x.sizes())));
  }
  if (least < 0) {
    throw ValueError(c.op.name, fmt::format("the least size must not be negative; got {}", least));
  }
  const Tensor values = cast_raw(x, DType::i64);
  check_index(c.op.name, values, INT64_MAX);
  const int64_t n = std::max(largest(values) + 1, least);
  Tensor& out = c.out(0, {n}, DType::i64);
  out = zeros({n}, {.dtype = DType::i64, .device = x.device()});
  if (x.numel() == 0) return;
  const Tensor once = full(x.sizes(), 1, {.dtype = DType::i64, .device = x.device()});
  ReduceRowsArgs r;
  r.index = values.data<int64_t>();
  r.in = once.raw();
  r.out = out.raw();
  r.outer = r.inner = 1;
  r.n = n;
  r.count = x.numel();
  kernels::reduce_rows(x.device(), DType::i64, r);
}

int64_t onnx_axis(OnnxCall& c) {
  const auto& a = c.attrs<IndexAttrs>();
  if (a.skip) c.refuse("skips indices, which ONNX cannot");
  return c.dim(a.dim);
}

const OpRecord kGather{
    .name = "gather",
    .signature = "gather(x, dim, index) → y",
    .meaning = "Reads x at an index along one dimension.",
    .formula = "y[…, i, …] = x[…, index[…, i, …], …]",
    .shapes = "x [..., n, ...]   index [..., k, ...]   y as index",
    .dtypes = kAllTypes,
    .save_inputs = 0b10,
    .forward = gather_forward,
    .backward_text = "dx = scatter_add(0, dim, index, g)",
    .backward = gather_backward,
    .samples = gather_samples,
    .onnx = [](OnnxCall& c) {
      c.result(c.node("GatherElements", {c.name(0), c.name(1)}, {{"axis", onnx_axis(c)}}));
    }};

const OpRecord kIndexSelect{
    .name = "index_select",
    .signature = "index_select(x, dim, index) → y",
    .meaning = "Slices of one dimension in the order of an index.",
    .formula = "y[…, k, …] = x[…, index[k], …]",
    .shapes = "x [..., n, ...]   index [K]   y [..., K, ...]",
    .dtypes = kAllTypes,
    .save_inputs = 0b10,
    .forward = index_select_forward,
    .backward_text = "dx = index_add(0, dim, index, g)",
    .backward = index_select_backward,
    .samples = index_select_samples,
    .onnx = [](OnnxCall& c) {
      c.result(c.node("Gather", {c.name(0), c.name(1)}, {{"axis", onnx_axis(c)}}));
    }};

const OpRecord kEmbedding{
    .name = "embedding",
    .signature = "embedding(weight, ids, {padding_idx}) → y",
    .meaning = "Rows of a table.",
    .formula = "y[…, :] = weight[ids[…], :]",
    .shapes = "weight [V,D]   ids [...]   y [...,D]",
    .dtypes = kAllTypes,
    .save_inputs = 0b10,
    .forward = embedding_forward,
    .backward_text = "dweight[v] = Σ g over the places of v; 0 for padding_idx",
    .backward = embedding_backward,
    .samples = embedding_samples,
    .onnx = [](OnnxCall& c) {
      c.result(c.node("Gather", {c.name(0), c.name(1)}, {{"axis", 0}}));
    }};

const OpRecord kOneHot{.name = "one_hot",
                       .signature = "one_hot(ids, classes = -1, dtype = i64) → y",
                       .meaning = "A 1 in the column of each id.",
                       .formula = "y[…, c] = 1 if c = ids[…], else 0",
                       .shapes = "ids [...]   y [..., classes]",
                       .dtypes = kIntegers,
                       .forward = one_hot_forward,
                       .no_gradient = "ids are integers",
                       .samples = one_hot_samples,
                       .onnx = [](OnnxCall& c) {
                         const std::string classes =
                             c.constant(scalar_tensor(c.out().size(-1), {.dtype = DType::i64}));
                         const std::string values = c.constant(tensor({0, 1}, {.dtype = c.type()}));
                         c.result(c.node("OneHot", {c.name(0), classes, values}, {{"axis", -1}}));
                       }};

const OpRecord kBincount{.name = "bincount",
                         .signature = "bincount(x, least = 0) → y",
                         .meaning = "How often each number occurs.",
                         .formula = "y_v = number of i with x_i = v",
                         .shapes = "x [N]   y [max(max(x) + 1, least)]",
                         .dtypes = kIntegers,
                         .forward = bincount_forward,
                         .no_gradient = "counts are integers",
                         .samples = bincount_samples};

Tensor broadcast_beside(const Tensor& t, const Shape& sizes, int dim) {
  Shape want = sizes;
  want[dim] = t.sizes()[dim];
  return expand(t, want);
}

// The ids of every element of a [K] list of bags that begin at offsets.
Tensor bags_of(const Tensor& ids, const Tensor& offsets) {
  if (ids.dim() != 1 || offsets.dim() != 1) {
    throw ShapeError("embedding_bag",
                     fmt::format("offsets [B] go with ids [K]; got offsets {}, ids {}",
                                 to_string(offsets.sizes()), to_string(ids.sizes())));
  }
  const Tensor at = host_copy("embedding_bag", index_values("embedding_bag", offsets));
  const int64_t* begin = at.data<int64_t>();
  const int64_t bags = at.numel(), n = ids.numel();
  for (int64_t b = 0; b < bags; ++b) {
    if (begin[b] < (b ? begin[b - 1] : 0) || begin[b] > n || (b == 0 && begin[0] != 0)) {
      throw ValueError("embedding_bag",
                       fmt::format("offsets must begin at 0 and not go back or beyond "
                                   "{}; got {} at [{}]",
                                   n, begin[b], b));
    }
  }
  if (bags == 0 && n > 0)
    throw ValueError("embedding_bag", "needs a bag for the ids; got no offsets");
  Tensor out = empty({n}, {.dtype = DType::i64});
  int64_t bag = 0;
  for (int64_t i = 0; i < n; ++i) {
    while (bag + 1 < bags && begin[bag + 1] <= i) ++bag;
    out.data<int64_t>()[i] = bag;
  }
  return out.to(ids.device());
}

}  // namespace

Tensor gather(TensorArg x, int64_t dim, TensorArg index) {
  return run(kGather, {x, index}, IndexAttrs{dim});
}
Tensor gather_or_zero(const Tensor& x, int64_t dim, const Tensor& index) {
  return run(kGather, {x, index}, IndexAttrs{dim, true});
}
Tensor index_select(TensorArg x, int64_t dim, TensorArg index) {
  return run(kIndexSelect, {x, index}, IndexAttrs{dim});
}
Tensor take_or_zero(const Tensor& x, int64_t dim, const Tensor& index) {
  return run(kIndexSelect, {x, index}, IndexAttrs{dim, true});
}

Tensor take_along_dim(TensorArg x, TensorArg index, int64_t dim) {
  const CallScope scope(x.site);
  const char* op = "take_along_dim";
  const int d = normalize_dim(op, dim, x->dim());
  if (x->dim() != index->dim()) {
    throw ShapeError(op,
                     fmt::format("x and index must have the same number of dimensions; got {}, {}",
                                 to_string(x->sizes()), to_string(index->sizes())));
  }
  if (x->dim() == 0) return gather(*x, dim, *index);
  Shape a = x->sizes(), b = index->sizes();
  a[d] = b[d] = 1;
  const Shape sizes = broadcast(op, a, b);
  return gather(broadcast_beside(*x, sizes, d), d, broadcast_beside(*index, sizes, d));
}

Tensor embedding(TensorArg weight, TensorArg ids, EmbeddingOptions o) {
  return run(kEmbedding, {weight, ids},
             EmbeddingAttrs{o.padding_idx.has_value(), o.padding_idx.value_or(0)});
}

Tensor embedding_bag(TensorArg weight, TensorArg ids, const EmbeddingBagOptions& o) {
  const CallScope scope(weight.site);
  const bool listed = o.offsets.defined();
  if (!listed && ids->dim() != 2) {
    throw ShapeError("embedding_bag",
                     "needs ids [B,L], or ids [K] with offsets; got " + to_string(ids->sizes()));
  }
  if (o.weights.defined() && (o.mode != BagMode::sum || o.weights.sizes() != ids->sizes())) {
    throw ValueError("embedding_bag",
                     fmt::format("weights are for mode sum and have the sizes of ids; "
                                 "got {} for ids {}",
                                 to_string(o.weights.sizes()), to_string(ids->sizes())));
  }
  const int64_t bags = listed ? o.offsets.numel() : ids->size(0);
  Tensor bag = listed
                   ? bags_of(*ids, o.offsets)
                   : flatten(expand(unsqueeze(arange(0, bags, 1, {DType::i64, ids->device()}), 1),
                                    ids->sizes()));
  Tensor rows = embedding(*weight, flatten(*ids), {.padding_idx = o.padding_idx});
  if (o.padding_idx) {
    const Tensor counted = counted_ids(*ids, true, *o.padding_idx, weight->size(0));
    const Tensor kept = flatten(nonzero(ge(counted, Scalar(0))));
    rows = index_select(rows, 0, kept);
    bag = index_select(bag, 0, kept);
    if (o.weights.defined()) {
      rows = rows * unsqueeze(index_select(flatten(o.weights), 0, kept), 1);
    }
  } else if (o.weights.defined()) {
    rows = rows * unsqueeze(flatten(o.weights), 1);
  }
  switch (o.mode) {
    case BagMode::sum:
      return segment_sum(rows, bag, bags);
    case BagMode::mean:
      return segment_mean(rows, bag, bags);
    case BagMode::max:
      break;
  }
  return segment_max(rows, bag, bags);
}

Tensor one_hot(TensorArg ids, int64_t classes, DType dtype) {
  return run(kOneHot, {ids}, OneHotAttrs{classes, dtype});
}
Tensor bincount(TensorArg x, int64_t least) { return run(kBincount, {x}, BincountAttrs{least}); }

void register_gather_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kGather, &kIndexSelect, &kEmbedding, &kOneHot, &kBincount});
}

}  // namespace cutaway
