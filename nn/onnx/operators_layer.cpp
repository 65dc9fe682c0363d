#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/onnx/node_call.h>
#include <cutaway/nn/onnx/windows.h>

// Convolutions, normalisations and losses.
namespace cutaway::onnx {
namespace {

Tensor with_bias(const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return y;
  Shape sizes = Shape::filled(y.dim(), 1);
  sizes[1] = bias.numel();
  return y + reshape(bias, sizes);
}

Tensor convolve(const Tensor& x, const Tensor& w, const Window& win, int64_t groups) {
  const int n = x.dim() - 2;
  const ConvOptions o{.stride = win.stride, .dilation = win.dilation, .groups = groups};
  return n == 1 ? conv1d(x, w, {}, o) : n == 2 ? conv2d(x, w, {}, o) : conv3d(x, w, {}, o);
}

void conv_op(NodeCall& c) {
  const Tensor &x = c.in(0), &w = c.in(1);
  require_images(c, x);
  const int64_t groups = c.integer("group", 1);
  if (w.dim() != x.dim()) c.fail("x and the weight must have equally many dimensions");
  const Window win = read_window(c, x, w.sizes().slice(2, w.dim()));
  c.give(with_bias(convolve(pad_window(x, win, 0), w, win, groups), c.maybe(2)));
}

void conv_transpose(NodeCall& c) {
  const Tensor &x = c.in(0), &w = c.in(1);
  require_images(c, x);
  if (w.dim() != x.dim()) c.fail("x and the weight must have equally many dimensions");
  const int n = x.dim() - 2;
  const int64_t groups = c.integer("group", 1);
  const Ints extra = c.integers("output_padding", Ints(size_t(n), 0));
  const Ints asked = c.integers("output_shape");
  const std::string mode = c.given("auto_pad") ? c.text("auto_pad", "") : "NOTSET";
  const Window win = read_window(c, x, w.sizes().slice(2, w.dim()));
  const ConvTransposeOptions o{.stride = win.stride, .dilation = win.dilation, .groups = groups};
  Tensor y = n == 1   ? conv_transpose1d(x, w, {}, o)
             : n == 2 ? conv_transpose2d(x, w, {}, o)
                      : conv_transpose3d(x, w, {}, o);
  if (int(extra.size()) != n || (!asked.empty() && int(asked.size()) < n)) {
    c.fail("attributes 'output_padding' and 'output_shape' need a number for each dimension");
  }
  for (int d = 0; d < n; ++d) {
    const int64_t all = y.size(2 + d) + extra[size_t(d)];
    int64_t begin = win.begin[d], end = win.end[d];
    int64_t want = -1;
    if (!asked.empty()) want = asked[asked.size() - size_t(n) + size_t(d)];
    if (asked.empty() && mode.starts_with("SAME")) want = x.size(2 + d) * win.stride[d];
    if (want >= 0) {
      const int64_t total = all - want;
      begin = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      if (mode != "SAME_UPPER" && mode != "SAME_LOWER") begin = total - total / 2;
      if (total < 0) begin = 0;  // what is missing is added behind
      end = total - begin;
    }
    y = movedim(pad(movedim(y, 2 + d, n + 1), {-begin, extra[size_t(d)] - end}), n + 1, 2 + d);
  }
  c.give(with_bias(y, c.maybe(2)));
}

void batch_norm_op(NodeCall& c) {
  const double eps = c.real("epsilon", 1e-5), momentum = c.real("momentum", 0.9);
  const bool training = c.integer("training_mode", 0) != 0;
  for (const char* name : {"is_test", "consumed_inputs", "spatial"}) c.ignore(name);
  if (!training) {
    return c.give(batch_norm(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), {.eps = eps}));
  }
  c.give(batch_norm(c.in(0), c.in(1), c.in(2), Tensor(), Tensor(), {.training = true, .eps = eps}));
  if (c.outputs() == 1) return;
  const Tensor& x = c.in(0);
  Shape dims{0};
  for (int d = 2; d < x.dim(); ++d) dims.push_back(d);
  c.give(c.in(3) * momentum + mean(x, dims) * (1 - momentum));
  c.give(c.in(4) * momentum + var(x, dims, {.correction = 0}) * (1 - momentum));
}

void instance_norm_op(NodeCall& c) {
  c.ignore("consumed_inputs");
  c.give(instance_norm(c.in(0), c.in(1), c.in(2), {.eps = c.real("epsilon", 1e-5)}));
}

void layer_norm_op(NodeCall& c) {
  const Tensor& x = c.in(0);
  const int from = int(from_front(c, c.integer("axis", -1), x.dim()));
  const double eps = c.real("epsilon", 1e-5);
  c.ignore("stash_type");
  const Shape rows = x.sizes().slice(from, x.dim());
  const Tensor bias = c.has(2) ? c.in(2).expand(rows) : Tensor();
  c.give(layer_norm(x, rows, c.in(1).expand(rows), bias, {.eps = eps}));
  if (c.outputs() == 1) return;
  Shape dims;
  for (int d = from; d < x.dim(); ++d) dims.push_back(d);
  c.give(mean(x, dims, {.keepdim = true}));
  c.give(rsqrt(var(x, dims, {.correction = 0, .keepdim = true}) + eps));
}

void mean_variance(NodeCall& c) {
  const Tensor& x = c.in(0);
  const Shape dims = shape_of(c, c.integers("axes", {0, 2, 3}));
  const Tensor d = x - mean(x, dims, {.keepdim = true});
  c.give(d / (sqrt(mean(square(d), dims, {.keepdim = true})) + 1e-9));
}

void lrn(NodeCall& c) {
  const Tensor& x = c.in(0);
  const double alpha = c.real("alpha", 1e-4), beta = c.real("beta", 0.75), bias = c.real("bias", 1);
  const int64_t size = c.integer("size", 0), before = (size - 1) / 2;
  if (size < 1 || x.dim() < 2) c.fail("needs x [N,C,…] and a size ≥ 1");
  const Tensor last = movedim(square(x), 1, x.dim() - 1);
  const Tensor padded = pad(last, {before, size - 1 - before});
  const Tensor sums = movedim(sum(unfold(padded, -1, size, 1), -1), x.dim() - 1, 1);
  c.give(x / pow(sums * (alpha / double(size)) + bias, beta));
}

void lp_norm(NodeCall& c) {
  const int64_t p = c.integer("p", 2);
  c.give(c.in(0) / norm(c.in(0), c.integer("axis", -1), {.p = double(p), .keepdim = true}));
}

Reduction reduction(NodeCall& c) {
  const std::string how = c.text("reduction", "mean");
  if (how == "none") return Reduction::none;
  if (how == "sum") return Reduction::sum;
  if (how != "mean") c.fail("attribute 'reduction' is unknown: " + how);
  return Reduction::mean;
}

// Targets outside the classes are allowed where they are the ignored class.
void nll(NodeCall& c) {
  c.give(nll_loss(c.in(0), c.in(1),
                  {.weight = c.maybe(2),
                   .ignore_index = c.integer("ignore_index", INT64_MIN),
                   .reduction = reduction(c)}));
}
void softmax_cross_entropy(NodeCall& c) {
  c.give(cross_entropy(c.in(0), c.in(1),
                       {.weight = c.maybe(2),
                        .ignore_index = c.integer("ignore_index", INT64_MIN),
                        .reduction = reduction(c)}));
  if (c.outputs() > 1) c.give(log_softmax(c.in(0), 1));
}

constexpr Operator kOperators[] = {
    {"BatchNormalization", batch_norm_op, "batch_norm"},
    {"Conv", conv_op, "conv"},
    {"ConvTranspose", conv_transpose, "conv_input_grad"},
    {"InstanceNormalization", instance_norm_op, "group_norm"},
    {"LRN", lrn, "unfold, sum, pow"},
    {"LayerNormalization", layer_norm_op, "layer_norm"},
    {"LpNormalization", lp_norm, "norm"},
    {"MeanVarianceNormalization", mean_variance, "mean, sqrt"},
    {"NegativeLogLikelihoodLoss", nll, "nll_loss"},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy, "cross_entropy"}};

}  // namespace

std::span<const Operator> layer_operators() { return kOperators; }

}  // namespace cutaway::onnx
