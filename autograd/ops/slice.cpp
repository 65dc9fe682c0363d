#include <fmt/format.h>

#include <algorithm>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/rearrange.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: slice_samples.cpp.
void slice_samples(SampleList&);
void narrow_samples(SampleList&);
void select_samples(SampleList&);
void diagonal_samples(SampleList&);
void slice_scatter_samples(SampleList&);
void select_scatter_samples(SampleList&);
void diagonal_scatter_samples(SampleList&);
void diag_embed_samples(SampleList&);
void tril_samples(SampleList&);
void triu_samples(SampleList&);

namespace {

struct SliceAttrs {
  int64_t dim, begin, end, step;
};
struct SelectAttrs {
  int64_t dim, index;
};
struct DiagonalAttrs {
  int64_t offset, dim1, dim2;
};

[[noreturn, gnu::cold]] void fail_0d(const char* op) {
  throw ShapeError(op, "a 0-d tensor has no dimension to take from; got x [], need [n, ...]");
}

// ---- which elements a slice, an index, a diagonal means

Layout slice_layout(const char* op, const Tensor& x, const SliceAttrs& a) {
  if (x.dim() == 0) fail_0d(op);
  const int dim = normalize_dim(op, a.dim, x.dim());
  if (a.step < 1) {
    throw ValueError(
        op, fmt::format("step must be at least 1; got {} for x {}", a.step, to_string(x.sizes())),
        "flip(x, {dim}) reverses a dimension");
  }
  const int64_t n = x.sizes()[dim];
  const auto clamped = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t begin = clamped(a.begin), end = clamped(a.end);
  return x.layout().slice(dim, begin, end, std::min(a.step, std::max<int64_t>(n, 1)));
}

Layout narrow_layout(const char* op, const Tensor& x, const SliceAttrs& a) {
  if (x.dim() == 0) fail_0d(op);
  const int dim = normalize_dim(op, a.dim, x.dim());
  const int64_t n = x.sizes()[dim], begin = a.begin < 0 ? a.begin + n : a.begin, length = a.end;
  if (length < 0 || begin < 0 || begin > n - length) {
    throw IndexError(op, fmt::format("elements {} … {} are not all in dimension {} of x {}; need "
                                     "start >= 0 and start + length <= {}",
                                     a.begin, a.begin + length - 1, dim, to_string(x.sizes()), n));
  }
  return x.layout().slice(dim, begin, begin + length, 1);
}

Layout select_layout(const char* op, const Tensor& x, const SelectAttrs& a) {
  if (x.dim() == 0) fail_0d(op);
  const int dim = normalize_dim(op, a.dim, x.dim());
  const int64_t n = x.sizes()[dim];
  if (a.index < -n || a.index >= n) {
    throw IndexError(
        op, fmt::format("index {} is out of range for dimension {} of x {}; need {} … {}", a.index,
                        dim, to_string(x.sizes()), -n, n - 1));
  }
  return x.layout().select(dim, a.index < 0 ? a.index + n : a.index);
}

Layout diagonal_layout(const char* op, const Layout& x, const DiagonalAttrs& a) {
  if (x.sizes.rank() < 2) {
    throw ShapeError(op, fmt::format("needs at least 2 dimensions; got x {}", to_string(x.sizes)));
  }
  const int d1 = normalize_dim(op, a.dim1, x.sizes.rank());
  const int d2 = normalize_dim(op, a.dim2, x.sizes.rank());
  if (d1 == d2) {
    throw ShapeError(op, fmt::format("dim1 and dim2 must differ; got {} and {} for x {}", a.dim1,
                                     a.dim2, to_string(x.sizes)));
  }
  const int64_t offset = std::clamp(a.offset, -x.sizes[d1], x.sizes[d2]);
  const int64_t above = std::max<int64_t>(offset, 0), below = std::max<int64_t>(-offset, 0);
  const int64_t rows = x.sizes[d1] - std::min(below, x.sizes[d1]);
  const int64_t columns = x.sizes[d2] - std::min(above, x.sizes[d2]);
  const int64_t n = std::min(rows, columns);
  Layout out = x;
  if (n > 0) out.offset += below * x.strides[d1] + above * x.strides[d2];
  for (int d : {std::max(d1, d2), std::min(d1, d2)}) {
    out.sizes.erase(d);
    out.strides.erase(d);
  }
  out.sizes.push_back(n);
  out.strides.push_back(x.strides[d1] + x.strides[d2]);
  return out;
}

Layout diagonal_layout(const char* op, const Tensor& x, const DiagonalAttrs& a) {
  return diagonal_layout(op, x.layout(), a);
}

// ---- views

template <class A, Layout (*pick)(const char*, const Tensor&, const A&)>
void pick_forward(Call& c) {
  const Tensor& x = c.in(0);
  c.view(0, x, pick(c.op.name, x, c.attrs<A>()));
}

Tensor zeros_for(const Shape& sizes, const Tensor& like) {
  return zeros(sizes, {.dtype = like.dtype(), .device = like.device()});
}

void slice_backward(Backward& b) {
  const auto& a = b.attrs<SliceAttrs>();
  const Tensor& g = b.upstream();
  b.set(0, slice_scatter(zeros_for(b.input_sizes(0), g), g, a.dim, a.begin, a.end, a.step));
}

// A narrow may count from the end, where begin + length is then 0: slices know no such end.
void narrow_backward(Backward& b) {
  const auto& a = b.attrs<SliceAttrs>();
  const Tensor& g = b.upstream();
  const Shape& sizes = b.input_sizes(0);
  const int64_t n = sizes[normalize_dim("narrow", a.dim, sizes.rank())];
  const int64_t begin = a.begin < 0 ? a.begin + n : a.begin;
  b.set(0, slice_scatter(zeros_for(sizes, g), g, a.dim, begin, begin + a.end, 1));
}

void select_backward(Backward& b) {
  const auto& a = b.attrs<SelectAttrs>();
  const Tensor& g = b.upstream();
  b.set(0, select_scatter(zeros_for(b.input_sizes(0), g), g, a.dim, a.index));
}

void diagonal_backward(Backward& b) {
  const auto& a = b.attrs<DiagonalAttrs>();
  const Tensor& g = b.upstream();
  b.set(0, diagonal_scatter(zeros_for(b.input_sizes(0), g), g,
                            {.offset = a.offset, .dim1 = a.dim1, .dim2 = a.dim2}));
}

// ---- writing through such a view into a copy of x (or into x, if it is a temporary)

template <class A, Layout (*pick)(const char*, const Tensor&, const A&)>
void put_forward(Call& c) {
  c.require_same_device();
  const Tensor &x = c.in(0), &src = c.in(1);
  const Layout at = pick(c.op.name, x, c.attrs<A>());
  if (src.sizes() != at.sizes) {
    throw ShapeError(
        c.op.name, fmt::format("src must have the sizes of the replaced part; got {} "
                               "for x {}, need {}",
                               to_string(src.sizes()), to_string(x.sizes()), to_string(at.sizes)));
  }
  if (src.dtype() != x.dtype()) {
    throw DTypeError(c.op.name,
                     fmt::format("src and x must have one type; got {} and {}",
                                 name_of(src.dtype()), name_of(x.dtype())),
                     "convert one of them with to(dtype)");
  }
  Tensor& out = c.out_like(0, 0);
  if (c.meta()) return;
  if (out.storage() != x.storage()) copy_elements(out, x);
  copy_elements(make_view(out, pick(c.op.name, out, c.attrs<A>())), src);
}

void slice_scatter_backward(Backward& b) {
  const auto& a = b.attrs<SliceAttrs>();
  const Tensor& g = b.upstream();
  const Tensor part = slice(g, a.dim, a.begin, a.end, a.step);
  if (b.needs(0)) {
    b.set(0, slice_scatter(g, zeros_for(part.sizes(), g), a.dim, a.begin, a.end, a.step));
  }
  if (b.needs(1)) b.set(1, part);
}

void select_scatter_backward(Backward& b) {
  const auto& a = b.attrs<SelectAttrs>();
  const Tensor& g = b.upstream();
  const Tensor part = select(g, a.dim, a.index);
  if (b.needs(0)) b.set(0, select_scatter(g, zeros_for(part.sizes(), g), a.dim, a.index));
  if (b.needs(1)) b.set(1, part);
}

void diagonal_scatter_backward(Backward& b) {
  const auto& a = b.attrs<DiagonalAttrs>();
  const DiagonalOptions o{.offset = a.offset, .dim1 = a.dim1, .dim2 = a.dim2};
  const Tensor& g = b.upstream();
  const Tensor part = diagonal(g, o);
  if (b.needs(0)) b.set(0, diagonal_scatter(g, zeros_for(part.sizes(), g), o));
  if (b.needs(1)) b.set(1, part);
}

void diag_embed_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto& a = c.attrs<DiagonalAttrs>();
  if (x.dim() == 0 || x.dim() == kMaxRank) {
    throw ShapeError(c.op.name, fmt::format("needs 1 to {} dimensions; got x {}", kMaxRank - 1,
                                            to_string(x.sizes())));
  }
  const int d1 = normalize_dim(c.op.name, a.dim1, x.dim() + 1);
  const int d2 = normalize_dim(c.op.name, a.dim2, x.dim() + 1);
  constexpr int64_t kMost = int64_t(1) << 31;
  if (a.offset < -kMost || a.offset > kMost) {
    throw ValueError(c.op.name, fmt::format("offset {} is too large", a.offset));
  }
  const int64_t n = x.sizes().back() + std::abs(a.offset);
  Shape sizes = x.sizes().slice(0, x.dim() - 1);
  for (int d : {std::min(d1, d2), std::max(d1, d2)}) sizes.insert(d, n);
  const Layout at = diagonal_layout(c.op.name, Layout::contiguous(sizes), a);
  Tensor& out = c.out(0, sizes, x.dtype());
  if (c.meta()) return;
  out = zeros_for(sizes, x);
  copy_elements(make_view(out, at), x);
}

