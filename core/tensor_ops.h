#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Below autograd: values only, no history.

// `t` itself when row-major, else a row-major copy.
Tensor contiguous_raw(const Tensor& t);
// A row-major copy in another type (saturating float → integer); `t` itself when nothing changes.
Tensor cast_raw(const Tensor& t, DType dtype);

}  // namespace cutaway
