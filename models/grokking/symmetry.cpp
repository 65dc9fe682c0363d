#include <cutaway/models/grokking/symmetry.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::grokking {

constexpr double kFloor = 1e-12;  // smallest probability that enters a logarithm

Tensor symmetric_kl_log(const Tensor& log_p, const Tensor& log_q) {
  return sum((exp(log_p) - exp(log_q)) * (log_p - log_q), -1) * 0.5;
}

Tensor symmetric_kl(const Tensor& u, const Tensor& v) {
  return symmetric_kl_log(log_softmax(u, -1), log_softmax(v, -1));
}

Tensor convolve(const Tensor& p, const Tensor& q) {
  const int64_t count = p.size(0), k = p.size(1);
  // Row i of the outer product, padded to 2k, moves one place to the right with every row when the
  // rows are read with length 2k − 1: columns are then sums of distances.
  const Tensor outer = p.unsqueeze(2) * q.unsqueeze(1);
  const Tensor skewed = pad(outer, {0, k})
                            .reshape({count, 2 * k * k})
                            .slice(1, 0, k * (2 * k - 1))
                            .reshape({count, k, 2 * k - 1});
  const Tensor kept = sum(skewed, 1).slice(1, 0, k);
  return kept / clamp_min(sum(kept, 1, {.keepdim = true}), kFloor);
}

Tensor triangle_violation(const Tensor& ab, const Tensor& bc, const Tensor& ac) {
  const Tensor both = convolve(softmax(ab, -1), softmax(bc, -1));
  const Tensor log_p = log(clamp_min(both, kFloor));
  const Tensor log_q = log(clamp_min(softmax(ac, -1), kFloor));
  return symmetric_kl_log(log_p, log_q);
}

Tensor transitivity_violation(const Tensor& ab, const Tensor& bc, const Tensor& ac) {
  const Tensor v = ab + bc;
  return (sigmoid(ac) - sigmoid(v)) * (ac - v) * 0.5;
}

Tensor violation(Law law, const Tensor& scores, bool binary) {
  const auto at = [&](int64_t i) { return scores.select(1, i); };
  if (law == Law::commutativity || law == Law::associativity) return symmetric_kl(at(0), at(1));
  if (law == Law::triangle) return triangle_violation(at(0), at(1), at(2));
  // ℓ = logit_> − logit_<; in the binary form each is logit_true − logit_false.
  const auto more = [&](int64_t i) {
    if (!binary) return at(i).select(1, 2) - at(i).select(1, 0);
    const Tensor gt = at(2 * i), lt = at(2 * i + 1);
    return (gt.select(1, 1) - gt.select(1, 0)) - (lt.select(1, 1) - lt.select(1, 0));
  };
  return transitivity_violation(more(0), more(1), more(2));
}

Tensor soft_associativity(const Tensor& scores, const std::vector<int64_t>& xyz,
                          const std::vector<int64_t>& yz_rows, int64_t n) {
  const auto count = int64_t(xyz.size() / 3);
  std::vector<int64_t> xy, sz, xt;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t x = xyz[size_t(3 * i)], y = xyz[size_t(3 * i + 1)], z = xyz[size_t(3 * i + 2)];
    xy.push_back(x * n + y);
    for (int64_t s = 0; s < n; ++s) {
      sz.push_back(s * n + z);
      xt.push_back(x * n + s);
    }
  }
  const Tensor p = softmax(scores, -1).slice(1, 0, n);
  const auto rows = [&](const std::vector<int64_t>& list) {
    return index_select(p, 0, index_tensor(list));
  };
  const auto mix = [&](const Tensor& weights, const Tensor& table) {
    const Tensor mixed = matmul(weights.unsqueeze(1), table.reshape({count, n, n})).squeeze(1);
    return log(clamp_min(mixed, kFloor));
  };
  return symmetric_kl_log(mix(rows(xy), rows(sz)), mix(rows(yz_rows), rows(xt)));
}

}  // namespace cutaway::grokking
