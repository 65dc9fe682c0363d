#include <cutaway/autograd/ops/elementwise.h>

#include <cstring>

#include <fmt/format.h>

#include <cutaway/core/pointwise_args.h>
#include <cutaway/core/reduce_args.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

int category(DType t) { return is_floating(t) ? 2 : is_integer(t) ? 1 : 0; }

[[noreturn, gnu::cold]] void throw_type(const Call& c, DType type) {
  std::string got;
  for (int i = 0; i < c.num_inputs; ++i) {
    got +=
        fmt::format("{}{} {}", i ? ", " : "", to_string(c.in(i).sizes()), name_of(c.in(i).dtype()));
  }
  const bool boolean = type == DType::boolean;
  throw DTypeError(c.op.name,
                   fmt::format("does not work on {}; got {}, need one of {}", name_of(type), got,
                               to_string(c.op.dtypes)),
                   boolean ? "booleans have logical_and, logical_or, logical_xor and logical_not"
                           : "convert with to(dtype)");
}

[[noreturn, gnu::cold]] void throw_mask(const Call& c) {
  throw DTypeError(c.op.name,
                   fmt::format("the mask must be boolean; got {} {}, need bool",
                               to_string(c.in(0).sizes()), name_of(c.in(0).dtype())),
                   "compare it first, for example ne(mask, 0)");
}

// Output 0 in a buffer that nothing else can see, or in a new one. An operand given twice is seen.
Tensor& output(Call& c, const Shape& sizes, DType type) {
  if (!c.temporaries) return c.out(0, sizes, type);
  for (int i = 0; i < c.num_inputs; ++i) {
    if (!(c.temporaries >> i & 1) || c.in(i).dtype() != type || c.in(i).sizes() != sizes) continue;
    bool twice = false;
    for (int k = 0; k < c.num_inputs; ++k) twice = twice || (k != i && c.in(k).is_same(c.in(i)));
    if (!twice && c.can_reuse(i)) return c.out_like(0, i);
  }
  return c.out(0, sizes, type);
}

void set_constants(PointwiseArgs& a, const Constants* s) {
  if (!s) return;
  for (int i = 0; i < 3; ++i) a.scalar[i] = s->f[i];
  for (int i = 0; i < 2; ++i) a.integer[i] = s->i[i];
}

void* values_of(const TensorImpl& t) {
  if (!t.storage || !t.storage->data) return nullptr;
  if (recording_somewhere()) [[unlikely]] detail::record_used(t.storage);
  return static_cast<char*>(t.storage->data) + t.layout.offset * size_of(t.dtype);
}

// The short way: everything contiguous, of one size, type and place. False if it is not so.
bool run_flat(Call& c, PointwiseKernel& kernel, Types types, const Constants* constants) {
  const TensorImpl* a = c.in(0).impl();
  if (!a || !a->contiguous || types > Types::compare) return false;
  if (types == Types::floating ? !is_floating(a->dtype) : !c.op.dtypes.has(a->dtype)) return false;
  for (int k = 1; k < c.num_inputs; ++k) {
    const TensorImpl* b = c.in(k).impl();
    if (!b || !b->contiguous || b->dtype != a->dtype || b->device != a->device ||
        b->layout.sizes != a->layout.sizes) {
      return false;
    }
  }
  const DType type = a->dtype;
  PointwiseArgs p;
  p.rank = 1;
  p.numel = p.sizes[0] = a->numel;
  p.strides[0][0] = 1;
  for (int k = 0; k < c.num_inputs; ++k) {
    p.in[k] = values_of(*c.in(k).impl());
    p.strides[k + 1][0] = 1;
  }
  set_constants(p, constants);
  Tensor& out = types == Types::compare ? c.out(0, a->layout.sizes, DType::boolean)
                                        : output(c, a->layout.sizes, type);
  if (c.meta()) return true;
  p.out = values_of(*out.impl());
  kernel(out.device(), type, p);
  return true;
}

