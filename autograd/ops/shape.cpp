#include <cutaway/autograd/ops/shape.h>

#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: shape_samples.cpp.
void reshape_samples(SampleList&);
void view_samples(SampleList&);
void flatten_samples(SampleList&);
void unflatten_samples(SampleList&);
void permute_samples(SampleList&);
void transpose_samples(SampleList&);
void movedim_samples(SampleList&);
void expand_samples(SampleList&);
void broadcast_to_samples(SampleList&);
void squeeze_samples(SampleList&);
void unsqueeze_samples(SampleList&);

namespace {

struct SizesAttrs {
  Shape sizes;
};
struct DimsAttrs {
  int64_t a = 0;
  int64_t b = 0;
};
struct UnflattenAttrs {
  int64_t dim;
  Shape sizes;
};
struct MoveAttrs {
  Shape from;
  Shape to;
};

// A view if the layout allows it, else a row-major copy.
void view_or_copy(Call& c, const Shape& sizes) {
  const Tensor& x = c.in(0);
  if (const auto layout = x.layout().reshape(sizes)) return c.view(0, x, *layout);
  const Tensor dense = contiguous_raw(x);
  c.outputs[0] = make_view(dense, Layout::contiguous(sizes));
}

// The gradient of everything that keeps elements in row-major order.
void reshape_backward(Backward& b) { b.set(0, reshape(b.upstream(), b.input_sizes(0))); }

void reshape_forward(Call& c) {
  view_or_copy(c, resolve_reshape(c.op.name, c.in(0).sizes(), c.attrs<SizesAttrs>().sizes));
}

void view_forward(Call& c) {
  const Tensor& x = c.in(0);
  const Shape sizes = resolve_reshape(c.op.name, x.sizes(), c.attrs<SizesAttrs>().sizes);
  const auto layout = x.layout().reshape(sizes);
  if (!layout) {
    throw ShapeError(c.op.name,
                     fmt::format("would need a copy; got sizes {} with strides {}, need {}",
                                 to_string(x.sizes()), to_string(x.strides()), to_string(sizes)),
                     "use reshape(), which copies when it must");
  }
  c.view(0, x, *layout);
}

void flatten_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto [a, b] = c.attrs<DimsAttrs>();
  const int from = normalize_dim(c.op.name, a, x.dim()), to = normalize_dim(c.op.name, b, x.dim());
  if (from > to) {
    throw ShapeError(c.op.name, fmt::format("first dimension must not lie behind the last; got {} "
                                            "and {} for x {}",
                                            a, b, to_string(x.sizes())));
  }
  Shape sizes = x.sizes().slice(0, from);
  sizes.push_back(x.dim() ? x.sizes().slice(from, to + 1).numel() : 1);
  for (int d = to + 1; d < x.dim(); ++d) sizes.push_back(x.sizes()[d]);
  view_or_copy(c, sizes);
}

void unflatten_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto& a = c.attrs<UnflattenAttrs>();
  const int dim = normalize_dim(c.op.name, a.dim, x.dim());
  const Shape parts = resolve_reshape(c.op.name, Shape{x.size(dim)}, a.sizes);
  Shape sizes = x.sizes().slice(0, dim);
  for (int64_t n : parts) sizes.push_back(n);
  for (int d = dim + 1; d < x.dim(); ++d) sizes.push_back(x.sizes()[d]);
  view_or_copy(c, sizes);
}

// `dims` counted from the front, each at most once; raises ShapeError naming them.
Shape distinct_dims(const char* op, const Shape& dims, const Tensor& x) {
  Shape out = dims;
  bool seen[kMaxRank] = {};
  for (int64_t& d : out) {
    d = normalize_dim(op, d, x.dim());
    if (seen[d]) {
      throw ShapeError(op, fmt::format("a dimension is named twice; got {} for x {}",
                                       to_string(dims), to_string(x.sizes())));
    }
    seen[d] = true;
  }
  return out;
}

Shape permutation(const char* op, const Shape& dims, const Tensor& x) {
  if (dims.rank() != x.dim()) {
    throw ShapeError(op, fmt::format("every dimension must be named once; got {} for x {}",
                                     to_string(dims), to_string(x.sizes())));
  }
  return distinct_dims(op, dims, x);
}

void permute_forward(Call& c) {
  const Tensor& x = c.in(0);
  c.view(0, x, x.layout().permute(permutation(c.op.name, c.attrs<SizesAttrs>().sizes, x)));
}

Shape inverse_permutation(const Shape& dims) {
  Shape out = dims;
  const int rank = dims.rank();
  for (int i = 0; i < rank; ++i) out[int(dims[i] < 0 ? dims[i] + rank : dims[i])] = i;
  return out;
}

void permute_backward(Backward& b) {
  b.set(0, permute(b.upstream(), inverse_permutation(b.attrs<SizesAttrs>().sizes)));
}

