#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Activation functions, element by element. Integers and booleans are converted to f32. NaN stays.
// sigmoid and tanh are in elementary.h.

// y = max(x, 0); derivative 0 at 0.
Tensor relu(TensorArg x);
// y = x > 0 ? x : slope · x; derivative `slope` at 0.
Tensor leaky_relu(TensorArg x, double slope = 0.01);
// y = x > 0 ? x : alpha (eˣ − 1); derivative alpha at 0. (Clevert, Unterthiner, Hochreiter 2015)
Tensor elu(TensorArg x, double alpha = 1);
// elu with the constants that keep mean 0 and variance 1. (Klambauer et al. 2017)
Tensor selu(TensorArg x);
// y = x > 0 ? x : alpha (e^(x/alpha) − 1); alpha = 0 raises ValueError. (Barron 2017)
Tensor celu(TensorArg x, double alpha = 1);
// y = min(max(x, low), high); derivative 0 at the ends; low > high raises ValueError.
Tensor hardtanh(TensorArg x, double low = -1, double high = 1);
// y = min(max(x, 0), 6).
Tensor relu6(TensorArg x);
// y = min(max(x/6 + 1/2, 0), 1).
Tensor hardsigmoid(TensorArg x);
// y = x · hardsigmoid(x). (Howard et al. 2019)
Tensor hardswish(TensorArg x);
// y = x σ(x), also known as swish.
Tensor silu(TensorArg x);
// y = x Φ(x), Φ the distribution function of the standard normal. (Hendrycks and Gimpel 2016)
Tensor gelu(TensorArg x);
// The approximation of gelu: y = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))).
Tensor gelu_tanh(TensorArg x);
// y = ln(1 + e^(beta x)) / beta; beta = 0 raises ValueError.
Tensor softplus(TensorArg x, double beta = 1);
// y = ln σ(x).
Tensor log_sigmoid(TensorArg x);
// y = x tanh(softplus(x)). (Misra 2019)
Tensor mish(TensorArg x);
// y = x / (1 + |x|).
Tensor softsign(TensorArg x);

}  // namespace cutaway