void diag_embed_backward(Backward& b) {
  const auto& a = b.attrs<DiagonalAttrs>();
  b.set(0, diagonal(b.upstream(), {.offset = a.offset, .dim1 = a.dim1, .dim2 = a.dim2}));
}

// ---- triangles

struct TriangleAttrs {
  int64_t diagonal;
};

template <bool upper>
void triangle_forward(Call& c) {
  const Tensor& x = c.in(0);
  if (x.dim() < 2) {
    throw ShapeError(c.op.name,
                     fmt::format("needs matrices [...,n,m]; got x {}", to_string(x.sizes())));
  }
  const Tensor dense = contiguous_raw(x);
  Tensor& out = c.out(0, x.sizes(), x.dtype());
  if (c.meta() || x.numel() == 0) return;
  TriangleArgs a;
  a.columns = x.size(-1);
  a.rows = x.size(-2);
  a.count = x.numel() / (a.rows * a.columns);
  a.diagonal = std::clamp(c.attrs<TriangleAttrs>().diagonal, -a.rows, a.columns);
  a.upper = upper;
  a.in = dense.raw();
  a.out = out.raw();
  kernels::triangle(x.device(), x.dtype(), a);
}

void tril_backward(Backward& b) { b.set(0, tril(b.upstream(), b.attrs<TriangleAttrs>().diagonal)); }
void triu_backward(Backward& b) { b.set(0, triu(b.upstream(), b.attrs<TriangleAttrs>().diagonal)); }

