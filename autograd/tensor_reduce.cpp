#include <cutaway/autograd/ops/reduce.h>

namespace cutaway {

Tensor Tensor::sum(At at) const { return cutaway::sum(TensorArg(*this, at)); }
Tensor Tensor::mean(At at) const { return cutaway::mean(TensorArg(*this, at)); }

}  // namespace cutaway
