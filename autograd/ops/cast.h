#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// y = x in another type: floats round to nearest even once; float → integer truncates and
// saturates, NaN becomes 0; integers wrap; anything but 0 is true. The gradient is converted back.
// When the type does not change this is x itself.
Tensor cast(TensorArg x, DType dtype);
// A row-major copy with values of its own.
Tensor clone(TensorArg x);
// x itself when row-major, else clone(x).
Tensor contiguous(TensorArg x);
// A row-major copy on another device; x itself when it is there already.
Tensor to_device(TensorArg x, Device device);

}  // namespace cutaway
