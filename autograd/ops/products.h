#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// For values [M] that lie at places [M] (i64, dense): the product of all other values at the same
// place, 1 where there is none. Made of differentiable ops without a division, so that it is right
// for zeros and in every order of derivatives; log₂ of the largest group products of M elements.
Tensor products_of_others(const Tensor& values, const Tensor& places);

}  // namespace cutaway
