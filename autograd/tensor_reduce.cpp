#include <cutaway/autograd/ops/reduce.h>

namespace cutaway {

Tensor Tensor::sum(At at) const { return cutaway::sum(TensorArg(*this, at)); }

}  // namespace cutaway
