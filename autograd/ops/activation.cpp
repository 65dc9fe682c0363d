#include <cutaway/autograd/ops/activation.h>

#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementwise.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/pointwise_samples.h>

namespace cutaway {
namespace {

const OpRecord kRelu{.name = "relu",
                     .signature = "relu(x) → y",
                     .meaning = "Positive part; its derivative at 0 is taken as 0.",
                     .formula = "y = max(x, 0)",
                     .shapes = kSameShape,
                     .save_outputs = 1,
                     .forward = forward<kernels::relu, Types::floating>,
                     .backward_text = "dx = y > 0 ? g : 0",
                     .backward =
                         [](Backward& b) {
                           b.set(0, masked_fill(b.upstream(), le(b.output(), 0), 0));
                         },
                     .fast_backward = fast_from_output<kernels::relu_grad>,
                     .samples = relu_samples};

}  // namespace

Tensor relu(TensorArg x) { return run(kRelu, {x}); }

void register_activation_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kRelu});
}

}  // namespace cutaway
