#include <cutaway/autograd/ops/activation.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/elementwise_onnx.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/pointwise_samples.h>
#include <cutaway/autograd/ops/special.h>

// Note: derivatives of activations. `backward` is made of public ops, so that it differentiates
// again; `fast_backward` is one pass of a kernel that holds the same formula.

namespace cutaway {
namespace {

// A node whose attributes are the constants of the record.
void onnx_real_attributes(OnnxCall& c, const char* type, std::vector<const char*> names) {
  onnx::Attributes attributes;
  for (size_t i = 0; i < names.size(); ++i) {
    attributes.emplace_back(names[i], c.attrs<RealAttrs>().v[i]);
  }
  c.result(c.node(type, {c.cast(0, c.type())}, attributes));
}
void onnx_hardtanh(OnnxCall& c) {
  const RealAttrs& a = c.attrs<RealAttrs>();
  c.result(c.node("Clip", {c.cast(0, c.type()), c.number(a.v[0]), c.number(a.v[1])}));
}
// x (1 + gate) / 2.
void onnx_gate(OnnxCall& c, const std::string& x, const std::string& gate) {
  const std::string sum = c.node("Add", {gate, c.number(1)});
  c.result(c.node("Mul", {c.node("Mul", {x, sum}), c.number(0.5)}));
}

const OpRecord kRelu{
    .name = "relu",
    .signature = "relu(x) → y",
    .meaning = "Positive part; its derivative at 0 is taken as 0.",
    .formula = "y = max(x, 0)",
    .shapes = kSameShape,
    .save_outputs = 1,
    .forward = forward<kernels::relu, Types::floating>,
    .backward_text = "dx = y > 0 ? g : 0",
    .backward = [](Backward& b) { b.set(0, masked_fill(b.upstream(), le(b.output(), 0), 0)); },
    .fast_backward = fast_from_output<kernels::relu_grad>,
    .samples = relu_samples,
    .onnx = onnx_map<"Relu">};

const OpRecord kLeakyRelu{
    .name = "leaky_relu",
    .signature = "leaky_relu(x, slope) → y",
    .meaning = "Identity above 0, a smaller slope below.",
    .formula = "y = x > 0 ? x : slope · x",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward_reals<kernels::leaky_relu>,
    .backward_text = "dx = x > 0 ? g : slope · g",
    .backward =
        [](Backward& b) {
          b.set(0, where(gt(b.input(0), 0), b.upstream(),
                         mul(b.upstream(), b.attrs<RealAttrs>().v[0])));
        },
    .fast_backward = fast_from_input_reals<kernels::leaky_relu_grad>,
    .samples = leaky_relu_samples,
    .onnx = [](OnnxCall& c) { onnx_real_attributes(c, "LeakyRelu", {"alpha"}); }};

// alpha, scale and rate of y = scale · (x > 0 ? x : alpha (e^(rate x) − 1)).
void elu_backward(Backward& b) {
  const RealAttrs& a = b.attrs<RealAttrs>();
  const Tensor x = b.input(0), right = gt(x, 0);
  const Tensor bell = exp(mul(masked_fill(x, right, 0), a.v[2]));
  const Tensor slope = where(right, a.v[1], mul(bell, a.v[0] * a.v[1] * a.v[2]));
  b.set(0, mul(b.upstream(), slope));
}

const OpRecord kElu{.name = "elu",
                    .signature = "elu(x, alpha) → y",
                    .meaning = "Exponential linear unit.",
                    .formula = "y = x > 0 ? x : alpha (eˣ − 1)",
                    .shapes = kSameShape,
                    .save_inputs = 1,
                    .forward = forward_reals<kernels::elu>,
                    .backward_text = "dx = x > 0 ? g : alpha eˣ g",
                    .backward = elu_backward,
                    .fast_backward = fast_from_input_reals<kernels::elu_grad>,
                    .samples = elu_samples,
                    .onnx = [](OnnxCall& c) { onnx_real_attributes(c, "Elu", {"alpha"}); }};

const OpRecord kSelu{.name = "selu",
                     .signature = "selu(x) → y",
                     .meaning = "Self-normalising exponential linear unit (Klambauer et al. 2017).",
                     .formula = "y = 1.0507 (x > 0 ? x : 1.6733 (eˣ − 1))",
                     .shapes = kSameShape,
                     .save_inputs = 1,
                     .forward = forward_reals<kernels::elu>,
                     .backward_text = "dx = 1.0507 (x > 0 ? g : 1.6733 eˣ g)",
                     .backward = elu_backward,
                     .fast_backward = fast_from_input_reals<kernels::elu_grad>,
                     .samples = selu_samples,
                     .onnx = [](OnnxCall& c) {
                       onnx_real_attributes(c, "Selu", {"alpha", "gamma"});
                     }};

const OpRecord kCelu{
    .name = "celu",
    .signature = "celu(x, alpha) → y",
    .meaning = "Continuously differentiable exponential linear unit (Barron 2017).",
    .formula = "y = x > 0 ? x : alpha (e^(x/alpha) − 1)",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward_reals<kernels::elu>,
    .backward_text = "dx = x > 0 ? g : e^(x/alpha) g",
    .backward = elu_backward,
    .fast_backward = fast_from_input_reals<kernels::elu_grad>,
    .samples = celu_samples,
    .onnx = [](OnnxCall& c) { onnx_real_attributes(c, "Celu", {"alpha"}); }};

void hardtanh_backward(Backward& b) {
  const RealAttrs& a = b.attrs<RealAttrs>();
  const Tensor x = b.input(0);
  b.set(0, masked_fill(b.upstream(), logical_or(le(x, a.v[0]), ge(x, a.v[1])), 0));
}

const OpRecord kHardtanh{
    .name = "hardtanh",
    .signature = "hardtanh(x, low, high) → y",
    .meaning = "Identity limited to an interval; the derivative at its ends is 0.",
    .formula = "y = min(max(x, low), high)",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward_reals<kernels::clamp>,
    .backward_text = "dx = low < x < high ? g : 0",
    .backward = hardtanh_backward,
    .fast_backward = fast_from_input_reals<kernels::hardtanh_grad>,
    .samples = hardtanh_samples,
    .onnx = onnx_hardtanh};

const OpRecord kRelu6{.name = "relu6",
                      .signature = "relu6(x) → y",
                      .meaning = "Positive part limited to 6; the derivative at 0 and 6 is 0.",
                      .formula = "y = min(max(x, 0), 6)",
                      .shapes = kSameShape,
                      .save_inputs = 1,
                      .forward = forward_reals<kernels::clamp>,
                      .backward_text = "dx = 0 < x < 6 ? g : 0",
                      .backward = hardtanh_backward,
                      .fast_backward = fast_from_input_reals<kernels::hardtanh_grad>,
                      .samples = relu6_samples,
                      .onnx = onnx_hardtanh};

const OpRecord kHardsigmoid{
    .name = "hardsigmoid",
    .signature = "hardsigmoid(x) → y",
    .meaning = "Piecewise linear sigmoid.",
    .formula = "y = min(max(x/6 + 1/2, 0), 1)",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward<kernels::hardsigmoid, Types::floating>,
    .backward_text = "dx = −3 < x < 3 ? g/6 : 0",
    .backward =
        [](Backward& b) {
          const Tensor x = b.input(0);
          b.set(0, div(masked_fill(b.upstream(), logical_or(le(x, -3), ge(x, 3)), 0), 6));
        },
    .fast_backward = fast_from_input<kernels::hardsigmoid_grad>,
    .samples = hardsigmoid_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(
              c.node("HardSigmoid", {c.cast(0, c.type())}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
        }};

const OpRecord kHardswish{.name = "hardswish",
                          .signature = "hardswish(x) → y",
                          .meaning = "Product with the piecewise linear sigmoid.",
                          .formula = "y = x · min(max(x/6 + 1/2, 0), 1)",
                          .shapes = kSameShape,
                          .save_inputs = 1,
                          .forward = forward<kernels::hardswish, Types::floating>,
                          .backward_text = "dx = x ≤ −3 ? 0 : x ≥ 3 ? g : g (x/3 + 1/2)",
                          .backward =
                              [](Backward& b) {
                                const Tensor x = b.input(0);
                                const Tensor slope = where(ge(x, 3), 1, add(div(x, 3), 0.5));
                                b.set(0, masked_fill(mul(b.upstream(), slope), le(x, -3), 0));
                              },
                          .fast_backward = fast_from_input<kernels::hardswish_grad>,
                          .samples = hardswish_samples,
                          .onnx = onnx_map<"HardSwish">};

const OpRecord kSilu{.name = "silu",
                     .signature = "silu(x) → y",
                     .meaning = "Product with the logistic function (swish).",
                     .formula = "y = x σ(x)",
                     .shapes = kSameShape,
                     .save_inputs = 1,
                     .forward = forward<kernels::silu, Types::floating>,
                     .backward_text = "dx = g ⊙ σ(x) (1 + x (1 − σ(x)))",
                     .backward =
                         [](Backward& b) {
                           const Tensor x = b.input(0), s = sigmoid(x);
                           b.set(0, mul(b.upstream(), mul(s, add(mul(x, sub(1, s)), 1))));
                         },
                     .fast_backward = fast_from_input<kernels::silu_grad>,
                     .samples = silu_samples,
                     .onnx =
                         [](OnnxCall& c) {
                           const std::string x = c.cast(0, c.type());
                           c.result(c.node("Mul", {x, c.node("Sigmoid", {x})}));
                         }};

const OpRecord kGelu{
    .name = "gelu",
    .signature = "gelu(x) → y",
    .meaning =
        "Gaussian error linear unit (Hendrycks and Gimpel 2016), with Φ the normal distribution.",
    .formula = "y = x Φ(x) = x/2 (1 + erf(x/√2))",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward<kernels::gelu, Types::floating>,
    .backward_text = "dx = g ⊙ (Φ(x) + x φ(x))",
    .backward =
        [](Backward& b) {
          const Tensor x = b.input(0);
          const Tensor cdf = mul(erfc(mul(x, -M_SQRT1_2)), 0.5);
          const Tensor density = mul(exp(mul(square(x), -0.5)), 0.5 * M_SQRT1_2 * M_2_SQRTPI);
          b.set(0, mul(b.upstream(), add(cdf, mul(x, density))));
        },
    .fast_backward = fast_from_input<kernels::gelu_grad>,
    .samples = gelu_samples,
    .onnx =
        [](OnnxCall& c) {
          const std::string x = c.cast(0, c.type());
          const std::string e = c.node("Erf", {c.node("Mul", {x, c.number(std::sqrt(0.5))})});
          onnx_gate(c, x, e);
        }};

const OpRecord kGeluTanh{
    .name = "gelu_tanh",
    .signature = "gelu_tanh(x) → y",
    .meaning = "The approximation of gelu by a hyperbolic tangent.",
    .formula = "y = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward<kernels::gelu_tanh, Types::floating>,
    .backward_text = "dx = g ⊙ (1 + t + x (1 − t²) √(2/π) (1 + 0.134145 x²)) / 2, t = tanh(…)",
    .backward =
        [](Backward& b) {
          constexpr double kScale = M_SQRT1_2 * M_2_SQRTPI, kCubic = 0.044715;
          const Tensor x = b.input(0), x2 = square(x);
          const Tensor t = tanh(mul(mul(x, add(mul(x2, kCubic), 1)), kScale));
          const Tensor dz = mul(add(mul(x2, 3 * kCubic), 1), kScale);
          const Tensor slope = add(mul(mul(x, sub(1, square(t))), dz), add(t, 1));
          b.set(0, mul(mul(b.upstream(), slope), 0.5));
        },
    .fast_backward = fast_from_input<kernels::gelu_tanh_grad>,
    .samples = gelu_tanh_samples,
    .onnx =
        [](OnnxCall& c) {
          const std::string x = c.cast(0, c.type());
          const std::string cube = c.node("Mul", {c.node("Mul", {x, x}), x});
          const std::string sum = c.node("Add", {x, c.node("Mul", {cube, c.number(0.044715)})});
          onnx_gate(c, x, c.node("Tanh", {c.node("Mul", {sum, c.number(std::sqrt(2 / M_PI))})}));
        }};

const OpRecord kSoftplus{
    .name = "softplus",
    .signature = "softplus(x, beta) → y",
    .meaning = "Smooth positive part.",
    .formula = "y = ln(1 + e^(beta x)) / beta",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward_reals<kernels::softplus>,
    .backward_text = "dx = g ⊙ σ(beta x)",
    .backward =
        [](Backward& b) {
          b.set(0, mul(b.upstream(), sigmoid(mul(b.input(0), b.attrs<RealAttrs>().v[0]))));
        },
    .fast_backward = fast_from_input_reals<kernels::softplus_grad>,
    .samples = softplus_samples,
    .onnx =
        [](OnnxCall& c) {
          const double beta = c.attrs<RealAttrs>().v[0];
          const std::string x = c.cast(0, c.type());
          if (beta == 1) return c.result(c.node("Softplus", {x}));
          const std::string y = c.node("Softplus", {c.node("Mul", {x, c.number(beta)})});
          c.result(c.node("Div", {y, c.number(beta)}));
        }};

const OpRecord kLogSigmoid{
    .name = "log_sigmoid",
    .signature = "log_sigmoid(x) → y",
    .meaning = "Logarithm of the logistic function.",
    .formula = "y = −ln(1 + e⁻ˣ)",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward<kernels::log_sigmoid, Types::floating>,
    .backward_text = "dx = g ⊙ σ(−x)",
    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), sigmoid(neg(b.input(0))))); },
    .fast_backward = fast_from_input<kernels::log_sigmoid_grad>,
    .samples = log_sigmoid_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(c.node("Neg", {c.node("Softplus", {c.node("Neg", {c.cast(0, c.type())})})}));
        }};

