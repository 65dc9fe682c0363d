#include <cutaway/autograd/ops/loss.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/ops.h>

namespace cutaway {
namespace {

[[noreturn]] void throw_sizes(const char* op, const Tensor& x, const Tensor& target) {
  throw ShapeError(
      op,
      fmt::format("prediction and target must have equal sizes; got {} and {}",
                  to_string(x.sizes()), to_string(target.sizes())),
      x.numel() == target.numel() ? "squeeze(), unsqueeze() or reshape() one of them" : "");
}
void require_equal(const char* op, const Tensor& x, const Tensor& target) {
  if (x.sizes() != target.sizes()) throw_sizes(op, x, target);
}
void require_number(const char* op, const char* rule, bool good, double got) {
  if (!good) throw ValueError(op, fmt::format("{}; got {}", rule, got));
}

Tensor reduced(const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::mean) return mean(loss);
  return reduction == Reduction::sum ? sum(loss) : loss;
}

// a · b, but 0 wherever the factor a is 0, whatever b is; so are the gradients.
Tensor product_or_zero(const Tensor& a, const Tensor& b) { return a * where(eq(a, 0), 0.0, b); }
// ln x ≥ −100; constant where x is 0.
Tensor bounded_log(const Tensor& x) {
  const Tensor zero = eq(x, 0);
  return where(zero, -100.0, clamp_min(log(where(zero, 1.0, x)), -100));
}

}  // namespace

Tensor mse_loss(TensorArg x, TensorArg target, LossOptions o) {
  CallScope scope(x.site);
  require_equal("mse_loss", *x, *target);
  return reduced(square(*x - *target), o.reduction);
}

Tensor l1_loss(TensorArg x, TensorArg target, LossOptions o) {
  CallScope scope(x.site);
  require_equal("l1_loss", *x, *target);
  return reduced(abs(*x - *target), o.reduction);
}

Tensor smooth_l1_loss(TensorArg x, TensorArg target, SmoothL1Options o) {
  CallScope scope(x.site);
  require_equal("smooth_l1_loss", *x, *target);
  require_number("smooth_l1_loss", "beta must not be negative", o.beta >= 0, o.beta);
  const Tensor d = *x - *target, a = abs(d);
  if (o.beta == 0) return reduced(a, o.reduction);
  return reduced(where(lt(a, o.beta), square(d) * (0.5 / o.beta), a - 0.5 * o.beta), o.reduction);
}

Tensor huber_loss(TensorArg x, TensorArg target, HuberOptions o) {
  CallScope scope(x.site);
  require_equal("huber_loss", *x, *target);
  require_number("huber_loss", "delta must be positive", o.delta > 0, o.delta);
  const Tensor d = *x - *target, a = abs(d);
  const Tensor far = (a - 0.5 * o.delta) * o.delta;
  return reduced(where(lt(a, o.delta), square(d) * 0.5, far), o.reduction);
}

Tensor binary_cross_entropy(TensorArg p, TensorArg target, const BceOptions& o) {
  CallScope scope(p.site);
  require_equal("binary_cross_entropy", *p, *target);
  if (!p->is_meta() && any(logical_or(lt(*p, 0), gt(*p, 1))).item<bool>()) {
    throw ValueError("binary_cross_entropy", "p must hold probabilities in [0, 1]",
                     "for scores use binary_cross_entropy_with_logits");
  }
  const Tensor& t = *target;
  Tensor loss = neg(t * bounded_log(*p) + (1 - t) * bounded_log(1 - *p));
  if (o.weight.defined()) loss = loss * o.weight;
  return reduced(loss, o.reduction);
}

Tensor binary_cross_entropy_with_logits(TensorArg x, TensorArg target, const BceLogitsOptions& o) {
  CallScope scope(x.site);
  require_equal("binary_cross_entropy_with_logits", *x, *target);
  const Tensor positive = o.pos_weight.defined() ? *target * o.pos_weight : *target;
  Tensor loss =
      product_or_zero(positive, softplus(-*x)) + product_or_zero(1 - *target, softplus(*x));
  if (o.weight.defined()) loss = loss * o.weight;
  return reduced(loss, o.reduction);
}

Tensor kl_div(TensorArg log_probs, TensorArg target, KlDivOptions o) {
  CallScope scope(log_probs.site);
  const Tensor &x = *log_probs, &t = *target;
  require_equal("kl_div", x, t);
  Tensor loss;
  if (o.log_target) {
    const Tensor never = eq(t, -INFINITY);
    loss = exp(t) * where(never, 0.0, t - x);
  } else {
    const Tensor never = eq(t, 0);
    loss = t * (log(where(never, 1.0, t)) - where(never, 0.0, x));
  }
  if (!o.batch_mean) return reduced(loss, o.reduction);
  if (x.dim() < 1) throw ShapeError("kl_div", "batch_mean needs a first dimension; got []");
  return sum(loss) / double(x.size(0));
}