// ---- records

// ---- as nodes of ONNX

void onnx_slice(OnnxCall& c, int64_t dim, int64_t begin, int64_t end, int64_t step) {
  c.result(c.node(
      "Slice", {c.name(0), c.list({begin}), c.list({end}), c.list({c.dim(dim)}), c.list({step})}));
}
void onnx_triangle(OnnxCall& c, int upper) {
  const std::string k =
      c.constant(scalar_tensor(c.attrs<TriangleAttrs>().diagonal, {.dtype = DType::i64}));
  c.result(c.node("Trilu", {c.name(0), k}, {{"upper", upper}}));
}

const OpRecord kSlice{.name = "slice",
                      .signature = "slice(x, dim, begin, end, step = 1) → y",
                      .meaning = "Every step-th element of a range of one dimension, as a view.",
                      .formula = "y[…, k, …] = x[…, begin + k·step, …]",
                      .shapes = "x [..., n, ...]   y [..., ceil((end-begin)/step), ...]",
                      .dtypes = kAllTypes,
                      .forward = pick_forward<SliceAttrs, slice_layout>,
                      .backward_text = "dx = zeros with g at the slice",
                      .backward = slice_backward,
                      .samples = slice_samples,
                      .onnx = [](OnnxCall& c) {
                        const auto& a = c.attrs<SliceAttrs>();
                        onnx_slice(c, a.dim, a.begin, a.end, a.step);
                      }};

