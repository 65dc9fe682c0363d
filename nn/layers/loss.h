#pragma once
#include <cutaway/autograd/ops/loss.h>
#include <cutaway/autograd/ops/margin_loss.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

// Losses as modules: the function of the same name with its options held. Class weights are part of
// the options; move them to the device of the scores. `Fn` takes a prediction and a target.
template <class Options, auto Fn>
class LossOf : public Module {
 public:
  explicit LossOf(const Options& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& x, const Tensor& target) {
    Scope scope(*this);
    return scope.done(Fn(x, target, options_));
  }

 private:
  Options options_;
};
using CrossEntropyLoss = LossOf<CrossEntropyOptions, cross_entropy>;
using NLLLoss = LossOf<NllOptions, nll_loss>;
using MSELoss = LossOf<LossOptions, mse_loss>;
using L1Loss = LossOf<LossOptions, l1_loss>;
using SmoothL1Loss = LossOf<SmoothL1Options, smooth_l1_loss>;
using HuberLoss = LossOf<HuberOptions, huber_loss>;
using BCELoss = LossOf<BceOptions, binary_cross_entropy>;
using BCEWithLogitsLoss = LossOf<BceLogitsOptions, binary_cross_entropy_with_logits>;
using KLDivLoss = LossOf<KlDivOptions, kl_div>;
using SoftMarginLoss = LossOf<LossOptions, soft_margin_loss>;
using PoissonNLLLoss = LossOf<PoissonNllOptions, poisson_nll_loss>;
using MultiMarginLoss = LossOf<MultiMarginOptions, multi_margin_loss>;
using MultiLabelMarginLoss = LossOf<LossOptions, multilabel_margin_loss>;
using MultiLabelSoftMarginLoss = LossOf<MultiLabelOptions, multilabel_soft_margin_loss>;

// The same with the margin 1 that hinge_embedding_loss has by default.
class HingeEmbeddingLoss : public Module {
 public:
  explicit HingeEmbeddingLoss(const MarginOptions& options = {.margin = 1}) : options_(options) {}
  Tensor operator()(const Tensor& x, const Tensor& y) {
    Scope scope(*this);
    return scope.done(hinge_embedding_loss(x, y, options_));
  }

 private:
  MarginOptions options_;
};

// Losses of three tensors.
template <class Options, auto Fn>
class TripleLossOf : public Module {
 public:
  explicit TripleLossOf(const Options& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c) {
    Scope scope(*this);
    return scope.done(Fn(a, b, c, options_));
  }

 private:
  Options options_;
};
using CosineEmbeddingLoss = TripleLossOf<MarginOptions, cosine_embedding_loss>;
using MarginRankingLoss = TripleLossOf<MarginOptions, margin_ranking_loss>;
using TripletMarginLoss = TripleLossOf<TripletOptions, triplet_margin_loss>;
using TripletMarginWithDistanceLoss =
    TripleLossOf<TripletDistanceOptions, triplet_margin_with_distance_loss>;
using GaussianNLLLoss = TripleLossOf<GaussianNllOptions, gaussian_nll_loss>;

// ctc_loss.
class CTCLoss : public Module {
 public:
  explicit CTCLoss(const CtcOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& log_probs, const Tensor& targets,
                    const std::vector<int64_t>& input_lengths,
                    const std::vector<int64_t>& target_lengths) {
    Scope scope(*this);
    return scope.done(ctc_loss(log_probs, targets, input_lengths, target_lengths, options_));
  }

 private:
  CtcOptions options_;
};

}  // namespace cutaway::nn