Tensor cosine_similarity(TensorArg a, TensorArg b, CosineOptions o) {
  CallScope scope(a.site);
  const Shape sizes = broadcast("cosine_similarity", a->sizes(), b->sizes());
  const Tensor u = expand(*a, sizes), v = expand(*b, sizes);
  const Tensor length = clamp_min(norm(u, o.dim), o.eps) * clamp_min(norm(v, o.dim), o.eps);
  return sum(u * v, o.dim) / length;
}

Tensor cosine_embedding_loss(TensorArg a, TensorArg b, TensorArg y, MarginOptions o) {
  CallScope scope(a.site);
  require_equal("cosine_embedding_loss", *a, *b);
  if (a->dim() < 1 || a->dim() > 2 || y->sizes() != a->sizes().slice(0, a->dim() - 1)) {
    throw ShapeError("cosine_embedding_loss",
                     fmt::format("inputs are [N,D] with y [N], or [D] with y []; got {} and y {}",
                                 to_string(a->sizes()), to_string(y->sizes())));
  }
  // Added to squared norms: keeps the derivative at the zero vector finite.
  constexpr double kTiny = 1e-12;
  const Tensor squares = (sum(square(*a), -1) + kTiny) * (sum(square(*b), -1) + kTiny);
  const Tensor cosine = sum(*a * *b, -1) / sqrt(squares);
  const Tensor near = where(eq(*y, 1), 1 - cosine, 0.0);
  const Tensor far = where(eq(*y, -1), clamp_min(cosine - o.margin, 0), 0.0);
  return reduced(near + far, o.reduction);
}

Tensor margin_ranking_loss(TensorArg a, TensorArg b, TensorArg y, MarginOptions o) {
  CallScope scope(a.site);
  require_equal("margin_ranking_loss", *a, *b);
  require_equal("margin_ranking_loss", *a, *y);
  return reduced(relu(*y * (*b - *a) + o.margin), o.reduction);
}

Tensor hinge_embedding_loss(TensorArg x, TensorArg y, MarginOptions o) {
  CallScope scope(x.site);
  require_equal("hinge_embedding_loss", *x, *y);
  const Tensor near = where(ne(*y, -1), *x, 0.0);
  const Tensor far = where(ne(*y, 1), relu(o.margin - *x), 0.0);
  return reduced(near + far, o.reduction);
}

Tensor soft_margin_loss(TensorArg x, TensorArg y, LossOptions o) {
  CallScope scope(x.site);
  require_equal("soft_margin_loss", *x, *y);
  return reduced(softplus(-(*y * *x)), o.reduction);
}

Tensor triplet_margin_loss(TensorArg anchor, TensorArg positive, TensorArg negative,
                           TripletOptions o) {
  CallScope scope(anchor.site);
  require_equal("triplet_margin_loss", *anchor, *positive);
  require_equal("triplet_margin_loss", *anchor, *negative);
  require_number("triplet_margin_loss", "margin must be positive", o.margin > 0, o.margin);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return norm(a - b + o.eps, -1, {.p = o.p});
  };
  const Tensor near = distance(*anchor, *positive);
  Tensor far = distance(*anchor, *negative);
  if (o.swap) far = minimum(far, distance(*positive, *negative));
  return reduced(relu(near - far + o.margin), o.reduction);
}

Tensor gaussian_nll_loss(TensorArg x, TensorArg target, TensorArg var, GaussianNllOptions o) {
  CallScope scope(x.site);
  require_equal("gaussian_nll_loss", *x, *target);
  require_number("gaussian_nll_loss", "eps must be positive", o.eps > 0, o.eps);
  Shape one = x->sizes();
  if (one.rank() > 0) one[one.rank() - 1] = 1;
  Tensor v = *var;
  if (v.sizes() != x->sizes() && v.sizes() != one) {
    if (v.sizes() != x->sizes().slice(0, x->dim() - 1)) {
      throw ShapeError("gaussian_nll_loss",
                       fmt::format("var must have the sizes of x, or 1 in the last place; got {} "
                                   "for x {}",
                                   to_string(v.sizes()), to_string(x->sizes())));
    }
    v = unsqueeze(v, -1);
  }
  if (!v.is_meta() && any(lt(v, 0)).item<bool>()) {
    throw ValueError("gaussian_nll_loss", "variances must not be negative");
  }
  v = clamp_min(v, o.eps);
  Tensor loss = (log(v) + square(*x - *target) / v) * 0.5;
  if (o.full) loss = loss + 0.5 * std::log(2 * M_PI);
  return reduced(loss, o.reduction);
}

Tensor poisson_nll_loss(TensorArg x, TensorArg target, PoissonNllOptions o) {
  CallScope scope(x.site);
  require_equal("poisson_nll_loss", *x, *target);
  const Tensor& t = *target;
  Tensor loss = o.log_input ? exp(*x) - t * *x : *x - t * log(*x + o.eps);
  if (o.full) {
    const Tensor large = gt(t, 1), safe = where(large, t, 1.0);
    const Tensor stirling = safe * log(safe) - safe + log(safe * (2 * M_PI)) * 0.5;
    loss = loss + where(large, stirling, 0.0);
  }
  return reduced(loss, o.reduction);
}

}  // namespace cutaway
