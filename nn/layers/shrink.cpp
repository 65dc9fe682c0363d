#include <cutaway/nn/layers/shrink.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {
namespace {

double checked_lambda(const char* layer, double lambd) {
  if (!(lambd >= 0)) {
    throw ValueError(layer, fmt::format(".lambd must not be negative; got {}", lambd));
  }
  return lambd;
}

}  // namespace

Tensor GLU::forward(const Tensor& x) {
  const int dim = normalize_dim("GLU", dim_, x.dim());
  if (x.dim() == 0 || x.size(dim) % 2 != 0) {
    throw ShapeError("GLU", fmt::format("the size of dimension {} must be even; got {}", dim_,
                                        to_string(x.sizes())));
  }
  const Tensors halves = tensor_split(x, 2, dim);
  return halves[0] * sigmoid(halves[1]);
}

Tensor Softmax2d::forward(const Tensor& x) {
  if (x.dim() != 3 && x.dim() != 4) {
    throw ShapeError("Softmax2d", "x must be [N,C,H,W] or [C,H,W]; got " + to_string(x.sizes()));
  }
  return softmax(x, -3);
}

Hardshrink::Hardshrink(const ShrinkOptions& o) : lambd_(checked_lambda("Hardshrink", o.lambd)) {}
Tensor Hardshrink::forward(const Tensor& x) { return where(le(abs(x), lambd_), 0.0, x); }

Softshrink::Softshrink(const ShrinkOptions& o) : lambd_(checked_lambda("Softshrink", o.lambd)) {}
Tensor Softshrink::forward(const Tensor& x) { return relu(x - lambd_) - relu(-x - lambd_); }

Tensor Tanhshrink::forward(const Tensor& x) { return x - tanh(x); }

Tensor Threshold::forward(const Tensor& x) {
  return where(le(x, options_.threshold), options_.value, x);
}

RReLU::RReLU(const RReLUOptions& o) : options_(o) {
  if (!(o.lower <= o.upper)) {
    throw ValueError("RReLU",
                     fmt::format(".lower must not exceed .upper; got {} and {}", o.lower, o.upper));
  }
}
Tensor RReLU::forward(const Tensor& x) {
  const double low = options_.lower, high = options_.upper;
  if (!training()) return leaky_relu(x, (low + high) / 2);
  const Tensor slope = rand(x.sizes(), {x.dtype(), x.device()}) * (high - low) + low;
  return relu(x) - slope * relu(-x);
}

}  // namespace cutaway::nn
