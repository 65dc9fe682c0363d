#pragma once
#include <functional>
#include <vector>

#include <cutaway/autograd/ops/loss.h>

namespace cutaway {

// More losses with the names, options and meaning of torch.nn.functional.

struct MultiMarginOptions {
  int64_t p = 1;  // 1 or 2
  double margin = 1;
  Tensor weight;  // [C], one factor a class; a constant. Undefined: ones
  Reduction reduction = Reduction::mean;
};
// Σ_{i≠t} max(0, margin − x_t + x_i)^p · w_t / C for scores x [N,C] and class t [N]; or [C], [].
// Raises ShapeError, IndexError for a class outside [0,C), ValueError for another p than 1 and 2.
Tensor multi_margin_loss(TensorArg x, TensorArg target, const MultiMarginOptions& options = {});
// Σ_{t, i not a target} max(0, 1 − x_t + x_i) / C for scores x [N,C]; target (integer) [N,C] lists
// the classes of each row, up to the first −1; or both [C]. Raises ShapeError, IndexError.
Tensor multilabel_margin_loss(TensorArg x, TensorArg target, LossOptions options = {});
struct MultiLabelOptions {
  Tensor weight;  // [C], one factor a class; a constant. Undefined: ones
  Reduction reduction = Reduction::mean;
};
// −Σ_c w_c (t_c ln σ(x_c) + (1 − t_c) ln σ(−x_c)) / C: one logistic regression a class; x, target
// [...,C].
Tensor multilabel_soft_margin_loss(TensorArg x, TensorArg target,
                                   const MultiLabelOptions& options = {});

struct PairwiseOptions {
  double p = 2;
  double eps = 1e-6;  // added to every difference
  bool keepdim = false;
};
// |a − b + eps|_p over the last dimension; a and b broadcast.
Tensor pairwise_distance(TensorArg a, TensorArg b, PairwiseOptions options = {});

struct TripletDistanceOptions {
  std::function<Tensor(const Tensor&, const Tensor&)> distance;  // none: pairwise_distance
  double margin = 1;
  bool swap = false;  // use the distance of positive and negative where it is smaller
  Reduction reduction = Reduction::mean;
};
// triplet_margin_loss with any distance.
Tensor triplet_margin_with_distance_loss(TensorArg anchor, TensorArg positive, TensorArg negative,
                                         const TripletDistanceOptions& options = {});

struct CtcOptions {
  int64_t blank = 0;
  bool zero_infinity = false;  // sequences that do not fit cost 0 instead of infinity
  Reduction reduction = Reduction::mean;
};
// −log of the probability that the steps of log_probs [T,N,C] (or [T,C]) spell the targets, blanks
// and repetitions removed: the sum over all alignments (Graves et al. 2006). targets (integer)
// [N,S], or all targets one after the other [Σ target_lengths]; lengths: of each of the N
// sequences. The mean divides each loss by its target length first. An impossible target costs
// infinity and has gradient 0. Raises ShapeError, ValueError for lengths that do not fit,
// IndexError for classes outside [0,C) or equal to the blank.
Tensor ctc_loss(TensorArg log_probs, const Tensor& targets,
                const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, CtcOptions options = {});

}  // namespace cutaway
