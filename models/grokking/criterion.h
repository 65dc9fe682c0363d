#pragma once
#include <cutaway/models/grokking/train.h>

namespace cutaway::grokking {

// What the criterion sees of one evaluation: the largest violation, and whether the run was solved.
struct Checkpoint {
  uint64_t seed = 0;
  double log_max = 0;  // log10 of the maximum over instances and laws
  double accuracy = 0;
  bool solved = false;  // test accuracy 1
};
// Evaluations of a log after memorisation.
std::vector<Checkpoint> checkpoints_of(const std::vector<LogRow>& rows, uint64_t seed);

struct Criterion {
  double tau = 0;       // on log10(max violation), best balanced accuracy over all checkpoints
  double accuracy = 0;  // that accuracy
  double auc = 0;       // over all checkpoints
  // Each seed is judged by the threshold of the others: mean AUC of the left-out seeds' checkpoints
  // and their mean balanced accuracy. NaN with fewer than two seeds that hold both kinds.
  double left_out_auc = 0, left_out_accuracy = 0;
  int seeds = 0;
};
Criterion fit_criterion(const std::vector<Checkpoint>& checkpoints);

}  // namespace cutaway::grokking