const OpRecord kMish{
    .name = "mish",
    .signature = "mish(x) → y",
    .meaning = "Product with the tanh of softplus (Misra 2019).",
    .formula = "y = x tanh(ln(1 + eˣ))",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward<kernels::mish, Types::floating>,
    .backward_text = "dx = g ⊙ (t + x σ(x) (1 − t²)), t = tanh(ln(1 + eˣ))",
    .backward =
        [](Backward& b) {
          const Tensor x = b.input(0), t = tanh(softplus(x));
          b.set(0, mul(b.upstream(), add(t, mul(mul(x, sigmoid(x)), sub(1, square(t))))));
        },
    .fast_backward = fast_from_input<kernels::mish_grad>,
    .samples = mish_samples,
    .onnx =
        [](OnnxCall& c) {
          const std::string x = c.cast(0, c.type());
          c.result(c.node("Mul", {x, c.node("Tanh", {c.node("Softplus", {x})})}));
        }};

const OpRecord kSoftsign{
    .name = "softsign",
    .signature = "softsign(x) → y",
    .meaning = "Ratio to one more than the absolute value.",
    .formula = "y = x / (1 + |x|)",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward = forward<kernels::softsign, Types::floating>,
    .backward_text = "dx = g / (1 + |x|)²",
    .backward = [](Backward& b) { b.set(0, div(b.upstream(), square(add(abs(b.input(0)), 1)))); },
    .fast_backward = fast_from_input<kernels::softsign_grad>,
    .samples = softsign_samples,
    .onnx = onnx_map<"Softsign">};

}  // namespace

