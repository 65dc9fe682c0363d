#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// Losses, with the names, options and meaning of torch.nn.functional.

// What becomes of the losses of single rows or elements. The mean of nothing is NaN.
enum class Reduction : uint8_t { none, mean, sum };

struct CrossEntropyOptions {
  Tensor weight;                // [C], one factor a class; a constant. Undefined: ones
  int64_t ignore_index = -100;  // rows of this class cost nothing and are not counted
  double label_smoothing = 0;   // ε: the target is mixed with the uniform distribution
  Reduction reduction = Reduction::mean;
};
// Cross entropy of scores against classes: −Σ_c q_c w_c log softmax(x)_c, q = (1 − ε) t + ε/C. logits
// [N,C], [N,C,d…] or [C]; target: class indices (integer) [N], [N,d…] or [], or probabilities of the
// sizes and type of logits. A class of probability 0 adds nothing, even at a score of −inf. The mean
// divides by Σ w_target, for probabilities by the number of rows; when all rows are ignored it is
// NaN, its gradient 0. Raises ShapeError, DTypeError, IndexError for a class outside [0,C),
// ValueError for label_smoothing outside [0,1].
Tensor cross_entropy(TensorArg logits, TensorArg target, const CrossEntropyOptions& options = {});

struct NllOptions {
  Tensor weight;
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
// −w_t x_t, x log-probabilities [N,C], [N,C,d…] or [C], target class indices.
Tensor nll_loss(TensorArg log_probs, TensorArg target, const NllOptions& options = {});

}  // namespace cutaway
