#pragma once
#include <cutaway/cuda/ladder.h>

// How attention gets fast, forward in f32. The steps before the last know no mask but the causal
// one.
namespace cutaway::cuda::CUTAWAY_TARGET {

// Operands of the head of a block row.
struct PlainHead {
  int64_t q = 0, k = 0, v = 0;
};
DEVICE PlainHead plain_head(const AttentionArgs& x, int64_t head) {
  PlainHead h;
  for (int d = x.rank - 1; d >= 0; --d) {
    const int64_t at = head % x.sizes[d];
    head /= x.sizes[d];
    h.q += at * x.strides[0][d];
    h.k += at * x.strides[1][d];
    h.v += at * x.strides[2][d];
  }
  return h;
}

// The reference: a thread does one query in three passes over the keys.
KERNEL attention_three_passes(AttentionArgs x) {
  const int64_t head = blockIdx.y, query = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (query >= x.queries) return;
  const PlainHead h = plain_head(x, head);
  const auto q = global<const float>(x.q) + (h.q + query * x.q_row);
  const auto k = global<const float>(x.k) + h.k, v = global<const float>(x.v) + h.v;
  const auto o = global<float>(x.o) + (head * x.queries + query) * x.width;
  const auto lse = global<float>(x.lse);
  const int64_t end = x.causal ? min(x.keys, query + 1) : x.keys;
  const auto score = [&](int64_t key) {
    float sum = 0;
    for (int64_t d = 0; d < x.depth; ++d) {
      const float a = q[d], b = k[key * x.k_row + d];
      sum = math::detail::madd(a, b, sum);
    }
    return sum * float(x.scale);
  };
  float most = -math::detail::kInfF;
  for (int64_t key = 0; key < end; ++key) most = larger(most, score(key));
  double total = 0;
  for (int64_t key = 0; key < end; ++key) total += double(math::exp(score(key) - most));
  for (int64_t e = 0; e < x.width; ++e) o[e] = 0;
  for (int64_t key = 0; key < end; ++key) {
    const float p = math::exp(score(key) - most) * float(1 / total);
    for (int64_t e = 0; e < x.width; ++e) {
      const float w = v[key * x.v_row + e];
      o[e] += p * w;
    }
  }
  lse[head * x.queries + query] = float(double(most) + math::log(total));
}

// A thread does one query; q and o stay in its registers, keys and values come through shared
// memory, 32 of them at a time, for all queries of the block.
inline constexpr int kOnlineThreads = 128, kOnlineKeys = 32, kOnlineDepth = 64;

KERNEL attention_online(AttentionArgs x) {
  SHARED(float, keys, kOnlineKeys* kOnlineDepth);
  SHARED(float, values, kOnlineKeys* kOnlineDepth);
  const int64_t head = blockIdx.y, query = int64_t(blockIdx.x) * kOnlineThreads + threadIdx.x;
  const PlainHead h = plain_head(x, head);
  const auto k = global<const float>(x.k) + h.k, v = global<const float>(x.v) + h.v;
  const auto o = global<float>(x.o), lse = global<float>(x.lse);
  float q[kOnlineDepth] = {}, out[kOnlineDepth] = {};
  if (query < x.queries) {
    const auto from = global<const float>(x.q) + (h.q + query * x.q_row);
    for (int d = 0; d < kOnlineDepth; ++d) {
      if (d < x.depth) q[d] = from[d];
    }
  }
  float most = -math::detail::kInfF;
  double total = 0;
  const int64_t last = int64_t(blockIdx.x + 1) * kOnlineThreads;
  const int64_t end = x.causal ? min(x.keys, last) : x.keys;
  for (int64_t k0 = 0; k0 < end; k0 += kOnlineKeys) {
    __syncthreads();
    for (int t = int(threadIdx.x); t < kOnlineKeys * kOnlineDepth; t += kOnlineThreads) {
      const int64_t key = k0 + t / kOnlineDepth, d = t % kOnlineDepth;
      float a = 0, b = 0;
      if (key < x.keys && d < x.depth) a = k[key * x.k_row + d];
      if (key < x.keys && d < x.width) b = v[key * x.v_row + d];
      keys[t] = a;
      values[t] = b;
    }
    __syncthreads();
    for (int j = 0; j < kOnlineKeys; ++j) {
      if (k0 + j >= x.keys || (x.causal && k0 + j > query)) continue;
      float s = 0;
      for (int d = 0; d < kOnlineDepth; ++d) {
        const float b = keys[j * kOnlineDepth + d];
        s = math::detail::madd(q[d], b, s);
      }
      s *= float(x.scale);
      const float top = larger(most, s), keep = math::exp(most - top), p = math::exp(s - top);
      most = top;
      total = total * double(keep) + double(p);
      for (int e = 0; e < kOnlineDepth; ++e) {
        const float w = values[j * kOnlineDepth + e];
        out[e] = math::detail::madd(p, w, out[e] * keep);
      }
    }
  }
  if (query >= x.queries) return;
  for (int e = 0; e < kOnlineDepth; ++e) {
    if (e < x.width) o[(head * x.queries + query) * x.width + e] = out[e] * float(1 / total);
  }
  lse[head * x.queries + query] = float(double(most) + math::log(total));
}

inline bool attention_plain(const AttentionArgs& x) {
  return x.batch > 0 && x.queries > 0 && x.keys > 0 && x.batch <= 65535 && !x.allowed && !x.added;
}
inline void run_attention_passes(const AttentionArgs& x) {
  if (!attention_plain(x)) return attention<float>(x);
  launch({.name = "attention_three_passes",
          .grid = {unsigned(blocks_for(x.queries, 64)), unsigned(x.batch)},
          .block = {64},
          .sync = Sync::none},
         attention_three_passes, x);
}
inline void run_attention_online(const AttentionArgs& x) {
  if (!attention_plain(x) || x.depth > kOnlineDepth || x.width > kOnlineDepth) {
    return attention<float>(x);
  }
  launch({.name = "attention_online",
          .grid = {unsigned(blocks_for(x.queries, kOnlineThreads)), unsigned(x.batch)},
          .block = {kOnlineThreads}},
         attention_online, x);
}

inline Ladder<AttentionArgs> attention_ladder() {
  return {
      {"three passes",
       "A thread takes one query: the largest score, the sum of exponentials, the weighted sum of "
       "values. Scores are made three times, and o is read and written once for every key.",
       &run_attention_passes},
      {"online softmax",
       "One pass: when the largest score grows, what was summed so far shrinks by exp(old − new). "
       "Keys and values come through shared memory once for 128 queries; o stays in registers.",
       &run_attention_online},
      {"square tiles",
       "Scores of 64 queries and 64 keys at once, 4 × 4 in the registers of a thread, so that a "
       "shared read serves four multiplications; rows are reduced by shuffles of half a warp.",
       &attention<float>},
  };
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
