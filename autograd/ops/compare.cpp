#include <cutaway/autograd/ops/compare.h>

#include <cmath>
#include <limits>

#include <cutaway/autograd/ops/elementwise_onnx.h>
#include <cutaway/autograd/ops/pointwise_samples.h>
#include <cutaway/core/math/half.h>

namespace cutaway {
namespace {

enum class Relation : uint8_t { eq, ne, lt, le, gt, ge };

PointwiseKernel& scalar_kernel(Relation r) {
  switch (r) {
    case Relation::eq:
      return kernels::eq_scalar;
    case Relation::ne:
      return kernels::ne_scalar;
    case Relation::lt:
      return kernels::lt_scalar;
    case Relation::le:
      return kernels::le_scalar;
    case Relation::gt:
      return kernels::gt_scalar;
    default:
      return kernels::ge_scalar;
  }
}

struct IntegerRange {
  int64_t lo, hi;
};
IntegerRange range_of(DType t) {
  switch (t) {
    case DType::i64:
      return {INT64_MIN, INT64_MAX};
    case DType::i32:
      return {INT32_MIN, INT32_MAX};
    case DType::i8:
      return {INT8_MIN, INT8_MAX};
    case DType::u8:
      return {0, UINT8_MAX};
    default:
      return {0, 1};
  }
}

// An integer comparison that holds exactly when x (relation) s does, or a constant answer.
struct IntegerTest {
  Relation relation;
  int64_t bound = 0;
  int constant = -1;  // 0 or 1: the answer for every x
};

IntegerTest integer_test(Relation r, const Scalar& s, IntegerRange range) {
  const auto always = [&](bool answer) { return IntegerTest{r, 0, int(answer)}; };
  int64_t bound = s.i;
  if (s.floating) {
    if (std::isnan(s.f)) return always(r == Relation::ne);
    const double floor = std::floor(s.f);
    if (floor != s.f) {  // between two integers
      if (r == Relation::eq || r == Relation::ne) return always(r == Relation::ne);
      r = r == Relation::lt || r == Relation::le ? Relation::le : Relation::gt;
    }
    const bool below = floor < -0x1p63, above = floor >= 0x1p63;
    if (below || above) {
      const bool less = r == Relation::lt || r == Relation::le;
      return always(r == Relation::ne || (r != Relation::eq && less == above));
    }
    bound = int64_t(floor);
  }
  if (bound < range.lo || bound > range.hi) {
    const bool above = bound > range.hi, less = r == Relation::lt || r == Relation::le;
    return always(r == Relation::ne || (r != Relation::eq && less == above));
  }
  return {r, bound};
}

// The literal as a value of a 16-bit type, so that x == 0.1 can hold there.
double rounded_to(DType t, double v) {
  if (t == DType::bf16) return float(BFloat16(v));
  if (t == DType::f16 && std::fabs(v) < 65520) return float(Float16(v));
  return v;
}

template <Relation kRelation>
void forward_compare_literal(Call& c) {
  const Scalar& s = c.attrs<LiteralAttrs>().s;
  const DType type = c.in(0).dtype();
  if (is_floating(type)) {
    const Constants constants{.f = {rounded_to(type, s.f)}};
    return elementwise(c, scalar_kernel(kRelation), Types::compare, &constants);
  }
  const IntegerTest test = integer_test(kRelation, s, range_of(type));
  if (test.constant < 0) {
    const Constants constants{.i = {test.bound}};
    return elementwise(c, scalar_kernel(test.relation), Types::compare, &constants);
  }
  Tensor& out = c.out(0, c.in(0).sizes(), DType::boolean);
  if (c.meta()) return;
  PointwiseArgs p;
  p.rank = 1;
  p.numel = p.sizes[0] = out.numel();
  p.strides[0][0] = 1;
  p.out = out.raw();
  p.integer[0] = test.constant;
  kernels::fill(out.device(), DType::boolean, p);
}

// a > b is b < a.
template <PointwiseKernel& kKernel>
void forward_swapped(Call& c) {
  broadcast(c.op.name, c.in(0).sizes(), c.in(1).sizes());  // an error names them in the given order
  const Tensor* swapped[2] = {c.inputs[1], c.inputs[0]};
  const Tensor* const* before = c.inputs;
  c.inputs = swapped;
  elementwise(c, kKernel, Types::compare);
  c.inputs = before;
}

constexpr OpRecord relation_record(const char* name, const char* signature, const char* meaning,
                                   const char* formula, bool literal, void (*forward)(Call&),
                                   void (*samples)(SampleList&), void (*onnx)(OnnxCall&)) {
  return {.name = name,
          .signature = signature,
          .meaning = meaning,
          .formula = formula,
          .shapes = literal ? kSameShape : kBroadcastShapes,
          .dtypes = kAllTypes,
          .forward = forward,
          .no_gradient = kBooleanResult,
          .samples = samples,
          .onnx = onnx,
          .file = __FILE__,
          .line = __LINE__};
}

void onnx_ne(OnnxCall& c) {
  const DType t = promote(c.in(0).dtype(), c.in(1).dtype());
  c.result(c.node("Not", {c.node("Equal", {c.cast(0, t), c.cast(1, t)})}));
}

const OpRecord kEq =
    relation_record("eq", "eq(a, b) → y", "Are elements equal?", "y = (a = b)", false,
                    forward<kernels::eq, Types::compare>, eq_samples, onnx_compare<"Equal">);
const OpRecord kNe =
    relation_record("ne", "ne(a, b) → y", "Do elements differ?", "y = (a ≠ b)", false,
                    forward<kernels::ne, Types::compare>, ne_samples, onnx_ne);
const OpRecord kLt =
    relation_record("lt", "lt(a, b) → y", "Are elements less?", "y = (a < b)", false,
                    forward<kernels::lt, Types::compare>, lt_samples, onnx_compare<"Less">);
const OpRecord kLe =
    relation_record("le", "le(a, b) → y", "Are elements less or equal?", "y = (a ≤ b)", false,
                    forward<kernels::le, Types::compare>, le_samples, onnx_compare<"LessOrEqual">);
const OpRecord kGt =
    relation_record("gt", "gt(a, b) → y", "Are elements greater?", "y = (a > b)", false,
                    forward_swapped<kernels::lt>, gt_samples, onnx_compare<"Greater">);
const OpRecord kGe =
    relation_record("ge", "ge(a, b) → y", "Are elements greater or equal?", "y = (a ≥ b)", false,
                    forward_swapped<kernels::le>, ge_samples, onnx_compare<"GreaterOrEqual">);
const OpRecord kEqScalar = relation_record(
    "eq_scalar", "eq(a, s) → y", "Are elements equal to a number?", "y = (a = s)", true,
    forward_compare_literal<Relation::eq>, eq_scalar_samples, onnx_compare_literal<"Equal">);
const OpRecord kNeScalar = relation_record(
    "ne_scalar", "ne(a, s) → y", "Do elements differ from a number?", "y = (a ≠ s)", true,
    forward_compare_literal<Relation::ne>, ne_scalar_samples, onnx_compare_literal<"Equal", true>);
const OpRecord kLtScalar = relation_record(
    "lt_scalar", "lt(a, s) → y", "Are elements less than a number?", "y = (a < s)", true,
    forward_compare_literal<Relation::lt>, lt_scalar_samples, onnx_compare_literal<"Less">);
const OpRecord kLeScalar = relation_record(
    "le_scalar", "le(a, s) → y", "Are elements at most a number?", "y = (a ≤ s)", true,
    forward_compare_literal<Relation::le>, le_scalar_samples, onnx_compare_literal<"LessOrEqual">);
const OpRecord kGtScalar = relation_record(
    "gt_scalar", "gt(a, s) → y", "Are elements greater than a number?", "y = (a > s)", true,
    forward_compare_literal<Relation::gt>, gt_scalar_samples, onnx_compare_literal<"Greater">);
const OpRecord kGeScalar =
    relation_record("ge_scalar", "ge(a, s) → y", "Are elements at least a number?", "y = (a ≥ s)",
                    true, forward_compare_literal<Relation::ge>, ge_scalar_samples,
                    onnx_compare_literal<"GreaterOrEqual">);

}  // namespace

Tensor eq(TensorArg a, TensorArg b) { return run(kEq, {a, b}); }
Tensor eq(TensorArg a, Scalar b) { return run(kEqScalar, {a}, LiteralAttrs{b}); }
Tensor ne(TensorArg a, TensorArg b) { return run(kNe, {a, b}); }
Tensor ne(TensorArg a, Scalar b) { return run(kNeScalar, {a}, LiteralAttrs{b}); }
Tensor lt(TensorArg a, TensorArg b) { return run(kLt, {a, b}); }
Tensor lt(TensorArg a, Scalar b) { return run(kLtScalar, {a}, LiteralAttrs{b}); }
Tensor le(TensorArg a, TensorArg b) { return run(kLe, {a, b}); }
Tensor le(TensorArg a, Scalar b) { return run(kLeScalar, {a}, LiteralAttrs{b}); }
Tensor gt(TensorArg a, TensorArg b) { return run(kGt, {a, b}); }
Tensor gt(TensorArg a, Scalar b) { return run(kGtScalar, {a}, LiteralAttrs{b}); }
Tensor ge(TensorArg a, TensorArg b) { return run(kGe, {a, b}); }
Tensor ge(TensorArg a, Scalar b) { return run(kGeScalar, {a}, LiteralAttrs{b}); }

void register_compare_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kEq, &kNe, &kLt, &kLe, &kGt, &kGe, &kEqScalar, &kNeScalar, &kLtScalar,
                           &kLeScalar, &kGtScalar, &kGeScalar});
}

}  // namespace cutaway
