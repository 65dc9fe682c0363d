#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/elementwise_onnx.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/pointwise_samples.h>

#include <fmt/format.h>

namespace cutaway {
namespace {

// ---- sums

// ---- as nodes of ONNX

// ⌊a / b⌋; the division of ONNX rounds integers towards zero.
void onnx_floor_divide(OnnxCall& c, const std::string& b) {
  const std::string a = c.cast(0, c.type());
  if (is_floating(c.type())) return c.result(c.node("Floor", {c.node("Div", {a, b})}));
  c.result(c.node("Div", {c.node("Sub", {a, c.node("Mod", {a, b})}), b}));
}
// a − b ⌊a / b⌋; Mod has that sign for integers only.
void onnx_remainder(OnnxCall& c, const std::string& b) {
  const std::string a = c.cast(0, c.type());
  if (!is_floating(c.type())) return c.result(c.node("Mod", {a, b}));
  const std::string whole = c.node("Floor", {c.node("Div", {a, b})});
  c.result(c.node("Sub", {a, c.node("Mul", {b, whole})}));
}

const OpRecord kAdd{.name = "add",
                    .signature = "add(a, b) → y",
                    .meaning = "Sum of two tensors.",
                    .formula = "y = a + b",
                    .shapes = kBroadcastShapes,
                    .dtypes = kAllTypes,
                    .forward = forward<kernels::add>,
                    .backward_text = "da = g, db = g",
                    .backward =
                        [](Backward& b) {
                          if (b.needs(0)) b.set(0, b.upstream());
                          if (b.needs(1)) b.set(1, b.upstream());
                        },
                    .samples = add_samples,
                    .onnx = onnx_ring<"Add", "Or">};

const OpRecord kAddScalar{.name = "add_scalar",
                          .signature = "add(a, s) → y",
                          .meaning = "Sum of a tensor and a number.",
                          .formula = "y = a + s",
                          .shapes = kSameShape,
                          .dtypes = kNumbers,
                          .forward = forward_literal<kernels::add_scalar>,
                          .backward_text = "da = g",
                          .backward = [](Backward& b) { b.set(0, b.upstream()); },
                          .samples = add_scalar_samples,
                          .onnx = onnx_literal<"Add">};

const OpRecord kAddScaled{.name = "add_scaled",
                          .signature = "add_scaled(a, b, alpha) → y",
                          .meaning = "Sum of a tensor and a multiple of another.",
                          .formula = "y = a + alpha · b",
                          .shapes = kBroadcastShapes,
                          .dtypes = kNumbers,
                          .forward =
                              [](Call& c) {
                                const Scalar& s = c.attrs<LiteralAttrs>().s;
                                const Constants constants{.f = {s.f}, .i = {s.i}};
                                const DType type = promoted_type(c), result = literal_type(type, s);
                                elementwise(c, kernels::add_scaled, Types::promote, &constants,
                                            type == result ? nullptr : &result);
                              },
                          .backward_text = "da = g, db = alpha · g",
                          .backward =
                              [](Backward& b) {
                                if (b.needs(0)) b.set(0, b.upstream());
                                if (b.needs(1))
                                  b.set(1, mul(b.upstream(), b.attrs<LiteralAttrs>().s));
                              },
                          .samples = add_scaled_samples,
                          .onnx =
                              [](OnnxCall& c) {
                                const std::string b = c.node(
                                    "Mul", {c.cast(1, c.type()), onnx_literal_value(c, c.type())});
                                c.result(c.node("Add", {c.cast(0, c.type()), b}));
                              }};

const OpRecord kSub{.name = "sub",
                    .signature = "sub(a, b) → y",
                    .meaning = "Difference of two tensors.",
                    .formula = "y = a − b",
                    .shapes = kBroadcastShapes,
                    .dtypes = kNumbers,
                    .forward = forward<kernels::sub>,
                    .backward_text = "da = g, db = −g",
                    .backward =
                        [](Backward& b) {
                          if (b.needs(0)) b.set(0, b.upstream());
                          if (b.needs(1)) b.set(1, neg(b.upstream()));
                        },
                    .samples = sub_samples,
                    .onnx = onnx_map<"Sub">};

const OpRecord kRsubScalar{.name = "rsub_scalar",
                           .signature = "sub(s, a) → y",
                           .meaning = "Difference of a number and a tensor.",
                           .formula = "y = s − a",
                           .shapes = kSameShape,
                           .dtypes = kNumbers,
                           .forward = forward_literal<kernels::rsub_scalar>,
                           .backward_text = "da = −g",
                           .backward = [](Backward& b) { b.set(0, neg(b.upstream())); },
                           .samples = rsub_scalar_samples,
                           .onnx = onnx_literal_first<"Sub">};

// ---- products

const OpRecord kMul{.name = "mul",
                    .signature = "mul(a, b) → y",
                    .meaning = "Product of two tensors.",
                    .formula = "y = a · b",
                    .shapes = kBroadcastShapes,
                    .dtypes = kAllTypes,
                    .save_inputs = 0b11,
                    .cross = true,
                    .forward = forward<kernels::mul>,
                    .backward_text = "da = g ⊙ b, db = g ⊙ a",
                    .backward =
                        [](Backward& b) {
                          if (b.needs(0)) b.set(0, mul(b.upstream(), b.input(1)));
                          if (b.needs(1)) b.set(1, mul(b.upstream(), b.input(0)));
                        },
                    .samples = mul_samples,
                    .onnx = onnx_ring<"Mul", "And">};

const OpRecord kMulScalar{
    .name = "mul_scalar",
    .signature = "mul(a, s) → y",
    .meaning = "Product of a tensor and a number.",
    .formula = "y = a · s",
    .shapes = kSameShape,
    .dtypes = kNumbers,
    .forward = forward_literal<kernels::mul_scalar>,
    .backward_text = "da = s · g",
    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), b.attrs<LiteralAttrs>().s)); },
    .samples = mul_scalar_samples,
    .onnx = onnx_literal<"Mul">};

