#pragma once
#include <cutaway/core/kernels/conv.h>

namespace cutaway::cpu::CUTAWAY_VARIANT::winograd {

// Whether Winograd's algorithm takes this convolution: kernels of 3×3, stride 1, and sizes where it
// was measured to be faster than direct sums. `forward` also answers for the weight gradient.
bool forward_wins(const ConvArgs& a);
bool input_grad_wins(const ConvArgs& a);

// S is how the operands are stored: float or BFloat16. Sums are f32, rounded once.
template <class S>
void forward(const ConvArgs& a);
template <class S>
void input_grad(const ConvArgs& a);
template <class S>
void weight_grad(const ConvArgs& a);

}  // namespace cutaway::cpu::CUTAWAY_VARIANT::winograd
