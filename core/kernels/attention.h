#pragma once
#include <cutaway/core/kernel.h>
#include <cutaway/core/shape.h>

namespace cutaway {

// Scaled dot-product attention of `batch` independent heads:
//   s_ij = scale Σ_d q_id k_jd (+ mask_ij),  p_ij = exp(s_ij) / Σ_j exp(s_ij),  o_ie = Σ_j p_ij
//   v_je.
// q [queries, depth], k [keys, depth], v [keys, width], o [queries, width]; last strides are 1,
// o and all gradients are dense. A query that may look nowhere gives o = 0 and lse = -inf. Kernels
// of bf16 and f16 take depth and width up to kHalfAttentionColumns; `added` and lse are f32 there.
inline constexpr int64_t kHalfAttentionColumns = 128;
struct AttentionArgs {
  int rank = 0;  // batch dimensions
  int64_t batch = 1;
  int64_t sizes[kMaxRank] = {};
  int64_t strides[4][kMaxRank] = {};  // q, k, v, mask; 0 repeats
  int64_t queries = 0, keys = 0, depth = 0, width = 0;
  int64_t q_row = 0, k_row = 0, v_row = 0, mask_row = 0, mask_column = 0;
  double scale = 1;
  bool causal = false;  // query i may look at keys 0 … i
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const bool* allowed = nullptr;   // boolean mask: may look
  const void* added = nullptr;     // or values added to s
  void* o = nullptr;               // backward reads it
  void* lse = nullptr;             // [batch, queries]: log Σ_j exp(s_ij); backward reads it
  const void* upstream = nullptr;  // backward only, the rest too; dense like o
  void* dq = nullptr;              // written, dense [batch, queries, depth]
  void* dk = nullptr;
  void* dv = nullptr;
};

inline void visit_args(ArgumentVisitor& v, AttentionArgs& a) {
  v.numbers({{"batch", a.batch}, {"queries", a.queries}, {"keys", a.keys}, {"depth", a.depth}});
  v.reads(a.q);
  v.reads(a.k);
  v.reads(a.v);
  v.reads(a.allowed);
  v.reads(a.added);
  if (a.upstream) {
    v.reads(a.upstream);
    v.reads(a.o);
    v.reads(a.lse);
  } else {
    v.writes(a.o);
    v.writes(a.lse);
  }
  v.writes(a.dq);
  v.writes(a.dk);
  v.writes(a.dv);
}

namespace kernels {
inline constinit Kernel<AttentionArgs> attention{"attention"};
inline constinit Kernel<AttentionArgs> attention_backward{"attention_backward"};
}  // namespace kernels

}  // namespace cutaway
