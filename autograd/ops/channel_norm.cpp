#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/cast.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/norm.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/kernels/norm.h>
#include <cutaway/core/reduce_args.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Normalisation of channels: batch_norm and group_norm. x [N,C,...] counts as [N, C, positions].
void batch_norm_samples(SampleList&);
void group_norm_samples(SampleList&);

namespace {

struct ChannelNormAttrs {
  int64_t groups = 0;  // group_norm; 0: batch_norm
  bool training = true;
  double momentum = 0;
  double eps = 1e-5;
};

// ---- checks

[[noreturn]] [[gnu::cold]] void throw_rank(const char* op, const Tensor& x) {
  throw ShapeError(op, fmt::format("x must be [N,C,...]; got x {}", to_string(x.sizes())),
                   "a single sample needs unsqueeze(0)");
}
[[noreturn]] [[gnu::cold]] void throw_groups(const char* op, const Tensor& x, int64_t groups) {
  throw ShapeError(op, fmt::format("groups must divide the channels; got {} groups, x {}, need a "
                                   "divisor of {}",
                                   groups, to_string(x.sizes()), x.sizes()[1]));
}
[[noreturn]] [[gnu::cold]] void throw_per_channel(const Call& c, const char* what,
                                                  const Tensor& t) {
  const Tensor& x = c.in(0);
  throw ShapeError(c.op.name,
                   fmt::format("{} must have one entry a channel; got {} {}, x {}, need [{}]", what,
                               what, to_string(t.sizes()), to_string(x.sizes()), x.sizes()[1]));
}
[[noreturn]] [[gnu::cold]] void throw_type(const Call& c, const char* what, const Tensor& t) {
  throw DTypeError(c.op.name,
                   fmt::format("{} must have the type of x, or f32 where x has 16 bits; got {} {}, "
                               "x {}",
                               what, what, name_of(t.dtype()), name_of(c.in(0).dtype())));
}

constexpr const char* kInputNames[] = {"x", "weight", "bias", "running_mean", "running_var"};

void check_channels(const Call& c) {
  c.require_dtype(0);
  c.require_same_device();
  const Tensor& x = c.in(0);
  if (x.dim() < 2) throw_rank(c.op.name, x);
  for (int i = 1; i < c.num_inputs; ++i) {
    if (!c.has(i)) continue;
    const Tensor& t = c.in(i);
    if (t.dim() != 1 || t.sizes()[0] != x.sizes()[1]) throw_per_channel(c, kInputNames[i], t);
    const bool same = t.dtype() == x.dtype();
    if (i < 3 && !same && !(is_half(x.dtype()) && t.dtype() == DType::f32)) {
      throw_type(c, kInputNames[i], t);
    }
    if (i == 2 && c.has(1) && t.dtype() != c.in(1).dtype()) throw_type(c, kInputNames[i], t);
    if (i >= 3 && !t.is_floating()) throw_type(c, kInputNames[i], t);
    if (i >= 3 && !t.is_contiguous()) {
      throw ValueError(c.op.name,
                       std::string(kInputNames[i]) + " must be contiguous: it is written");
    }
  }
}

// ---- the walk over channels

// How x is cut: `channels` rows of numbers, `stats` statistics over `count` elements each.
struct Cut {
  int64_t samples, weights, positions;  // N, C, S
  int64_t channels, stats;
  double count;

