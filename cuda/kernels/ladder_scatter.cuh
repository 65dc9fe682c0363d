#pragma once
#include <cutaway/cuda/ladder.h>

// How adding rows at indices gets fast, for f32: y [outer, n, inner] += rows of x
// [outer, count, inner] at index [count]. All but the atomics give the same bits every time.
namespace cutaway::cuda::CUTAWAY_TARGET {

// The reference: the columns of y side by side, each row of x after the other.
KERNEL scatter_row_by_row(ReduceRowsArgs a) {
  const int64_t i = thread_number();
  if (i >= a.outer * a.inner) return;
  const int64_t o = i / a.inner, j = i % a.inner;
  const auto x = global<const float>(a.in);
  const auto y = global<float>(a.out);
  for (int64_t k = 0; k < a.count; ++k) {
    const int64_t t = global<const int64_t>(a.index)[k];
    if (t >= 0) y[(o * a.n + t) * a.inner + j] += x[(o * a.count + k) * a.inner + j];
  }
}

KERNEL scatter_thread_per_output(ReduceRowsArgs a) {
  const int64_t i = thread_number();
  if (i >= a.outer * a.n * a.inner) return;
  const int64_t row = i / a.inner, j = i % a.inner, o = row / a.n, t = row % a.n;
  const auto x = global<const float>(a.in);
  double sum = 0;
  for (int64_t k = 0; k < a.count; ++k) {
    const int64_t target = global<const int64_t>(a.index)[k];
    if (target != t) continue;
    const float v = x[(o * a.count + k) * a.inner + j];
    sum += static_cast<double>(v);
  }
  const auto y = global<float>(a.out);
  const float old = y[i];
  y[i] = static_cast<float>(static_cast<double>(old) + sum);
}

KERNEL scatter_global_atomics(ReduceRowsArgs a) {
  const int64_t i = thread_number();
  if (i >= a.outer * a.count * a.inner) return;
  const int64_t row = i / a.inner, j = i % a.inner, o = row / a.count;
  const int64_t t = global<const int64_t>(a.index)[row % a.count];
  if (t < 0) return;
  const float v = global<const float>(a.in)[i];
  atomic_add(global<float>(a.out), (o * a.n + t) * a.inner + j, v);
}

inline constexpr int kTileTargets = 128, kTileColumns = 32, kTileThreads = 256;

// One block: kTileTargets targets, kTileColumns columns.
KERNEL scatter_shared_atomics(ReduceRowsArgs a) {
  SHARED(float, tile, kTileTargets* kTileColumns);
  const int t = static_cast<int>(threadIdx.x), lane = t % 32, warp = t / 32;
  for (int i = t; i < kTileTargets * kTileColumns; i += kTileThreads) tile[i] = 0.0f;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kTileTargets, o = blockIdx.z;
  const int64_t j = static_cast<int64_t>(blockIdx.x) * kTileColumns + lane;
  const auto x = global<const float>(a.in);
  const auto y = global<float>(a.out);
  for (int64_t k = warp; k < a.count; k += kTileThreads / 32) {
    const int64_t to = global<const int64_t>(a.index)[k] - first;
    if (to < 0 || to >= kTileTargets || j >= a.inner) continue;
    const float v = x[(o * a.count + k) * a.inner + j];
    atomic_add(tile, to * kTileColumns + lane, v);
  }
  __syncthreads();
  for (int to = warp; to < kTileTargets && first + to < a.n; to += kTileThreads / 32) {
    const float sum = tile[to * kTileColumns + lane];
    if (j < a.inner && sum != 0.0f) y[(o * a.n + first + to) * a.inner + j] += sum;
  }
}

inline bool nothing_to_add(const ReduceRowsArgs& a) {
  return a.outer * a.n * a.count * a.inner == 0;
}

inline Ladder<ReduceRowsArgs> scatter_ladder() {
  return {
      {"row by row",
       "A thread takes a column and adds all rows to it, one after the other, as the formula says. "
       "Only as many threads work as there are columns.",
       [](const ReduceRowsArgs& a) {
         if (nothing_to_add(a)) return;
         launch(one_thread_each("scatter_row_by_row", a.outer * a.inner), scatter_row_by_row, a);
       }},
      {"thread per output",
       "Each element of the result looks through the whole index for rows that are its own: many "
       "threads, no two of which write to one place, but n times the work.",
       [](const ReduceRowsArgs& a) {
         if (nothing_to_add(a)) return;
         launch(one_thread_each("scatter_thread_per_output", a.outer * a.n * a.inner),
                scatter_thread_per_output, a);
       }},
      {"global atomics",
       "Each element of the rows is added where it belongs by an atomic: every value is read once. "
       "The order of additions is left to chance, and frequent targets wait for each other.",
       [](const ReduceRowsArgs& a) {
         if (nothing_to_add(a)) return;
         launch(one_thread_each("scatter_global_atomics", a.outer * a.count * a.inner),
                scatter_global_atomics, a);
       }},
      {"shared atomics",
       "A block gathers what goes to a tile of targets in shared memory, where atomics are cheap, "
       "and adds it to the result once. The index is read by every block.",
       [](const ReduceRowsArgs& a) {
         if (nothing_to_add(a)) return;
         launch({.name = "scatter_shared_atomics",
                 .grid = {static_cast<unsigned>(blocks_for(a.inner, kTileColumns)),
                          static_cast<unsigned>(blocks_for(a.n, kTileTargets)),
                          static_cast<unsigned>(a.outer)},
                 .block = {kTileThreads}},
                scatter_shared_atomics, a);
       }},
      {"sorted segments",
       "A stable sort of the index brings rows of one target together; the owner of a segment adds "
       "them in order, 16 bytes wide and several rows ahead: no atomics, equal bits every time.",
       &reduce_rows<float>},
  };
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
