#include <cutaway/nn/layers/norm.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {

BatchNorm::BatchNorm(const char* name, int min_rank, int max_rank, const BatchNormLayerOptions& o)
    : layer_(name), min_rank_(min_rank), max_rank_(max_rank), options_(o) {
  require_at_least(name, "num_features", o.num_features, 1);
  if (o.affine) {
    weight = ones({o.num_features});
    bias = zeros({o.num_features});
  }
  if (o.track_running_stats) {
    running_mean = zeros({o.num_features});
    running_var = ones({o.num_features});
    num_batches_tracked = scalar_tensor(0, {.dtype = DType::i64});
  }
  add("weight", weight);
  add("bias", bias);
  add_buffer("running_mean", running_mean);
  add_buffer("running_var", running_var);
  add_buffer("num_batches_tracked", num_batches_tracked);
}

Tensor BatchNorm::forward(const Tensor& x) {
  if (x.dim() < min_rank_ || x.dim() > max_rank_ || x.size(1) != options_.num_features) {
    const std::string ranks = min_rank_ == max_rank_
                                  ? fmt::format("{}", min_rank_)
                                  : fmt::format("{} or {}", min_rank_, max_rank_);
    throw ShapeError(layer_, fmt::format("x must have {} dimensions and {} channels; got {}", ranks,
                                         options_.num_features, to_string(x.sizes())));
  }
  const bool tracks = options_.track_running_stats;
  const bool batch = training() || !tracks;
  double momentum = options_.momentum.value_or(0);
  const bool moves = training() && tracks && !x.is_meta();
  if (moves && !options_.momentum) momentum = 1 / (num_batches_tracked.item<double>() + 1);
  const Tensor none;
  const bool given = tracks && (!batch || moves);
  Tensor y = batch_norm(x, weight, bias, given ? running_mean : none, given ? running_var : none,
                        {.training = batch, .momentum = momentum, .eps = options_.eps});
  if (moves) {
    NoGradGuard no_grad;
    num_batches_tracked.add_(1);
  }
  return y;
}

LayerNorm::LayerNorm(const LayerNormLayerOptions& o) : options_(o) {
  require_at_least("LayerNorm", "normalized_shape.rank()", o.normalized_shape.rank(), 1);
  if (o.elementwise_affine) {
    weight = ones(o.normalized_shape);
    if (o.bias) bias = zeros(o.normalized_shape);
  }
  add("weight", weight);
  add("bias", bias);
}
Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, options_.normalized_shape, weight, bias, {.eps = options_.eps});
}

RMSNorm::RMSNorm(const RMSNormOptions& o) : options_(o) {
  require_at_least("RMSNorm", "normalized_shape.rank()", o.normalized_shape.rank(), 1);
  if (o.elementwise_affine) weight = ones(o.normalized_shape);
  add("weight", weight);
}
Tensor RMSNorm::forward(const Tensor& x) {
  return rms_norm(x, options_.normalized_shape, weight, {.eps = options_.eps});
}

GroupNorm::GroupNorm(const GroupNormOptions& o) : options_(o) {
  require_at_least("GroupNorm", "num_groups", o.num_groups, 1);
  require_at_least("GroupNorm", "num_channels", o.num_channels, 1);
  if (o.num_channels % o.num_groups != 0) {
    throw ValueError("GroupNorm",
                     fmt::format(".num_groups must divide .num_channels; got {} and {}",
                                 o.num_groups, o.num_channels));
  }
  if (o.affine) {
    weight = ones({o.num_channels});
    bias = zeros({o.num_channels});
  }
  add("weight", weight);
  add("bias", bias);
}
Tensor GroupNorm::forward(const Tensor& x) {
  if (x.dim() < 2 || x.size(1) != options_.num_channels) {
    throw ShapeError("GroupNorm", fmt::format("x must have {} channels; got {}",
                                              options_.num_channels, to_string(x.sizes())));
  }
  return group_norm(x, options_.num_groups, weight, bias, {.eps = options_.eps});
}

InstanceNorm::InstanceNorm(const char* name, int rank, const InstanceNormOptions& o)
    : layer_(name), rank_(rank), options_(o) {
  require_at_least(name, "num_features", o.num_features, 1);
  if (o.affine) {
    weight = ones({o.num_features});
    bias = zeros({o.num_features});
  }
  if (o.track_running_stats) {
    running_mean = zeros({o.num_features});
    running_var = ones({o.num_features});
    num_batches_tracked = scalar_tensor(0, {.dtype = DType::i64});
  }
  add("weight", weight);
  add("bias", bias);
  add_buffer("running_mean", running_mean);
  add_buffer("running_var", running_var);
  add_buffer("num_batches_tracked", num_batches_tracked);
}

void InstanceNorm::move_statistics(const Tensor& x) {
  NoGradGuard no_grad;
  const double m = options_.momentum;
  Shape spatial;
  for (int d = 2; d < x.dim(); ++d) spatial.push_back(d);
  const VarMean s = var_mean(x.detach(), spatial);
  running_mean.mul_(1 - m).add_(mean(s.mean, 0).to(running_mean.dtype()), m);
  running_var.mul_(1 - m).add_(mean(s.var, 0).to(running_var.dtype()), m);
}

Tensor InstanceNorm::forward(const Tensor& given) {
  const Tensor x = given.dim() == rank_ - 1 ? unsqueeze(given, 0) : given;
  if (x.dim() != rank_ || x.size(1) != options_.num_features) {
    throw ShapeError(layer_, fmt::format("x must have {} dimensions and {} channels; got {}", rank_,
                                         options_.num_features, to_string(given.sizes())));
  }
  const bool tracks = options_.track_running_stats;
  if (tracks && training() && !x.is_meta()) move_statistics(x);
  const Tensor y = tracks && !training() ? batch_norm(x, weight, bias, running_mean, running_var,
                                                      {.training = false, .eps = options_.eps})
                                         : instance_norm(x, weight, bias, {.eps = options_.eps});
  return given.dim() == rank_ ? y : squeeze(y, 0);
}

LocalResponseNorm::LocalResponseNorm(const LocalResponseNormOptions& o) : options_(o) {
  require_at_least("LocalResponseNorm", "size", o.size, 1);
}
Tensor LocalResponseNorm::forward(const Tensor& x) {
  if (x.dim() < 2) {
    throw ShapeError("LocalResponseNorm", "x must be [N,C,…]; got " + to_string(x.sizes()));
  }
  const int64_t before = options_.size / 2, after = (options_.size - 1) / 2;
  Shape pads = Shape::filled(2 * (x.dim() - 1), 0);
  pads[pads.rank() - 2] = before;
  pads[pads.rank() - 1] = after;
  const Tensor windows = unfold(pad(square(x), pads), 1, options_.size, 1);
  return x / pow(mean(windows, -1) * options_.alpha + options_.k, options_.beta);
}

}  // namespace cutaway::nn
