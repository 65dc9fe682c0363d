#pragma once
#include <cutaway/nn/layers/dropout.h>
#include <cutaway/nn/layers/linear.h>

namespace cutaway::nn {

struct MultiheadAttentionOptions {
  int64_t embed_dim = 0, num_heads = 1;
  double dropout = 0;  // of the attention weights, in training
  bool bias = true;
  bool batch_first = false;    // [N,T,E] instead of [T,N,E]
  bool add_bias_kv = false;    // one learned key and value more, for every input
  bool add_zero_attn = false;  // one key and value of zeros more
  int64_t kdim = 0, vdim = 0;  // sizes of keys and values; 0: embed_dim
  // Heads of keys and values, each shared by num_heads / num_kv_heads queries (grouped-query
  // attention, Ainslie et al. 2023); 0: num_heads.
  int64_t num_kv_heads = 0;
  bool rotary = false;  // queries and keys turn by their places, see position.h
  double rotary_base = 10000;
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

  // in_proj_weight [3E,E], or one weight each when kdim or vdim differ from E. Rows of keys and
  // values are num_kv_heads · E/num_heads each instead of E.
  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Tensor bias_k, bias_v;  // [1,1,rows of keys]
  Linear out_proj;

 private:
  Tensors project(const Tensor& q, const Tensor& k, const Tensor& v) const;
  Shape widths() const;                 // of queries, keys and values behind their projections
  Tensor heads(const Tensor& x) const;  // [N,T,heads·D] → [N,num_heads,T,D]
  Tensor positioned(const Tensor& x) const;
  Tensor mask(const AttendOptions& o, const Tensor& q, const Tensor& k) const;
  Tensor explicit_weights(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal) const;
  AttendResult run(const Tensor& query, const Tensor& key, const Tensor& value,
                   const AttendOptions& options);
  AttendResult attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttendOptions& o);

  MultiheadAttentionOptions options_;
};

}  // namespace cutaway::nn
