#include <cutaway/nn/layers/activation.h>

#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {

PReLU::PReLU(const PReLUOptions& o) {
  require_at_least("PReLU", "num_parameters", o.num_parameters, 1);
  weight = full({o.num_parameters}, o.init);
  add("weight", weight);
}

Tensor PReLU::forward(const Tensor& x) {
  Tensor w = weight;
  if (weight.numel() > 1) {
    if (x.dim() < 2 || x.size(1) != weight.numel()) {
      throw ShapeError("PReLU", fmt::format("x must have {} channels; got {}", weight.numel(),
                                            to_string(x.sizes())));
    }
    Shape along = Shape::filled(x.dim(), 1);
    along[1] = weight.numel();
    w = reshape(weight, along);
  }
  return relu(x) - w * relu(-x);
}

}  // namespace cutaway::nn
