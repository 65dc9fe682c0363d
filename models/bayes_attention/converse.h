#pragma once
#include <string>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::bayes {

// (T8) How far the key subspace of a head with excess log-loss ε can be from that of the true head.
struct ConverseOptions {
  int64_t dim = 6, rank = 2, keys = 8, statistics = 1000, steps = 4000;
  uint64_t seed = 0;
};
struct ConversePoint {
  double excess;     // ε = E KL(p||q), nats
  double sin_theta;  // largest principal angle between the key subspaces
  double ratio;      // sinΘ / bound
};
// Heads found in one way: "perturb", "adam" or "sgd" (early-stopped: one point for each of many
// moments of the run); raises ValueError for other ways, or rank ≥ dim, or rank ≥ keys.
std::vector<ConversePoint> converse(const std::string& way, const ConverseOptions& options);

struct Converse {
  double slope = 0;      // of log sinΘ against log ε
  double max_ratio = 0;  // sinΘ against the bound
  double constant = 0;   // max sinΘ / √ε
  double decades = 0;    // of ε
};
// Points with ε in [from, to].
Converse summarise(const std::vector<ConversePoint>& points, double from, double to);

}  // namespace cutaway::bayes
