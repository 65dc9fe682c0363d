#include <cutaway/nn/layers/dropout.h>

#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/random.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {

Dropout::Dropout(const DropoutOptions& o) : p_(require_share("Dropout", "p", o.p)) {}
Tensor Dropout::forward(const Tensor& x) { return training() && p_ > 0 ? dropout(x, p_) : x; }

Dropout2d::Dropout2d(const DropoutOptions& o) : p_(require_share("Dropout2d", "p", o.p)) {}
Tensor Dropout2d::forward(const Tensor& x) {
  if (x.dim() < 2) {
    throw ShapeError("Dropout2d", fmt::format("x needs channels; got {}, need [N,C,spatial…]",
                                              to_string(x.sizes())));
  }
  if (!training() || p_ == 0) return x;
  Shape sizes = Shape::filled(x.dim(), 1);
  sizes[0] = x.size(0);
  sizes[1] = x.size(1);
  return x * dropout(ones(sizes, {x.dtype(), x.device()}), p_);
}

}  // namespace cutaway::nn
