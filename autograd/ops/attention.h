#pragma once
#include <optional>

#include <cutaway/autograd/op.h>

namespace cutaway {

struct AttentionOptions {
  // Broadcasts to [..., T, S]. Boolean: true means may look. Floating, of the type of q: added to
  // the scores, -inf hides a key.
  Tensor mask;
  bool causal = false;          // query i may look at keys 0 … i (upper left corner)
  std::optional<double> scale;  // default 1/√D
  double dropout = 0;           // probability that a weight is dropped; the others grow
};

// Scaled dot-product attention: y = softmax(scale · q kᵀ + mask) v. q [..., T, D], k [..., S, D],
// v [..., S, E], y [..., T, E]; leading dimensions (batch, heads) broadcast. A query that may look
// nowhere gives 0, and gradients of 0. Fused, so that memory grows with T + S and not with T · S,
// unless weights are dropped. Raises ShapeError and DTypeError, and ValueError for dropout outside
// [0, 1].
Tensor scaled_dot_product_attention(TensorArg q, TensorArg k, TensorArg v,
                                    const AttentionOptions& options = {});
struct AttentionResult {
  Tensor output, lse;
};
// The same with the logarithm of each query's normaliser, lse [..., T] = log Σ_j exp(s_j) (f32 for
// 16-bit types, −inf where a query may look nowhere). Heads over parts of the keys are joined under
// one softmax by it: y = Σ_h exp(lse_h − lse) y_h, lse = log Σ_h exp(lse_h). Raises ShapeError for
// no keys, ValueError for dropout.
AttentionResult attention_with_lse(TensorArg q, TensorArg k, TensorArg v,
                                   const AttentionOptions& options = {});
// scaled_dot_product_attention from public ops, with all T · S probabilities in memory: the
// reference of the fused form.
Tensor attention_composite(TensorArg q, TensorArg k, TensorArg v,
                           const AttentionOptions& options = {});

}  // namespace cutaway