const OpRecord kNarrow{.name = "narrow",
                       .signature = "narrow(x, dim, start, length) → y",
                       .meaning = "A range of one dimension, as a view; it must lie inside.",
                       .formula = "y[…, k, …] = x[…, start + k, …]",
                       .shapes = "x [..., n, ...]   y [..., length, ...]",
                       .dtypes = kAllTypes,
                       .forward = pick_forward<SliceAttrs, narrow_layout>,
                       .backward_text = "dx = zeros with g at the range",
                       .backward = narrow_backward,
                       .samples = narrow_samples,
                       .onnx = [](OnnxCall& c) {
                         const auto& a = c.attrs<SliceAttrs>();
                         const int64_t begin = a.begin < 0 ? a.begin + c.in().size(a.dim) : a.begin;
                         onnx_slice(c, a.dim, begin, begin + a.end, 1);
                       }};

const OpRecord kSelect{.name = "select",
                       .signature = "select(x, dim, index) → y",
                       .meaning = "One index of one dimension, as a view.",
                       .formula = "y[…, …] = x[…, index, …]",
                       .shapes = "x [..., n, ...]   y [..., ...]",
                       .dtypes = kAllTypes,
                       .forward = pick_forward<SelectAttrs, select_layout>,
                       .backward_text = "dx = zeros with g at the index",
                       .backward = select_backward,
                       .samples = select_samples,
                       .onnx = [](OnnxCall& c) {
                         const auto& a = c.attrs<SelectAttrs>();
                         const std::string index =
                             c.constant(scalar_tensor(a.index, {.dtype = DType::i64}));
                         c.result(c.node("Gather", {c.name(0), index}, {{"axis", c.dim(a.dim)}}));
                       }};

const OpRecord kDiagonal{.name = "diagonal",
                         .signature = "diagonal(x, {offset, dim1, dim2}) → y",
                         .meaning = "A diagonal of two dimensions as new last one, as a view.",
                         .formula = "y[…, k] = x[…, k + max(-offset,0), …, k + max(offset,0), …]",
                         .shapes = "x [..., n, m]   y [..., k]",
                         .dtypes = kAllTypes,
                         .forward = pick_forward<DiagonalAttrs, diagonal_layout>,
                         .backward_text = "dx = zeros with g on the diagonal",
                         .backward = diagonal_backward,
                         .samples = diagonal_samples};

const OpRecord kSliceScatter{.name = "slice_scatter",
                             .signature = "slice_scatter(x, src, dim, begin, end, step = 1) → y",
                             .meaning = "A copy of x with a slice replaced.",
                             .formula = "y = x, but y[…, begin + k·step, …] = src[…, k, …]",
                             .shapes = "x [..., n, ...]   src [..., k, ...]   y as x",
                             .dtypes = kAllTypes,
                             .forward = put_forward<SliceAttrs, slice_layout>,
                             .backward_text = "dx = g with zeros at the slice, dsrc = slice of g",
                             .backward = slice_scatter_backward,
                             .samples = slice_scatter_samples};

const OpRecord kSelectScatter{.name = "select_scatter",
                              .signature = "select_scatter(x, src, dim, index) → y",
                              .meaning = "A copy of x with one index of a dimension replaced.",
                              .formula = "y = x, but y[…, index, …] = src",
                              .shapes = "x [..., n, ...]   src [..., ...]   y as x",
                              .dtypes = kAllTypes,
                              .forward = put_forward<SelectAttrs, select_layout>,
                              .backward_text = "dx = g with zeros at index, dsrc = g at index",
                              .backward = select_scatter_backward,
                              .samples = select_scatter_samples};

const OpRecord kDiagonalScatter{.name = "diagonal_scatter",
                                .signature = "diagonal_scatter(x, src, {offset, dim1, dim2}) → y",
                                .meaning = "A copy of x with a diagonal replaced.",
                                .formula = "y = x, but diagonal(y) = src",
                                .shapes = "x [..., n, m]   src [..., k]   y as x",
                                .dtypes = kAllTypes,
                                .forward = put_forward<DiagonalAttrs, diagonal_layout>,
                                .backward_text = "dx = g with a zero diagonal, dsrc = diagonal(g)",
                                .backward = diagonal_scatter_backward,
                                .samples = diagonal_scatter_samples};

