#pragma once
// Included by each function_table_*.cpp inside its instruction set; all has internal linkage.
#include <cutaway/core/cpu/vector_math.h>
#include <cutaway/core/math/elementary.h>
#include <cutaway/core/math/rows.h>

namespace cutaway::math_test {
namespace {

#define UNARY(f)                                                                             \
  {                                                                                          \
#f,                                                                                        \
   [](const float* __restrict x, float* __restrict y, int64_t n) {                            \
     for (int64_t i = 0; i < n; ++i) y[i] = math::f(x[i]);                                    \
   },                                                                                         \
   [](float x) { return math::f(x); } \
  }
// By vectors.
#define LANES(f)                                                                                \
  {                                                                                             \
    "lanes " #f,                                                                                \
        [](const float* __restrict x, float* __restrict y, int64_t n) {                         \
          cpu::CUTAWAY_VARIANT::map_vectors([](auto v) { return math::lanes::f(v); }, n, y, x); \
        },                                                                                      \
        [](float x) { return math::f(x); }                                                      \
  }
#define BINARY(f)                                                                            \
  {                                                                                          \
#f,                                                                                        \
   [](const float* __restrict a, const float* __restrict b, float* __restrict y, int64_t n) { \
     for (int64_t i = 0; i < n; ++i) y[i] = math::f(a[i], b[i]);                              \
   },                                                                                         \
   [](float a, float b) { return math::f(a, b); } \
  }

constexpr Unary kUnary[] = {UNARY(exp),
                            UNARY(expm1),
                            UNARY(log),
                            UNARY(log1p),
                            UNARY(sigmoid),
                            UNARY(tanh),
                            UNARY(softplus),
                            UNARY(silu),
                            UNARY(silu_grad),
                            UNARY(erf),
                            UNARY(erfc),
                            UNARY(normal_cdf),
                            UNARY(gelu),
                            UNARY(gelu_grad),
                            UNARY(gelu_tanh),
                            UNARY(sin),
                            UNARY(cos),
                            UNARY(tan),
                            UNARY(gelu_tanh_grad),
                            UNARY(asin),
                            UNARY(acos),
                            UNARY(atan),
                            UNARY(sinh),
                            UNARY(cosh),
                            UNARY(asinh),
                            UNARY(acosh),
                            UNARY(atanh),
                            UNARY(exp2),
                            UNARY(log2),
                            UNARY(log10),
                            UNARY(sqrt),
                            UNARY(rsqrt),
                            UNARY(round),
                            UNARY(floor),
                            UNARY(ceil),
                            UNARY(trunc),
                            UNARY(sign),
                            UNARY(abs),
                            UNARY(relu),
                            UNARY(sin_bounded),
                            UNARY(cos_bounded),
                            LANES(exp),
                            LANES(log),
                            LANES(sigmoid),
                            LANES(tanh),
                            LANES(silu),
                            LANES(silu_grad),
                            LANES(gelu),
                            LANES(gelu_grad),
                            LANES(gelu_tanh),
                            LANES(gelu_tanh_grad)};
constexpr Binary kBinary[] = {BINARY(pow), BINARY(atan2), BINARY(max), BINARY(min)};

template <class Half>
void to_half(const float* x, uint16_t* y, int64_t n) {
  math::convert_row(x, reinterpret_cast<Half*>(y), n);
}
template <class Half>
void from_half(const uint16_t* x, float* y, int64_t n) {
  math::convert_row(reinterpret_cast<const Half*>(x), y, n);
}

Variant variant_of(const char* name) {
  return {name,
          kUnary,
          kBinary,
          {[](const float* x, float* y, int64_t n) { math::sin_row(x, y, n); },
           [](const float* x, float* y, int64_t n) { math::cos_row(x, y, n); }, to_half<Float16>,
           from_half<Float16>, to_half<BFloat16>, from_half<BFloat16>}};
}

#undef UNARY
#undef LANES
#undef BINARY

}  // namespace
}  // namespace cutaway::math_test
