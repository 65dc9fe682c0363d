#include <cutaway/autograd/ops/elementary.h>

#include <cmath>

#include <cutaway/autograd/ops/elementwise_onnx.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/pointwise_samples.h>

namespace cutaway {
namespace {

// ---- exponentials and logarithms

// sign(x) ⌊|x|⌋ in ONNX.
std::string onnx_whole_part(OnnxCall& c) {
  const std::string x = c.name(0);
  return c.node("Mul", {c.node("Sign", {x}), c.node("Floor", {c.node("Abs", {x})})});
}

const OpRecord kExp{.name = "exp",
                    .signature = "exp(x) → y",
                    .meaning = "Exponential function.",
                    .formula = "y = eˣ",
                    .shapes = kSameShape,
                    .compute = Compute::f32,
                    .save_outputs = 1,
                    .forward = forward<kernels::exp, Types::floating>,
                    .backward_text = "dx = g ⊙ y",
                    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), b.output())); },
                    .samples = exp_samples,
                    .onnx = onnx_map<"Exp">};

const OpRecord kExp2{
    .name = "exp2",
    .signature = "exp2(x) → y",
    .meaning = "Power of two.",
    .formula = "y = 2ˣ",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_outputs = 1,
    .forward = forward<kernels::exp2, Types::floating>,
    .backward_text = "dx = ln 2 · g ⊙ y",
    .backward = [](Backward& b) { b.set(0, mul(mul(b.upstream(), b.output()), M_LN2)); },
    .samples = exp2_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(c.node("Pow", {c.number(2), c.cast(0, c.type())}));
        }};

const OpRecord kExpm1{
    .name = "expm1",
    .signature = "expm1(x) → y",
    .meaning = "Exponential function less 1, accurate near 0.",
    .formula = "y = eˣ − 1",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_outputs = 1,
    .forward = forward<kernels::expm1, Types::floating>,
    .backward_text = "dx = g ⊙ (y + 1)",
    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), add(b.output(), 1))); },
    .samples = expm1_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(c.node("Sub", {c.node("Exp", {c.cast(0, c.type())}), c.number(1)}));
        }};

const OpRecord kLog{.name = "log",
                    .signature = "log(x) → y",
                    .meaning = "Natural logarithm; −inf at 0, NaN below.",
                    .formula = "y = ln x",
                    .shapes = kSameShape,
                    .compute = Compute::f32,
                    .save_inputs = 1,
                    .forward = forward<kernels::log, Types::floating>,
                    .backward_text = "dx = g / x",
                    .backward = [](Backward& b) { b.set(0, div(b.upstream(), b.input(0))); },
                    .samples = log_samples,
                    .onnx = onnx_map<"Log">};

const OpRecord kLog2{
    .name = "log2",
    .signature = "log2(x) → y",
    .meaning = "Logarithm to base 2.",
    .formula = "y = log₂ x",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::log2, Types::floating>,
    .backward_text = "dx = g / (x ln 2)",
    .backward = [](Backward& b) { b.set(0, div(b.upstream(), mul(b.input(0), M_LN2))); },
    .samples = log2_samples,
    .onnx = [](OnnxCall& c) { onnx_scaled(c, "Log", 1 / std::log(2.0)); }};

const OpRecord kLog10{
    .name = "log10",
    .signature = "log10(x) → y",
    .meaning = "Logarithm to base 10.",
    .formula = "y = log₁₀ x",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::log10, Types::floating>,
    .backward_text = "dx = g / (x ln 10)",
    .backward = [](Backward& b) { b.set(0, div(b.upstream(), mul(b.input(0), M_LN10))); },
    .samples = log10_samples,
    .onnx = [](OnnxCall& c) { onnx_scaled(c, "Log", 1 / std::log(10.0)); }};

const OpRecord kLog1p{
    .name = "log1p",
    .signature = "log1p(x) → y",
    .meaning = "Natural logarithm of 1 + x, accurate near 0.",
    .formula = "y = ln(1 + x)",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::log1p, Types::floating>,
    .backward_text = "dx = g / (1 + x)",
    .backward = [](Backward& b) { b.set(0, div(b.upstream(), add(b.input(0), 1))); },
    .samples = log1p_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(c.node("Log", {c.node("Add", {c.cast(0, c.type()), c.number(1)})}));
        }};

// ---- roots