const OpRecord kDiv{.name = "div",
                    .signature = "div(a, b) → y",
                    .meaning = "Quotient of two tensors; of integers too it is a float.",
                    .formula = "y = a / b",
                    .shapes = kBroadcastShapes,
                    .save_inputs = 0b10,
                    .save_outputs = 1,
                    .forward = forward<kernels::div, Types::floating>,
                    .backward_text = "da = g / b, db = −g ⊙ y / b",
                    .backward =
                        [](Backward& b) {
                          const Tensor d = b.input(1);
                          if (b.needs(0)) b.set(0, div(b.upstream(), d));
                          if (b.needs(1)) b.set(1, neg(div(mul(b.upstream(), b.output()), d)));
                        },
                    .samples = div_samples,
                    .onnx = onnx_map<"Div">};

const OpRecord kDivScalar{
    .name = "div_scalar",
    .signature = "div(a, s) → y",
    .meaning = "Quotient of a tensor and a number.",
    .formula = "y = a / s",
    .shapes = kSameShape,
    .forward = forward_literal<kernels::div_scalar, Types::floating>,
    .backward_text = "da = g / s",
    .backward = [](Backward& b) { b.set(0, div(b.upstream(), b.attrs<LiteralAttrs>().s)); },
    .samples = div_scalar_samples,
    .onnx = onnx_literal<"Div">};

const OpRecord kRdivScalar{
    .name = "rdiv_scalar",
    .signature = "div(s, a) → y",
    .meaning = "Quotient of a number and a tensor.",
    .formula = "y = s / a",
    .shapes = kSameShape,
    .save_inputs = 1,
    .save_outputs = 1,
    .forward = forward_literal<kernels::rdiv_scalar, Types::floating>,
    .backward_text = "da = −g ⊙ y / a",
    .backward = [](Backward& b) { b.set(0, neg(div(mul(b.upstream(), b.output()), b.input(0)))); },
    .samples = rdiv_scalar_samples,
    .onnx = onnx_literal_first<"Div">};

// ---- whole quotients

[[noreturn, gnu::cold]] void throw_zero_divisor(const Call& c) {
  throw ValueError(c.op.name,
                   fmt::format("division by zero; got an integer divisor 0 for {} {}, need none",
                               to_string(c.in(0).sizes()), name_of(c.in(0).dtype())),
                   "replace zeros with where(), or divide floats, which gives inf or NaN");
}

