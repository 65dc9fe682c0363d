#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementwise_onnx.h>
#include <cutaway/autograd/ops/pointwise_samples.h>

namespace cutaway {
namespace {

const OpRecord kLogicalAnd{.name = "logical_and",
                           .signature = "logical_and(a, b) → y",
                           .meaning = "Are both elements true, that is not 0?",
                           .formula = "y = a ∧ b",
                           .shapes = kBroadcastShapes,
                           .dtypes = kAllTypes,
                           .forward = forward<kernels::logical_and, Types::compare>,
                           .no_gradient = kBooleanResult,
                           .samples = logical_and_samples,
                           .onnx = onnx_logic<"And">};
const OpRecord kLogicalOr{.name = "logical_or",
                          .signature = "logical_or(a, b) → y",
                          .meaning = "Is one of the elements true, that is not 0?",
                          .formula = "y = a ∨ b",
                          .shapes = kBroadcastShapes,
                          .dtypes = kAllTypes,
                          .forward = forward<kernels::logical_or, Types::compare>,
                          .no_gradient = kBooleanResult,
                          .samples = logical_or_samples,
                          .onnx = onnx_logic<"Or">};
const OpRecord kLogicalXor{.name = "logical_xor",
                           .signature = "logical_xor(a, b) → y",
                           .meaning = "Is exactly one of the elements true, that is not 0?",
                           .formula = "y = a ⊻ b",
                           .shapes = kBroadcastShapes,
                           .dtypes = kAllTypes,
                           .forward = forward<kernels::logical_xor, Types::compare>,
                           .no_gradient = kBooleanResult,
                           .samples = logical_xor_samples,
                           .onnx = onnx_logic<"Xor">};
const OpRecord kLogicalNot{.name = "logical_not",
                           .signature = "logical_not(x) → y",
                           .meaning = "Is an element false, that is 0?",
                           .formula = "y = ¬x",
                           .shapes = kSameShape,
                           .dtypes = kAllTypes,
                           .forward = forward<kernels::logical_not, Types::compare>,
                           .no_gradient = kBooleanResult,
                           .samples = logical_not_samples,
                           .onnx = onnx_logic<"Not">};

// Integers and booleans are finite.
template <PointwiseKernel& kKernel, bool kForIntegers>
void forward_test(Call& c) {
  if (c.in(0).is_floating()) return elementwise(c, kKernel, Types::compare);
  Tensor& out = c.out(0, c.in(0).sizes(), DType::boolean);
  if (!c.meta()) out.fill_(int(kForIntegers));
}

const OpRecord kIsNan{.name = "isnan",
                      .signature = "isnan(x) → y",
                      .meaning = "Is an element not a number?",
                      .formula = "y = (x ≠ x)",
                      .shapes = kSameShape,
                      .dtypes = kAllTypes,
                      .forward = forward_test<kernels::isnan, false>,
                      .no_gradient = kBooleanResult,
                      .samples = isnan_samples,
                      .onnx = onnx_same<"IsNaN">};
const OpRecord kIsInf{.name = "isinf",
                      .signature = "isinf(x) → y",
                      .meaning = "Is an element infinite?",
                      .formula = "y = (|x| = ∞)",
                      .shapes = kSameShape,
                      .dtypes = kAllTypes,
                      .forward = forward_test<kernels::isinf, false>,
                      .no_gradient = kBooleanResult,
                      .samples = isinf_samples,
                      .onnx = onnx_same<"IsInf">};
const OpRecord kIsFinite{
    .name = "isfinite",
    .signature = "isfinite(x) → y",
    .meaning = "Is an element neither infinite nor NaN?",
    .formula = "y = (|x| < ∞)",
    .shapes = kSameShape,
    .dtypes = kAllTypes,
    .forward = forward_test<kernels::isfinite, true>,
    .no_gradient = kBooleanResult,
    .samples = isfinite_samples,
    .onnx = [](OnnxCall& c) {
      const std::string x = c.name(0);
      c.result(c.node("Not", {c.node("Or", {c.node("IsNaN", {x}), c.node("IsInf", {x})})}));
    }};

constexpr const char* kIntegerResult = "integers have no gradients";
constexpr DTypeSet kBits = kIntegers | kBoolOnly;

const OpRecord kBitwiseAnd{.name = "bitwise_and",
                           .signature = "bitwise_and(a, b) → y",
                           .meaning = "Bits that both integers have.",
                           .formula = "y = a & b",
                           .shapes = kBroadcastShapes,
                           .dtypes = kBits,
                           .forward = forward<kernels::bit_and>,
                           .no_gradient = kIntegerResult,
                           .samples = bitwise_and_samples};
const OpRecord kBitwiseOr{.name = "bitwise_or",
                          .signature = "bitwise_or(a, b) → y",
                          .meaning = "Bits that one of the integers has.",
                          .formula = "y = a | b",
                          .shapes = kBroadcastShapes,
                          .dtypes = kBits,
                          .forward = forward<kernels::bit_or>,
                          .no_gradient = kIntegerResult,
                          .samples = bitwise_or_samples};
const OpRecord kBitwiseXor{.name = "bitwise_xor",
                           .signature = "bitwise_xor(a, b) → y",
                           .meaning = "Bits that exactly one of the integers has.",
                           .formula = "y = a ^ b",
                           .shapes = kBroadcastShapes,
                           .dtypes = kBits,
                           .forward = forward<kernels::bit_xor>,
                           .no_gradient = kIntegerResult,
                           .samples = bitwise_xor_samples};
const OpRecord kBitwiseNot{.name = "bitwise_not",
                           .signature = "bitwise_not(x) → y",
                           .meaning = "Bits that the integer lacks.",
                           .formula = "y = ~x",
                           .shapes = kSameShape,
                           .dtypes = kBits,
                           .forward = forward<kernels::bit_not>,
                           .no_gradient = kIntegerResult,
                           .samples = bitwise_not_samples};
const OpRecord kShiftLeft{.name = "shift_left",
                          .signature = "shift_left(a, n) → y",
                          .meaning = "Bits moved up; those that leave are lost.",
                          .formula = "y = a · 2ⁿ mod 2^bits",
                          .shapes = kBroadcastShapes,
                          .dtypes = kIntegers,
                          .forward = forward<kernels::shift_left>,
                          .no_gradient = kIntegerResult,
                          .samples = shift_left_samples};
const OpRecord kShiftRight{.name = "shift_right",
                           .signature = "shift_right(a, n) → y",
                           .meaning = "Bits moved down; the sign stays.",
                           .formula = "y = ⌊a / 2ⁿ⌋",
                           .shapes = kBroadcastShapes,
                           .dtypes = kIntegers,
                           .forward = forward<kernels::shift_right>,
                           .no_gradient = kIntegerResult,
                           .samples = shift_right_samples};

}  // namespace

Tensor logical_and(TensorArg a, TensorArg b) { return run(kLogicalAnd, {a, b}); }
Tensor logical_or(TensorArg a, TensorArg b) { return run(kLogicalOr, {a, b}); }
Tensor logical_xor(TensorArg a, TensorArg b) { return run(kLogicalXor, {a, b}); }
Tensor logical_not(TensorArg x) { return run(kLogicalNot, {x}); }

Tensor isnan(TensorArg x) { return run(kIsNan, {x}); }
Tensor isinf(TensorArg x) { return run(kIsInf, {x}); }
Tensor isfinite(TensorArg x) { return run(kIsFinite, {x}); }
Tensor bitwise_and(TensorArg a, TensorArg b) { return run(kBitwiseAnd, {a, b}); }
Tensor bitwise_or(TensorArg a, TensorArg b) { return run(kBitwiseOr, {a, b}); }
Tensor bitwise_xor(TensorArg a, TensorArg b) { return run(kBitwiseXor, {a, b}); }
Tensor bitwise_not(TensorArg x) { return run(kBitwiseNot, {x}); }
Tensor shift_left(TensorArg a, TensorArg n) { return run(kShiftLeft, {a, n}); }
Tensor shift_right(TensorArg a, TensorArg n) { return run(kShiftRight, {a, n}); }

void register_logic_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(),
              {&kLogicalAnd, &kLogicalOr, &kLogicalXor, &kLogicalNot, &kIsNan, &kIsInf, &kIsFinite,
               &kBitwiseAnd, &kBitwiseOr, &kBitwiseXor, &kBitwiseNot, &kShiftLeft, &kShiftRight});
}

}  // namespace cutaway
