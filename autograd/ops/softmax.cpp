#include <cutaway/autograd/ops/softmax.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/core/kernels/rows.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

void softmax_samples(SampleList&);
void log_softmax_samples(SampleList&);

namespace {

struct SoftmaxAttrs {
  int64_t dim;
};

SoftmaxArgs softmax_args(const char* op, const Tensor& in, const Tensor& out, int64_t dim) {
  SoftmaxArgs a{.in = in.raw(), .out = out.raw()};
  const int d = normalize_dim(op, dim, in.dim());
  const Shape& sizes = in.sizes();
  for (int i = 0; i < sizes.rank(); ++i) (i < d ? a.outer : i == d ? a.n : a.inner) *= sizes[i];
  return a;
}

void softmax_forward(Call& c, Kernel<SoftmaxArgs>& kernel) {
  const int64_t dim = c.attrs<SoftmaxAttrs>().dim;
  c.require_dtype(0);
  const Tensor& in = c.in(0);
  normalize_dim(c.op.name, dim, in.dim());
  const Tensor& y = c.out(0, in.sizes(), in.dtype());
  if (c.meta()) return;
  Tensor dense;
  if (!in.is_contiguous()) dense = contiguous_raw(in);
  const Tensor& x = dense.defined() ? dense : in;
  kernel(x.device(), x.dtype(), softmax_args(c.op.name, x, y, dim));
}

void softmax_fast_backward(Backward& b, Kernel<SoftmaxArgs>& kernel) {
  const Tensor y = b.output(), g = contiguous_raw(b.upstream());
  const Tensor dx = empty_like(y);
  if (!y.is_meta()) {
    SoftmaxArgs a = softmax_args("softmax", y, dx, b.attrs<SoftmaxAttrs>().dim);
    a.grad = g.raw();
    kernel(y.device(), y.dtype(), a);
  }
  b.set(0, dx);
}

const OpRecord kSoftmax{
    .name = "softmax",
    .signature = "softmax(x, dim) → y",
    .meaning = "Positive numbers of sum 1 along a dimension, in the ratios exp(x).",
    .formula = "y_i = exp(x_i) / Σ_j exp(x_j), computed as exp(x_i − max x)",
    .shapes = "x [..., n, ...]   y [..., n, ...]",
    .compute = Compute::f32,
    .save_outputs = 1,
    .forward = [](Call& c) { softmax_forward(c, kernels::softmax); },
    .backward_text = "dx = y ⊙ (g − Σ g ⊙ y)",
    .backward =
        [](Backward& b) {
          const Tensor y = b.output(), &g = b.upstream();
          b.set(0, y * (g - sum(g * y, b.attrs<SoftmaxAttrs>().dim, {.keepdim = true})));
        },
    .fast_backward = [](Backward& b) { softmax_fast_backward(b, kernels::softmax_backward); },
    .samples = softmax_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(c.node("Softmax", {c.name(0)}, {{"axis", c.dim(c.attrs<SoftmaxAttrs>().dim)}}));
        },
};

const OpRecord kLogSoftmax{
    .name = "log_softmax",
    .signature = "log_softmax(x, dim) → y",
    .meaning = "Logarithm of softmax, without loss where that is near 0.",
    .formula = "y_i = x_i − max x − log Σ_j exp(x_j − max x)",
    .shapes = "x [..., n, ...]   y [..., n, ...]",
    .compute = Compute::f32,
    .save_outputs = 1,
    .forward = [](Call& c) { softmax_forward(c, kernels::log_softmax); },
    .backward_text = "dx = g − exp(y) Σ g",
    .backward =
        [](Backward& b) {
          const Tensor& g = b.upstream();
          const Tensor total = sum(g, b.attrs<SoftmaxAttrs>().dim, {.keepdim = true});
          b.set(0, g - exp(b.output()) * total);
        },
    .fast_backward = [](Backward& b) { softmax_fast_backward(b, kernels::log_softmax_backward); },
    .samples = log_softmax_samples,
    .onnx =
        [](OnnxCall& c) {
          c.result(
              c.node("LogSoftmax", {c.name(0)}, {{"axis", c.dim(c.attrs<SoftmaxAttrs>().dim)}}));
        },
};

}  // namespace

Tensor softmax(TensorArg x, int64_t dim) { return run(kSoftmax, {x}, SoftmaxAttrs{dim}); }
Tensor log_softmax(TensorArg x, int64_t dim) { return run(kLogSoftmax, {x}, SoftmaxAttrs{dim}); }
Tensor softmin(TensorArg x, int64_t dim) {
  CallScope scope(x.site);
  return softmax(neg(x), dim);
}

void register_softmax_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kSoftmax, &kLogSoftmax});
}

}  // namespace cutaway
