#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/ops/activation.h>

namespace cutaway {

void relu_samples(SampleList& list) {
  const Unary op = [](const Tensor& x) { return relu(x); };
  unary_samples(list, op, [](double x) { return std::fmax(x, 0); }, {-2, 2, {0}});
}

}  // namespace cutaway
