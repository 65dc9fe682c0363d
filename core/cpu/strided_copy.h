#pragma once
#include <cutaway/core/kernels/pointwise.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {

// out = in for elements of `bytes` (1, 2, 4, 8), or false where neither rows nor tiles of a
// transposition are found and nothing was done.
bool copy_strided(const PointwiseArgs& a, int64_t bytes);

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
