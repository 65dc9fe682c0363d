#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementwise_onnx.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/pointwise_samples.h>

namespace cutaway {
namespace {

// x + value · (a type b).
void onnx_add_part(OnnxCall& c, const char* type) {
  const std::string part = c.node(type, {c.cast(1, c.type()), c.cast(2, c.type())});
  const std::string scaled = c.node("Mul", {part, onnx_literal_value(c, c.type())});
  c.result(c.node("Add", {c.cast(0, c.type()), scaled}));
}

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
    .samples = where_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(c.node("Where", {c.name(0), c.cast(1, c.type()), c.cast(2, c.type())}));
        }};

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
    .samples = masked_fill_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(
              c.node("Where", {c.name(0), onnx_literal_value(c, c.type()), c.cast(1, c.type())}));
        }};

// ---- combinations

const OpRecord kLerp{
    .name = "lerp",
    .signature = "lerp(a, b, weight) → y",
    .meaning = "Linear interpolation from a (weight 0) to b (weight 1).",
    .formula = "y = a + weight ⊙ (b − a)",
    .shapes = "a, b, weight broadcast against each other   y [...]",
    .save_inputs = 0b111,
    .forward = forward<kernels::lerp, Types::floating>,
    .backward_text = "da = g ⊙ (1 − weight), db = g ⊙ weight, dweight = g ⊙ (b − a)",
    .backward =
        [](Backward& b) {
          const Tensor w = b.input(2);
          if (b.needs(0)) b.set(0, mul(b.upstream(), sub(1, w)));
          if (b.needs(1)) b.set(1, mul(b.upstream(), w));
          if (b.needs(2)) b.set(2, mul(b.upstream(), sub(b.input(1), b.input(0))));
        },
    .samples = lerp_samples,
    .onnx =
        [](OnnxCall& c) {
          const std::string a = c.cast(0, c.type());
          const std::string way = c.node("Sub", {c.cast(1, c.type()), a});
          c.result(c.node("Add", {a, c.node("Mul", {c.cast(2, c.type()), way})}));
        }};

// A combination of three tensors with a literal factor.
template <PointwiseKernel& kKernel, Types kTypes>
void forward_scaled(Call& c) {
  const Scalar& s = c.attrs<LiteralAttrs>().s;
  const Constants constants{.f = {s.f}, .i = {s.i}};
  const DType type = promoted_type(c), result = literal_type(type, s);
  elementwise(c, kKernel, kTypes, &constants, type == result ? nullptr : &result);
}

const OpRecord kAddcmul{.name = "addcmul",
                        .signature = "addcmul(x, a, b, value) → y",
                        .meaning = "Sum with a scaled product.",
                        .formula = "y = x + value · a ⊙ b",
                        .shapes = "x, a, b broadcast against each other   y [...]",
                        .dtypes = kNumbers,
                        .save_inputs = 0b110,
                        .forward = forward_scaled<kernels::addcmul, Types::promote>,
                        .backward_text = "dx = g, da = value · g ⊙ b, db = value · g ⊙ a",
                        .backward =
                            [](Backward& b) {
                              const Scalar& s = b.attrs<LiteralAttrs>().s;
                              if (b.needs(0)) b.set(0, b.upstream());
                              if (b.needs(1)) b.set(1, mul(mul(b.upstream(), b.input(2)), s));
                              if (b.needs(2)) b.set(2, mul(mul(b.upstream(), b.input(1)), s));
                            },
                        .samples = addcmul_samples,
                        .onnx = [](OnnxCall& c) { onnx_add_part(c, "Mul"); }};

const OpRecord kAddcdiv{.name = "addcdiv",
                        .signature = "addcdiv(x, a, b, value) → y",
                        .meaning = "Sum with a scaled quotient.",
                        .formula = "y = x + value · a / b",
                        .shapes = "x, a, b broadcast against each other   y [...]",
                        .save_inputs = 0b110,
                        .forward = forward_scaled<kernels::addcdiv, Types::floating>,
                        .backward_text = "dx = g, da = value · g / b, db = −value · g ⊙ a / b²",
                        .backward =
                            [](Backward& b) {
                              if (b.needs(0)) b.set(0, b.upstream());
                              if (!b.needs(1) && !b.needs(2)) return;
                              const Tensor d = b.input(2);
                              const Tensor part =
                                  div(mul(b.upstream(), b.attrs<LiteralAttrs>().s), d);
                              if (b.needs(1)) b.set(1, part);
                              if (b.needs(2)) b.set(2, neg(div(mul(part, b.input(1)), d)));
                            },
                        .samples = addcdiv_samples,
                        .onnx = [](OnnxCall& c) { onnx_add_part(c, "Div"); }};

