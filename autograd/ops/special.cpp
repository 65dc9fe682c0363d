#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/elementwise_onnx.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/pointwise_samples.h>
#include <cutaway/autograd/ops/special.h>

#include <cmath>

#include <fmt/format.h>

namespace cutaway {
namespace {

// ---- error function and gamma function

const OpRecord kErf{.name = "erf",
                    .signature = "erf(x) → y",
                    .meaning = "Error function.",
                    .formula = "y = 2/√π ∫₀ˣ e^(−t²) dt",
                    .shapes = kSameShape,
                    .compute = Compute::f32,
                    .save_inputs = 1,
                    .forward = forward<kernels::erf, Types::floating>,
                    .backward_text = "dx = 2/√π g ⊙ e^(−x²)",
                    .backward =
                        [](Backward& b) {
                          b.set(0,
                                mul(mul(b.upstream(), exp(neg(square(b.input(0))))), M_2_SQRTPI));
                        },
                    .samples = erf_samples,
                    .onnx = onnx_map<"Erf">};

const OpRecord kErfc{
    .name = "erfc",
    .signature = "erfc(x) → y",
    .meaning = "Complement of the error function, accurate for large x.",
    .formula = "y = 1 − erf(x)",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::erfc, Types::floating>,
    .backward_text = "dx = −2/√π g ⊙ e^(−x²)",
    .backward =
        [](Backward& b) {
          b.set(0, mul(mul(b.upstream(), exp(neg(square(b.input(0))))), -M_2_SQRTPI));
        },
    .samples = erfc_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(c.node("Sub", {c.number(1), c.node("Erf", {c.cast(0, c.type())})}));
        }};

const OpRecord kLgamma{
    .name = "lgamma",
    .signature = "lgamma(x) → y",
    .meaning = "Logarithm of the absolute gamma function.",
    .formula = "y = ln |Γ(x)|",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward<kernels::lgamma, Types::floating>,
    .backward_text = "dx = g ⊙ ψ(x)",
    .backward = [](Backward& b) { b.set(0, mul(b.upstream(), digamma(b.input(0)))); },
    .samples = lgamma_samples};

struct OrderAttrs {
  int64_t n;
};

const OpRecord kPolygamma{
    .name = "polygamma",
    .signature = "polygamma(n, x) → y",
    .meaning =
        "Derivatives of the logarithm of the gamma function; for n ≥ 2 only x > 0, else NaN.",
    .formula = "y = dⁿ⁺¹/dxⁿ⁺¹ ln Γ(x)",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward =
        [](Call& c) {
          const Constants constants{.i = {c.attrs<OrderAttrs>().n}};
          elementwise(c, kernels::polygamma, Types::floating, &constants);
        },
    .backward_text = "dx = g ⊙ polygamma(n + 1, x)",
    .backward =
        [](Backward& b) {
          b.set(0, mul(b.upstream(), polygamma(b.attrs<OrderAttrs>().n + 1, b.input(0))));
        },
    .samples = polygamma_samples};

// ---- powers

[[noreturn, gnu::cold]] void throw_negative_exponent(const Call& c) {
  throw ValueError(
      c.op.name,
      fmt::format("integers to a negative power are not integers; got base {} {}, need "
                  "exponents of 0 or more",
                  to_string(c.in(0).sizes()), name_of(c.in(0).dtype())),
      "convert the base with to(DType::f32)");
}

bool any_negative(const Tensor& t) {
  if (t.is_meta() || t.dtype() == DType::u8 || t.dtype() == DType::boolean) return false;
  return any_equal(lt(t, 0), 1);
}

// Written so that no 0 · inf is formed: at a = b = 0 the first factor meets a¹, at a = 0 ≤ b the
// logarithm is that of 1.
void pow_backward(Backward& b) {
  const Tensor base = b.input(0), exponent = b.input(1);
  const Tensor at_zero = eq(base, 0);
  if (b.needs(0)) {
    const Tensor safe = masked_fill(exponent, logical_and(at_zero, eq(exponent, 0)), 1);
    const Tensor slope = mul(exponent, pow(base, sub(safe, 1)));
    b.set(0, mul(b.upstream(), slope));
  }
  if (b.needs(1)) {
    const Tensor safe = masked_fill(base, logical_and(at_zero, ge(exponent, 0)), 1);
    b.set(1, mul(b.upstream(), mul(b.output(), log(safe))));
  }
}
void pow_fast_backward(Backward& b) {
  const Tensor base = b.input(0), exponent = b.input(1);
  if (b.needs(0)) {
    b.set(0, apply_kernel(kernels::pow_grad_base, {&b.upstream(), &base, &exponent}));
  }
  if (b.needs(1)) {
    b.set(1, apply_kernel(kernels::pow_grad_exponent, {&b.upstream(), &base, &exponent}));
  }
}

const OpRecord kPow{
    .name = "pow",
    .signature = "pow(a, b) → y",
    .meaning = "Power of two tensors; 0⁰ = 1, a negative base needs a whole exponent.",
    .formula = "y = aᵇ",
    .shapes = kBroadcastShapes,
    .dtypes = kNumbers,
    .compute = Compute::f32,
    .save_inputs = 0b11,
    .save_outputs = 1,
    .forward =
        [](Call& c) {
          const bool integral = !c.in(0).is_floating() && !c.in(1).is_floating();
          if (integral && any_negative(c.in(1))) throw_negative_exponent(c);
          elementwise(c, kernels::pow, Types::promote);
        },
    .backward_text = "da = g ⊙ b a^(b − 1), 0 at b = 0; db = g ⊙ y ln a, 0 at a = 0 with b ≥ 0",
    .backward = pow_backward,
    .fast_backward = pow_fast_backward,
    .samples = pow_samples,
    .onnx = onnx_map<"Pow">};

// x^s; frequent exponents have loops of their own.
void forward_pow_scalar(Call& c) {
  const Scalar& s = c.attrs<LiteralAttrs>().s;
  const bool floating = c.in(0).is_floating();
  if (!s.floating && s.i < 0 && !floating) throw_negative_exponent(c);
  static constexpr Constants one{.f = {1}, .i = {1}};
  if (floating && s.f == 2) return elementwise(c, kernels::square, Types::promote);
  if (floating && s.f == 1) return elementwise(c, kernels::mul_scalar, Types::promote, &one);
  if (floating && s.f == 3) return elementwise(c, kernels::cube, Types::promote);
  if (floating && s.f == 0.5) return elementwise(c, kernels::pow_half, Types::promote);
  if (floating && s.f == -1) return elementwise(c, kernels::rdiv_scalar, Types::promote, &one);
  elementwise_literal(c, kernels::pow_scalar, Types::promote);
}

const OpRecord kPowScalar{.name = "pow_scalar",
                          .signature = "pow(x, s) → y",
                          .meaning = "Power of a tensor with a number as exponent.",
                          .formula = "y = xˢ",
                          .shapes = kSameShape,
                          .dtypes = kNumbers,
                          .compute = Compute::f32,
                          .save_inputs = 1,
                          .forward = forward_pow_scalar,
                          .backward_text = "dx = s g ⊙ x^(s − 1); 0 for s = 0",
                          .backward =
                              [](Backward& b) {
                                const double s = b.attrs<LiteralAttrs>().s.f;
                                if (s == 0) return b.set(0, zeros_like(b.upstream()));
                                if (s == 1) return b.set(0, b.upstream());
                                const Tensor x = b.input(0);
                                b.set(0, mul(mul(b.upstream(), s == 2 ? x : pow(x, s - 1)), s));
                              },
                          .samples = pow_scalar_samples,
                          .onnx = onnx_literal<"Pow">};

const OpRecord kRpowScalar{.name = "rpow_scalar",
                           .signature = "pow(s, x) → y",
                           .meaning = "Power of a number with a tensor as exponent.",
                           .formula = "y = sˣ",
                           .shapes = kSameShape,
                           .compute = Compute::f32,
                           .save_outputs = 1,
                           .forward = forward_literal<kernels::rpow_scalar, Types::floating>,
                           .backward_text = "dx = ln s · g ⊙ y; 0 for s = 0",
                           .backward =
                               [](Backward& b) {
                                 const double s = b.attrs<LiteralAttrs>().s.f;
                                 if (s == 0) return b.set(0, zeros_like(b.upstream()));
                                 b.set(0, mul(mul(b.upstream(), b.output()), std::log(s)));
                               },
                           .samples = rpow_scalar_samples,
                           .onnx = onnx_literal_first<"Pow">};

// ---- functions of two operands

const OpRecord kAtan2{
    .name = "atan2",
    .signature = "atan2(a, b) → y",
    .meaning = "Angle of the point (b, a) in (−π, π].",
    .formula = "y = arg(b + i a)",
    .shapes = kBroadcastShapes,
    .compute = Compute::f32,
    .save_inputs = 0b11,
    .forward = forward<kernels::atan2, Types::floating>,
    .backward_text = "da = g ⊙ b / (a² + b²), db = −g ⊙ a / (a² + b²); 0 at the origin",
    .backward =
        [](Backward& b) {
          const Tensor a = b.input(0), c = b.input(1);
          const Tensor square_radius = add(square(a), square(c));
          const Tensor scale =
              div(b.upstream(), masked_fill(square_radius, eq(square_radius, 0), 1));
          if (b.needs(0)) b.set(0, mul(scale, c));
          if (b.needs(1)) b.set(1, neg(mul(scale, a)));
        },
    .samples = atan2_samples};

const OpRecord kHypot{.name = "hypot",
                      .signature = "hypot(a, b) → y",
                      .meaning = "Length of the vector (a, b), without overflow on the way.",
                      .formula = "y = √(a² + b²)",
                      .shapes = kBroadcastShapes,
                      .compute = Compute::f32,
                      .save_inputs = 0b11,
                      .save_outputs = 1,
                      .forward = forward<kernels::hypot, Types::floating>,
                      .backward_text = "da = g ⊙ a / y, db = g ⊙ b / y; 0 at the origin",
                      .backward =
                          [](Backward& b) {
                            const Tensor y = b.output();
                            const Tensor scale = div(b.upstream(), masked_fill(y, eq(y, 0), 1));
                            if (b.needs(0)) b.set(0, mul(scale, b.input(0)));
                            if (b.needs(1)) b.set(1, mul(scale, b.input(1)));
                          },
                      .samples = hypot_samples};

const OpRecord kXlogy{.name = "xlogy",
                      .signature = "xlogy(a, b) → y",
                      .meaning = "Product with a logarithm; 0 where a is 0.",
                      .formula = "y = a ln b, 0 at a = 0",
                      .shapes = kBroadcastShapes,
                      .compute = Compute::f32,
                      .save_inputs = 0b11,
                      .forward = forward<kernels::xlogy, Types::floating>,
                      .backward_text = "da = g ⊙ ln b, 0 where a = 0 and b ≤ 0; db = g ⊙ a / b",
                      .backward =
                          [](Backward& b) {
                            const Tensor a = b.input(0), c = b.input(1);
                            if (b.needs(0)) {
                              const Tensor outside = logical_and(eq(a, 0), le(c, 0));
                              b.set(0, mul(b.upstream(), log(masked_fill(c, outside, 1))));
                            }
                            if (b.needs(1)) b.set(1, mul(b.upstream(), div(a, c)));
                          },
                      .samples = xlogy_samples};

const OpRecord kLogaddexp{
    .name = "logaddexp",
    .signature = "logaddexp(a, b) → y",
    .meaning = "Logarithm of a sum of exponentials.",
    .formula = "y = ln(eᵃ + eᵇ)",
    .shapes = kBroadcastShapes,
    .compute = Compute::f32,
    .save_inputs = 0b11,
    .save_outputs = 1,
    .forward = forward<kernels::logaddexp, Types::floating>,
    .backward_text = "da = g ⊙ e^(a − y), db = g ⊙ e^(b − y); 0 where both are −inf",
    .backward =
        [](Backward& b) {
          const Tensor y = b.output();
          const Tensor finite = masked_fill(y, eq(y, -INFINITY), 0);
          if (b.needs(0)) b.set(0, mul(b.upstream(), exp(sub(b.input(0), finite))));
          if (b.needs(1)) b.set(1, mul(b.upstream(), exp(sub(b.input(1), finite))));
        },
    .samples = logaddexp_samples};

const OpRecord kCopysign{.name = "copysign",
                         .signature = "copysign(a, b) → y",
                         .meaning = "Magnitude of a with the sign of b.",
                         .formula = "y = |a| sign(b), −|a| for b = −0",
                         .shapes = kBroadcastShapes,
                         .save_inputs = 0b11,
                         .forward = forward<kernels::copysign, Types::floating>,
                         .backward_text = "da = g ⊙ sign(a) sign(b); db = 0",
                         .backward =
                             [](Backward& b) {
                               const Tensor c = b.input(1);
                               if (b.needs(0)) {
                                 const Tensor factor = copysign(ones_like(c), c);
                                 b.set(0, mul(b.upstream(), mul(sign(b.input(0)), factor)));
                               }
                               if (b.needs(1)) b.set(1, zeros_like(b.upstream()));
                             },
                         .samples = copysign_samples};

// ---- others

const OpRecord kLogit{
    .name = "logit",
    .signature = "logit(x, eps) → y",
    .meaning = "Inverse of the logistic function, of x limited to [eps, 1 − eps].",
    .formula = "y = ln(x / (1 − x))",
    .shapes = kSameShape,
    .compute = Compute::f32,
    .save_inputs = 1,
    .forward = forward_literal<kernels::logit, Types::floating>,
    .backward_text = "dx = g / (x (1 − x)); 0 outside the limits",
    .backward =
        [](Backward& b) {
          const double eps = b.attrs<LiteralAttrs>().s.f;
          const Tensor x = b.input(0);
          if (eps < 0) return b.set(0, div(b.upstream(), mul(x, sub(1, x))));
          const Tensor outside = logical_or(lt(x, eps), gt(x, 1 - eps));
          const Tensor inner = masked_fill(x, outside, 0.5);
          b.set(0, masked_fill(div(b.upstream(), mul(inner, sub(1, inner))), outside, 0));
        },
    .samples = logit_samples};

// The replacements; NaN stands for the largest number of the type.
RealAttrs replacements(const RealAttrs& given, DType t) {
  constexpr double kLargest[] = {0x1.fffffffffffffp1023, 0x1.fffffep127, 0x1.fep127, 65504};
  const double largest = kLargest[static_cast<int>(t)];
  return {{given.v[0], std::isnan(given.v[1]) ? largest : given.v[1],
           std::isnan(given.v[2]) ? -largest : given.v[2]}};
}

const OpRecord kNanToNum{
    .name = "nan_to_num",
    .signature = "nan_to_num(x, nan, high, low) → y",
    .meaning = "Numbers in place of NaN, inf and −inf.",
    .formula = "y = x, or the replacement",
    .shapes = kSameShape,
    .save_inputs = 1,
    .forward =
        [](Call& c) {
          const DType t = c.in(0).is_floating() ? c.in(0).dtype() : kDefaultFloat;
          const RealAttrs r = replacements(c.attrs<RealAttrs>(), t);
          const Constants constants{.f = {r.v[0], r.v[1], r.v[2]}};
          elementwise(c, kernels::nan_to_num, Types::floating, &constants);
        },
    .backward_text = "dx = g where x is finite, else 0",
    .backward =
        [](Backward& b) {
          b.set(0, masked_fill(b.upstream(), logical_not(isfinite(b.input(0))), 0));
        },
    .samples = nan_to_num_samples};

}  // namespace