const OpRecord kSqrt{
    .name = "sqrt",
    .signature = "sqrt(x) → y",
    .meaning = "Square root; NaN below 0.",
    .formula = "y = √x",
    .shapes = kSameShape,
    .save_outputs = 1,
    .forward = forward<kernels::sqrt, Types::floating>,
    .backward_text = "dx = g / (2 y)",
    .backward = [](Backward& b) { b.set(0, div(b.upstream(), mul(b.output(), 2))); },
    .samples = sqrt_samples,
    .onnx = onnx_map<"Sqrt">};

const OpRecord kRsqrt{.name = "rsqrt",
                      .signature = "rsqrt(x) → y",
                      .meaning = "One over the square root.",
                      .formula = "y = 1 / √x",
                      .shapes = kSameShape,
                      .compute = Compute::f32,
                      .save_outputs = 1,
                      .forward = forward<kernels::rsqrt, Types::floating>,
                      .backward_text = "dx = −g ⊙ y³ / 2",
                      .backward =
                          [](Backward& b) {
                            const Tensor y = b.output();
                            b.set(0, mul(mul(b.upstream(), mul(square(y), y)), -0.5));
                          },
                      .samples = rsqrt_samples,
                      .onnx =
                          [](OnnxCall& c) {
                            c.result(c.node("Reciprocal", {c.node("Sqrt", {c.cast(0, c.type())})}));
                          }};

// ---- circular functions

const OpRecord kSin{.name = "sin",
                    .signature = "sin(x) → y",
                    .meaning = "Sine of an angle in radians.",
                    .formula = "y = sin x",
                    .shapes = kSameShape,
                    .save_inputs = 1,
                    .forward = forward<kernels::sin, Types::floating>,
                    .backward_text = "dx = g ⊙ cos x",
                    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), cos(b.input(0)))); },
                    .samples = sin_samples,
                    .onnx = onnx_map<"Sin">};

const OpRecord kCos{
    .name = "cos",
    .signature = "cos(x) → y",
    .meaning = "Cosine of an angle in radians.",
    .formula = "y = cos x",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward<kernels::cos, Types::floating>,
    .backward_text = "dx = −g ⊙ sin x",
    .backward = [](Backward& b) { b.set(0, neg(mul(b.upstream(), sin(b.input(0))))); },
    .samples = cos_samples,
    .onnx = onnx_map<"Cos">};

const OpRecord kTan{
    .name = "tan",
    .signature = "tan(x) → y",
    .meaning = "Tangent of an angle in radians.",
    .formula = "y = sin x / cos x",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_outputs = 1,
    .forward = forward<kernels::tan, Types::floating>,
    .backward_text = "dx = g ⊙ (1 + y²)",
    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), add(square(b.output()), 1))); },
    .samples = tan_samples,
    .onnx = onnx_map<"Tan">};

const OpRecord kAsin{
    .name = "asin",
    .signature = "asin(x) → y",
    .meaning = "Inverse sine; NaN beyond ±1.",
    .formula = "sin y = x",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::asin, Types::floating>,
    .backward_text = "dx = g / √(1 − x²)",
    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), rsqrt(sub(1, square(b.input(0)))))); },
    .samples = asin_samples,
    .onnx = onnx_map<"Asin">};

const OpRecord kAcos{
    .name = "acos",
    .signature = "acos(x) → y",
    .meaning = "Inverse cosine; NaN beyond ±1.",
    .formula = "cos y = x",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::acos, Types::floating>,
    .backward_text = "dx = −g / √(1 − x²)",
    .backward =
        [](Backward& b) { b.set(0, neg(mul(b.upstream(), rsqrt(sub(1, square(b.input(0))))))); },
    .samples = acos_samples,
    .onnx = onnx_map<"Acos">};

const OpRecord kAtan{
    .name = "atan",
    .signature = "atan(x) → y",
    .meaning = "Inverse tangent.",
    .formula = "tan y = x",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::atan, Types::floating>,
    .backward_text = "dx = g / (1 + x²)",
    .backward = [](Backward& b) { b.set(0, div(b.upstream(), add(square(b.input(0)), 1))); },
    .samples = atan_samples,
    .onnx = onnx_map<"Atan">};

// ---- hyperbolic functions

const OpRecord kSinh{.name = "sinh",
                     .signature = "sinh(x) → y",
                     .meaning = "Hyperbolic sine.",
                     .formula = "y = (eˣ − e⁻ˣ) / 2",
                     .shapes = kSameShape,
                     .compute = Compute::f32,
                     .save_inputs = 1,
                     .forward = forward<kernels::sinh, Types::floating>,
                     .backward_text = "dx = g ⊙ cosh x",
                     .backward = [](Backward& b) { b.set(0, mul(b.upstream(), cosh(b.input(0)))); },
                     .samples = sinh_samples,
                     .onnx = onnx_map<"Sinh">};

