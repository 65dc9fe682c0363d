#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors_float.h>
#include <cutaway/core/math/rows.h>

// Elementary functions of floats.

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

using namespace math::functor;

// Sine and cosine of f32 have loops of their own (core/math/rows.h); f64 takes the usual one.
template <class T>
struct SinRow : Sin<T> {
  static void row(const float* x, float* y, int64_t n) { math::sin_row(x, y, n); }
};
template <class T>
struct CosRow : Cos<T> {
  static void row(const float* x, float* y, int64_t n) { math::cos_row(x, y, n); }
};

}  // namespace

void register_pointwise_float_kernels() {
  set_floats<SinRow, 1>(kernels::sin);
  set_floats<CosRow, 1>(kernels::cos);
  set_floats<Exp, 1>(kernels::exp);
  set_floats<Exp2, 1>(kernels::exp2);
  set_floats<Expm1, 1>(kernels::expm1);
  set_floats<Log, 1>(kernels::log);
  set_floats<Log2, 1>(kernels::log2);
  set_floats<Log10, 1>(kernels::log10);
  set_floats<Log1p, 1>(kernels::log1p);
  set_floats<Sqrt, 1>(kernels::sqrt);
  set_floats<Rsqrt, 1>(kernels::rsqrt);
  set_floats<Tan, 1>(kernels::tan);
  set_floats<Asin, 1>(kernels::asin);
  set_floats<Acos, 1>(kernels::acos);
  set_floats<Atan, 1>(kernels::atan);
  set_floats<Sinh, 1>(kernels::sinh);
  set_floats<Cosh, 1>(kernels::cosh);
  set_floats<Tanh, 1>(kernels::tanh);
  set_floats<Asinh, 1>(kernels::asinh);
  set_floats<Acosh, 1>(kernels::acosh);
  set_floats<Atanh, 1>(kernels::atanh);
  set_floats<Sigmoid, 1>(kernels::sigmoid);
  set_floats<Erf, 1>(kernels::erf);
  set_floats<Erfc, 1>(kernels::erfc);
  set_floats<Floor, 1>(kernels::floor);
  set_floats<Ceil, 1>(kernels::ceil);
  set_floats<Round, 1>(kernels::round);
  set_floats<Trunc, 1>(kernels::trunc);
  set_floats<Frac, 1>(kernels::frac);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