template <PointwiseKernel& kKernel>
void forward_whole(Call& c) {
  const bool integral = !c.in(0).is_floating() && !c.in(1).is_floating();
  if (integral && !c.in(1).is_meta() && any_equal(c.in(1), 0)) throw_zero_divisor(c);
  elementwise(c, kKernel, Types::promote);
}
template <PointwiseKernel& kKernel>
void forward_whole_literal(Call& c) {
  const Scalar& s = c.attrs<LiteralAttrs>().s;
  if (!s.floating && s.i == 0 && !c.in(0).is_floating()) throw_zero_divisor(c);
  elementwise_literal(c, kKernel, Types::promote);
}

const OpRecord kFloorDivide{.name = "floor_divide",
                            .signature = "floor_divide(a, b) → y",
                            .meaning = "Quotient rounded toward −∞.",
                            .formula = "y = ⌊a / b⌋",
                            .shapes = kBroadcastShapes,
                            .dtypes = kNumbers,
                            .forward = forward_whole<kernels::floor_divide>,
                            .backward_text = kStep,
                            .backward = zero_backward,
                            .samples = floor_divide_samples,
                            .onnx = [](OnnxCall& c) { onnx_floor_divide(c, c.cast(1, c.type())); }};

const OpRecord kFloorDivideScalar{
    .name = "floor_divide_scalar",
    .signature = "floor_divide(a, s) → y",
    .meaning = "Quotient of a tensor and a number, rounded toward −∞.",
    .formula = "y = ⌊a / s⌋",
    .shapes = kSameShape,
    .dtypes = kNumbers,
    .forward = forward_whole_literal<kernels::floor_divide_scalar>,
    .backward_text = kStep,
    .backward = zero_backward,
    .samples = floor_divide_scalar_samples,
    .onnx = [](OnnxCall& c) { onnx_floor_divide(c, onnx_literal_value(c, c.type())); }};

const OpRecord kRemainder{
    .name = "remainder",
    .signature = "remainder(a, b) → y",
    .meaning = "Remainder of the quotient rounded toward −∞; it has the sign of the divisor.",
    .formula = "y = a − b ⌊a / b⌋",
    .shapes = kBroadcastShapes,
    .dtypes = kNumbers,
    .save_inputs = 0b11,
    .forward = forward_whole<kernels::remainder>,
    .backward_text = "da = g, db = −g ⊙ ⌊a / b⌋",
    .backward =
        [](Backward& b) {
          if (b.needs(0)) b.set(0, b.upstream());
          if (b.needs(1)) b.set(1, neg(mul(b.upstream(), floor_divide(b.input(0), b.input(1)))));
        },
    .samples = remainder_samples,
    .onnx = [](OnnxCall& c) { onnx_remainder(c, c.cast(1, c.type())); }};

const OpRecord kRemainderScalar{
    .name = "remainder_scalar",
    .signature = "remainder(a, s) → y",
    .meaning = "Remainder of a tensor by a number; it has the sign of the number.",
    .formula = "y = a − s ⌊a / s⌋",
    .shapes = kSameShape,
    .dtypes = kNumbers,
    .forward = forward_whole_literal<kernels::remainder_scalar>,
    .backward_text = "da = g",
    .backward = [](Backward& b) { b.set(0, b.upstream()); },
    .samples = remainder_scalar_samples,
    .onnx = [](OnnxCall& c) { onnx_remainder(c, onnx_literal_value(c, c.type())); }};

// ---- one operand

const OpRecord kNeg{.name = "neg",
                    .signature = "neg(x) → y",
                    .meaning = "Negative of each element.",
                    .formula = "y = −x",
                    .shapes = kSameShape,
                    .dtypes = kNumbers,
                    .forward = forward<kernels::neg>,
                    .backward_text = "dx = −g",
                    .backward = [](Backward& b) { b.set(0, neg(b.upstream())); },
                    .samples = neg_samples,
                    .onnx = onnx_map<"Neg">};

const OpRecord kReciprocal{
    .name = "reciprocal",
    .signature = "reciprocal(x) → y",
    .meaning = "One over each element.",
    .formula = "y = 1 / x",
    .shapes = kSameShape,
    .save_outputs = 1,
    .forward =
        [](Call& c) {
          static constexpr Constants one{.f = {1}};
          elementwise(c, kernels::rdiv_scalar, Types::floating, &one);
        },
    .backward_text = "dx = −g ⊙ y²",
    .backward = [](Backward& b) { b.set(0, neg(mul(b.upstream(), square(b.output())))); },
    .samples = reciprocal_samples,
    .onnx = onnx_map<"Reciprocal">};

