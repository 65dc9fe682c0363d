#include <cutaway/nn/layers/linear.h>

#include <cmath>

#include <cutaway/autograd/ops/linear.h>
#include <cutaway/nn/init.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {

Linear::Linear(const LinearOptions& o) {
  require_at_least("Linear", "in", o.in, 0);
  require_at_least("Linear", "out", o.out, 0);
  const double bound = o.in > 0 ? 1 / std::sqrt(double(o.in)) : 0;
  weight = init::uniform_(empty({o.out, o.in}), -bound, bound);
  if (o.bias) bias = init::uniform_(empty({o.out}), -bound, bound);
  add("weight", weight);
  add("bias", bias);
}
Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }

Bilinear::Bilinear(const BilinearOptions& o) {
  require_at_least("Bilinear", "in1", o.in1, 1);
  require_at_least("Bilinear", "in2", o.in2, 1);
  require_at_least("Bilinear", "out", o.out, 1);
  const double bound = 1 / std::sqrt(double(o.in1));
  weight = init::uniform_(empty({o.out, o.in1, o.in2}), -bound, bound);
  if (o.bias) bias = init::uniform_(empty({o.out}), -bound, bound);
  add("weight", weight);
  add("bias", bias);
}
Tensor Bilinear::operator()(const Tensor& a, const Tensor& b) {
  Scope scope(*this);
  return scope.done(bilinear(a, b, weight, bias));
}

}  // namespace cutaway::nn