// ---- extremes

// Gradients of the larger (or smaller) of two: the whole to the one chosen, halves when equal.
void choice_backward(Backward& b, bool larger, bool numbers_win) {
  const Tensor a = b.input(0), c = b.input(1);
  const Tensor shared = where(eq(a, c), mul(b.upstream(), 0.5), b.upstream());
  Tensor a_loses = larger ? lt(a, c) : gt(a, c), c_loses = larger ? gt(a, c) : lt(a, c);
  if (numbers_win) {
    a_loses = logical_or(a_loses, logical_and(isnan(a), logical_not(isnan(c))));
    c_loses = logical_or(c_loses, isnan(c));
  }
  if (b.needs(0)) b.set(0, masked_fill(shared, a_loses, 0));
  if (b.needs(1)) b.set(1, masked_fill(shared, c_loses, 0));
}
constexpr const char* kChoiceText = "g to the operand chosen, half to each when equal";

const OpRecord kMaximum{.name = "maximum",
                        .signature = "maximum(a, b) → y",
                        .meaning = "Larger of two; NaN if one is NaN.",
                        .formula = "y = max(a, b)",
                        .shapes = kBroadcastShapes,
                        .dtypes = kAllTypes,
                        .save_inputs = 0b11,
                        .forward = forward<kernels::maximum>,
                        .backward_text = kChoiceText,
                        .backward = [](Backward& b) { choice_backward(b, true, false); },
                        .samples = maximum_samples,
                        .onnx = onnx_map<"Max">};
const OpRecord kMinimum{.name = "minimum",
                        .signature = "minimum(a, b) → y",
                        .meaning = "Smaller of two; NaN if one is NaN.",
                        .formula = "y = min(a, b)",
                        .shapes = kBroadcastShapes,
                        .dtypes = kAllTypes,
                        .save_inputs = 0b11,
                        .forward = forward<kernels::minimum>,
                        .backward_text = kChoiceText,
                        .backward = [](Backward& b) { choice_backward(b, false, false); },
                        .samples = minimum_samples,
                        .onnx = onnx_map<"Min">};
const OpRecord kFmax{.name = "fmax",
                     .signature = "fmax(a, b) → y",
                     .meaning = "Larger of two; the number if one is NaN.",
                     .formula = "y = max(a, b)",
                     .shapes = kBroadcastShapes,
                     .dtypes = kNumbers,
                     .save_inputs = 0b11,
                     .forward = forward<kernels::fmax>,
                     .backward_text = kChoiceText,
                     .backward = [](Backward& b) { choice_backward(b, true, true); },
                     .samples = fmax_samples};
const OpRecord kFmin{.name = "fmin",
                     .signature = "fmin(a, b) → y",
                     .meaning = "Smaller of two; the number if one is NaN.",
                     .formula = "y = min(a, b)",
                     .shapes = kBroadcastShapes,
                     .dtypes = kNumbers,
                     .save_inputs = 0b11,
                     .forward = forward<kernels::fmin>,
                     .backward_text = kChoiceText,
                     .backward = [](Backward& b) { choice_backward(b, false, true); },
                     .samples = fmin_samples};

// ---- limits

struct ClampAttrs {
  Scalar low, high;
};

void forward_clamp(Call& c) {
  const ClampAttrs& a = c.attrs<ClampAttrs>();
  const DType type = c.in(0).dtype();
  // Infinite bounds are none; they say nothing about the type.
  const bool low_real = a.low.floating && !std::isinf(a.low.f);
  const bool high_real = a.high.floating && !std::isinf(a.high.f);
  const DType result = literal_type(type, low_real || high_real ? Scalar(0.5) : Scalar(0));
  const auto bound = [](const Scalar& s, int64_t none) { return s.floating ? none : s.i; };
  const Constants constants{.f = {a.low.f, a.high.f},
                            .i = {bound(a.low, INT64_MIN), bound(a.high, INT64_MAX)}};
  Constants fitted = constants;
  if (is_integer(result)) {
    const int64_t bits = 8 * size_of(result);
    const bool sign = result != DType::u8;
    const int64_t top = sign ? INT64_MAX >> (64 - bits) : 255, bottom = sign ? -top - 1 : 0;
    for (int64_t& v : fitted.i) v = std::min(std::max(v, bottom), top);
  }
  elementwise(c, kernels::clamp, Types::promote, &fitted, result == type ? nullptr : &result);
}

