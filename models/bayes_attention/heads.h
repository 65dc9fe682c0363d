#pragma once
#include <string>
#include <vector>

#include <cutaway/models/bayes_attention/family.h>

namespace cutaway::bayes {

// K latent symbols: means μ [K,d] and prior π [K], f64.
struct Codebook {
  Family family;
  Tensor mu, prior;
  int64_t keys() const { return mu.size(0); }
  int64_t dim() const { return mu.size(1); }
};
// Raises ValueError for K < 2, means outside of the domain, priors not positive or not summing to 1
// within 1e-6.
Codebook make_codebook(const Family& family, const Tensor& mu, const Tensor& prior);
// Section 5: Gaussian μ ~ U(−2, 2), Bernoulli U(.05, .95), Poisson U(.3, 8), categorical
// Dir(1 + 1/d); π ~ Dir(5).
struct CodebookOptions {
  int64_t keys = 12, dim = 2;
  uint64_t seed = 0;
};
Codebook draw_codebook(const Family& family, const CodebookOptions& options);
// From a table with columns [prior,] mu1 … mud (a first column named "prior"; without it uniform).
Codebook read_codebook(const std::string& path, const std::string& family);

// Statistics T̄ [N,d] of m observations each, under symbols drawn from the prior (symbols i64 [N]).
struct Statistics {
  Tensor t, symbols;
};
Statistics draw_statistics(const Codebook& codebook, int64_t n, int64_t m, uint64_t seed);

// One attention head: score_k = ⟨q, κ_k⟩ + β_k with q = m (T̄ − t0).
struct Head {
  Tensor keys;    // κ [K,d]
  Tensor bias;    // β [K]
  Tensor origin;  // t0 [d]
  double m = 1;
  // A split head (see exact_head): keys hold high and low parts, and each query lowers all of its
  // scores by m (φ(T̄) − ⟨T̄ − t0, η0⟩) − constant.
  bool split = false;
  Family family;
  Tensor eta_origin;  // η0 [d]
  double constant = 0;
  // Queries of statistics [N,d] in the head's type.
  Tensor queries(const Tensor& t) const;
};
// (T1) κ_k = η_k, β_k = log π_k − m A(η_k) + offset. Origins of T̄ and of η are moved to their
// middle and the largest score at the origin to 0 – softmax does not see it, rounding does – before
// the numbers are rounded to `type`. In f32, moreover, high parts of q, κ and β lie on coarse
// grids, so that their products and sums are exact, and φ(T̄) is taken off as in (T3): what remains
// is small, and the low parts are added to that:
//   [q1 | 1 | −φ | q1 | q2 | 1] · [κ1 | β1 | 1 | κ − κ1 | κ | β − β1].
Head exact_head(const Codebook& codebook, int64_t m, DType type = DType::f64, double offset = 0);
// (T1) as printed, every score raised by `offset`: no centring.
Head plain_head(const Codebook& codebook, int64_t m, double offset = 0, DType type = DType::f64);
// The same head as plain dot-product attention: the bias is one more coordinate, the 1/√d of
// attention is taken into the keys.
Head folded_head(const Head& head);

// Output of the head by the framework's attention, Σ_k p_k v_k: t [N,d], values [K,e] → [N,e].
Tensor attend(const Head& head, const Tensor& t, const Tensor& values);
// One-hot values: the posterior [N,K].
Tensor posterior(const Head& head, const Tensor& t);

// Bayes' rule in long double, one observation after the other: [N,K].
Tensor direct_bayes(const Codebook& codebook, const Tensor& t, int64_t m);

// E_p KL(p||q) over rows of posteriors p, log q: one number.
double mean_kl(const Tensor& p, const Tensor& log_q);

// (T4) min over symmetric M of Σ_{k<j} |η_k − η_j − M (μ_k − μ_j)|² / Σ |η_k − η_j|².
struct Defect {
  double value;
  Tensor metric;  // M [d,d]
};
Defect metric_defect(const Tensor& mu, const Tensor& eta);

// (T2) Relative residual of log P[:,k] − log P[:,1] on affine functions of T: p [N,K], t [N,d].
// Raises ValueError for probabilities that are not positive.
double log_linear_residual(const Tensor& p, const Tensor& t);
// Posteriors of a likelihood with two equally likely components a symbol: no head has these.
Tensor mixture_posterior(const Codebook& first, const Codebook& second, const Tensor& t, int64_t m);

// Least squares x of a x = b with its residual sum of squares; a [n,p], b [n,q].
struct Fit {
  Tensor x;
  double residual;
};
Fit least_squares(const Tensor& a, const Tensor& b);

}  // namespace cutaway::bayes
