#include <fmt/format.h>

#include <algorithm>

#include <cutaway/autograd/node.h>
#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/rearrange.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: join_samples.cpp.
void cat_samples(SampleList&);
void stack_samples(SampleList&);
void split_samples(SampleList&);
void unbind_samples(SampleList&);

namespace {

struct DimAttrs {
  int64_t dim;
};

std::string sizes_of_all(const Call& c) {
  std::string text;
  for (int i = 0; i < c.num_inputs; ++i) text += (i ? ", " : "") + to_string(c.in(i).sizes());
  return text;
}

DType common_type(const Call& c) {
  DType t = c.in(0).dtype();
  for (int i = 1; i < c.num_inputs; ++i) t = promote(t, c.in(i).dtype());
  return t;
}

// Copies the inputs one after the other into the rows of out; begins[i] is where input i starts in
// dimension `dim` of out.
void join(const Call& c, const std::vector<Tensor>& parts, const std::vector<int64_t>& begins,
          int dim) {
  const Tensor& out = c.outputs[0];
  if (out.numel() == 0) return;
  bool plain = true;
  for (const Tensor& t : parts) plain = plain && t.is_contiguous() && t.dtype() == out.dtype();
  if (!plain) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t end = begins[i] + parts[i].size(dim);
      copy_elements(make_view(out, out.layout().slice(dim, begins[i], end, 1)), parts[i]);
    }
    return;
  }
  const int64_t inner = out.sizes().slice(dim + 1, out.dim()).numel() * size_of(out.dtype());
  std::vector<const void*> sources;
  std::vector<int64_t> bytes;
  for (const Tensor& t : parts) {
    sources.push_back(t.raw());
    bytes.push_back(t.size(dim) * inner);
  }
  ConcatArgs a;
  a.in = sources.data();
  a.row_bytes = bytes.data();
  a.count = int64_t(parts.size());
  a.rows = out.sizes().slice(0, dim).numel();
  a.out = out.raw();
  kernels::concat(out.device(), out.dtype(), a);
}

bool skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

void cat_forward(Call& c) {
  c.require_same_device();
  // The first tensor that counts: not an old-style empty one, if there is another.
  const Tensor* model = &c.in(0);
  for (int i = 0; i < c.num_inputs && skipped(*model); ++i) model = &c.in(i);
  if (model->dim() == 0) {
    throw ShapeError(c.op.name, "0-d tensors have no dimension to join; got " + sizes_of_all(c),
                     "use stack(), or reshape them to [1]");
  }
  const int dim = normalize_dim(c.op.name, c.attrs<DimAttrs>().dim, model->dim());
  Shape sizes = model->sizes();
  sizes[dim] = 0;
  std::vector<Tensor> parts;
  std::vector<int64_t> begins, bounds{0};
  for (int i = 0; i < c.num_inputs; ++i) {
    const Tensor& t = c.in(i);
    if (!skipped(t) || sizes.rank() == 1) {
      Shape other = t.sizes();
      if (other.rank() == sizes.rank()) other[dim] = sizes[dim];
      if (other != sizes) {
        throw ShapeError(c.op.name, fmt::format("sizes must agree outside of dimension {}; got {}",
                                                dim, sizes_of_all(c)));
      }
      begins.push_back(sizes[dim]);
      parts.push_back(t);
      sizes[dim] += t.sizes()[dim];
    }
    bounds.push_back(sizes[dim]);
  }
  c.out(0, sizes, common_type(c));
  c.save(index_tensor(bounds));
  if (!c.meta()) join(c, parts, begins, dim);
}

void cat_backward(Backward& b) {
  const Tensor bounds = b.extra(0);
  const int64_t* at = bounds.data<int64_t>();
  const Tensor& g = b.upstream();
  const int64_t dim = b.attrs<DimAttrs>().dim;
  for (int i = 0; i < b.num_inputs(); ++i) {
    if (!b.needs(i)) continue;
    const Tensor part = narrow(g, dim, at[i], at[i + 1] - at[i]);
    const Shape& sizes = b.input_sizes(i);
    b.set(i, part.sizes() == sizes ? part : reshape(part, sizes));
  }
}

