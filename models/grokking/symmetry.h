#pragma once
#include <cutaway/core/tensor.h>
#include <cutaway/models/grokking/task.h>

namespace cutaway::grokking {

// ½ KL(p‖q) + ½ KL(q‖p) = ½ Σ_j (p_j − q_j)(ln p_j − ln q_j) of the softmax of scores u, v [T,K];
// [T]. Computed in the type of the scores; never negative beyond rounding.
Tensor symmetric_kl(const Tensor& u, const Tensor& v);
// The same of two log-probabilities.
Tensor symmetric_kl_log(const Tensor& log_p, const Tensor& log_q);

// Distribution of a sum of independent distances: (p ∗ q)_k = Σ_i p_i q_{k−i}, entries beyond the
// largest distance dropped, the rest renormalised. p, q [T,K] → [T,K].
Tensor convolve(const Tensor& p, const Tensor& q);

// The violation of each instance [T], from the scores of its rows, [T, width, K] in f64.
Tensor violation(Law law, const Tensor& scores, bool binary);
// L_tri = KLs(P_ab ∗ P_bc, P_ac), probabilities floored at 1e-12. Scores [T,K].
Tensor triangle_violation(const Tensor& ab, const Tensor& bc, const Tensor& ac);
// KLs of Bernoulli σ(ℓ_ac) and σ(ℓ_ab + ℓ_bc) = ½ (σ(u) − σ(v))(u − v). [T].
Tensor transitivity_violation(const Tensor& ab, const Tensor& bc, const Tensor& ac);

// Associativity with the model's own intermediates: KLs of Σ_s p(s|x,y) p(·|s,z) against
// Σ_t p(t|y,z') p(·|x,t). `scores` [n², n]: of all pairs; xyz [3 T] with z' in Task::second.
Tensor soft_associativity(const Tensor& scores, const std::vector<int64_t>& xyz,
                          const std::vector<int64_t>& yz_rows, int64_t n);

}  // namespace cutaway::grokking