const OpRecord kCosh{.name = "cosh",
                     .signature = "cosh(x) → y",
                     .meaning = "Hyperbolic cosine.",
                     .formula = "y = (eˣ + e⁻ˣ) / 2",
                     .shapes = kSameShape,
                     .compute = Compute::f32,
                     .save_inputs = 1,
                     .forward = forward<kernels::cosh, Types::floating>,
                     .backward_text = "dx = g ⊙ sinh x",
                     .backward = [](Backward& b) { b.set(0, mul(b.upstream(), sinh(b.input(0)))); },
                     .samples = cosh_samples,
                     .onnx = onnx_map<"Cosh">};

const OpRecord kTanh{
    .name = "tanh",
    .signature = "tanh(x) → y",
    .meaning = "Hyperbolic tangent.",
    .formula = "y = (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)",
    .shapes = kSameShape,
    .save_outputs = 1,
    .forward = forward<kernels::tanh, Types::floating>,
    .backward_text = "dx = g ⊙ (1 − y²)",
    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), sub(1, square(b.output())))); },
    .fast_backward = fast_from_output<kernels::tanh_grad>,
    .samples = tanh_samples,
    .onnx = onnx_map<"Tanh">};

const OpRecord kAsinh{
    .name = "asinh",
    .signature = "asinh(x) → y",
    .meaning = "Inverse hyperbolic sine.",
    .formula = "sinh y = x",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::asinh, Types::floating>,
    .backward_text = "dx = g / √(1 + x²)",
    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), rsqrt(add(square(b.input(0)), 1)))); },
    .samples = asinh_samples,
    .onnx = onnx_map<"Asinh">};

const OpRecord kAcosh{
    .name = "acosh",
    .signature = "acosh(x) → y",
    .meaning = "Inverse hyperbolic cosine; NaN below 1.",
    .formula = "cosh y = x",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::acosh, Types::floating>,
    .backward_text = "dx = g / √(x² − 1)",
    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), rsqrt(sub(square(b.input(0)), 1)))); },
    .samples = acosh_samples,
    .onnx = onnx_map<"Acosh">};

const OpRecord kAtanh{
    .name = "atanh",
    .signature = "atanh(x) → y",
    .meaning = "Inverse hyperbolic tangent; NaN beyond ±1.",
    .formula = "tanh y = x",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::atanh, Types::floating>,
    .backward_text = "dx = g / (1 − x²)",
    .backward = [](Backward& b) { b.set(0, div(b.upstream(), sub(1, square(b.input(0))))); },
    .samples = atanh_samples,
    .onnx = onnx_map<"Atanh">};

const OpRecord kSigmoid{.name = "sigmoid",
                        .signature = "sigmoid(x) → y",
                        .meaning = "Logistic function.",
                        .formula = "y = 1 / (1 + e⁻ˣ)",
                        .shapes = kSameShape,
                        .save_outputs = 1,
                        .forward = forward<kernels::sigmoid, Types::floating>,
                        .backward_text = "dx = g ⊙ y (1 − y)",
                        .backward =
                            [](Backward& b) {
                              const Tensor y = b.output();
                              b.set(0, mul(b.upstream(), mul(y, sub(1, y))));
                            },
                        .fast_backward = fast_from_output<kernels::sigmoid_grad>,
                        .samples = sigmoid_samples,
                        .onnx = onnx_map<"Sigmoid">};

// ---- rounding

// Integers are whole already.
template <PointwiseKernel& kKernel>
void forward_rounding(Call& c) {
  if (c.in(0).is_floating()) return elementwise(c, kKernel, Types::floating);
  static constexpr Constants nothing{};
  elementwise(c, kernels::add_scalar, Types::promote, &nothing);
}

const OpRecord kFloor{.name = "floor",
                      .signature = "floor(x) → y",
                      .meaning = "Largest integer not above each element.",
                      .formula = "y = ⌊x⌋",
                      .shapes = kSameShape,
                      .dtypes = kNumbers,
                      .forward = forward_rounding<kernels::floor>,
                      .backward_text = kStep,
                      .backward = zero_backward,
                      .samples = floor_samples,
                      .onnx = onnx_map<"Floor">};

