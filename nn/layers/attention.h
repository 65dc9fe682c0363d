#pragma once
#include <cutaway/nn/layers/dropout.h>
#include <cutaway/nn/layers/linear.h>

namespace cutaway::nn {

struct MultiheadAttentionOptions {
  int64_t embed_dim = 0, num_heads = 1;
  double dropout = 0;  // of the attention weights, in training
  bool bias = true;
  bool batch_first = false;    // [N,T,E] instead of [T,N,E]
  int64_t kdim = 0, vdim = 0;  // sizes of keys and values; 0: embed_dim
};
// How one call attends. Boolean masks: true may NOT be looked at; floating ones are added to the
// scores. A query that may look nowhere gives the bias of the output projection.
struct AttendOptions {
  Tensor key_padding_mask;  // [N,S]
  Tensor attn_mask;         // [T,S] or [N·heads,T,S]
  bool is_causal = false;   // query i looks at keys 0 … i, besides what the masks say
  bool need_weights = false;
  bool average_attn_weights = true;
};
struct AttendResult {
  Tensor output;   // like the query
  Tensor weights;  // if asked for: [N,T,S], or [N,heads,T,S] when not averaged
};
// Attention with several heads, as torch.nn.MultiheadAttention: projections of query, key, value,
// one scaled dot-product attention a head, projection of the joined heads (Vaswani et al. 2017).
// Without need_weights the T·S weights are never held in memory. Inputs may lack the batch
// dimension.
class MultiheadAttention : public Module {
 public:
  explicit MultiheadAttention(const MultiheadAttentionOptions& options);
  AttendResult operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttendOptions& options = {});
  // Self-attention.
  using Module::operator();
  Tensor forward(const Tensor& x) override;

  // in_proj_weight [3E,E], or one weight each when kdim or vdim differ from E.
  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Linear out_proj;

 private:
  Tensors project(const Tensor& q, const Tensor& k, const Tensor& v) const;
  Tensor heads(const Tensor& x) const;  // [N,T,E] → [N,heads,T,E/heads]
  Tensor mask(const AttendOptions& o, const Tensor& q, const Tensor& k) const;
  Tensor explicit_weights(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal) const;
  AttendResult run(const Tensor& query, const Tensor& key, const Tensor& value,
                   const AttendOptions& options);
  AttendResult attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendOptions& o);

  MultiheadAttentionOptions options_;
};

}  // namespace cutaway::nn