void transpose_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto [a, b] = c.attrs<DimsAttrs>();
  const int i = normalize_dim(c.op.name, a, x.dim()), j = normalize_dim(c.op.name, b, x.dim());
  c.view(0, x, x.dim() ? x.layout().transpose(i, j) : x.layout());
}

void transpose_backward(Backward& b) {
  const auto [i, j] = b.attrs<DimsAttrs>();
  b.set(0, transpose(b.upstream(), i, j));
}

// Order of dimensions after a movedim.
Shape moved_order(const char* op, const MoveAttrs& a, const Tensor& x) {
  if (a.from.rank() != a.to.rank()) {
    throw ShapeError(op, fmt::format("as many places as dimensions; got {} and {} for x {}",
                                     to_string(a.from), to_string(a.to), to_string(x.sizes())));
  }
  const Shape from = distinct_dims(op, a.from, x), to = distinct_dims(op, a.to, x);
  if (x.dim() == 0) return {};
  Shape order = Shape::filled(x.dim(), -1);
  for (int i = 0; i < from.rank(); ++i) order[int(to[i])] = from[i];
  int next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (from.contains(next)) ++next;
    d = next++;
  }
  return order;
}

void movedim_forward(Call& c) {
  const Tensor& x = c.in(0);
  c.view(0, x, x.layout().permute(moved_order(c.op.name, c.attrs<MoveAttrs>(), x)));
}

void movedim_backward(Backward& b) {
  const auto& a = b.attrs<MoveAttrs>();
  b.set(0, movedim(b.upstream(), a.to, a.from));
}

[[noreturn, gnu::cold]] void fail_expand(const char* op, const Tensor& x, const Shape& sizes) {
  throw ShapeError(op,
                   fmt::format("only sizes of 1 can be repeated, and new dimensions come first; "
                               "got {}, need {}",
                               to_string(x.sizes()), to_string(sizes)),
                   "insert dimensions of size 1 with unsqueeze()");
}

void expand_forward(Call& c) {
  const Tensor& x = c.in(0);
  const Shape& asked = c.attrs<SizesAttrs>().sizes;
  Shape sizes = asked;
  const int shift = sizes.rank() - x.dim();
  if (shift < 0) fail_expand(c.op.name, x, asked);
  for (int i = 0; i < sizes.rank(); ++i) {
    if (sizes[i] == -1 && i >= shift) sizes[i] = x.sizes()[i - shift];
    const bool fits = i < shift || x.sizes()[i - shift] == 1 || x.sizes()[i - shift] == sizes[i];
    if (sizes[i] < 0 || !fits) fail_expand(c.op.name, x, asked);
  }
  c.view(0, x, x.layout().expand(sizes));
}

// The engine sums over repeated elements.
void expand_backward(Backward& b) { b.set(0, b.upstream()); }

struct SqueezeAttrs {
  bool all;
  int64_t dim;
};

void squeeze_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto [all, dim] = c.attrs<SqueezeAttrs>();
  const int only = all ? 0 : normalize_dim(c.op.name, dim, x.dim());
  Layout layout = x.layout();
  for (int d = x.dim() - 1; d >= 0; --d) {
    if (layout.sizes[d] != 1 || (!all && d != only)) continue;
    layout.sizes.erase(d);
    layout.strides.erase(d);
  }
  c.view(0, x, layout);
}

void unsqueeze_forward(Call& c) {
  const Tensor& x = c.in(0);
  if (x.dim() == kMaxRank) {
    throw ShapeError(
        c.op.name, fmt::format("at most {} dimensions; got x {}", kMaxRank, to_string(x.sizes())));
  }
  const int d = normalize_dim(c.op.name, c.attrs<DimsAttrs>().a, x.dim() + 1);
  Layout layout = x.layout();
  const int64_t stride = d < x.dim() ? layout.sizes[d] * layout.strides[d] : 1;
  layout.sizes.insert(d, 1);
  layout.strides.insert(d, stride);
  c.view(0, x, layout);
}

// ---- as nodes of ONNX

void onnx_reshape(OnnxCall& c) {
  c.result(c.node("Reshape", {c.name(0), c.list(c.out().sizes())}));
}
void onnx_expand(OnnxCall& c) { c.result(c.node("Expand", {c.name(0), c.list(c.out().sizes())})); }

const OpRecord kReshape{.name = "reshape",
                        .signature = "reshape(x, sizes) → y",
                        .meaning = "The same elements in row-major order under new sizes.",
                        .formula = "y.flatten()_i = x.flatten()_i",
                        .shapes = "x [n elements]   y sizes",
                        .dtypes = kAllTypes,
                        .forward = reshape_forward,
                        .backward_text = "dx = reshape(g, sizes of x)",
                        .backward = reshape_backward,
                        .samples = reshape_samples,
                        .onnx = onnx_reshape};

