#include <cutaway/nn/layers/weight_norm.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/nn/init.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn::detail {
namespace {

// The weight as a matrix with its outputs as rows.
Tensor as_matrix(const Tensor& weight, int64_t dim) { return flatten(movedim(weight, dim, 0), 1); }

}  // namespace

Tensor weight_length(const Tensor& v, std::optional<int64_t> dim) {
  if (!dim) return norm(v);
  const int kept = normalize_dim("WeightNorm", *dim, v.dim());
  Shape others;
  for (int d = 0; d < v.dim(); ++d) {
    if (d != kept) others.push_back(d);
  }
  return norm(v, others, {.keepdim = true});
}
Tensor weight_normed(const Tensor& v, const Tensor& g, std::optional<int64_t> dim) {
  return v * (g / weight_length(v, dim));
}

void start_vectors(const Tensor& weight, const SpectralNormOptions& o, Tensor& u, Tensor& v) {
  require_at_least("SpectralNorm", "n_power_iterations", o.n_power_iterations, 1);
  normalize_dim("SpectralNorm", o.dim, weight.dim());
  NoGradGuard no_grad;
  const Tensor w = as_matrix(weight, o.dim);
  u = normalize(init::normal_(empty({w.size(0)})), 0, {.eps = o.eps});
  v = normalize(init::normal_(empty({w.size(1)})), 0, {.eps = o.eps});
  power_steps(weight, o, 15, u, v);
}
void power_steps(const Tensor& weight, const SpectralNormOptions& o, int64_t iterations, Tensor& u,
                 Tensor& v) {
  NoGradGuard no_grad;
  const Tensor w = as_matrix(weight.detach(), o.dim);
  for (int64_t i = 0; i < iterations; ++i) {
    v.copy_(normalize(mv(t(w), u), 0, {.eps = o.eps}));
    u.copy_(normalize(mv(w, v), 0, {.eps = o.eps}));
  }
}
Tensor spectral_normed(const Tensor& weight, const SpectralNormOptions& o, const Tensor& u,
                       const Tensor& v) {
  // Later steps overwrite the vectors, which backward reads: it gets copies.
  const Tensor value = dot(u.clone(), mv(as_matrix(weight, o.dim), v.clone()));
  return weight / value;
}

}  // namespace cutaway::nn::detail
