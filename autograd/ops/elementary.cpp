#include <cutaway/autograd/ops/elementary.h>

#include <cmath>

#include <cutaway/autograd/ops/elementwise.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/pointwise_samples.h>

namespace cutaway {
namespace {

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
                    .samples = exp_samples};
const OpRecord kExpm1{.name = "expm1",
                      .signature = "expm1(x) → y",
                      .meaning = "Exponential function less 1, accurate near 0.",
                      .formula = "y = eˣ − 1",
                      .shapes = kSameShape,
                      .compute = Compute::f32,
                      .save_outputs = 1,
                      .forward = forward<kernels::expm1, Types::floating>,
                      .backward_text = "dx = g ⊙ (y + 1)",
                      .backward =
                          [](Backward& b) { b.set(0, mul(b.upstream(), add(b.output(), 1))); },
                      .samples = expm1_samples};
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
                    .samples = log_samples};
const OpRecord kLog1p{.name = "log1p",
                      .signature = "log1p(x) → y",
                      .meaning = "Natural logarithm of 1 + x, accurate near 0.",
                      .formula = "y = ln(1 + x)",
                      .shapes = kSameShape,
                      .compute = Compute::f32,
                      .save_inputs = 1,
                      .forward = forward<kernels::log1p, Types::floating>,
                      .backward_text = "dx = g / (1 + x)",
                      .backward =
                          [](Backward& b) { b.set(0, div(b.upstream(), add(b.input(0), 1))); },
                      .samples = log1p_samples};
const OpRecord kSqrt{.name = "sqrt",
                     .signature = "sqrt(x) → y",
                     .meaning = "Square root; NaN below 0.",
                     .formula = "y = √x",
                     .shapes = kSameShape,
                     .save_outputs = 1,
                     .forward = forward<kernels::sqrt, Types::floating>,
                     .backward_text = "dx = g / (2 y)",
                     .backward =
                         [](Backward& b) { b.set(0, div(b.upstream(), mul(b.output(), 2))); },
                     .samples = sqrt_samples};
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
                      .samples = rsqrt_samples};
const OpRecord kTanh{.name = "tanh",
                     .signature = "tanh(x) → y",
                     .meaning = "Hyperbolic tangent.",
                     .formula = "y = (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)",
                     .shapes = kSameShape,
                     .save_outputs = 1,
                     .forward = forward<kernels::tanh, Types::floating>,
                     .backward_text = "dx = g ⊙ (1 − y²)",
                     .backward =
                         [](Backward& b) { b.set(0, mul(b.upstream(), sub(1, square(b.output())))); },
                     .fast_backward = fast_from_output<kernels::tanh_grad>,
                     .samples = tanh_samples};
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
                        .samples = sigmoid_samples};
const OpRecord kErf{.name = "erf",
                    .signature = "erf(x) → y",
                    .meaning = "Error function.",
                    .formula = "y = 2/√π ∫₀ˣ e^(−t²) dt",
                    .shapes = kSameShape,
                    .save_inputs = 1,
                    .forward = forward<kernels::erf, Types::floating>,
                    .backward_text = "dx = 2/√π g ⊙ e^(−x²)",
                    .backward =
                        [](Backward& b) {
                          const Tensor bell = exp(neg(square(b.input(0))));
                          b.set(0, mul(mul(b.upstream(), bell), M_2_SQRTPI));
                        },
                    .samples = erf_samples};

}  // namespace

Tensor exp(TensorArg x) { return run(kExp, {x}); }
Tensor expm1(TensorArg x) { return run(kExpm1, {x}); }
Tensor log(TensorArg x) { return run(kLog, {x}); }
Tensor log1p(TensorArg x) { return run(kLog1p, {x}); }
Tensor sqrt(TensorArg x) { return run(kSqrt, {x}); }
Tensor rsqrt(TensorArg x) { return run(kRsqrt, {x}); }
Tensor tanh(TensorArg x) { return run(kTanh, {x}); }
Tensor sigmoid(TensorArg x) { return run(kSigmoid, {x}); }
Tensor erf(TensorArg x) { return run(kErf, {x}); }

void register_elementary_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kExp, &kExpm1, &kLog, &kLog1p, &kSqrt, &kRsqrt, &kTanh, &kSigmoid, &kErf});
}

}  // namespace cutaway