void stack_forward(Call& c) {
  c.require_same_device();
  const Shape& one = c.in(0).sizes();
  for (int i = 1; i < c.num_inputs; ++i) {
    if (c.in(i).sizes() != one) {
      throw ShapeError(c.op.name, "all sizes must be equal; got " + sizes_of_all(c));
    }
  }
  if (one.rank() == kMaxRank) {
    throw ShapeError(c.op.name,
                     fmt::format("at most {} dimensions; got {}", kMaxRank - 1, sizes_of_all(c)));
  }
  const int dim = normalize_dim(c.op.name, c.attrs<DimAttrs>().dim, one.rank() + 1);
  Shape sizes = one;
  sizes.insert(dim, c.num_inputs);
  c.out(0, sizes, common_type(c));
  if (c.meta()) return;
  std::vector<Tensor> parts;
  std::vector<int64_t> begins;
  for (int i = 0; i < c.num_inputs; ++i) {
    Layout layout = c.in(i).layout();
    layout.sizes.insert(dim, 1);
    layout.strides.insert(dim, 1);
    parts.push_back(make_view(c.in(i), layout));
    begins.push_back(i);
  }
  join(c, parts, begins, dim);
}

void stack_backward(Backward& b) {
  for (int i = 0; i < b.num_inputs(); ++i) {
    if (b.needs(i)) b.set(i, select(b.upstream(), b.attrs<DimAttrs>().dim, i));
  }
}

// Input 1 [pieces + 1] holds the bounds, ascending, on the host.
void split_forward(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t* bounds = c.in(1).data<int64_t>();
  const int dim = normalize_dim(c.op.name, c.attrs<DimAttrs>().dim, x.dim());
  for (int i = 0; i < c.num_outputs; ++i) {
    c.view(i, x, x.layout().slice(dim, bounds[i], bounds[i + 1], 1));
  }
}

Tensors upstreams_of(Backward& b) {
  Tensors g;
  for (uint32_t i = 0; i < b.node.num_outputs; ++i) g.push_back(b.upstream(int(i)));
  return g;
}

void split_backward(Backward& b) {
  b.set(0, reshape(cat(upstreams_of(b), b.attrs<DimAttrs>().dim), b.input_sizes(0)));
}

void unbind_forward(Call& c) {
  const Tensor& x = c.in(0);
  const int dim = normalize_dim(c.op.name, c.attrs<DimAttrs>().dim, x.dim());
  for (int i = 0; i < c.num_outputs; ++i) c.view(i, x, x.layout().select(dim, i));
}

void unbind_backward(Backward& b) { b.set(0, stack(upstreams_of(b), b.attrs<DimAttrs>().dim)); }

// ---- as nodes of ONNX

void onnx_cat(OnnxCall& c) {
  const int64_t d = c.attrs<DimAttrs>().dim;
  std::vector<std::string> in;
  for (int i = 0; i < c.inputs(); ++i) {
    if (c.in(i).dim() == c.out().dim()) in.push_back(c.cast(i, c.type()));
  }
  c.result(c.node("Concat", in, {{"axis", d < 0 ? d + c.out().dim() : d}}));
}
void onnx_stack(OnnxCall& c) {
  const int64_t d = c.attrs<DimAttrs>().dim, axis = d < 0 ? d + c.out().dim() : d;
  std::vector<std::string> in;
  for (int i = 0; i < c.inputs(); ++i) {
    in.push_back(c.node("Unsqueeze", {c.cast(i, c.type()), c.list({axis})}));
  }
  c.result(c.node("Concat", in, {{"axis", axis}}));
}
void onnx_split(OnnxCall& c) {
  const int64_t axis = c.dim(c.attrs<DimAttrs>().dim);
  std::vector<int64_t> sizes;
  for (int i = 0; i < c.outputs(); ++i) sizes.push_back(c.out(i).size(axis));
  const auto parts =
      c.nodes("Split", {c.name(0), c.constant(index_tensor(sizes))}, c.outputs(), {{"axis", axis}});
  for (int i = 0; i < c.outputs(); ++i) c.result(i, parts[size_t(i)]);
}
void onnx_unbind(OnnxCall& c) {
  const int64_t axis = c.dim(c.attrs<DimAttrs>().dim);
  for (int64_t i = 0; i < c.outputs(); ++i) {
    const std::string index = c.constant(scalar_tensor(i, {.dtype = DType::i64}));
    c.result(int(i), c.node("Gather", {c.name(0), index}, {{"axis", axis}}));
  }
}

