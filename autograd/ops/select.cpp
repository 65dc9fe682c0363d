#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementwise.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/pointwise_samples.h>

namespace cutaway {
namespace {

const OpRecord kWhere{
    .name = "where",
    .signature = "where(condition, a, b) → y",
    .meaning = "Chooses from two tensors by a boolean one.",
    .formula = "y = condition ? a : b",
    .shapes = "condition, a, b broadcast against each other   y [...]",
    .dtypes = kAllTypes,
    .save_inputs = 0b001,
    .forward = forward<kernels::where, Types::choose>,
    .backward_text = "da = condition ? g : 0, db = condition ? 0 : g",
    .backward =
        [](Backward& b) {
          const Tensor condition = b.input(0);
          if (b.needs(1)) b.set(1, masked_fill(b.upstream(), logical_not(condition), 0));
          if (b.needs(2)) b.set(2, masked_fill(b.upstream(), condition, 0));
        },
    .samples = where_samples};

const OpRecord kMaskedFill{
    .name = "masked_fill",
    .signature = "masked_fill(x, mask, value) → y",
    .meaning = "A tensor with a number in place of the elements that a mask names.",
    .formula = "y = mask ? value : x",
    .shapes = "x, mask broadcast against each other   y [...]",
    .dtypes = kAllTypes,
    .save_inputs = 0b01,  // input 0 is the mask
    .forward =
        [](Call& c) {
          const Scalar& s = c.attrs<LiteralAttrs>().s;
          const DType type = c.in(1).dtype();
          const bool boolean = type == DType::boolean && !s.floating && (s.i == 0 || s.i == 1);
          const DType result = boolean ? type : literal_type(type, s);
          const Constants constants{.f = {s.f}, .i = {s.i}};
          elementwise(c, kernels::masked_fill, Types::choose, &constants,
                      result == type ? nullptr : &result);
        },
    .backward_text = "dx = mask ? 0 : g",
    .backward = [](Backward& b) { b.set(1, masked_fill(b.upstream(), b.input(0), 0)); },
    .samples = masked_fill_samples};

}  // namespace

Tensor where(TensorArg condition, TensorArg a, TensorArg b) {
  return run(kWhere, {condition, a, b});
}
Tensor where(TensorArg condition, TensorArg a, Scalar b) {
  CallScope scope(condition.site);
  return masked_fill(a, logical_not(condition), b);
}
Tensor where(TensorArg condition, Scalar a, TensorArg b) {
  return run(kMaskedFill, {condition, b}, LiteralAttrs{a});
}
Tensor masked_fill(TensorArg x, TensorArg mask, Scalar value) {
  return run(kMaskedFill, {mask, x}, LiteralAttrs{value});
}

void register_select_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kWhere, &kMaskedFill});
}

}  // namespace cutaway
