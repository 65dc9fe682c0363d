#pragma once
#include <cutaway/autograd/ops/margin_loss.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

// cosine_similarity of two tensors along a dimension.
class CosineSimilarity : public Module {
 public:
  explicit CosineSimilarity(const CosineOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& a, const Tensor& b) {
    Scope scope(*this);
    return scope.done(cosine_similarity(a, b, options_));
  }

 private:
  CosineOptions options_;
};
// pairwise_distance of two tensors over the last dimension.
class PairwiseDistance : public Module {
 public:
  explicit PairwiseDistance(const PairwiseOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& a, const Tensor& b) {
    Scope scope(*this);
    return scope.done(pairwise_distance(a, b, options_));
  }

 private:
  PairwiseOptions options_;
};

}  // namespace cutaway::nn
