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
// Cross entropy of scores against classes: −Σ_c q_c w_c log softmax(x)_c, q = (1 − ε) t + ε/C.
// logits [N,C], [N,C,d…] or [C]; target: class indices (integer) [N], [N,d…] or [], or
// probabilities of the sizes and type of logits. A class of probability 0 adds nothing, even at a
// score of −inf. The mean divides by Σ w_target, for probabilities by the number of rows; when all
// rows are ignored it is NaN, its gradient 0. Raises ShapeError, DTypeError, IndexError for a class
// outside [0,C), ValueError for label_smoothing outside [0,1].
Tensor cross_entropy(TensorArg logits, TensorArg target, const CrossEntropyOptions& options = {});

struct NllOptions {
  Tensor weight;
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
// −w_t x_t, x log-probabilities [N,C], [N,C,d…] or [C], target class indices.
Tensor nll_loss(TensorArg log_probs, TensorArg target, const NllOptions& options = {});

struct LossOptions {
  Reduction reduction = Reduction::mean;
};
// Note: shapes of losses. Prediction and target must have equal sizes (ShapeError): a [N,1] against
// a [N] would broadcast to [N,N] without a word.

// (x − t)².
Tensor mse_loss(TensorArg x, TensorArg target, LossOptions options = {});
// |x − t|; its derivative at 0 is 0.
Tensor l1_loss(TensorArg x, TensorArg target, LossOptions options = {});

struct SmoothL1Options {
  double beta = 1;
  Reduction reduction = Reduction::mean;
};
// d²/(2β) for |d| < β, else |d| − β/2, d = x − t; β = 0 is l1_loss. Raises ValueError for β < 0.
Tensor smooth_l1_loss(TensorArg x, TensorArg target, SmoothL1Options options = {});
struct HuberOptions {
  double delta = 1;
  Reduction reduction = Reduction::mean;
};
// d²/2 for |d| < δ, else δ (|d| − δ/2): δ smooth_l1_loss. Raises ValueError for δ ≤ 0 (Huber 1964).
Tensor huber_loss(TensorArg x, TensorArg target, HuberOptions options = {});

struct BceOptions {
  Tensor weight;  // factor on each loss; broadcasts to x
  Reduction reduction = Reduction::mean;
};
// −t ln p − (1 − t) ln(1 − p), logarithms no smaller than −100. p in [0, 1], else ValueError.
Tensor binary_cross_entropy(TensorArg p, TensorArg target, const BceOptions& options = {});
struct BceLogitsOptions {
  Tensor weight;      // factor on each loss; broadcasts to x
  Tensor pos_weight;  // factor on the positive part; broadcasts to x
  Reduction reduction = Reduction::mean;
};
// w t softplus(−x) + (1 − t) softplus(x), w = pos_weight; a factor 0 makes its term 0, also at
// infinite x (PyTorch gives NaN there).
Tensor binary_cross_entropy_with_logits(TensorArg x, TensorArg target,
                                        const BceLogitsOptions& options = {});

struct KlDivOptions {
  bool log_target = false;
  bool batch_mean = false;  // the sum over the first size, instead of the mean of all elements
  Reduction reduction = Reduction::mean;
};
// t (ln t − x), x log-probabilities; 0 where t is 0. log_target: eᵗ (t − x).
Tensor kl_div(TensorArg log_probs, TensorArg target, KlDivOptions options = {});

struct CosineOptions {
  int64_t dim = 1;
  double eps = 1e-8;  // smallest norm to divide by
};
// a·b / (|a| |b|) along a dimension; a and b broadcast.
Tensor cosine_similarity(TensorArg a, TensorArg b, CosineOptions options = {});

struct MarginOptions {
  double margin = 0;
  Reduction reduction = Reduction::mean;
};
// y = 1: 1 − cos(a, b); y = −1: max(0, cos(a, b) − margin). a, b [N,D], y [N]; or [D], [].
Tensor cosine_embedding_loss(TensorArg a, TensorArg b, TensorArg y, MarginOptions options = {});
// max(0, −y (a − b) + margin).
Tensor margin_ranking_loss(TensorArg a, TensorArg b, TensorArg y, MarginOptions options = {});
// y = 1: x; y = −1: max(0, margin − x).
Tensor hinge_embedding_loss(TensorArg x, TensorArg y, MarginOptions options = {.margin = 1});
// ln(1 + exp(−y x)).
Tensor soft_margin_loss(TensorArg x, TensorArg y, LossOptions options = {});

struct TripletOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;  // added to every difference
  bool swap = false;  // use the distance of positive and negative where it is smaller
  Reduction reduction = Reduction::mean;
};
// max(0, d(anchor, positive) − d(anchor, negative) + margin), d = |a − b + eps|_p over the last
// dimension (Balntas et al. 2016).
Tensor triplet_margin_loss(TensorArg anchor, TensorArg positive, TensorArg negative,
                           TripletOptions options = {});

struct GaussianNllOptions {
  bool full = false;  // with the constant ln(2π)/2
  double eps = 1e-6;  // smallest variance
  Reduction reduction = Reduction::mean;
};
// (ln v + (x − t)²/v) / 2, v = max(var, eps). var has the sizes of x, or size 1 in the last
// dimension. Raises ValueError for negative variances.
Tensor gaussian_nll_loss(TensorArg x, TensorArg target, TensorArg var,
                         GaussianNllOptions options = {});
struct PoissonNllOptions {
  bool log_input = true;  // x is the logarithm of the rate
  bool full = false;      // with Stirling's approximation of ln t! where t > 1
  double eps = 1e-8;      // added to a rate before its logarithm
  Reduction reduction = Reduction::mean;
};
// eˣ − t x, or x − t ln(x + eps).
Tensor poisson_nll_loss(TensorArg x, TensorArg target, PoissonNllOptions options = {});

}  // namespace cutaway
