#pragma once
#include <cstdint>
#include <vector>

namespace cutaway::report {

// Spearman's rank correlation, equal values sharing their mean rank; NaN for fewer than two pairs
// or a list of equal values.
double spearman(const std::vector<double>& x, const std::vector<double>& y);

// Probability that a positive scores above a negative one, ties counting half (the area under the
// ROC curve); NaN when there are none of a kind.
double auc(const std::vector<double>& positive, const std::vector<double>& negative);

struct Threshold {
  double value = 0;     // positives are below it
  double accuracy = 0;  // balanced: mean of both rates
};
// The threshold with the best balanced accuracy for "positive when below": the middle of the widest
// gap among equally good ones.
Threshold best_threshold(const std::vector<double>& positive, const std::vector<double>& negative);

}  // namespace cutaway::report