  Cut(const Shape& sizes, int64_t groups) : samples(sizes[0]), weights(sizes[1]) {
    positions = sizes.slice(2, sizes.rank()).numel();
    channels = groups > 0 ? samples * weights : weights;
    stats = groups > 0 ? samples * groups : weights;
    const int64_t all = sizes.numel();
    count = stats > 0 ? double(all / stats) : 0;
  }
};

const void* pointer(const Tensor& t) { return t.defined() ? t.raw() : nullptr; }
Tensor dense(const Tensor& t) { return t.defined() ? contiguous_raw(t) : t; }

// Rows of f64 numbers in one tensor.
struct Numbers {
  Tensor t;
  int64_t n;
  Numbers(int rows, int64_t length, Device device)
      : t(empty({rows, length}, {.dtype = DType::f64, .device = device})), n(length) {}
  double* row(int i) const { return t.data<double>() + i * n; }
};

ChannelTermsArgs terms_args(const Cut& cut, const Numbers& terms) {
  ChannelTermsArgs a{.channels = cut.channels, .weights = cut.weights, .count = cut.count};
  a.per_stat = cut.stats > 0 ? cut.channels / cut.stats : 1;
  a.center = terms.row(0);
  a.scale = terms.row(1);
  a.shift = terms.row(2);
  return a;
}

ChannelArgs channel_args(const Cut& cut, const Numbers& terms, const Tensor& x) {
  return {.in = x.raw(),
          .rows = cut.samples * cut.weights,
          .width = cut.positions,
          .channels = cut.channels,
          .center = terms.row(0),
          .scale = terms.row(1),
          .shift = terms.row(2)};
}

// Mean and variance (divided by count) of every statistic into `mean` and `var`.
void compute_moments(const Tensor& x, const Cut& cut, int64_t groups, double* mean, double* var) {
  ReduceArgs a;
  if (groups > 0) {
    a.kept_rank = a.reduced_rank = 1;
    a.in = x.raw();
    a.outputs = a.kept_sizes[0] = cut.stats;
    a.count = a.reduced_sizes[0] = a.kept_strides[0] = int64_t(cut.count);
    a.reduced_strides[0] = 1;
  } else {
    a = reduce_args(x, x, ((1u << x.dim()) - 1) & ~2u);
  }
  a.out = mean;
  a.out2 = var;
  kernels::moments(x.device(), x.dtype(), a);
}

// The type of weight and bias, which `terms` kernels read.
DType parameter_type(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return weight.defined() ? weight.dtype() : bias.defined() ? bias.dtype() : x.dtype();
}

// y from x, weights and statistics [2, stats]: mean, variance.
void normalize_into(const Call& c, const Tensor& x, const Cut& cut, const Numbers& stats) {
  const Numbers terms(3, cut.channels, x.device()), rstd(1, cut.stats, x.device());
  const Tensor weight = dense(c.in(1)), bias = dense(c.in(2));
  const DType type = parameter_type(x, weight, bias);
  ChannelTermsArgs t = terms_args(cut, terms);
  t.eps = c.attrs<ChannelNormAttrs>().eps;
  t.mean = stats.row(0);
  t.var = stats.row(1);
  t.rstd = rstd.row(0);
  t.weight = pointer(weight);
  t.bias = pointer(bias);
  kernels::channel_terms(x.device(), type, t);
  ChannelArgs a = channel_args(cut, terms, x);
  a.out = c.outputs[0].raw();
  kernels::channel_affine(x.device(), x.dtype(), a);
}

// ---- fast backward: x, upstream and saved statistics in two passes

void channel_norm_fast_backward(Backward& b) {
  const auto& attrs = b.attrs<ChannelNormAttrs>();
  const Tensor x = contiguous_raw(b.input(0)), g = contiguous_raw(b.upstream());
  const Tensor weight = dense(b.input(1)), saved = b.extra(0);
  const DType type = weight.defined() ? weight.dtype() : b.needs(2) ? b.input_dtype(2) : x.dtype();
  const Cut cut(x.sizes(), attrs.groups);
  const Numbers terms(6, cut.channels, x.device()), rstd(1, cut.stats, x.device());
  ChannelTermsArgs t = terms_args(cut, terms);
  t.eps = attrs.eps;
  t.fixed = !attrs.training;
  t.mean = saved.data<double>();
  t.var = t.mean + cut.stats;
  t.rstd = rstd.row(0);
  t.weight = pointer(weight);
  t.grad_scale = terms.row(3);
  t.sum = terms.row(4);
  t.dot = terms.row(5);
  for (int i = 1; i < 3; ++i) {
    if (!b.needs(i)) continue;
    const Tensor grad = empty({cut.weights}, {.dtype = type, .device = x.device()});
    (i == 1 ? t.grad_weight : t.grad_bias) = grad.raw();
    b.set(i, grad);
  }
  ChannelArgs a = channel_args(cut, terms, x);
  a.grad = g.raw();
  a.grad_scale = terms.row(3);
  a.sum = terms.row(4);
  a.dot = terms.row(5);
  kernels::channel_terms(x.device(), type, t);  // the means of channels and rstd
  kernels::channel_dots(x.device(), x.dtype(), a);
  kernels::channel_grad_terms(x.device(), type, t);
  if (!b.needs(0)) return;
  const Tensor dx = empty_like(x);
  a.out = dx.raw();
  kernels::channel_backward(x.device(), x.dtype(), a);
  b.set(0, dx);
}

// ---- batch_norm

// Sizes [1,C,1,...] of a tensor [C] beside x.
Tensor beside(const Tensor& t, const Shape& sizes) {
  Shape wide = Shape::filled(sizes.rank(), 1);
  wide[1] = sizes[1];
  return reshape(t, wide);
}

void check_statistics(const Call& c, const Cut& cut) {
  const auto& attrs = c.attrs<ChannelNormAttrs>();
  if (attrs.training && cut.count == 1) {
    throw ValueError("batch_norm",
                     fmt::format("training needs more than one value per channel; got x {}",
                                 to_string(c.in(0).sizes())),
                     "use a larger batch, or evaluation mode");
  }
  if (!attrs.training && !(c.has(3) && c.has(4))) {
    throw ValueError("batch_norm", "evaluation needs running_mean and running_var; got none",
                     "set .training = true to use the statistics of the batch");
  }
}

void update_running(const Tensor& running, const double* value, double momentum, double factor) {
  if (!running.defined()) return;
  kernels::update_running(running.device(), running.dtype(),
                          {.running = running.raw(),
                           .value = value,
                           .momentum = momentum,
                           .factor = factor,
                           .n = running.numel()});
  running.storage()->bump("batch_norm");
}

void batch_norm_forward(Call& c) {
  const auto& attrs = c.attrs<ChannelNormAttrs>();
  check_channels(c);
  const Tensor& in = c.in(0);
  const Cut cut(in.sizes(), 0);
  check_statistics(c, cut);
  c.out(0, in.sizes(), in.dtype());
  if (c.meta()) return;
  const Tensor x = contiguous_raw(in);
  const Numbers stats(2, cut.stats, x.device());
  if (attrs.training) {
    compute_moments(x, cut, 0, stats.row(0), stats.row(1));
    if (cut.count > 0) {
      update_running(c.in(3), stats.row(0), attrs.momentum, 1);
      update_running(c.in(4), stats.row(1), attrs.momentum, cut.count / (cut.count - 1));
    }
  } else {
    for (int i = 0; i < 2; ++i) {
      copy_elements(make_view(stats.t, {{cut.stats}, {1}, i * cut.stats}), c.in(3 + i));
    }
  }
  normalize_into(c, x, cut, stats);
  c.save(stats.t);
}

void batch_norm_backward(Backward& b) {
  const auto& attrs = b.attrs<ChannelNormAttrs>();
  const Tensor weight = b.input(1);
  const DType given = b.upstream().dtype(), type = parameter_type(b.input(0), weight, {});
  const Tensor x = cast(b.input(0), type), g = cast(b.upstream(), type);
  Shape dims{0};
  for (int d = 2; d < x.dim(); ++d) dims.push_back(d);
  const auto channel_mean = [&](const Tensor& t) { return mean(t, dims, {.keepdim = true}); };
  const auto running = [&](int i) { return beside(b.input(i).detach().to(x.dtype()), x.sizes()); };
  const Tensor d = x - (attrs.training ? channel_mean(x) : running(3));
  const Tensor rstd = rsqrt((attrs.training ? channel_mean(d * d) : running(4)) + attrs.eps);
  const Tensor hat = d * rstd;
  if (b.needs(0)) {
    const Tensor scaled = weight.defined() ? g * beside(weight, x.sizes()) : g;
    const Tensor inner =
        attrs.training ? scaled - channel_mean(scaled) - hat * channel_mean(scaled * hat) : scaled;
    b.set(0, cast(rstd * inner, given));
  }
  if (b.needs(1)) b.set(1, sum(g * hat, dims));
  if (b.needs(2)) b.set(2, cast(sum(g, dims), b.input_dtype(2)));
}

// ---- as nodes of ONNX

std::string onnx_channels(OnnxCall& c, int i, double otherwise, int64_t n) {
  if (c.has(i)) return c.cast(i, c.type());
  return c.constant(full({n}, otherwise, {.dtype = c.type()}));
}
void onnx_batch_norm(OnnxCall& c) {
  const auto& a = c.attrs<ChannelNormAttrs>();
  if (a.training) c.refuse("in training has no equivalent in ONNX; call eval() first");
  const int64_t n = c.in().size(1);
  c.result(c.node("BatchNormalization",
                  {c.name(0), onnx_channels(c, 1, 1, n), onnx_channels(c, 2, 0, n),
                   onnx_channels(c, 3, 0, n), onnx_channels(c, 4, 1, n)},
                  {{"epsilon", a.eps}}));
}
// InstanceNormalization of groups as channels, then weight and bias of the real ones.
void onnx_group_norm(OnnxCall& c) {
  const auto& a = c.attrs<ChannelNormAttrs>();
  const Opts opts{.dtype = c.type()};
  const std::string groups = c.node("Reshape", {c.name(0), c.list({0, a.groups, -1})});
  const std::string one = c.constant(ones({a.groups}, opts));
  const std::string zero = c.constant(zeros({a.groups}, opts));
  std::string y = c.node("InstanceNormalization", {groups, one, zero}, {{"epsilon", a.eps}});
  y = c.node("Reshape", {y, c.list(c.in().sizes())});
  Shape beside{c.in().size(1)};
  for (int d = 2; d < c.in().dim(); ++d) beside.push_back(1);
  const auto channels = [&](int i) {
    return c.node("Reshape", {c.cast(i, c.type()), c.list(beside)});
  };
  if (c.has(1)) y = c.node("Mul", {y, channels(1)});
  if (c.has(2)) y = c.node("Add", {y, channels(2)});
  c.result(y);
}

const OpRecord kBatchNorm{
    .name = "batch_norm",
    .signature =
        "batch_norm(x, weight?, bias?, running_mean?, running_var?, {training, momentum, "
        "eps}) → y",
    .meaning = "Channels shifted and scaled by statistics of the batch, or by running ones.",
    .formula =
        "y = (x − mean) / sqrt(var + eps) ⊙ weight + bias;  running = (1−m) running + m batch",
    .shapes = "x [N,C,...]   weight, bias, running_mean, running_var [C]   y [N,C,...]",
    .save_inputs = 0b11011,
    .forward = batch_norm_forward,
    .backward_text = "dx = rstd (ĝ − mean ĝ − x̂ mean(ĝ ⊙ x̂)),  ĝ = g ⊙ weight;  eval: rstd ĝ",
    .backward = batch_norm_backward,
    .fast_backward = channel_norm_fast_backward,
    .samples = batch_norm_samples,
    .onnx = onnx_batch_norm,
};

// ---- group_norm

void group_norm_forward(Call& c) {
  const auto& attrs = c.attrs<ChannelNormAttrs>();
  check_channels(c);
  const Tensor& in = c.in(0);
  if (attrs.groups < 1 || in.sizes()[1] % attrs.groups != 0) {
    throw_groups(c.op.name, in, attrs.groups);
  }
  c.out(0, in.sizes(), in.dtype());
  if (c.meta()) return;
  const Tensor x = contiguous_raw(in);
  const Cut cut(x.sizes(), attrs.groups);
  const Numbers stats(2, cut.stats, x.device());
  compute_moments(x, cut, attrs.groups, stats.row(0), stats.row(1));
  normalize_into(c, x, cut, stats);
  c.save(stats.t);
}

void group_norm_backward(Backward& b) {
  const auto& attrs = b.attrs<ChannelNormAttrs>();
  const Tensor weight = b.input(1);
  const DType given = b.upstream().dtype(), type = parameter_type(b.input(0), weight, {});
  const Tensor x = cast(b.input(0), type), g = cast(b.upstream(), type);
  const Shape sizes = x.sizes();
  const Cut cut(sizes, attrs.groups);
  const Shape grouped{cut.samples, attrs.groups, int64_t(cut.count)};
  const auto group_mean = [](const Tensor& t) { return mean(t, 2, {.keepdim = true}); };
  const Tensor xg = reshape(x, grouped);
  const Tensor d = xg - group_mean(xg);
  const Tensor rstd = rsqrt(group_mean(d * d) + attrs.eps);
  const Tensor hat = d * rstd;
  if (b.needs(0)) {
    const Tensor scaled = reshape(weight.defined() ? g * beside(weight, sizes) : g, grouped);
    const Tensor inner = scaled - group_mean(scaled) - hat * group_mean(scaled * hat);
    b.set(0, cast(reshape(rstd * inner, sizes), given));
  }
  Shape dims{0};
  for (int d2 = 2; d2 < x.dim(); ++d2) dims.push_back(d2);
  if (b.needs(1)) b.set(1, sum(g * reshape(hat, sizes), dims));
  if (b.needs(2)) b.set(2, cast(sum(g, dims), b.input_dtype(2)));
}

const OpRecord kGroupNorm{
    .name = "group_norm",
    .signature = "group_norm(x, groups, weight?, bias?, {eps}) → y",
    .meaning = "Groups of consecutive channels shifted and scaled to mean 0 and variance 1.",
    .formula =
        "y = (x − mean) / sqrt(var + eps) ⊙ weight + bias;  mean, var over a group's channels",
    .shapes = "x [N,C,...]   weight, bias [C]   y [N,C,...]",
    .save_inputs = 3,
    .forward = group_norm_forward,
    .backward_text = "dx = rstd (ĝ − mean ĝ − x̂ mean(ĝ ⊙ x̂)),  ĝ = g ⊙ weight",
    .backward = group_norm_backward,
    .fast_backward = channel_norm_fast_backward,
    .samples = group_norm_samples,
    .onnx = onnx_group_norm,
};

}  // namespace

Tensor batch_norm(TensorArg x, TensorArg weight, TensorArg bias, TensorArg running_mean,
                  TensorArg running_var, BatchNormOptions o) {
  return run(kBatchNorm, {x, weight, bias, running_mean, running_var},
             ChannelNormAttrs{.training = o.training, .momentum = o.momentum, .eps = o.eps});
}

Tensor group_norm(TensorArg x, int64_t groups, TensorArg weight, TensorArg bias,
                  LayerNormOptions o) {
  return run(kGroupNorm, {x, weight, bias}, ChannelNormAttrs{.groups = groups, .eps = o.eps});
}

Tensor instance_norm(TensorArg x, TensorArg weight, TensorArg bias, LayerNormOptions o) {
  CallScope scope(x.site);
  if (x->dim() < 2) throw_rank("instance_norm", *x);
  return group_norm(x, x->sizes()[1], weight, bias, o);
}

void register_channel_norm_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kBatchNorm, &kGroupNorm});
}

}  // namespace cutaway