const OpRecord kCat{.name = "cat",
                    .signature = "cat(tensors, dim = 0) → y",
                    .meaning = "Joins tensors along one dimension.",
                    .formula = "y = x_0, then x_1, … along dim",
                    .shapes = "x_i [..., n_i, ...]   y [..., Σ n_i, ...]",
                    .dtypes = kAllTypes,
                    .forward = cat_forward,
                    .backward_text = "dx_i = the i-th part of g",
                    .backward = cat_backward,
                    .samples = cat_samples,
                    .onnx = onnx_cat};

const OpRecord kStack{.name = "stack",
                      .signature = "stack(tensors, dim = 0) → y",
                      .meaning = "Joins tensors of equal sizes along a new dimension.",
                      .formula = "y[…, i, …] = x_i[…, …]",
                      .shapes = "x_i [...]   y [..., number of tensors, ...]",
                      .dtypes = kAllTypes,
                      .forward = stack_forward,
                      .backward_text = "dx_i = select(g, dim, i)",
                      .backward = stack_backward,
                      .samples = stack_samples,
                      .onnx = onnx_stack};

const OpRecord kSplit{.name = "split",
                      .signature = "split(x, size, dim = 0) → pieces",
                      .meaning = "Cuts a dimension into pieces, which are views.",
                      .formula = "piece_i = x[…, bound_i : bound_i+1, …]",
                      .shapes = "x [..., n, ...]   piece_i [..., n_i, ...], Σ n_i = n",
                      .dtypes = kAllTypes,
                      .outputs = 0,
                      .forward = split_forward,
                      .backward_text = "dx = cat(g_0, g_1, …)",
                      .backward = split_backward,
                      .samples = split_samples,
                      .onnx = onnx_split};

const OpRecord kUnbind{.name = "unbind",
                       .signature = "unbind(x, dim = 0) → slices",
                       .meaning = "All slices of a dimension, as views.",
                       .formula = "slice_i = x[…, i, …]",
                       .shapes = "x [..., n, ...]   slice_i [..., ...]",
                       .dtypes = kAllTypes,
                       .outputs = 0,
                       .forward = unbind_forward,
                       .backward_text = "dx = stack(g_0, g_1, …)",
                       .backward = unbind_backward,
                       .samples = unbind_samples,
                       .onnx = onnx_unbind};

void require_some(const char* op, const Tensors& tensors, const char* what) {
  if (tensors.empty())
    throw ValueError(op, std::string("needs at least one ") + what + "; got none");
}

[[noreturn, gnu::cold]] void fail_0d(const char* op) {
  throw ShapeError(op, "a 0-d tensor has no dimension to cut; got x [], need [n, ...]");
}

// Size of the dimension to cut, after the checks that all ways of cutting share.
int64_t size_to_cut(const char* op, const Tensor& x, int64_t dim) {
  if (x.dim() == 0) fail_0d(op);
  return x.sizes()[normalize_dim(op, dim, x.dim())];
}

Tensors split_at(const Tensor& x, const std::vector<int64_t>& bounds, int64_t dim,
                 std::source_location site) {
  const int pieces = int(bounds.size()) - 1;
  if (pieces == 0) return {};
  return run_many(kSplit, {x, index_tensor(bounds)}, DimAttrs{dim}, site, pieces);
}

std::vector<int64_t> even_bounds(int64_t n, int64_t size) {
  std::vector<int64_t> bounds{0};
  do bounds.push_back(std::min(n, bounds.back() + size));
  while (bounds.back() < n);
  return bounds;
}

}  // namespace

Tensor cat(const Tensors& tensors, int64_t dim, std::source_location at) {
  const CallScope scope(at);
  require_some("cat", tensors, "tensor");
  return run_many(kCat, tensors, DimAttrs{dim}, at)[0];
}

Tensor stack(const Tensors& tensors, int64_t dim, std::source_location at) {
  const CallScope scope(at);
  require_some("stack", tensors, "tensor");
  return run_many(kStack, tensors, DimAttrs{dim}, at)[0];
}

