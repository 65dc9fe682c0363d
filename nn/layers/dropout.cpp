#include <cutaway/nn/layers/dropout.h>

#include <cmath>

#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/random.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {
namespace {

// [N,C,1,…] for x [N,C,…].
Shape channel_sizes(const char* layer, const Tensor& x) {
  if (x.dim() < 2) {
    throw ShapeError(
        layer, fmt::format("x needs channels; got {}, need [N,C,spatial…]", to_string(x.sizes())));
  }
  Shape sizes = Shape::filled(x.dim(), 1);
  sizes[0] = x.size(0);
  sizes[1] = x.size(1);
  return sizes;
}

// Zeros and ones of `sizes` decide what of x stays.
Tensor alpha_dropout(const Tensor& x, const Shape& sizes, double p) {
  if (p == 1) return x * 0.0;
  constexpr double kLimit = -1.7580993408473766;  // of selu at −∞
  const double a = 1 / std::sqrt((1 - p) * (1 + p * kLimit * kLimit)), b = -a * kLimit * p;
  const Tensor kept = bernoulli(full(sizes, 1 - p, {x.dtype(), x.device()}));
  return kept * (x * a + b) + (1.0 - kept) * (a * kLimit + b);
}

}  // namespace

Dropout::Dropout(const DropoutOptions& o) : p_(require_share("Dropout", "p", o.p)) {}
Tensor Dropout::forward(const Tensor& x) { return training() && p_ > 0 ? dropout(x, p_) : x; }

ChannelDropout::ChannelDropout(const char* name, int min_rank, int max_rank,
                               const DropoutOptions& o)
    : layer_(name), min_rank_(min_rank), max_rank_(max_rank), p_(require_share(name, "p", o.p)) {}
Tensor ChannelDropout::forward(const Tensor& x) {
  const Shape sizes = channel_sizes(layer_, x);
  if (x.dim() < min_rank_ || x.dim() > max_rank_) {
    throw ShapeError(
        layer_, fmt::format("x must have {} dimensions; got {}", min_rank_, to_string(x.sizes())));
  }
  if (!training() || p_ == 0) return x;
  return x * dropout(ones(sizes, {x.dtype(), x.device()}), p_);
}

AlphaDropout::AlphaDropout(const DropoutOptions& o) : p_(require_share("AlphaDropout", "p", o.p)) {}
Tensor AlphaDropout::forward(const Tensor& x) {
  return training() && p_ > 0 ? alpha_dropout(x, x.sizes(), p_) : x;
}

FeatureAlphaDropout::FeatureAlphaDropout(const DropoutOptions& o)
    : p_(require_share("FeatureAlphaDropout", "p", o.p)) {}
Tensor FeatureAlphaDropout::forward(const Tensor& x) {
  const Shape sizes = channel_sizes("FeatureAlphaDropout", x);
  return training() && p_ > 0 ? alpha_dropout(x, sizes, p_) : x;
}

}  // namespace cutaway::nn
