#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors_float.h>
#include <cutaway/core/math/pointwise_table.h>
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
  CUTAWAY_POINTWISE_ELEMENTARY(CUTAWAY_SET)
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