Tensors split(TensorArg x, int64_t size, int64_t dim) {
  const CallScope scope(x.site);
  const int64_t n = size_to_cut("split", *x, dim);
  if (size < 0 || (size == 0 && n > 0)) {
    throw ValueError("split", fmt::format("pieces must have at least one element; got {} for x {}",
                                          size, to_string(x->sizes())));
  }
  return split_at(*x, even_bounds(n, size), dim, x.site);
}

Tensors split_sizes(TensorArg x, std::span<const int64_t> sizes, int64_t dim) {
  const CallScope scope(x.site);
  const int64_t n = size_to_cut("split_sizes", *x, dim);
  std::vector<int64_t> bounds{0};
  bool good = true;
  for (int64_t s : sizes) {
    good = good && s >= 0 && s <= n - bounds.back();
    bounds.push_back(good ? bounds.back() + s : 0);
  }
  if (!good || bounds.back() != n) {
    throw ShapeError("split_sizes",
                     fmt::format("sizes must not be negative and add up to {}; got [{}] for x {}",
                                 n, fmt::join(sizes, ","), to_string(x->sizes())));
  }
  return split_at(*x, bounds, dim, x.site);
}

Tensors chunk(TensorArg x, int64_t chunks, int64_t dim) {
  const CallScope scope(x.site);
  const int64_t n = size_to_cut("chunk", *x, dim);
  if (chunks < 1) {
    throw ValueError("chunk", fmt::format("needs at least one chunk; got {} for x {}", chunks,
                                          to_string(x->sizes())));
  }
  return split_at(*x, even_bounds(n, n / chunks + (n % chunks != 0)), dim, x.site);
}

Tensors tensor_split(TensorArg x, int64_t sections, int64_t dim) {
  const CallScope scope(x.site);
  const int64_t n = size_to_cut("tensor_split", *x, dim);
  if (sections < 1) {
    throw ValueError("tensor_split", fmt::format("needs at least one section; got {} for x {}",
                                                 sections, to_string(x->sizes())));
  }
  std::vector<int64_t> bounds{0};
  for (int64_t i = 0; i < sections; ++i) {
    bounds.push_back(bounds.back() + n / sections + (i < n % sections));
  }
  return split_at(*x, bounds, dim, x.site);
}

Tensors tensor_split_at(TensorArg x, std::span<const int64_t> at, int64_t dim) {
  const CallScope scope(x.site);
  const int64_t n = size_to_cut("tensor_split_at", *x, dim);
  // Bounds may go back, as in slices: such a piece is empty, and the next one begins there again.
  Tensors pieces;
  int64_t begin = 0;
  for (size_t i = 0; i <= at.size(); ++i) {
    const int64_t end = i < at.size() ? at[i] : n;
    pieces.push_back(slice(TensorArg(*x, x.site), dim, begin, end));
    begin = end;
  }
  return pieces;
}

Tensors unbind(TensorArg x, int64_t dim) {
  const CallScope scope(x.site);
  const int64_t n = size_to_cut("unbind", *x, dim);
  if (n == 0) return {};
  return run_many(kUnbind, {*x}, DimAttrs{dim}, x.site, int(n));
}

Tensors meshgrid(const Tensors& vectors, MeshgridOptions options, std::source_location at) {
  const CallScope scope(at);
  require_some("meshgrid", vectors, "vector");
  Shape sizes;
  for (const Tensor& v : vectors) {
    if (v.dim() > 1) {
      throw ShapeError("meshgrid", "needs vectors; got one with sizes " + to_string(v.sizes()));
    }
    sizes.push_back(v.numel());
  }
  const bool swap = options.xy && vectors.size() > 1;
  Tensors grids;
  for (size_t k = 0; k < vectors.size(); ++k) {
    Shape line = Shape::filled(sizes.rank(), 1);
    line[int(k)] = sizes[int(k)];
    const Tensor grid = expand(reshape(vectors[k], line), sizes);
    grids.push_back(swap ? transpose(grid, 0, 1) : grid);
  }
  return grids;
}

void register_join_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kCat, &kStack, &kSplit, &kUnbind});
}

}  // namespace cutaway