Tensor relu(TensorArg x) { return run(kRelu, {x}); }
Tensor leaky_relu(TensorArg x, double slope) { return run(kLeakyRelu, {x}, RealAttrs{{slope}}); }
Tensor elu(TensorArg x, double alpha) { return run(kElu, {x}, RealAttrs{{alpha, 1, 1}}); }
Tensor selu(TensorArg x) {
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  constexpr double kScale = 1.0507009873554804934193349852946;
  return run(kSelu, {x}, RealAttrs{{kAlpha, kScale, 1}});
}
Tensor celu(TensorArg x, double alpha) {
  if (!(alpha != 0)) {
    throw ValueError("celu", fmt::format("alpha must not be 0; got {}", alpha));
  }
  return run(kCelu, {x}, RealAttrs{{alpha, 1, 1 / alpha}});
}
Tensor hardtanh(TensorArg x, double low, double high) {
  if (!(low <= high)) {
    throw ValueError("hardtanh", fmt::format("low must not exceed high; got {} and {}", low, high));
  }
  return run(kHardtanh, {x}, RealAttrs{{low, high}});
}
Tensor relu6(TensorArg x) { return run(kRelu6, {x}, RealAttrs{{0, 6}}); }
Tensor hardsigmoid(TensorArg x) { return run(kHardsigmoid, {x}); }
Tensor hardswish(TensorArg x) { return run(kHardswish, {x}); }
Tensor silu(TensorArg x) { return run(kSilu, {x}); }
Tensor gelu(TensorArg x) { return run(kGelu, {x}); }
Tensor gelu_tanh(TensorArg x) { return run(kGeluTanh, {x}); }
Tensor softplus(TensorArg x, double beta) {
  if (!(beta != 0)) {
    throw ValueError("softplus", fmt::format("beta must not be 0; got {}", beta));
  }
  return run(kSoftplus, {x}, RealAttrs{{beta}});
}
Tensor log_sigmoid(TensorArg x) { return run(kLogSigmoid, {x}); }
Tensor mish(TensorArg x) { return run(kMish, {x}); }
Tensor softsign(TensorArg x) { return run(kSoftsign, {x}); }

void register_activation_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kRelu, &kLeakyRelu, &kElu, &kSelu, &kCelu, &kHardtanh, &kRelu6,
                           &kHardsigmoid, &kHardswish, &kSilu, &kGelu, &kGeluTanh, &kSoftplus,
                           &kLogSigmoid, &kMish, &kSoftsign});
}

}  // namespace cutaway
