#pragma once

// Which functor computes which elementwise kernel, for which types: X(types, functor, inputs,
// kernel). Every back end fills its table from these lists. The types: floats (f64, f32, bf16,
// f16), integers (i64, i32, u8, i8), numbers (both), booleans; predicates take all of them, and
// float_tests floats, to booleans.

// core/math/functors.h. For booleans sum is or, product is and.
#define CUTAWAY_POINTWISE_ARITHMETIC(X)                 \
  X(numbers, Add, 2, add)                               \
  X(booleans, LogicalOr, 2, add)                        \
  X(numbers, Sub, 2, sub)                               \
  X(numbers, Mul, 2, mul)                               \
  X(booleans, LogicalAnd, 2, mul)                       \
  X(floats, Div, 2, div)                                \
  X(numbers, FloorDivide, 2, floor_divide)              \
  X(numbers, Remainder, 2, remainder)                   \
  X(numbers, Maximum, 2, maximum)                       \
  X(booleans, LogicalOr, 2, maximum)                    \
  X(numbers, Minimum, 2, minimum)                       \
  X(booleans, LogicalAnd, 2, minimum)                   \
  X(numbers, Fmax, 2, fmax)                             \
  X(numbers, Fmin, 2, fmin)                             \
  X(numbers, AddScaled, 2, add_scaled)                  \
  X(numbers, AddScalar, 1, add_scalar)                  \
  X(numbers, RsubScalar, 1, rsub_scalar)                \
  X(numbers, MulScalar, 1, mul_scalar)                  \
  X(floats, DivScalar, 1, div_scalar)                   \
  X(floats, RdivScalar, 1, rdiv_scalar)                 \
  X(numbers, FloorDivideScalar, 1, floor_divide_scalar) \
  X(numbers, RemainderScalar, 1, remainder_scalar)      \
  X(numbers, Neg, 1, neg)                               \
  X(numbers, Abs, 1, abs)                               \
  X(numbers, Sign, 1, sign)                             \
  X(numbers, Square, 1, square)                         \
  X(floats, Lerp, 3, lerp)                              \
  X(numbers, Addcmul, 3, addcmul)                       \
  X(floats, Addcdiv, 3, addcdiv)                        \
  X(numbers, Clamp, 1, clamp)                           \
  X(numbers, ClampTensors, 3, clamp_tensors)            \
  X(floats, ClampGrad, 2, clamp_grad)

// core/math/functors.h.
#define CUTAWAY_POINTWISE_COMPARE(X)        \
  X(predicates, Eq, 2, eq)                  \
  X(predicates, Ne, 2, ne)                  \
  X(predicates, Lt, 2, lt)                  \
  X(predicates, Le, 2, le)                  \
  X(predicates, EqScalar, 1, eq_scalar)     \
  X(predicates, NeScalar, 1, ne_scalar)     \
  X(predicates, LtScalar, 1, lt_scalar)     \
  X(predicates, LeScalar, 1, le_scalar)     \
  X(predicates, GtScalar, 1, gt_scalar)     \
  X(predicates, GeScalar, 1, ge_scalar)     \
  X(predicates, LogicalAnd, 2, logical_and) \
  X(predicates, LogicalOr, 2, logical_or)   \
  X(predicates, LogicalXor, 2, logical_xor) \
  X(predicates, LogicalNot, 1, logical_not) \
  X(float_tests, IsNan, 1, isnan)           \
  X(float_tests, IsInf, 1, isinf)           \
  X(float_tests, IsFinite, 1, isfinite)     \
  X(integers, BitAnd, 2, bit_and)           \
  X(booleans, BitAnd, 2, bit_and)           \
  X(integers, BitOr, 2, bit_or)             \
  X(booleans, BitOr, 2, bit_or)             \
  X(integers, BitXor, 2, bit_xor)           \
  X(booleans, BitXor, 2, bit_xor)           \
  X(integers, BitNot, 1, bit_not)           \
  X(booleans, LogicalNot, 1, bit_not)       \
  X(integers, ShiftLeft, 2, shift_left)     \
  X(integers, ShiftRight, 2, shift_right)

