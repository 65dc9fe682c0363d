#pragma once
#include <functional>

#include <cutaway/core/tensor.h>

namespace cutaway {

// Runs fn(inputs) without keeping the values that its ops save for backward; they are computed
// again when backward first needs one. Dropout draws the same numbers again, so gradients equal
// those without checkpoint bit for bit. May be nested and differentiated twice. `fn` must be a pure
// function of its inputs, its parameters and the default generator. Raises AutogradError in
// backward when the second run saves other values than the first.
Tensors checkpoint(std::function<Tensors(const Tensors&)> fn, const Tensors& inputs);
Tensor checkpoint(std::function<Tensor(const Tensor&)> fn, const Tensor& x);

}  // namespace cutaway
