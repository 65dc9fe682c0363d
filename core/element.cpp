#include <cutaway/core/element.h>

#include <cutaway/core/math/half.h>

namespace cutaway {

double element_as_double(const void* p, DType t, int64_t i) {
  switch (t) {
    case DType::f64: return static_cast<const double*>(p)[i];
    case DType::f32: return static_cast<const float*>(p)[i];
    case DType::bf16: return float(static_cast<const BFloat16*>(p)[i]);
    case DType::f16: return float(static_cast<const Float16*>(p)[i]);
    case DType::i64: return double(static_cast<const int64_t*>(p)[i]);
    case DType::i32: return static_cast<const int32_t*>(p)[i];
    case DType::u8: return static_cast<const uint8_t*>(p)[i];
    case DType::i8: return static_cast<const int8_t*>(p)[i];
    case DType::boolean: return static_cast<const uint8_t*>(p)[i] != 0;
  }
  return 0;
}

int64_t saturated_int(double x) {
  if (x != x) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  if (x <= -0x1p63) return INT64_MIN;
  return int64_t(x);
}

int64_t element_as_int(const void* p, DType t, int64_t i) {
  if (t == DType::i64) return static_cast<const int64_t*>(p)[i];
  return saturated_int(element_as_double(p, t, i));
}

}  // namespace cutaway
