#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementwise.h>
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
                           .samples = logical_and_samples};
const OpRecord kLogicalOr{.name = "logical_or",
                          .signature = "logical_or(a, b) → y",
                          .meaning = "Is one of the elements true, that is not 0?",
                          .formula = "y = a ∨ b",
                          .shapes = kBroadcastShapes,
                          .dtypes = kAllTypes,
                          .forward = forward<kernels::logical_or, Types::compare>,
                          .no_gradient = kBooleanResult,
                          .samples = logical_or_samples};
const OpRecord kLogicalXor{.name = "logical_xor",
                           .signature = "logical_xor(a, b) → y",
                           .meaning = "Is exactly one of the elements true, that is not 0?",
                           .formula = "y = a ⊻ b",
                           .shapes = kBroadcastShapes,
                           .dtypes = kAllTypes,
                           .forward = forward<kernels::logical_xor, Types::compare>,
                           .no_gradient = kBooleanResult,
                           .samples = logical_xor_samples};
const OpRecord kLogicalNot{.name = "logical_not",
                           .signature = "logical_not(x) → y",
                           .meaning = "Is an element false, that is 0?",
                           .formula = "y = ¬x",
                           .shapes = kSameShape,
                           .dtypes = kAllTypes,
                           .forward = forward<kernels::logical_not, Types::compare>,
                           .no_gradient = kBooleanResult,
                           .samples = logical_not_samples};

}  // namespace

Tensor logical_and(TensorArg a, TensorArg b) { return run(kLogicalAnd, {a, b}); }
Tensor logical_or(TensorArg a, TensorArg b) { return run(kLogicalOr, {a, b}); }
Tensor logical_xor(TensorArg a, TensorArg b) { return run(kLogicalXor, {a, b}); }
Tensor logical_not(TensorArg x) { return run(kLogicalNot, {x}); }

void register_logic_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kLogicalAnd, &kLogicalOr, &kLogicalXor, &kLogicalNot});
}

}  // namespace cutaway