const OpRecord kView{.name = "view",
                     .signature = "view(x, sizes) → y",
                     .meaning = "As reshape, but shares storage or raises.",
                     .formula = "y.flatten()_i = x.flatten()_i",
                     .shapes = "x [n elements]   y sizes",
                     .dtypes = kAllTypes,
                     .forward = view_forward,
                     .backward_text = "dx = reshape(g, sizes of x)",
                     .backward = reshape_backward,
                     .samples = view_samples,
                     .onnx = onnx_reshape};

const OpRecord kFlatten{.name = "flatten",
                        .signature = "flatten(x, from = 0, to = -1) → y",
                        .meaning = "Joins neighbouring dimensions into one.",
                        .formula = "y.flatten()_i = x.flatten()_i",
                        .shapes = "x [..., d_from, ..., d_to, ...]   y [..., d_from·…·d_to, ...]",
                        .dtypes = kAllTypes,
                        .forward = flatten_forward,
                        .backward_text = "dx = reshape(g, sizes of x)",
                        .backward = reshape_backward,
                        .samples = flatten_samples,
                        .onnx = onnx_reshape};

const OpRecord kUnflatten{.name = "unflatten",
                          .signature = "unflatten(x, dim, sizes) → y",
                          .meaning = "Cuts one dimension into several.",
                          .formula = "y.flatten()_i = x.flatten()_i",
                          .shapes = "x [..., n, ...]   y [..., sizes, ...]",
                          .dtypes = kAllTypes,
                          .forward = unflatten_forward,
                          .backward_text = "dx = reshape(g, sizes of x)",
                          .backward = reshape_backward,
                          .samples = unflatten_samples,
                          .onnx = onnx_reshape};

const OpRecord kPermute{.name = "permute",
                        .signature = "permute(x, dims) → y",
                        .meaning = "Reorders dimensions.",
                        .formula = "y[i_dims[0], i_dims[1], …] = x[i_0, i_1, …]",
                        .shapes = "x [d_0, d_1, ...]   y [d_dims[0], d_dims[1], ...]",
                        .dtypes = kAllTypes,
                        .forward = permute_forward,
                        .backward_text = "dx = permute(g, inverse of dims)",
                        .backward = permute_backward,
                        .samples = permute_samples,
                        .onnx = [](OnnxCall& c) {
                          Shape order = c.attrs<SizesAttrs>().sizes;
                          for (int64_t& d : order) d = c.dim(d);
                          c.result(c.node("Transpose", {c.name(0)}, {{"perm", order}}));
                        }};

const OpRecord kTranspose{.name = "transpose",
                          .signature = "transpose(x, a, b) → y",
                          .meaning = "Exchanges two dimensions.",
                          .formula = "y[…, i, …, j, …] = x[…, j, …, i, …]",
                          .shapes = "x [..., n, ..., m, ...]   y [..., m, ..., n, ...]",
                          .dtypes = kAllTypes,
                          .forward = transpose_forward,
                          .backward_text = "dx = transpose(g, a, b)",
                          .backward = transpose_backward,
                          .samples = transpose_samples,
                          .onnx = [](OnnxCall& c) {
                            const auto [a, b] = c.attrs<DimsAttrs>();
                            Shape order;
                            for (int d = 0; d < c.in().dim(); ++d) order.push_back(d);
                            if (c.in().dim() > 0)
                              std::swap(order[int(c.dim(a))], order[int(c.dim(b))]);
                            c.result(c.node("Transpose", {c.name(0)}, {{"perm", order}}));
                          }};

const OpRecord kMovedim{.name = "movedim",
                        .signature = "movedim(x, from, to) → y",
                        .meaning = "Moves dimensions to new places; the others keep their order.",
                        .formula = "y.size(to[i]) = x.size(from[i])",
                        .shapes = "x [...]   y [...] reordered",
                        .dtypes = kAllTypes,
                        .forward = movedim_forward,
                        .backward_text = "dx = movedim(g, to, from)",
                        .backward = movedim_backward,
                        .samples = movedim_samples,
                        .onnx = [](OnnxCall& c) {
                          const Shape order = moved_order("movedim", c.attrs<MoveAttrs>(), c.in());
                          c.result(c.node("Transpose", {c.name(0)}, {{"perm", order}}));
                        }};

const OpRecord kExpand{.name = "expand",
                       .signature = "expand(x, sizes) → y",
                       .meaning = "Repeats dimensions of size 1 without copying.",
                       .formula = "y[…, i, …] = x[…, 0, …]",
                       .shapes = "x [..., 1, ...]   y [new, ..., n, ...]",
                       .dtypes = kAllTypes,
                       .forward = expand_forward,
                       .backward_text = "dx = g summed over repeated elements",
                       .backward = expand_backward,
                       .samples = expand_samples,
                       .onnx = onnx_expand};

