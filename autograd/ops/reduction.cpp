#include <cutaway/autograd/ops/reduction.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops/shape.h>

namespace cutaway {
namespace {

[[noreturn]] [[gnu::cold]] void throw_repeated(const char* op, const Shape& dims,
                                               const Shape& sizes) {
  throw ValueError(
      op, fmt::format("dims must be distinct; got dims {} for x {}, need each at most once",
                      to_string(dims), to_string(sizes)));
}

[[noreturn]] [[gnu::cold]] void throw_nothing(const char* op, const Shape& sizes, uint32_t mask) {
  throw ShapeError(
      op,
      fmt::format("reduces no elements and has no identity; got x {} over dims {}, need "
                  "sizes of at least 1 there",
                  to_string(sizes), to_string(mask_dims(mask))),
      "skip empty batches before the call");
}

}  // namespace

uint32_t reduced_mask(const char* op, const ReduceAttrs& attrs, const Shape& sizes) {
  const uint32_t every = (1u << sizes.rank()) - 1;
  if (attrs.all) return every;
  uint32_t mask = 0;
  for (const int64_t dim : attrs.dims) {
    const uint32_t bit = 1u << normalize_dim(op, dim, sizes.rank());
    if (mask & bit) throw_repeated(op, attrs.dims, sizes);
    mask |= bit;
  }
  return mask & every;
}

Shape reduced_sizes(const Shape& sizes, uint32_t mask, bool keepdim) {
  Shape out;
  for (int d = 0; d < sizes.rank(); ++d) {
    if (!(mask >> d & 1)) {
      out.push_back(sizes[d]);
    } else if (keepdim) {
      out.push_back(1);
    }
  }
  return out;
}

int64_t reduced_count(const Shape& sizes, uint32_t mask) {
  int64_t n = 1;
  for (int d = 0; d < sizes.rank(); ++d) n *= mask >> d & 1 ? sizes[d] : 1;
  return n;
}

void require_elements(const char* op, const Shape& sizes, uint32_t mask) {
  if (reduced_count(sizes, mask) == 0) throw_nothing(op, sizes, mask);
}

Tensor with_reduced_dims(const Tensor& t, const Shape& sizes, uint32_t mask) {
  const Shape kept = reduced_sizes(sizes, mask, true);
  return t.sizes() == kept ? t : reshape(t, kept);
}

Shape mask_dims(uint32_t mask) {
  Shape dims;
  for (int d = 0; d < kMaxRank; ++d) {
    if (mask >> d & 1) dims.push_back(d);
  }
  return dims;
}

Tensor positions(const Shape& sizes, int dim, Device device) {
  Shape along = Shape::filled(sizes.rank(), 1);
  along[dim] = sizes[dim];
  return reshape(arange(0, sizes[dim], 1, {.dtype = DType::i64, .device = device}), along);
}

void reduce_into(Call& c, Kernel<ReduceArgs>& kernel, DType out) {
  const auto& attrs = c.attrs<ReduceAttrs>();
  c.require_dtype(0);
  const Tensor& x = c.in(0);
  const uint32_t mask = reduced_mask(c.op.name, attrs, x.sizes());
  Tensor& y = c.out(0, reduced_sizes(x.sizes(), mask, attrs.keepdim), out);
  if (c.meta()) return;
  ReduceArgs a = reduce_args(x, y, mask);
  a.p = attrs.p;
  kernel(x.device(), x.dtype(), a);
}

// ReduceSum takes its axes as an input, all others as an attribute.
void onnx_reduce(OnnxCall& c, const char* type, DType t) {
  const auto& a = c.attrs<ReduceAttrs>();
  const Shape axes = mask_dims(reduced_mask(type, a, c.in().sizes()));
  const std::string x = c.cast(0, t);
  if (c.in().dim() == 0) return c.result(c.node("Identity", {x}));
  const onnx::Attribute keep("keepdims", int(a.keepdim));
  if (std::string(type) == "ReduceSum") {
    return c.result(c.node(type, {x, c.list(axes)}, {keep}));
  }
  c.result(c.node(type, {x}, {{"axes", axes}, keep}));
}

}  // namespace cutaway