Tensor erf(TensorArg x) { return run(kErf, {x}); }
Tensor erfc(TensorArg x) { return run(kErfc, {x}); }
Tensor lgamma(TensorArg x) { return run(kLgamma, {x}); }
Tensor digamma(TensorArg x) { return run(kPolygamma, {x}, OrderAttrs{0}); }
Tensor polygamma(int64_t n, TensorArg x) {
  if (n < 0 || n > 100) {
    throw ValueError("polygamma", fmt::format("the order must be in [0, 100]; got {}", n));
  }
  return run(kPolygamma, {x}, OrderAttrs{n});
}
Tensor pow(TensorArg a, TensorArg b) { return run(kPow, {a, b}); }
Tensor pow(TensorArg x, Scalar s) { return run(kPowScalar, {x}, LiteralAttrs{s}); }
Tensor pow(Scalar s, TensorArg x) { return run(kRpowScalar, {x}, LiteralAttrs{s}); }
Tensor atan2(TensorArg a, TensorArg b) { return run(kAtan2, {a, b}); }
Tensor hypot(TensorArg a, TensorArg b) { return run(kHypot, {a, b}); }
Tensor xlogy(TensorArg a, TensorArg b) { return run(kXlogy, {a, b}); }
Tensor logaddexp(TensorArg a, TensorArg b) { return run(kLogaddexp, {a, b}); }
Tensor copysign(TensorArg a, TensorArg b) { return run(kCopysign, {a, b}); }
Tensor logit(TensorArg x, double eps) {
  if (eps >= 0.5) {
    throw ValueError("logit", fmt::format("eps must be below 0.5; got {}", eps));
  }
  return run(kLogit, {x}, LiteralAttrs{eps});
}
Tensor nan_to_num(TensorArg x, NanToNum options) {
  return run(kNanToNum, {x}, RealAttrs{{options.nan, options.high, options.low}});
}

void register_special_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(),
              {&kErf, &kErfc, &kLgamma, &kPolygamma, &kPow, &kPowScalar, &kRpowScalar, &kAtan2,
               &kHypot, &kXlogy, &kLogaddexp, &kCopysign, &kLogit, &kNanToNum});
}

}  // namespace cutaway
