#include <cutaway/nn/layers/reshape.h>

#include <cutaway/autograd/ops/shape.h>

namespace cutaway::nn {

Tensor Flatten::forward(const Tensor& x) {
  return flatten(x, options_.start_dim, options_.end_dim);
}
Tensor Unflatten::forward(const Tensor& x) { return unflatten(x, options_.dim, options_.sizes); }

}  // namespace cutaway::nn
