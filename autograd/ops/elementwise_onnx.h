#pragma once
#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/elementwise.h>

// Rules of elementwise records for ONNX (autograd/onnx_rule.h). Used by the sources of this folder.
namespace cutaway {

// The literal of the record as a constant of type `t`.
inline std::string onnx_literal_value(OnnxCall& c, DType t) {
  const Scalar& s = c.attrs<LiteralAttrs>().s;
  return c.constant(scalar_tensor(s, {.dtype = t}));
}
// type(x, s).
template <FixedText type>
void onnx_literal(OnnxCall& c) {
  c.result(c.node(type.text, {c.cast(0, c.type()), onnx_literal_value(c, c.type())}));
}
// type(s, x).
template <FixedText type>
void onnx_literal_first(OnnxCall& c) {
  c.result(c.node(type.text, {onnx_literal_value(c, c.type()), c.cast(0, c.type())}));
}
// Sums and products of booleans are `of_bools`.
template <FixedText type, FixedText of_bools>
void onnx_ring(OnnxCall& c) {
  c.type() == DType::boolean ? onnx_same<of_bools>(c) : onnx_map<type>(c);
}
// A comparison with a literal, in the common type.
template <FixedText type, bool negated = false>
void onnx_compare_literal(OnnxCall& c) {
  const DType t = literal_type(c.in().dtype(), c.attrs<LiteralAttrs>().s);
  const std::string y = c.node(type.text, {c.cast(0, t), onnx_literal_value(c, t)});
  c.result(negated ? c.node("Not", {y}) : y);
}
// An op of truth values.
template <FixedText type>
void onnx_logic(OnnxCall& c) {
  std::vector<std::string> in;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.cast(i, DType::boolean));
  c.result(c.node(type.text, in));
}
// type(x) · factor.
inline void onnx_scaled(OnnxCall& c, const char* type, double factor) {
  c.result(c.node("Mul", {c.node(type, {c.cast(0, c.type())}), c.number(factor)}));
}

}  // namespace cutaway