const OpRecord kDiagEmbed{.name = "diag_embed",
                          .signature = "diag_embed(x, {offset, dim1 = -2, dim2 = -1}) → y",
                          .meaning = "Matrices with x on a diagonal and zeros elsewhere.",
                          .formula = "diagonal(y) = x",
                          .shapes = "x [..., n]   y [..., n+|offset|, n+|offset|]",
                          .dtypes = kAllTypes,
                          .forward = diag_embed_forward,
                          .backward_text = "dx = diagonal(g)",
                          .backward = diag_embed_backward,
                          .samples = diag_embed_samples};

const OpRecord kTril{.name = "tril",
                     .signature = "tril(x, diagonal = 0) → y",
                     .meaning = "Zero above a diagonal.",
                     .formula = "y_ij = x_ij for j <= i + diagonal, else 0",
                     .shapes = "x [..., n, m]   y [..., n, m]",
                     .dtypes = kAllTypes,
                     .forward = triangle_forward<false>,
                     .backward_text = "dx = tril(g, diagonal)",
                     .backward = tril_backward,
                     .samples = tril_samples,
                     .onnx = [](OnnxCall& c) { onnx_triangle(c, 0); }};

const OpRecord kTriu{.name = "triu",
                     .signature = "triu(x, diagonal = 0) → y",
                     .meaning = "Zero below a diagonal.",
                     .formula = "y_ij = x_ij for j >= i + diagonal, else 0",
                     .shapes = "x [..., n, m]   y [..., n, m]",
                     .dtypes = kAllTypes,
                     .forward = triangle_forward<true>,
                     .backward_text = "dx = triu(g, diagonal)",
                     .backward = triu_backward,
                     .samples = triu_samples,
                     .onnx = [](OnnxCall& c) { onnx_triangle(c, 1); }};

DiagonalAttrs attrs_of(const DiagonalOptions& o) { return {o.offset, o.dim1, o.dim2}; }

}  // namespace

Tensor slice(TensorArg x, int64_t dim, int64_t begin, int64_t end, int64_t step) {
  return run(kSlice, {x}, SliceAttrs{dim, begin, end, step});
}
Tensor narrow(TensorArg x, int64_t dim, int64_t start, int64_t length) {
  return run(kNarrow, {x}, SliceAttrs{dim, start, length, 1});
}
Tensor select(TensorArg x, int64_t dim, int64_t index) {
  return run(kSelect, {x}, SelectAttrs{dim, index});
}
Tensor diagonal(TensorArg x, DiagonalOptions o) { return run(kDiagonal, {x}, attrs_of(o)); }
Tensor slice_scatter(TensorArg x, TensorArg src, int64_t dim, int64_t begin, int64_t end,
                     int64_t step) {
  return run(kSliceScatter, {x, src}, SliceAttrs{dim, begin, end, step});
}
Tensor select_scatter(TensorArg x, TensorArg src, int64_t dim, int64_t index) {
  return run(kSelectScatter, {x, src}, SelectAttrs{dim, index});
}
Tensor diagonal_scatter(TensorArg x, TensorArg src, DiagonalOptions o) {
  return run(kDiagonalScatter, {x, src}, attrs_of(o));
}
Tensor diag_embed(TensorArg x, DiagonalOptions o) { return run(kDiagEmbed, {x}, attrs_of(o)); }
Tensor diag(TensorArg x, int64_t offset) {
  if (x->dim() == 1) return diag_embed(x, {.offset = offset, .dim1 = -2, .dim2 = -1});
  if (x->dim() == 2) return diagonal(x, {.offset = offset});
  const CallScope scope(x.site);
  throw ShapeError("diag", "needs a vector or a matrix; got x " + to_string(x->sizes()),
                   "diagonal() and diag_embed() take more dimensions");
}
Tensor tril(TensorArg x, int64_t diagonal) { return run(kTril, {x}, TriangleAttrs{diagonal}); }
Tensor triu(TensorArg x, int64_t diagonal) { return run(kTriu, {x}, TriangleAttrs{diagonal}); }

void register_slice_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kSlice, &kNarrow, &kSelect, &kDiagonal, &kSliceScatter, &kSelectScatter,
                           &kDiagonalScatter, &kDiagEmbed, &kTril, &kTriu});
}

}  // namespace cutaway
