#pragma once
#include <cstdint>

#include <cutaway/core/dtype.h>

namespace cutaway {

// Element i of an array of type `t` in host memory, as double.
double element_as_double(const void* p, DType t, int64_t i);
// The same as a whole number: exact for integers; floats are cut towards 0 and kept inside the
// range, NaN becomes 0.
int64_t element_as_int(const void* p, DType t, int64_t i);
// A double as a whole number, by the same rule.
int64_t saturated_int(double x);

}  // namespace cutaway
