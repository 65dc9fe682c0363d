#include <cmath>

#include <fmt/format.h>

#include <cutaway/autograd/meta.h>
#include <cutaway/autograd/ops/cast.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/core/context.h>
#include <cutaway/core/error.h>
#include <cutaway/core/pointwise_args.h>
#include <cutaway/core/tensor_ops.h>

// Note: in-place ops. A write changes the storage, so every view sees it, and bumps its version, so
// that values saved for backward are known to be stale. While gradients are recorded:
// - a leaf that requires grad refuses: its gradient would belong to a value that is gone;
// - a view of, or in, a recorded graph refuses: the other views' history would be wrong;
// - a recorded result is computed out of place and adopts the new history with the new values.
// Everything is checked before the first element is written.

namespace cutaway {
namespace {

[[noreturn, gnu::cold]] void throw_leaf(const char* op, const Tensor& t) {
  throw AutogradError(
      op,
      fmt::format("a leaf that requires grad cannot be changed in place while gradients "
                  "are recorded; got {}",
                  to_string(t.sizes())),
      "write under NoGradGuard, or use the out-of-place form");
}

[[noreturn, gnu::cold]] void throw_view(const char* op, const Tensor& t) {
  std::string name = op;
  name.pop_back();  // add_ → add
  throw AutogradError(
      op,
      fmt::format("a view in a recorded computation, or a tensor with such views, cannot be "
                  "changed in place; got {}",
                  to_string(t.sizes())),
      "use the out-of-place form " + name + "() and assign its result");
}

[[noreturn, gnu::cold]] void throw_target(const char* op, const Tensor& t, const Shape& result) {
  throw ShapeError(op,
                   fmt::format("the result must fit the tensor written to; got {}, need {}",
                               to_string(result), to_string(t.sizes())),
                   "the target is never broadcast");
}

[[noreturn, gnu::cold]] void throw_narrow(const char* op, DType target, DType result) {
  throw DTypeError(op,
                   fmt::format("the result does not fit the type of the tensor written to; got {}, "
                               "need {}",
                               name_of(result), name_of(target)),
                   "convert the target with to(dtype), or use the out-of-place form");
}

// Does writing element after element give the same as reading all first? Not when elements of the
// target share memory, or when the operand overlaps it in another arrangement.
bool repeats_elements(const Tensor& t) {
  for (int d = 0; d < t.dim(); ++d) {
    if (t.strides()[d] == 0 && t.sizes()[d] > 1) return true;
  }
  return false;
}
bool overlaps_otherwise(const Tensor& to, const Tensor& from) {
  if (to.storage() != from.storage()) return false;
  return to.layout().offset != from.layout().offset || to.sizes() != from.sizes() ||
         to.strides() != from.strides() || to.dtype() != from.dtype();
}

// Checks the rules above; true if the op has to be recorded.
bool must_record(const char* op, const Tensor& t, const Tensor* other) {
  if (repeats_elements(t)) {
    throw ValueError(op,
                     "elements of the target share memory (an expanded tensor); got " +
                         to_string(t.sizes()) + " with strides " + to_string(t.strides()),
                     "clone() it first");
  }
  if (!context().grad_enabled) return false;
  if (t.requires_grad() && t.is_leaf()) throw_leaf(op, t);
  const bool record = t.requires_grad() || (other && other->requires_grad());
  const bool seen_by_view = t.impl()->viewed && t.storage()->refs.load() > 1;
  if (record && (t.impl()->is_view || seen_by_view)) throw_view(op, t);
  return record;
}

// From here on t is a constant: nothing of its former value is left.
void forget_history(Tensor& t) {
  if (AutogradMeta* meta = t.impl()->meta) {
    meta->is_leaf = true;
    meta->node = NodePtr();
  }
}

// Puts a recorded result in the place of t: values into its storage, history into its record.
void adopt(const char* op, Tensor& t, const Tensor& result) {
  copy_elements(t, result);
  t.storage()->bump(op);
  const Edge edge = gradient_edge(result);
  if (edge.node) {
    set_history(t, edge.node, edge.slot);
  } else {
    forget_history(t);
  }
}

// An operand that the record may keep: a copy if it lies in the storage about to change.
Tensor kept(const Tensor& operand, const Tensor& target) {
  return operand.storage() == target.storage() ? clone(operand) : operand;
}

void check_target(const char* op, const Tensor& t, const Shape& result, DType type) {
  if (result != t.sizes()) throw_target(op, t, result);
  const auto category = [](DType d) { return is_floating(d) ? 2 : is_integer(d) ? 1 : 0; };
  if (category(type) > category(t.dtype())) throw_narrow(op, t.dtype(), type);
}

void run_constant(const char* op, PointwiseKernel& kernel, Tensor& t, const Scalar& s) {
  if (!t.is_meta() && t.numel()) {
    PointwiseArgs a = pointwise_args(t, {&t});
    a.scalar[0] = s.f;
    a.integer[0] = s.i;
    kernel(t.device(), t.dtype(), a);
  }
  t.storage()->bump(op);
}

// t = kernel(t, other), written where t is.
void run_tensor(const char* op, PointwiseKernel& kernel, Tensor& t, const Tensor& other, double s) {
  check_target(op, t, broadcast(op, t.sizes(), other.sizes()), other.dtype());
  if (t.device() != other.device()) {
    throw DeviceError(op, "operands must be on one device; got " + to_string(t.device()) + " and " +
                              to_string(other.device()));
  }
  if (!t.is_meta() && t.numel()) {
    Tensor operand = other.dtype() == t.dtype() ? other : cast_raw(other, t.dtype());
    if (overlaps_otherwise(t, operand)) {
      operand = empty(other.sizes(), {.dtype = t.dtype(), .device = t.device()});
      copy_elements(operand, other);
    }
    PointwiseArgs a = pointwise_args(t, {&t, &operand});
    a.scalar[0] = s;
    a.integer[0] = int64_t(s);
    kernel(t.device(), t.dtype(), a);
  }
  t.storage()->bump(op);
}

// A floating literal may be written to integers if it is a whole number of their range.
void check_whole(const char* op, const Tensor& t, const Scalar& s) {
  if (!(std::floor(s.f) == s.f && std::fabs(s.f) < 0x1p63))
    throw_narrow(op, t.dtype(), kDefaultFloat);
}

void check_constant(const char* op, const Tensor& t, const Scalar& s) {
  if (s.floating && !t.is_floating()) throw_narrow(op, t.dtype(), kDefaultFloat);
}

}  // namespace

Tensor& Tensor::fill_(Scalar value) {
  if (value.floating && cutaway::is_integer(dtype())) check_whole("fill_", *this, value);
  if (must_record("fill_", *this, nullptr)) forget_history(*this);
  if (!is_meta() && numel()) {
    PointwiseArgs a = pointwise_args(*this, {});
    a.scalar[0] = value.f;
    a.integer[0] = value.floating ? int64_t(cutaway::is_integer(dtype()) ? value.f : 0) : value.i;
    if (dtype() == DType::boolean) a.integer[0] = value.f != 0;
    kernels::fill(device(), dtype(), a);
  }
  storage()->bump("fill_");
  return *this;
}

Tensor& Tensor::copy_(const Tensor& from) {
  check_target("copy_", *this, broadcast("copy_", sizes(), from.sizes()), dtype());
  if (device() != from.device()) return copy_(from.to(device()));
  if (must_record("copy_", *this, &from)) {
    // A product with ones expands the new value; the old one leaves no trace.
    adopt("copy_", *this, mul(cast(from, dtype()), ones_like(*this)));
    return *this;
  }
  if (!is_meta() && numel()) {
    Tensor source = from;
    if (overlaps_otherwise(*this, from)) {
      source = empty(from.sizes(), {.dtype = from.dtype(), .device = from.device()});
      copy_elements(source, from);
    }
    copy_elements(*this, source);
  }
  storage()->bump("copy_");
  return *this;
}

Tensor& Tensor::add_(const Tensor& other, double alpha) {
  if (must_record("add_", *this, &other)) {
    check_target("add_", *this, broadcast("add_", sizes(), other.sizes()), other.dtype());
    adopt("add_", *this, alpha == 1 ? add(*this, other) : add_scaled(*this, other, alpha));
  } else if (alpha == 1) {
    run_tensor("add_", kernels::add, *this, other, 1);
  } else {
    if (!is_floating() && alpha != std::floor(alpha)) check_constant("add_", *this, alpha);
    run_tensor("add_", kernels::add_scaled, *this, other, alpha);
  }
  return *this;
}

Tensor& Tensor::add_(Scalar value) {
  check_constant("add_", *this, value);
  if (must_record("add_", *this, nullptr)) {
    adopt("add_", *this, add(*this, value));
  } else {
    run_constant("add_", kernels::add_scalar, *this, value);
  }
  return *this;
}

Tensor& Tensor::mul_(const Tensor& other) {
  if (must_record("mul_", *this, &other)) {
    check_target("mul_", *this, broadcast("mul_", sizes(), other.sizes()), other.dtype());
    const Tensor factor = kept(other, *this);
    adopt("mul_", *this, mul(other.requires_grad() ? cutaway::clone(*this) : *this, factor));
  } else {
    run_tensor("mul_", kernels::mul, *this, other, 0);
  }
  return *this;
}

Tensor& Tensor::mul_(Scalar value) {
  check_constant("mul_", *this, value);
  if (must_record("mul_", *this, nullptr)) {
    adopt("mul_", *this, mul(*this, value));
  } else {
    run_constant("mul_", kernels::mul_scalar, *this, value);
  }
  return *this;
}

Tensor& Tensor::div_(const Tensor& other) {
  if (!is_floating()) throw_narrow("div_", dtype(), kDefaultFloat);
  if (must_record("div_", *this, &other)) {
    check_target("div_", *this, broadcast("div_", sizes(), other.sizes()), other.dtype());
    adopt("div_", *this, div(*this, kept(other, *this)));
  } else {
    run_tensor("div_", kernels::div, *this, other, 0);
  }
  return *this;
}

}  // namespace cutaway