// core/math/functors_float.h. Sine and cosine are not here: the CPU has loops of its own for them.
#define CUTAWAY_POINTWISE_ELEMENTARY(X) \
  X(floats, Exp, 1, exp)                \
  X(floats, Exp2, 1, exp2)              \
  X(floats, Expm1, 1, expm1)            \
  X(floats, Log, 1, log)                \
  X(floats, Log2, 1, log2)              \
  X(floats, Log10, 1, log10)            \
  X(floats, Log1p, 1, log1p)            \
  X(floats, Sqrt, 1, sqrt)              \
  X(floats, Rsqrt, 1, rsqrt)            \
  X(floats, Tan, 1, tan)                \
  X(floats, Asin, 1, asin)              \
  X(floats, Acos, 1, acos)              \
  X(floats, Atan, 1, atan)              \
  X(floats, Sinh, 1, sinh)              \
  X(floats, Cosh, 1, cosh)              \
  X(floats, Tanh, 1, tanh)              \
  X(floats, Asinh, 1, asinh)            \
  X(floats, Acosh, 1, acosh)            \
  X(floats, Atanh, 1, atanh)            \
  X(floats, Sigmoid, 1, sigmoid)        \
  X(floats, Erf, 1, erf)                \
  X(floats, Erfc, 1, erfc)              \
  X(floats, Floor, 1, floor)            \
  X(floats, Ceil, 1, ceil)              \
  X(floats, Round, 1, round)            \
  X(floats, Trunc, 1, trunc)            \
  X(floats, Frac, 1, frac)

// core/math/functors_float.h.
#define CUTAWAY_POINTWISE_SPECIAL(X)               \
  X(floats, Pow, 2, pow)                           \
  X(integers, PowInteger, 2, pow)                  \
  X(floats, PowScalar, 1, pow_scalar)              \
  X(floats, PowHalf, 1, pow_half)                  \
  X(floats, Cube, 1, cube)                         \
  X(integers, PowIntegerScalar, 1, pow_scalar)     \
  X(floats, RpowScalar, 1, rpow_scalar)            \
  X(floats, PowGradBase, 3, pow_grad_base)         \
  X(floats, PowGradExponent, 3, pow_grad_exponent) \
  X(floats, Atan2, 2, atan2)                       \
  X(floats, Copysign, 2, copysign)                 \
  X(floats, Xlogy, 2, xlogy)                       \
  X(floats, Logaddexp, 2, logaddexp)               \
  X(floats, Hypot, 2, hypot)                       \
  X(floats, Lgamma, 1, lgamma)                     \
  X(floats, Polygamma, 1, polygamma)               \
  X(floats, Logit, 1, logit)                       \
  X(floats, NanToNum, 1, nan_to_num)

// core/math/functors_activation.h.
#define CUTAWAY_POINTWISE_ACTIVATION(X)           \
  X(floats, Relu, 1, relu)                        \
  X(floats, ReluGrad, 2, relu_grad)               \
  X(floats, LogSigmoid, 1, log_sigmoid)           \
  X(floats, LogSigmoidGrad, 2, log_sigmoid_grad)  \
  X(floats, Silu, 1, silu)                        \
  X(floats, SiluGrad, 2, silu_grad)               \
  X(floats, Gelu, 1, gelu)                        \
  X(floats, GeluGrad, 2, gelu_grad)               \
  X(floats, GeluTanh, 1, gelu_tanh)               \
  X(floats, GeluTanhGrad, 2, gelu_tanh_grad)      \
  X(floats, Softsign, 1, softsign)                \
  X(floats, SoftsignGrad, 2, softsign_grad)       \
  X(floats, Hardsigmoid, 1, hardsigmoid)          \
  X(floats, HardsigmoidGrad, 2, hardsigmoid_grad) \
  X(floats, Hardswish, 1, hardswish)              \
  X(floats, HardswishGrad, 2, hardswish_grad)     \
  X(floats, Mish, 1, mish)                        \
  X(floats, MishGrad, 2, mish_grad)               \
  X(floats, LeakyRelu, 1, leaky_relu)             \
  X(floats, LeakyReluGrad, 2, leaky_relu_grad)    \
  X(floats, Softplus, 1, softplus)                \
  X(floats, SoftplusGrad, 2, softplus_grad)       \
  X(floats, Elu, 1, elu)                          \
  X(floats, EluGrad, 2, elu_grad)                 \
  X(floats, TanhGrad, 2, tanh_grad)               \
  X(floats, SigmoidGrad, 2, sigmoid_grad)         \
  X(floats, HardtanhGrad, 2, hardtanh_grad)