[[gnu::noinline]] void run_general(Call& c, PointwiseKernel& kernel, Types types,
                                   const Constants* constants, const DType* result) {
  const int first = types == Types::choose ? 1 : 0;
  Shape sizes = c.in(0).sizes();
  for (int k = 1; k < c.num_inputs; ++k) sizes = broadcast(c.op.name, sizes, c.in(k).sizes());
  c.require_same_device();
  if (first && c.in(0).dtype() != DType::boolean) throw_mask(c);
  DType type = result ? *result : promoted_type(c, first);
  if (types == Types::floating && !is_floating(type)) type = kDefaultFloat;
  if (!c.op.dtypes.has(type)) throw_type(c, type);
  const bool boolean = types == Types::compare;
  Tensor cast[3];
  const Tensor* in[3];
  for (int k = 0; k < c.num_inputs; ++k) {
    in[k] = &c.in(k);
    if (k < first || in[k]->dtype() == type) continue;
    cast[k] = cast_raw(*in[k], type);
    in[k] = &cast[k];
  }
  Tensor& out = boolean ? c.out(0, sizes, DType::boolean) : output(c, sizes, type);
  if (c.meta() || out.numel() == 0) return;
  PointwiseArgs p = pointwise_args(out, in, c.num_inputs);
  set_constants(p, constants);
  kernel(out.device(), type, p);
}

}  // namespace

DType promoted_type(const Call& c, int first) {
  // Tensors with dimensions among themselves, 0-d ones among themselves.
  int found[2] = {0, 0};
  DType type[2] = {DType::boolean, DType::boolean};
  for (int k = first; k < c.num_inputs; ++k) {
    const bool zero_d = c.in(k).dim() == 0;
    type[zero_d] = found[zero_d]++ ? promote(type[zero_d], c.in(k).dtype()) : c.in(k).dtype();
  }
  if (!found[0]) return type[1];
  if (!found[1] || category(type[1]) <= category(type[0])) return type[0];
  return type[1];
}

DType literal_type(DType tensor, const Scalar& literal) {
  if (is_floating(tensor)) return tensor;
  if (literal.floating) return kDefaultFloat;
  return is_integer(tensor) ? tensor : DType::i64;
}

void elementwise(Call& c, PointwiseKernel& kernel, Types types, const Constants* constants,
                 const DType* result) {
  if (!result && run_flat(c, kernel, types, constants)) [[likely]]
    return;
  run_general(c, kernel, types, constants, result);
}

void elementwise_literal(Call& c, PointwiseKernel& kernel, Types types) {
  const Scalar& s = c.attrs<LiteralAttrs>().s;
  const Constants constants{.f = {s.f}, .i = {s.i}};
  const DType last = c.in(c.num_inputs - 1).dtype();
  const DType type = literal_type(last, s);
  elementwise(c, kernel, types, &constants, type == last ? nullptr : &type);
}

Tensor apply_kernel(PointwiseKernel& kernel, std::initializer_list<const Tensor*> inputs,
                    const Constants* constants) {
  const Tensor& g = **inputs.begin();
  Tensor cast[3];
  const Tensor* in[3];
  int n = 0;
  for (const Tensor* t : inputs) {
    cast[n] = t->dtype() == g.dtype() ? *t : cast_raw(*t, g.dtype());
    in[n] = &cast[n];
    ++n;
  }
  Tensor out = empty(g.sizes(), {.dtype = g.dtype(), .device = g.device()});
  if (out.is_meta() || out.numel() == 0) return out;
  PointwiseArgs p = pointwise_args(out, in, n);
  set_constants(p, constants);
  kernel(out.device(), out.dtype(), p);
  return out;
}

void zero_backward(Backward& b) {
  for (int i = 0; i < b.num_inputs(); ++i) {
    if (b.needs(i)) b.set(i, zeros_like(b.upstream()));
  }
}

bool any_equal(const Tensor& t, int64_t value) {
  if (t.numel() == 0) return false;
  const Tensor dense = contiguous_raw(t);
  const Tensor hit = empty(t.sizes(), {.dtype = DType::boolean, .device = t.device()});
  PointwiseArgs p = pointwise_args(hit, {&dense});
  p.integer[0] = value;
  p.scalar[0] = double(value);
  kernels::eq_scalar(t.device(), t.dtype(), p);
  if (recording_somewhere()) [[unlikely]] {
    recording::refuse(context().op, "looks for forbidden values on the host");
  }
  if (t.device() == kCpu) return std::memchr(hit.raw(), 1, size_t(hit.numel())) != nullptr;
  const Tensor found = empty({}, {.dtype = DType::boolean, .device = t.device()});
  kernels::any(t.device(), DType::boolean, reduce_args(hit, found, (1u << hit.dim()) - 1));
  return found.item<bool>();
}

}  // namespace cutaway
