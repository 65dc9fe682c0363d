#pragma once
#include <string>

#include <cutaway/core/tensor.h>
#include <cutaway/models/bayes_attention/draws.h>

namespace cutaway::bayes {

enum class Kind { gaussian, bernoulli, poisson, categorical };

// An exponential family p(o|k) = exp(⟨η_k, T⟩ − A(η_k)) c(o) in its mean coordinates μ = ∇A(η).
// Tensors are f64; the last dimension is the coordinate [..., d].
struct Family {
  Kind kind = Kind::gaussian;
  Tensor sigma;  // [d,d], Gaussian only

  // "gauss", "bern", "pois" or "cat"; raises ValueError for other names. A Gaussian has Σ = I.
  static Family named(const std::string& name, int64_t d);
  // Raises ValueError unless Σ is symmetric and positive definite, naming its least eigenvalue.
  static Family gaussian(const Tensor& sigma);
  std::string name() const;

  // The link η = ∇φ(μ), [..., d] → [..., d].
  Tensor link(const Tensor& mu) const;
  // A(η(μ)), the log partition at mean μ: [..., d] → [...].
  Tensor log_partition(const Tensor& mu) const;
  // φ(μ) = sup_η ⟨η, μ⟩ − A(η), with 0 log 0 = 0: [..., d] → [...].
  Tensor potential(const Tensor& mu) const;
  // d_φ(t, μ) from the closed form of the family (T3): Mahalanobis, Kullback–Leibler, …
  Tensor divergence(const Tensor& t, const Tensor& mu) const;
  // ∇²φ(μ), the Fisher information in mean coordinates: [..., d] → [..., d, d].
  Tensor hessian(const Tensor& mu) const;
  // sup |φ'''| of one coordinate over [low, high]; φ is separable but for the Gaussian, where 0.
  double third_derivative(double low, double high) const;
  // Coordinate in which Fisher arc length is Euclidean, and back: arcsin √μ, √μ, or μ itself.
  double arc(double mu) const;
  double from_arc(double s) const;

  // Raises ValueError naming the first mean outside of the family's domain.
  void check_means(const Tensor& mu) const;
  // Means as near as needed to stay inside of the domain (the ICE tasks' bounds).
  Tensor clip(const Tensor& mu) const;
  // Mean of m observations with mean μ [d], into t [d].
  void observe(const double* mu, int64_t d, int64_t m, Draws& draws, double* t) const;

 private:
  Tensor precision_, factor_;  // Σ⁻¹ and its Cholesky factor of Σ
};

}  // namespace cutaway::bayes
