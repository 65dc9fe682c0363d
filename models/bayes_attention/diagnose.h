#pragma once
#include <cmath>
#include <string>
#include <vector>

#include <cutaway/models/bayes_attention/heads.h>

namespace cutaway::bayes {

// What a trained head says about the noise: is its metric a precision, or an artefact?
struct Diagnosis {
  double log_linear = NAN;  // T2 residual of its weights in the statistics; NaN without statistics
  double query_fit = NAN;   // relative residual of queries on affine functions of the statistics
  double defect =
      NAN;  // T4 defect of effective keys on weighted means μ̂_k = Σ_i p_ik T_i / Σ_i p_ik
  Tensor metric;                    // M of the defect [d,d]
  std::vector<double> eigenvalues;  // of M
  double asymmetry = NAN;           // |M − Mᵀ| / |M| of the best unconstrained matrix
  int64_t cells = 1;  // heads of a constructed atlas of that Hessian's spread, at 10 % error
};
// keys [K,e], queries [N,e], bias [K] or undefined, statistics [N,d] or undefined; weights [N,K] in
// place of what keys and queries give, if defined. Raises ShapeError for sizes that do not fit,
// ValueError for scores that are not finite.
struct HeadArrays {
  Tensor keys, queries, bias, statistics, weights;
};
Diagnosis diagnose(const HeadArrays& arrays);

// Naive Bayes as attention on the 8×8 digits: one key a class, "pois" on the counts 0–16 or "bern"
// on pixels above 8; accuracy on the test split by attention and by direct Bayes.
struct DigitsResult {
  double attention = 0, direct = 0;
  int64_t examples = 0;
};
DigitsResult digits_head(const std::string& family);

}  // namespace cutaway::bayes
