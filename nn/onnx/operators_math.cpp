#include <cmath>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/onnx/node_call.h>

// Operators element by element (onnx/onnx, docs/Operators.md).
namespace cutaway::onnx {
namespace {

template <Tensor (*fn)(TensorArg)>
void unary(NodeCall& c) {
  c.ignore("consumed_inputs");
  c.give(fn(c.in(0)));
}

// Before opset 7 the second operand broadcasts only when told to, from dimension `axis` on.
Tensor second(NodeCall& c) {
  c.ignore("consumed_inputs");
  Tensor b = c.in(1);
  if (c.opset >= 7) return b;
  const bool repeat = c.integer("broadcast", 0) != 0;
  const int64_t axis = c.integer("axis", -1);
  if (!repeat || axis < 0) return b;
  while (axis + b.dim() < c.in(0).dim()) b = unsqueeze(b, -1);
  return b;
}

template <Tensor (*fn)(TensorArg, TensorArg)>
void binary(NodeCall& c) {
  const Tensor b = second(c);
  c.give(fn(c.in(0), b));
}

// Integers are divided towards zero.
void divide(NodeCall& c) {
  const Tensor &a = c.in(0), b = second(c);
  if (a.is_floating()) return c.give(div(a, b));
  if (a.dtype() == DType::u8) return c.give(floor_divide(a, b));
  c.give(floor_divide(abs(a), abs(b)) * sign(a) * sign(b));
}

void modulo(NodeCall& c) {
  const Tensor &a = c.in(0), &b = c.in(1);
  if (c.integer("fmod", 0) == 0) return c.give(remainder(a, b));
  if (a.dtype() == DType::u8) return c.give(remainder(a, b));
  c.give(remainder(abs(a), abs(b)) * sign(a));
}

void power(NodeCall& c) {
  const Tensor& a = c.in(0);
  const Tensor b = second(c);
  // Of two integers without a detour over floats; otherwise in the wider type.
  const DType t = promote(a.dtype(), b.dtype());
  c.give(pow(a.to(t), b.to(t)).to(a.dtype()));
}

template <Tensor (*fn)(TensorArg, TensorArg)>
Tensor fold(NodeCall& c) {
  c.ignore("consumed_inputs");
  Tensor y = c.in(0);
  for (int i = 1; i < c.inputs(); ++i) y = fn(y, c.in(i));
  return y;
}
template <Tensor (*fn)(TensorArg, TensorArg)>
void variadic(NodeCall& c) {
  c.give(fold<fn>(c));
}
void mean_of(NodeCall& c) { c.give(fold<add>(c) / double(c.inputs())); }

void clip(NodeCall& c) {
  c.ignore("consumed_inputs");
  Tensor y = c.in(0);
  if (c.opset < 11) {
    return c.give(clamp(y, c.real("min", -INFINITY), c.real("max", INFINITY)));
  }
  if (c.has(1)) y = maximum(y, c.in(1));
  if (c.has(2)) y = minimum(y, c.in(2));
  c.give(y);
}

void infinite(NodeCall& c) {
  const bool low = c.integer("detect_negative", 1), high = c.integer("detect_positive", 1);
  const Tensor& x = c.in(0);
  const Tensor found = isinf(x);
  if (low && high) return c.give(found);
  c.give(logical_and(found, low ? lt(x, 0) : high ? gt(x, 0) : logical_not(found)));
}

void shift(NodeCall& c) {
  const std::string way = c.text("direction", "");
  if (way != "LEFT" && way != "RIGHT") c.fail("attribute 'direction' must be LEFT or RIGHT");
  c.give(way == "LEFT" ? shift_left(c.in(0), c.in(1)) : shift_right(c.in(0), c.in(1)));
}

void cast_to(NodeCall& c) {
  const int64_t to = c.integer("to", 0);
  if (to == 4 || to == 5 || to == 12 || to == 13) {
    c.fail("attribute 'to' asks for a type that tensors here do not have: " + type_name(int(to)));
  }
  c.give(cast(c.in(0), engine_type(int(std::min<int64_t>(to, 1000)))));
}
void cast_like(NodeCall& c) { c.give(cast(c.in(0), c.in(1).dtype())); }

// ---- activations

void elu_op(NodeCall& c) {
  c.ignore("consumed_inputs");
  c.give(elu(c.in(0), c.real("alpha", 1)));
}
void celu_op(NodeCall& c) { c.give(celu(c.in(0), c.real("alpha", 1))); }
void leaky(NodeCall& c) {
  c.ignore("consumed_inputs");
  c.give(leaky_relu(c.in(0), c.real("alpha", 0.01)));
}
void selu_op(NodeCall& c) {
  c.ignore("consumed_inputs");
  const double alpha = c.real("alpha", 1.67326319217681884765625);
  const double gamma = c.real("gamma", 1.05070102214813232421875);
  c.give(elu(c.in(0), alpha) * gamma);
}
void thresholded(NodeCall& c) {
  const Tensor& x = c.in(0);
  c.give(masked_fill(x, le(x, c.real("alpha", 1)), 0.0));
}
void hard_sigmoid(NodeCall& c) {
  const double alpha = c.real("alpha", 0.2), beta = c.real("beta", 0.5);
  c.give(clamp(c.in(0) * alpha + beta, 0.0, 1.0));
}
void hard_swish(NodeCall& c) { c.give(c.in(0) * clamp(c.in(0) * (1.0 / 6) + 0.5, 0.0, 1.0)); }
void soft_plus(NodeCall& c) { c.give(softplus(c.in(0))); }
void prelu(NodeCall& c) {
  const Tensor& x = c.in(0);
  Tensor slope = c.in(1);
  // Before opset 7 slopes of channels are a list.
  if (c.opset < 7 && slope.dim() == 1 && slope.numel() > 1) {
    for (int d = 2; d < x.dim(); ++d) slope = unsqueeze(slope, -1);
  }
  c.give(where(ge(x, 0), x, x * slope));
}
void shrink(NodeCall& c) {
  const double lambda = c.real("lambd", 0.5), bias = c.real("bias", 0);
  const Tensor x = c.in(0);
  const Tensor up = masked_fill(x + bias, ge(x, -lambda), 0.0);
  const Tensor down = masked_fill(x - bias, le(x, lambda), 0.0);
  c.give((up + down).to(x.dtype()));
}
void gelu_op(NodeCall& c) {
  const std::string form = c.text("approximate", "none");
  c.give(form == "tanh" ? gelu_tanh(c.in(0)) : gelu(c.in(0)));
}
void dropout_op(NodeCall& c) {
  for (const char* name : {"ratio", "is_test", "consumed_inputs", "seed"}) c.ignore(name);
  if (c.has(2) && c.number_in(2) != 0 && (!c.has(1) || c.number_in(1) != 0)) {
    c.fail("input 2: training mode draws random numbers, whose order no file fixes");
  }
  c.give(c.in(0));
  if (c.outputs() > 1) c.give(ones(c.in(0).sizes(), {.dtype = DType::boolean}));
}
void identity(NodeCall& c) { c.give(c.in(0)); }

constexpr Operator kOperators[] = {{"Abs", unary<abs>, "abs"},
                                   {"Acos", unary<acos>, "acos"},
                                   {"Acosh", unary<acosh>, "acosh"},
                                   {"Add", binary<add>, "add"},
                                   {"And", binary<logical_and>, "logical_and"},
                                   {"Asin", unary<asin>, "asin"},
                                   {"Asinh", unary<asinh>, "asinh"},
                                   {"Atan", unary<atan>, "atan"},
                                   {"Atanh", unary<atanh>, "atanh"},
                                   {"BitShift", shift, "shift_left, shift_right"},
                                   {"Cast", cast_to, "cast"},
                                   {"CastLike", cast_like, "cast"},
                                   {"Ceil", unary<ceil>, "ceil"},
                                   {"Celu", celu_op, "celu"},
                                   {"Clip", clip, "clamp, maximum, minimum"},
                                   {"Cos", unary<cos>, "cos"},
                                   {"Cosh", unary<cosh>, "cosh"},
                                   {"Div", divide, "div, floor_divide"},
                                   {"Dropout", dropout_op, "(identity)"},
                                   {"Elu", elu_op, "elu"},
                                   {"Equal", binary<eq>, "eq"},
                                   {"Erf", unary<erf>, "erf"},
                                   {"Exp", unary<exp>, "exp"},
                                   {"Floor", unary<floor>, "floor"},
                                   {"Gelu", gelu_op, "gelu, gelu_tanh"},
                                   {"Greater", binary<gt>, "gt"},
                                   {"GreaterOrEqual", binary<ge>, "ge"},
                                   {"HardSigmoid", hard_sigmoid, "clamp"},
                                   {"HardSwish", hard_swish, "clamp"},
                                   {"Identity", identity, "(identity)"},
                                   {"IsInf", infinite, "isinf"},
                                   {"IsNaN", unary<isnan>, "isnan"},
                                   {"LeakyRelu", leaky, "leaky_relu"},
                                   {"Less", binary<lt>, "lt"},
                                   {"LessOrEqual", binary<le>, "le"},
                                   {"Log", unary<log>, "log"},
                                   {"Max", variadic<maximum>, "maximum"},
                                   {"Mean", mean_of, "add, div"},
                                   {"Min", variadic<minimum>, "minimum"},
                                   {"Mod", modulo, "remainder"},
                                   {"Mul", binary<mul>, "mul"},
                                   {"Neg", unary<neg>, "neg"},
                                   {"Not", unary<logical_not>, "logical_not"},
                                   {"Or", binary<logical_or>, "logical_or"},
                                   {"PRelu", prelu, "where"},
                                   {"Pow", power, "pow"},
                                   {"Reciprocal", unary<reciprocal>, "reciprocal"},
                                   {"Relu", unary<relu>, "relu"},
                                   {"Round", unary<round>, "round"},
                                   {"Selu", selu_op, "elu"},
                                   {"Shrink", shrink, "masked_fill"},
                                   {"Sigmoid", unary<sigmoid>, "sigmoid"},
                                   {"Sign", unary<sign>, "sign"},
                                   {"Sin", unary<sin>, "sin"},
                                   {"Sinh", unary<sinh>, "sinh"},
                                   {"Softplus", soft_plus, "softplus"},
                                   {"Softsign", unary<softsign>, "softsign"},
                                   {"Sqrt", unary<sqrt>, "sqrt"},
                                   {"Sub", binary<sub>, "sub"},
                                   {"Sum", variadic<add>, "add"},
                                   {"Tan", unary<tan>, "tan"},
                                   {"Tanh", unary<tanh>, "tanh"},
                                   {"ThresholdedRelu", thresholded, "masked_fill"},
                                   {"Xor", binary<logical_xor>, "logical_xor"}};

}  // namespace

std::span<const Operator> math_operators() { return kOperators; }

}  // namespace cutaway::onnx