const OpRecord kClamp{
    .name = "clamp",
    .signature = "clamp(x, low, high) → y",
    .meaning = "Elements limited to an interval; `high` wins if it is the smaller.",
    .formula = "y = min(max(x, low), high)",
    .shapes = kSameShape,
    .dtypes = kNumbers,
    .save_inputs = 1,
    .forward = forward_clamp,
    .backward_text = "dx = low ≤ x ≤ high ? g : 0",
    .backward =
        [](Backward& b) {
          const ClampAttrs& a = b.attrs<ClampAttrs>();
          const Tensor x = b.input(0);
          const Tensor outside = logical_or(lt(x, a.low), gt(x, a.high));
          b.set(0, masked_fill(b.upstream(), outside, 0));
        },
    .fast_backward =
        [](Backward& b) {
          const ClampAttrs& a = b.attrs<ClampAttrs>();
          const Tensor x = b.input(0);
          const Constants bounds{.f = {a.low.f, a.high.f}};
          b.set(0, apply_kernel(kernels::clamp_grad, {&b.upstream(), &x}, &bounds));
        },
    .samples = clamp_samples,
    .onnx =
        [](OnnxCall& c) {
          const ClampAttrs& a = c.attrs<ClampAttrs>();
          const auto bound = [&](const Scalar& s) {
            return std::isinf(s.f) ? std::string()
                                   : c.constant(scalar_tensor(s, {.dtype = c.type()}));
          };
          c.result(c.node("Clip", {c.cast(0, c.type()), bound(a.low), bound(a.high)}));
        }};

const OpRecord kClampTensors{
    .name = "clamp_tensors",
    .signature = "clamp(x, low, high) → y",
    .meaning = "Elements limited to intervals; `high` wins where it is the smaller.",
    .formula = "y = min(max(x, low), high)",
    .shapes = "x, low, high broadcast against each other   y [...]",
    .dtypes = kNumbers,
    .save_inputs = 0b111,
    .forward = forward<kernels::clamp_tensors>,
    .backward_text = "g to x within the bounds, else to the bound that is taken",
    .backward =
        [](Backward& b) {
          const Tensor x = b.input(0), low = b.input(1), high = b.input(2);
          const Tensor above = logical_or(gt(x, high), gt(low, high));
          const Tensor below = logical_and(lt(x, low), logical_not(above));
          if (b.needs(0)) b.set(0, masked_fill(b.upstream(), logical_or(above, below), 0));
          if (b.needs(1)) b.set(1, masked_fill(b.upstream(), logical_not(below), 0));
          if (b.needs(2)) b.set(2, masked_fill(b.upstream(), logical_not(above), 0));
        },
    .samples = clamp_tensors_samples,
    .onnx =
        [](OnnxCall& c) {
          const std::string y = c.node("Max", {c.cast(0, c.type()), c.cast(1, c.type())});
          c.result(c.node("Min", {y, c.cast(2, c.type())}));
        }};

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

Tensor lerp(TensorArg a, TensorArg b, TensorArg weight) { return run(kLerp, {a, b, weight}); }
Tensor lerp(TensorArg a, TensorArg b, Scalar weight) {
  CallScope scope(a.site);
  return add_scaled(a, sub(b, a), weight.f);
}
Tensor addcmul(TensorArg x, TensorArg a, TensorArg b, Scalar value) {
  return run(kAddcmul, {x, a, b}, LiteralAttrs{value});
}
Tensor addcdiv(TensorArg x, TensorArg a, TensorArg b, Scalar value) {
  return run(kAddcdiv, {x, a, b}, LiteralAttrs{value});
}
Tensor maximum(TensorArg a, TensorArg b) { return run(kMaximum, {a, b}); }
Tensor minimum(TensorArg a, TensorArg b) { return run(kMinimum, {a, b}); }
Tensor fmax(TensorArg a, TensorArg b) { return run(kFmax, {a, b}); }
Tensor fmin(TensorArg a, TensorArg b) { return run(kFmin, {a, b}); }
Tensor clamp(TensorArg x, Scalar low, Scalar high) {
  return run(kClamp, {x}, ClampAttrs{low, high});
}
Tensor clamp_min(TensorArg x, Scalar low) { return run(kClamp, {x}, ClampAttrs{low, INFINITY}); }
Tensor clamp_max(TensorArg x, Scalar high) { return run(kClamp, {x}, ClampAttrs{-INFINITY, high}); }
Tensor clamp(TensorArg x, TensorArg low, TensorArg high) {
  return run(kClampTensors, {x, low, high});
}

void register_select_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kWhere, &kMaskedFill, &kLerp, &kAddcmul, &kAddcdiv, &kMaximum,
                           &kMinimum, &kFmax, &kFmin, &kClamp, &kClampTensors});
}

}  // namespace cutaway
