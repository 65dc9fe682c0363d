#pragma once
#include <vector>

#include <cutaway/core/rng.h>
#include <cutaway/core/tensor.h>

namespace cutaway::bayes {

// Random numbers one at a time, from a stream of a generator: the same for every thread count.
class Draws {
 public:
  explicit Draws(uint64_t seed, uint64_t stream = 0) : generator_{.seed = seed, .stream = stream} {}

  double uniform();  // in [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal();  // mean 0, variance 1
  int64_t below(int64_t n) { return static_cast<int64_t>(uniform() * static_cast<double>(n)); }
  // Shape a > 0, scale 1 (Marsaglia and Tsang 2000).
  double gamma(double a);
  // Counts with mean λ: by inversion below 10, from there by transformed rejection (PTRS, Hörmann
  // 1993).
  int64_t poisson(double lambda);
  // A point of the simplex from the symmetric Dirichlet distribution; [k].
  std::vector<double> dirichlet(int64_t k, double concentration);
  // An index with probability p[i] (Σ p = 1).
  int64_t category(const double* p, int64_t k);

 private:
  int64_t transformed_rejection(double lambda);

  Generator generator_;
  std::vector<double> uniforms_, normals_;
  size_t next_uniform_ = 0, next_normal_ = 0;
};

}  // namespace cutaway::bayes