const OpRecord kAbs{.name = "abs",
                    .signature = "abs(x) → y",
                    .meaning = "Absolute value; its derivative at 0 is taken as 0.",
                    .formula = "y = |x|",
                    .shapes = kSameShape,
                    .dtypes = kNumbers,
                    .save_inputs = 1,
                    .forward = forward<kernels::abs>,
                    .backward_text = "dx = g ⊙ sign(x)",
                    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), sign(b.input(0)))); },
                    .samples = abs_samples,
                    .onnx = onnx_map<"Abs">};

const OpRecord kSign{.name = "sign",
                     .signature = "sign(x) → y",
                     .meaning = "−1, 0 or 1 by the sign; NaN stays.",
                     .formula = "y = x / |x|, 0 at 0",
                     .shapes = kSameShape,
                     .dtypes = kNumbers,
                     .forward = forward<kernels::sign>,
                     .backward_text = kStep,
                     .backward = zero_backward,
                     .samples = sign_samples,
                     .onnx = onnx_map<"Sign">};

const OpRecord kSquare{
    .name = "square",
    .signature = "square(x) → y",
    .meaning = "Square of each element.",
    .formula = "y = x²",
    .shapes = kSameShape,
    .dtypes = kNumbers,
    .save_inputs = 1,
    .forward = forward<kernels::square>,
    .backward_text = "dx = 2 g ⊙ x",
    .backward = [](Backward& b) { b.set(0, mul(mul(b.upstream(), b.input(0)), 2)); },
    .samples = square_samples,
    .onnx =
        [](OnnxCall& c) {
          const std::string x = c.name(0);
          c.result(c.node("Mul", {x, x}));
        }};

Scalar negative(const Scalar& s) {
  return s.floating ? Scalar(-s.f) : Scalar(int64_t(0 - uint64_t(s.i)));
}

}  // namespace

Tensor add(TensorArg a, TensorArg b) { return run(kAdd, {a, b}); }
Tensor add(TensorArg a, Scalar b) { return run(kAddScalar, {a}, LiteralAttrs{b}); }
Tensor add_scaled(TensorArg a, TensorArg b, Scalar alpha) {
  return run(kAddScaled, {a, b}, LiteralAttrs{alpha});
}
Tensor sub(TensorArg a, TensorArg b) { return run(kSub, {a, b}); }
Tensor sub(TensorArg a, Scalar b) { return run(kAddScalar, {a}, LiteralAttrs{negative(b)}); }
Tensor sub(Scalar a, TensorArg b) { return run(kRsubScalar, {b}, LiteralAttrs{a}); }
Tensor mul(TensorArg a, TensorArg b) { return run(kMul, {a, b}); }
Tensor mul(TensorArg a, Scalar b) { return run(kMulScalar, {a}, LiteralAttrs{b}); }
Tensor div(TensorArg a, TensorArg b) { return run(kDiv, {a, b}); }
Tensor div(TensorArg a, Scalar b) { return run(kDivScalar, {a}, LiteralAttrs{b}); }
Tensor div(Scalar a, TensorArg b) { return run(kRdivScalar, {b}, LiteralAttrs{a}); }
Tensor floor_divide(TensorArg a, TensorArg b) { return run(kFloorDivide, {a, b}); }
Tensor floor_divide(TensorArg a, Scalar b) { return run(kFloorDivideScalar, {a}, LiteralAttrs{b}); }
Tensor remainder(TensorArg a, TensorArg b) { return run(kRemainder, {a, b}); }
Tensor remainder(TensorArg a, Scalar b) { return run(kRemainderScalar, {a}, LiteralAttrs{b}); }
Tensor neg(TensorArg x) { return run(kNeg, {x}); }
Tensor reciprocal(TensorArg x) { return run(kReciprocal, {x}); }
Tensor abs(TensorArg x) { return run(kAbs, {x}); }
Tensor sign(TensorArg x) { return run(kSign, {x}); }
Tensor square(TensorArg x) { return run(kSquare, {x}); }

void register_arithmetic_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(),
              {&kAdd, &kAddScalar, &kAddScaled, &kSub, &kRsubScalar, &kMul, &kMulScalar, &kDiv,
               &kDivScalar, &kRdivScalar, &kFloorDivide, &kFloorDivideScalar, &kRemainder,
               &kRemainderScalar, &kNeg, &kReciprocal, &kAbs, &kSign, &kSquare});
}

}  // namespace cutaway
