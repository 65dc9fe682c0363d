#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Activation functions, element by element. Integers and booleans are converted to f32.

// y = max(x, 0); derivative 0 at 0, NaN stays.
Tensor relu(TensorArg x);

}  // namespace cutaway
