#pragma once
#include <vector>

#include <cutaway/models/depth_law/network.h>

namespace cutaway::depth {

// What one SGD step of rate 1 does to the units of a network at its start, to first order.
struct Step {
  std::vector<double> s;  // S_ℓ: mean squared change of unit ℓ, divided by (f − y)² for one sample
  double a = 0;           // their mean over ℓ
};
// Loss ½ (f − y)², y = ±1, mean over a batch; the change is a Jacobian–vector product.
Step first_order_step(const Spec& spec, uint64_t seed, int64_t batch = 1);
// The same product J g and the finite difference (z(θ + rate·g) − z(θ)) / rate, f64: relative
// difference, and S̄(rate)/rate² at three rates a decade apart, relative to that of the product.
struct JvpCheck {
  double difference = 0;
  std::vector<double> quadratic;
};
JvpCheck check_jvp(const Spec& spec, uint64_t seed);

struct Budget {
  int64_t depth = 0;
  double a = 0, median = 0;     // A(L): mean and median over draws
  double error = 0;             // standard error of the mean
  std::vector<double> profile;  // S_ℓ
  double rate() const;          // η* = A^{−1/2}
};
struct BudgetOptions {
  int64_t draws = 50, batch = 1;
  uint64_t seed = 0;
};
Budget measure_budget(const Spec& spec, const BudgetOptions& options);

// Exact law of ReLU and linear MLPs (3.2): S_ℓ and A(L) at |f − y| = 1; η*(L) = A^{−1/2}.
double exact_unit(int64_t unit, bool relu);
double exact_budget(int64_t depth, bool relu);

// log η = intercept + slope · log L by least squares, weights 1/variance of log η where given.
struct SlopeFit {
  double slope = 0, intercept = 0, error = 0;
  double at(double depth) const;
};
// Raises ValueError for fewer than three distinct depths.
SlopeFit fit_slope(const std::vector<double>& depths, const std::vector<double>& rates,
                   const std::vector<double>& variances = {});

// Rules of transfer from depth L0 to L: factors on the rate.
double paper_factor(double from, double to);    // (L/L0)^{−3/2}
double exact_factor(int64_t from, int64_t to);  // of the MLP at finite depth
// (Σ_paths L_p³)^{−1/2} of a chain of K residual blocks, Σ_k C(K,k) k³ = K² (K + 3) 2^{K−3}; the
// authors' script has K (K + 1) (K + 2) 2^{K−3}, which is 3 instead of 1/2·2 at K = 1.
double pathsum_factor(int64_t from, int64_t to);

}  // namespace cutaway::depth
