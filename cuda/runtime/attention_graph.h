#pragma once
#include <cutaway/cuda/lib/attention.h>
#include <cutaway/cuda/runtime/dnn.h>

// Attention as graphs of cuDNN's operations.
namespace cutaway::cuda::gpu {

// What a plan depends on; compared as bytes, so without gaps.
struct AttentionKey {
  int64_t pass, dtype, causal;
  int64_t batch, heads, queries, keys, depth, width;
  int64_t q[3], k[3], v[3];  // distances of batches, heads, rows

  AttentionKey(AttentionPass pass, DType dtype, const AttentionArgs& a);
  bool operator<(const AttentionKey& o) const;
};

// Names of the arrays of a graph. kDots [batch, heads, queries] is scratch of the backward pass,
// f32; scalars are f32 of the host.
enum AttentionUid : int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOutput,
  kLse,
  kUpstream,
  kQueryGrad,
  kKeyGrad,
  kValueGrad,
  kDots,
  kScale,
  kBlind,  // -inf
  kOne
};

// Raises CudaError when the library cannot describe the graph.
dnn::Plan attention_plan(const AttentionKey& key);

}  // namespace cutaway::cuda::gpu
