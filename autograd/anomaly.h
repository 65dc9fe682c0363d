#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// Raises AutogradError when an output of a forward call holds NaN or Inf (see AnomalyGuard).
void check_forward_values(const Call& call);
// The same for the gradients that a node's rule returned.
void check_backward_values(Backward& b);

}  // namespace cutaway
