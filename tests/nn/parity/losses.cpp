#include <tests/nn/parity/table.h>

namespace cutaway::parity {
namespace {

// Calls of a loss of scores [3,4] against a target.
template <class Target>
auto against(Target target) {
  return [target](auto& loss) {
    return Tensors{loss(numbers({3, 4}).set_requires_grad(), target())};
  };
}
Tensor values() { return numbers({3, 4}, 0.4); }
Tensor signs() { return where(gt(numbers({3, 4}, 0.4), 0), 1.0, -ones({3, 4})); }
Tensor shares() { return sigmoid(numbers({3, 4}, 0.4)); }
Tensor classes() { return ids({2, 0, 3}, {3}); }
Tensor labels() { return ids({2, 0, -1, 1, 3, -1, 0, 0, 1, 2, 3, 0}, {3, 4}); }
Tensor counts() { return ids({2, 0, 3, 1, 5, 1, 0, 0, 1, 2, 3, 4}, {3, 4}).to(DType::f32); }

auto probabilities() {
  return [](auto& loss) {
    return Tensors{loss(sigmoid(numbers({3, 4})).set_requires_grad(), shares())};
  };
}
// Calls of a loss of three inputs.
template <class Third>
auto of_three(Third third) {
  return [third](auto& loss) {
    return Tensors{loss(numbers({3, 4}), numbers({3, 4}, 0.4), third())};
  };
}
Tensor three_signs() { return tensor({1, -1, 1}); }
Tensor variances() { return square(numbers({3, 4})) * 0.001; }

Sections pointwise() {
  return {
      LAYER(MSELoss, LossOptions, against(values), o.reduction = Reduction::mean)
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(L1Loss, LossOptions, against(values), o.reduction = Reduction::mean)
          .TAKES("reduction", reduction = Reduction::none),
      LAYER(SmoothL1Loss, SmoothL1Options, against(values), o.beta = 1)
          .TAKES("reduction", reduction = Reduction::sum)
          .TAKES("beta", beta = 0.2),
      LAYER(HuberLoss, HuberOptions, against(values), o.delta = 1)
          .TAKES("reduction", reduction = Reduction::sum)
          .TAKES("delta", delta = 0.2),
      LAYER(BCELoss, BceOptions, probabilities(), o.reduction = Reduction::mean)
          .TAKES("weight", weight = tensor({1, 2, 3, 4}))
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(BCEWithLogitsLoss, BceLogitsOptions, against(shares), o.reduction = Reduction::mean)
          .TAKES("weight", weight = tensor({1, 2, 3, 4}))
          .TAKES("reduction", reduction = Reduction::sum)
          .TAKES("pos_weight", pos_weight = tensor({1, 2, 3, 4})),
      LAYER(KLDivLoss, KlDivOptions, against(shares), o.reduction = Reduction::mean)
          .TAKES("reduction", reduction = Reduction::sum)
          .TAKES("reduction", batch_mean = true)
          .TAKES("log_target", log_target = true),
      LAYER(SoftMarginLoss, LossOptions, against(signs), o.reduction = Reduction::mean)
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(HingeEmbeddingLoss, MarginOptions, against(signs), o.margin = 1)
          .TAKES("margin", margin = 2)
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(PoissonNLLLoss, PoissonNllOptions, against(counts), o.log_input = true)
          .TAKES("log_input", log_input = false)
          .TAKES("full", full = true)
          .takes("eps", ".eps = 0.1",
                 [](PoissonNllOptions& o) {
                   o.log_input = false;
                   o.eps = 2.5;
                 })
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(GaussianNLLLoss, GaussianNllOptions, of_three(variances), o.full = false)
          .TAKES("full", full = true)
          .TAKES("eps", eps = 0.5)
          .TAKES("reduction", reduction = Reduction::sum),
  };
}

Sections of_classes() {
  // The second sequence is too short for its target.
  const auto spelled = [](nn::CTCLoss& loss) {
    const Tensor x = log_softmax(numbers({4, 2, 4}), -1);
    return Tensors{loss(x, ids({1, 2, 1, 1}, {2, 2}), {4, 2}, {2, 2})};
  };
  return {
      LAYER(CrossEntropyLoss, CrossEntropyOptions, against(classes), o.label_smoothing = 0)
          .TAKES("weight", weight = tensor({1, 2, 3, 4}))
          .TAKES("ignore_index", ignore_index = 2)
          .TAKES("reduction", reduction = Reduction::sum)
          .TAKES("label_smoothing", label_smoothing = 0.1),
      LAYER(NLLLoss, NllOptions, against(classes), o.reduction = Reduction::mean)
          .TAKES("weight", weight = tensor({1, 2, 3, 4}))
          .TAKES("ignore_index", ignore_index = 2)
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(MultiMarginLoss, MultiMarginOptions, against(classes), o.p = 1)
          .TAKES("p", p = 2)
          .TAKES("margin", margin = 2)
          .TAKES("weight", weight = tensor({1, 2, 3, 4}))
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(MultiLabelMarginLoss, LossOptions, against(labels), o.reduction = Reduction::mean)
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(MultiLabelSoftMarginLoss, MultiLabelOptions, against(shares),
            o.reduction = Reduction::mean)
          .TAKES("weight", weight = tensor({1, 2, 3, 4}))
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(CTCLoss, CtcOptions, spelled, o.reduction = Reduction::none)
          .TAKES("blank", blank = 3)
          .TAKES("reduction", reduction = Reduction::sum)
          .TAKES("zero_infinity", zero_infinity = true),
      absent("AdaptiveLogSoftmaxWithLoss", "for many classes: cutaway xmc"),
  };
}

Sections distances() {
  const auto pair = [](auto& layer) {
    return Tensors{layer(numbers({3, 4}), numbers({3, 4}, 0.4))};
  };
  const auto third = [] { return square(numbers({3, 4})); };
  return {
      LAYER(CosineSimilarity, CosineOptions, pair, o.dim = 1)
          .TAKES("dim", dim = 0)
          .TAKES("eps", eps = 100),
      LAYER(PairwiseDistance, PairwiseOptions, pair, o.p = 2)
          .TAKES("p", p = 1)
          .TAKES("eps", eps = 0.1)
          .TAKES("keepdim", keepdim = true),
      LAYER(CosineEmbeddingLoss, MarginOptions, of_three(three_signs), o.margin = 0)
          .TAKES("margin", margin = 0.3)
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(MarginRankingLoss, MarginOptions, of_three(values), o.margin = 0)
          .TAKES("margin", margin = 0.3)
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(TripletMarginLoss, TripletOptions, of_three(third), o.margin = 9)
          .TAKES("margin", margin = 8)
          .TAKES("p", p = 1)
          .TAKES("eps", eps = 0.1)
          .TAKES("swap", swap = true)
          .TAKES("reduction", reduction = Reduction::sum),
      LAYER(TripletMarginWithDistanceLoss, TripletDistanceOptions, of_three(third), o.margin = 9)
          .takes("distance_function", ".distance = [](const Tensor& a, const Tensor& b) { … }",
                 [](TripletDistanceOptions& o) {
                   o.distance = [](const Tensor& a, const Tensor& b) {
                     return sum(abs(a - b), -1);
                   };
                 })
          .TAKES("margin", margin = 8)
          .TAKES("swap", swap = true)
          .TAKES("reduction", reduction = Reduction::sum),
  };
}

}  // namespace

Sections layers_of_losses() {
  Sections all = pointwise();
  for (const Sections& more : {of_classes(), distances()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace cutaway::parity