const OpRecord kCeil{.name = "ceil",
                     .signature = "ceil(x) → y",
                     .meaning = "Smallest integer not below each element.",
                     .formula = "y = ⌈x⌉",
                     .shapes = kSameShape,
                     .dtypes = kNumbers,
                     .forward = forward_rounding<kernels::ceil>,
                     .backward_text = kStep,
                     .backward = zero_backward,
                     .samples = ceil_samples,
                     .onnx = onnx_map<"Ceil">};

const OpRecord kRound{.name = "round",
                      .signature = "round(x) → y",
                      .meaning = "Nearest integer, ties to the even one.",
                      .formula = "y = ⌊x⌉",
                      .shapes = kSameShape,
                      .dtypes = kNumbers,
                      .forward = forward_rounding<kernels::round>,
                      .backward_text = kStep,
                      .backward = zero_backward,
                      .samples = round_samples,
                      .onnx = onnx_map<"Round">};

const OpRecord kTrunc{.name = "trunc",
                      .signature = "trunc(x) → y",
                      .meaning = "Integer part, toward zero.",
                      .formula = "y = sign(x) ⌊|x|⌋",
                      .shapes = kSameShape,
                      .dtypes = kNumbers,
                      .forward = forward_rounding<kernels::trunc>,
                      .backward_text = kStep,
                      .backward = zero_backward,
                      .samples = trunc_samples,
                      .onnx = [](OnnxCall& c) { c.result(onnx_whole_part(c)); }};

const OpRecord kFrac{.name = "frac",
                     .signature = "frac(x) → y",
                     .meaning = "Fractional part, with the sign of x.",
                     .formula = "y = x − trunc(x)",
                     .shapes = kSameShape,
                     .forward = forward<kernels::frac, Types::floating>,
                     .backward_text = "dx = g",
                     .backward = [](Backward& b) { b.set(0, b.upstream()); },
                     .samples = frac_samples,
                     .onnx =
                         [](OnnxCall& c) {
                           c.result(c.node("Sub", {c.name(0), onnx_whole_part(c)}));
                         }};

}  // namespace

Tensor exp(TensorArg x) { return run(kExp, {x}); }
Tensor exp2(TensorArg x) { return run(kExp2, {x}); }
Tensor expm1(TensorArg x) { return run(kExpm1, {x}); }
Tensor log(TensorArg x) { return run(kLog, {x}); }
Tensor log2(TensorArg x) { return run(kLog2, {x}); }
Tensor log10(TensorArg x) { return run(kLog10, {x}); }
Tensor log1p(TensorArg x) { return run(kLog1p, {x}); }
Tensor sqrt(TensorArg x) { return run(kSqrt, {x}); }
Tensor rsqrt(TensorArg x) { return run(kRsqrt, {x}); }
Tensor sin(TensorArg x) { return run(kSin, {x}); }
Tensor cos(TensorArg x) { return run(kCos, {x}); }
Tensor tan(TensorArg x) { return run(kTan, {x}); }
Tensor asin(TensorArg x) { return run(kAsin, {x}); }
Tensor acos(TensorArg x) { return run(kAcos, {x}); }
Tensor atan(TensorArg x) { return run(kAtan, {x}); }
Tensor sinh(TensorArg x) { return run(kSinh, {x}); }
Tensor cosh(TensorArg x) { return run(kCosh, {x}); }
Tensor tanh(TensorArg x) { return run(kTanh, {x}); }
Tensor asinh(TensorArg x) { return run(kAsinh, {x}); }
Tensor acosh(TensorArg x) { return run(kAcosh, {x}); }
Tensor atanh(TensorArg x) { return run(kAtanh, {x}); }
Tensor sigmoid(TensorArg x) { return run(kSigmoid, {x}); }
Tensor floor(TensorArg x) { return run(kFloor, {x}); }
Tensor ceil(TensorArg x) { return run(kCeil, {x}); }
Tensor round(TensorArg x) { return run(kRound, {x}); }
Tensor trunc(TensorArg x) { return run(kTrunc, {x}); }
Tensor frac(TensorArg x) { return run(kFrac, {x}); }

void register_elementary_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(),
              {&kExp,   &kExp2,  &kExpm1, &kLog,     &kLog2,  &kLog10, &kLog1p, &kSqrt,  &kRsqrt,
               &kSin,   &kCos,   &kTan,   &kAsin,    &kAcos,  &kAtan,  &kSinh,  &kCosh,  &kTanh,
               &kAsinh, &kAcosh, &kAtanh, &kSigmoid, &kFloor, &kCeil,  &kRound, &kTrunc, &kFrac});
}

}  // namespace cutaway
