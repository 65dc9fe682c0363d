#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Below autograd: values only, no history.

// `t` itself when row-major, else a row-major copy.
Tensor contiguous_raw(const Tensor& t);
// A row-major copy in another type (saturating float → integer); `t` itself when nothing changes.
Tensor cast_raw(const Tensor& t, DType dtype);
// A row-major tensor with the values of `t` in host memory, `t` itself when it is one. Raises
// DeviceError on meta, in the name of `op`.
Tensor host_copy(const char* op, const Tensor& t);

}  // namespace cutaway
