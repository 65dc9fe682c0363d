#pragma once
#include <cutaway/core/kernel.h>

// What training with very many labels does to each logit and to each weight.
namespace cutaway {

// Gradients of the losses of n logits, as if each label were a negative one, in the memory of the
// logits, times `scale`. Binary cross entropy: σ(z), loss log(1 + eᶻ). Squared hinge: 2 (1 + z)₊,
// loss (1 + z)₊².
struct NegativeLossArgs {
  int64_t n = 0;
  bool hinge = false;
  float scale = 1;
  void* z = nullptr;
  double* loss = nullptr;  // one value, the sum of the losses without `scale`; or null
};

// A step of SGD with stochastic rounding of the weights: g ← g + decay · w; m ← momentum · m + g;
// w ← w − lr · m, in f32. Element i of the n is element first + i of its tensor and is rounded up
// or down by the upper 16 bits of word (first + i) of the stream `stream` of math::philox4, blocks
// from `block` on: those bits are added to the lower half of the f32 value, which is then cut. Inf
// and NaN are cut only.
struct RoundedSgdArgs {
  int64_t n = 0, first = 0;
  void* param = nullptr;  // bf16
  const float* grad = nullptr;
  float* buffer = nullptr;  // m, or null: none
  float lr = 0, momentum = 0, weight_decay = 0;
  uint64_t seed = 0, stream = 0, block = 0;
};

inline void visit_args(ArgumentVisitor& v, NegativeLossArgs& a) {
  v.numbers({{"n", a.n}});
  v.changes(a.z);
  v.writes(a.loss);
}
inline void visit_args(ArgumentVisitor& v, RoundedSgdArgs& a) {
  v.numbers({{"n", a.n}});
  v.changes(a.param);
  v.reads(a.grad);
  v.changes(a.buffer);
}

namespace kernels {
inline constinit Kernel<NegativeLossArgs> negative_loss{"negative_loss"};
inline constinit Kernel<RoundedSgdArgs> rounded_sgd{"rounded_sgd"};
}  // namespace kernels

}  // namespace cutaway