const OpRecord kBroadcastTo{.name = "broadcast_to",
                            .signature = "broadcast_to(x, sizes) → y",
                            .meaning = "As expand, with every size given.",
                            .formula = "y[…, i, …] = x[…, 0, …]",
                            .shapes = "x [..., 1, ...]   y [new, ..., n, ...]",
                            .dtypes = kAllTypes,
                            .forward = expand_forward,
                            .backward_text = "dx = g summed over repeated elements",
                            .backward = expand_backward,
                            .samples = broadcast_to_samples,
                            .onnx = onnx_expand};

const OpRecord kSqueeze{.name = "squeeze",
                        .signature = "squeeze(x, dim?) → y",
                        .meaning = "Removes dimensions of size 1.",
                        .formula = "y.flatten()_i = x.flatten()_i",
                        .shapes = "x [..., 1, ...]   y [..., ...]",
                        .dtypes = kAllTypes,
                        .forward = squeeze_forward,
                        .backward_text = "dx = reshape(g, sizes of x)",
                        .backward = reshape_backward,
                        .samples = squeeze_samples,
                        .onnx = [](OnnxCall& c) {
                          const auto [all, dim] = c.attrs<SqueezeAttrs>();
                          Shape axes;
                          for (int d = 0; d < c.in().dim(); ++d) {
                            if (c.in().sizes()[d] == 1 && (all || d == c.dim(dim)))
                              axes.push_back(d);
                          }
                          if (axes.empty()) return c.result(c.node("Identity", {c.name(0)}));
                          c.result(c.node("Squeeze", {c.name(0), c.list(axes)}));
                        }};

const OpRecord kUnsqueeze{
    .name = "unsqueeze",
    .signature = "unsqueeze(x, dim) → y",
    .meaning = "Inserts a dimension of size 1.",
    .formula = "y.flatten()_i = x.flatten()_i",
    .shapes = "x [..., ...]   y [..., 1, ...]",
    .dtypes = kAllTypes,
    .forward = unsqueeze_forward,
    .backward_text = "dx = reshape(g, sizes of x)",
    .backward = reshape_backward,
    .samples = unsqueeze_samples,
    .onnx = [](OnnxCall& c) {
      const int64_t d = c.attrs<DimsAttrs>().a;
      c.result(c.node("Unsqueeze", {c.name(0), c.list({d < 0 ? d + c.in().dim() + 1 : d})}));
    }};

}  // namespace

Tensor reshape(TensorArg x, const Shape& sizes) { return run(kReshape, {x}, SizesAttrs{sizes}); }
Tensor view(TensorArg x, const Shape& sizes) { return run(kView, {x}, SizesAttrs{sizes}); }
Tensor flatten(TensorArg x, int64_t from, int64_t to) {
  return run(kFlatten, {x}, DimsAttrs{from, to});
}
Tensor unflatten(TensorArg x, int64_t dim, const Shape& sizes) {
  return run(kUnflatten, {x}, UnflattenAttrs{dim, sizes});
}
Tensor permute(TensorArg x, const Shape& dims) { return run(kPermute, {x}, SizesAttrs{dims}); }
Tensor transpose(TensorArg x, int64_t a, int64_t b) {
  return run(kTranspose, {x}, DimsAttrs{a, b});
}
Tensor t(TensorArg x) {
  if (x->dim() != 2) {
    const CallScope scope(x.site);
    throw ShapeError("t", "needs a matrix; got x " + to_string(x->sizes()),
                     "use transpose(a, b) or permute(dims)");
  }
  return transpose(x, 0, 1);
}
Tensor movedim(TensorArg x, const Shape& from, const Shape& to) {
  return run(kMovedim, {x}, MoveAttrs{from, to});
}
Tensor expand(TensorArg x, const Shape& sizes) { return run(kExpand, {x}, SizesAttrs{sizes}); }
Tensor broadcast_to(TensorArg x, const Shape& sizes) {
  return run(kBroadcastTo, {x}, SizesAttrs{sizes});
}
Tensor squeeze(TensorArg x) { return run(kSqueeze, {x}, SqueezeAttrs{true, 0}); }
Tensor squeeze(TensorArg x, int64_t dim) { return run(kSqueeze, {x}, SqueezeAttrs{false, dim}); }
Tensor unsqueeze(TensorArg x, int64_t dim) { return run(kUnsqueeze, {x}, DimsAttrs{dim, 0}); }

void register_shape_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kReshape, &kView, &kFlatten, &kUnflatten, &kPermute, &kTranspose,
                           &kMovedim, &kExpand, &kBroadcastTo, &kSqueeze, &kUnsqueeze});
}

}  // namespace cutaway
