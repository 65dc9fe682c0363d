#pragma once
#include <cutaway/autograd/op.h>
#include <cutaway/core/kernels/pointwise.h>

// How the records of elementwise ops are run. Used by the sources of this folder only.

namespace cutaway {

// Arithmetic and result type of an elementwise op.
enum class Types : uint8_t {
  promote,   // the promoted type of the operands (core/dtype.h); a 0-d operand never widens
  floating,  // the same, integers and booleans become kDefaultFloat
  compare,   // arithmetic in the promoted type, boolean result
  choose,    // as promote, but operand 0 is a boolean mask
};

// Constants of a kernel call.
struct Constants {
  double f[3] = {};
  int64_t i[2] = {};
};

// The whole forward of an elementwise op: types, broadcasting, output, donation, kernel. `result`
// sets the arithmetic type where operands alone do not say it (literals).
void elementwise(Call& c, PointwiseKernel& kernel, Types types,
                 const Constants* constants = nullptr, const DType* result = nullptr);

// Forward functions for records.
template <PointwiseKernel& kKernel, Types kTypes = Types::promote>
void forward(Call& c) {
  elementwise(c, kKernel, kTypes);
}

// A literal operand.
struct LiteralAttrs {
  Scalar s;
};
// Type of tensor (op) literal: a literal raises the category, never the width.
DType literal_type(DType tensor, const Scalar& literal);
// Input 0 with the literal as constant 0.
void elementwise_literal(Call& c, PointwiseKernel& kernel, Types types);
template <PointwiseKernel& kKernel, Types kTypes = Types::promote>
void forward_literal(Call& c) {
  elementwise_literal(c, kKernel, kTypes);
}

// Up to three real constants.
struct RealAttrs {
  double v[3];
};
template <PointwiseKernel& kKernel, Types kTypes = Types::floating>
void forward_reals(Call& c) {
  const RealAttrs& a = c.attrs<RealAttrs>();
  const Constants constants{.f = {a.v[0], a.v[1], a.v[2]}};
  elementwise(c, kKernel, kTypes, &constants);
}

// Result type of the operands from `first` on.
DType promoted_type(const Call& c, int first = 0);

// One kernel pass without history: sizes and type of the first operand, to which others broadcast.
// For fast backward rules.
Tensor apply_kernel(PointwiseKernel& kernel, std::initializer_list<const Tensor*> inputs,
                    const Constants* constants = nullptr);

// fast_backward of y = f(x): dx = kernel(g, x) or kernel(g, y), constants as in forward.
template <PointwiseKernel& kKernel>
void fast_from_input(Backward& b) {
  const Tensor x = b.input(0);
  b.set(0, apply_kernel(kKernel, {&b.upstream(), &x}));
}
template <PointwiseKernel& kKernel>
void fast_from_output(Backward& b) {
  const Tensor y = b.output();
  b.set(0, apply_kernel(kKernel, {&b.upstream(), &y}));
}
template <PointwiseKernel& kKernel>
void fast_from_input_reals(Backward& b) {
  const Tensor x = b.input(0);
  const RealAttrs& a = b.attrs<RealAttrs>();
  const Constants constants{.f = {a.v[0], a.v[1], a.v[2]}};
  b.set(0, apply_kernel(kKernel, {&b.upstream(), &x}, &constants));
}

// Backward of steps (floor, sign): the derivative is 0 where it exists.
void zero_backward(Backward& b);

// True if an element equals `value`; reads the values.
bool any_equal(const Tensor& t, int64_t value);

// Texts that many records share.
inline constexpr const char* kSameShape = "x [...]   y [...]";
inline constexpr const char* kBroadcastShapes = "a, b broadcast against each other   y [...]";
inline constexpr const char* kStep = "0 (a step function; its jumps are ignored)";
inline constexpr const char* kBooleanResult = "the result is boolean";

}  // namespace cutaway
