#pragma once
#include <cutaway/cuda/ladder.h>

// How softmax of rows gets fast, for f32. Each step reads x [outer, n] and writes
// y = exp(x − max) / Σ exp(x − max).
namespace cutaway::cuda::CUTAWAY_TARGET {

constexpr unsigned kLadderThreads = 256;

// The reference: what is written above, and nothing else.
KERNEL softmax_thread_per_row(SoftmaxArgs a) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= a.outer) return;
  const auto x = global<const float>(a.in) + row * a.n;
  const auto y = global<float>(a.out) + row * a.n;
  float m = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < a.n; ++i) {
    const float v = x[i];
    m = Larger()(m, v);
  }
  double total = 0;
  for (int64_t i = 0; i < a.n; ++i) {
    const float v = x[i];
    total += static_cast<double>(math::exp(v - m));
  }
  const float scale = static_cast<float>(1 / total);
  for (int64_t i = 0; i < a.n; ++i) {
    const float v = x[i];
    y[i] = math::exp(v - m) * scale;
  }
}

// The threads of a block merge their values in shared memory: halves onto halves.
template <class T, class F>
DEVICE T tree_in_shared_memory(T v, F merge) {
  SHARED(double, words, kLadderThreads);
  const auto parts = recast<T>(words);
  const int t = static_cast<int>(threadIdx.x);
  __syncthreads();
  parts[t] = v;
  __syncthreads();
  for (int half = kLadderThreads / 2; half > 0; half /= 2) {
    if (t < half) {
      const T a = parts[t], b = parts[t + half];
      parts[t] = merge(a, b);
    }
    __syncthreads();
  }
  return parts[0];
}
KERNEL softmax_block_per_row(SoftmaxArgs a) {
  const auto x = global<const float>(a.in) + static_cast<int64_t>(blockIdx.x) * a.n;
  const auto y = global<float>(a.out) + static_cast<int64_t>(blockIdx.x) * a.n;
  float m = -std::numeric_limits<float>::infinity();
  for (int64_t i = threadIdx.x; i < a.n; i += kLadderThreads) {
    const float v = x[i];
    m = Larger()(m, v);
  }
  m = tree_in_shared_memory(m, Larger());
  double total = 0;
  for (int64_t i = threadIdx.x; i < a.n; i += kLadderThreads) {
    const float v = x[i];
    total += static_cast<double>(math::exp(v - m));
  }
  total = tree_in_shared_memory(total, Plus());
  const float scale = static_cast<float>(1 / total);
  for (int64_t i = threadIdx.x; i < a.n; i += kLadderThreads) {
    const float v = x[i];
    y[i] = math::exp(v - m) * scale;
  }
}

KERNEL softmax_warp_per_row(SoftmaxArgs a) {
  const Team team = this_team(32);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kLadderThreads / 32) + team.index;
  if (row >= a.outer) return;
  const auto x = global<const float>(a.in) + row * a.n;
  const auto y = global<float>(a.out) + row * a.n;
  float m = -std::numeric_limits<float>::infinity();
  for (int64_t i = team.lane; i < a.n; i += 32) {
    const float v = x[i];
    m = Larger()(m, v);
  }
  m = team_reduce(team, m, Larger());
  double total = 0;
  for (int64_t i = team.lane; i < a.n; i += 32) {
    const float v = x[i];
    total += static_cast<double>(math::exp(v - m));
  }
  total = team_reduce(team, total, Plus());
  const float scale = static_cast<float>(1 / total);
  for (int64_t i = team.lane; i < a.n; i += 32) {
    const float v = x[i];
    y[i] = math::exp(v - m) * scale;
  }
}

inline Launch ladder_launch(const char* name, int64_t blocks) {
  return {.name = name, .grid = {static_cast<unsigned>(blocks)}, .block = {kLadderThreads}};
}
inline bool nothing_to_do(const SoftmaxArgs& a) { return a.outer == 0 || a.n == 0; }

inline Ladder<SoftmaxArgs> softmax_ladder() {
  return {
      {"thread per row",
       "One thread does a row as the formula stands. Lanes of a warp read addresses a row apart: "
       "of every 32 bytes that travel, 4 are used.",
       [](const SoftmaxArgs& a) {
         if (nothing_to_do(a)) return;
         launch(ladder_launch("softmax_thread_per_row", blocks_for(a.outer, kLadderThreads)),
                softmax_thread_per_row, a);
       }},
      {"block per row",
       "Neighbouring threads read neighbouring elements, so that all bytes that travel are used. "
       "Partial results meet in a tree in shared memory, a barrier for each of its levels.",
       [](const SoftmaxArgs& a) {
         if (nothing_to_do(a)) return;
         launch(ladder_launch("softmax_block_per_row", a.outer), softmax_block_per_row, a);
       }},
      {"warp per row",
       "The lanes of one warp exchange registers by shuffles: no shared memory and no barrier. "
       "Short rows leave no thread idle; the row is still read three times.",
       [](const SoftmaxArgs& a) {
         if (nothing_to_do(a)) return;
         launch(ladder_launch("softmax_warp_per_row", blocks_for(a.outer, kLadderThreads / 32)),
                softmax_warp_per_row, a);
       }},
      {"two passes",
       "Maximum and sum are found in one pass: when the maximum grows, the sum so far is scaled by "
       "exp(old − new). The row is read twice.",
       [](const SoftmaxArgs& a) {
         if (nothing_to_do(a)) return;
         launch_rows<float, false, false, 1, Storage::none>(
             a, power_of_two_from((a.n + 7) / 8, kRowThreads));
       }},
      {"row in registers",
       "A row is read once, 16 bytes at a time, and stays in the registers of a team of lanes or "
       "warps (in shared memory when it is longer): one read, one write.",
       &softmax_any<float, false, false>},
  };
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
