#include <cutaway/autograd/ops/margin_loss.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

Tensor reduced(const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::mean) return mean(loss);
  return reduction == Reduction::sum ? sum(loss) : loss;
}

[[noreturn]] void throw_sizes(const char* op, const char* rule, const Tensor& x,
                              const Tensor& target) {
  throw ShapeError(
      op, fmt::format("{}; got {} and {}", rule, to_string(x.sizes()), to_string(target.sizes())));
}

void check_classes(const char* op, const Tensor& target, int64_t classes) {
  if (target.is_meta()) return;
  for (const double t : target.to_vector()) {
    if (t < 0 || t >= double(classes)) {
      throw IndexError(op, fmt::format("classes must lie in [0,{}); got {}", classes, t));
    }
  }
}

}  // namespace

Tensor multi_margin_loss(TensorArg x, TensorArg target, const MultiMarginOptions& o) {
  CallScope scope(x.site);
  const char* op = "multi_margin_loss";
  if (x->dim() < 1 || x->dim() > 2 || target->dim() != x->dim() - 1 ||
      (x->dim() == 2 && target->size(0) != x->size(0))) {
    throw_sizes(op, "scores must be [N,C] or [C], targets [N] or []", *x, *target);
  }
  if (o.p != 1 && o.p != 2) throw ValueError(op, fmt::format("p must be 1 or 2; got {}", o.p));
  const int64_t classes = x->size(-1);
  check_classes(op, *target, classes);
  const Tensor index = unsqueeze(target->to(DType::i64), -1);
  const Tensor own = gather(*x, -1, index);
  Tensor losses = relu(*x - own + o.margin);
  if (o.p == 2) losses = square(losses);
  if (o.weight.defined()) {
    if (o.weight.sizes() != Shape{classes}) {
      throw_sizes(op, "weight must have one factor a class", *x, o.weight);
    }
    losses = losses * reshape(index_select(o.weight, 0, reshape(index, {-1})), index.sizes());
  }
  const Tensor others = scatter(ones_like(*x), -1, index, 0);
  return reduced(sum(losses * others, -1) / double(classes), o.reduction);
}

Tensor multilabel_margin_loss(TensorArg x, TensorArg target, LossOptions o) {
  CallScope scope(x.site);
  const char* op = "multilabel_margin_loss";
  if (x->dim() < 1 || x->dim() > 2 || target->sizes() != x->sizes()) {
    throw_sizes(op, "scores and targets must both be [N,C] or [C]", *x, *target);
  }
  const int64_t classes = x->size(-1);
  const Tensor t = target->to(DType::i64);
  const Tensor given = eq(cumsum(lt(t, 0).to(DType::i64), -1), 0);  // before the first −1
  const Tensor index = where(given, t, 0);
  check_classes(op, index, classes);
  const Tensor own = gather(*x, -1, index);
  const Tensor is_target =
      gt(scatter_add(zeros_like(t), -1, index, given.to(DType::i64)), 0);  // of each class
  const Tensor losses = relu(1.0 - unsqueeze(own, -1) + unsqueeze(*x, -2));
  const Tensor counts = logical_and(unsqueeze(given, -1), logical_not(unsqueeze(is_target, -2)));
  const Tensor rows = sum(where(counts, losses, 0.0), Shape{-2, -1}) / double(classes);
  return reduced(rows, o.reduction);
}

Tensor multilabel_soft_margin_loss(TensorArg x, TensorArg target, const MultiLabelOptions& o) {
  CallScope scope(x.site);
  if (x->sizes() != target->sizes() || x->dim() < 1) {
    throw_sizes("multilabel_soft_margin_loss",
                "prediction and target must have equal sizes [...,C]", *x, *target);
  }
  Tensor losses = *target * softplus(-*x) + (1.0 - *target) * softplus(*x);
  if (o.weight.defined()) losses = losses * o.weight;
  return reduced(mean(losses, -1), o.reduction);
}

Tensor pairwise_distance(TensorArg a, TensorArg b, PairwiseOptions o) {
  CallScope scope(a.site);
  return norm(*a - *b + o.eps, -1, {.p = o.p, .keepdim = o.keepdim});
}

Tensor triplet_margin_with_distance_loss(TensorArg anchor, TensorArg positive, TensorArg negative,
                                         const TripletDistanceOptions& o) {
  CallScope scope(anchor.site);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance ? o.distance(a, b) : pairwise_distance(a, b);
  };
  const Tensor near = distance(*anchor, *positive);
  Tensor far = distance(*anchor, *negative);
  if (o.swap) far = minimum(far, distance(*positive, *negative));
  return reduced(relu(near - far + o.margin), o.reduction);
}

}  // namespace cutaway
