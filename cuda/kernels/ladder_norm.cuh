#pragma once
#include <cutaway/cuda/ladder.h>

// How the normalisation of rows gets fast, for f32. Each step reads x [rows, width] and writes
// y = (x − mean) rstd · weight + bias, mean and rstd, with sums in f64.
namespace cutaway::cuda::CUTAWAY_TARGET {

constexpr unsigned kNormLadderThreads = 256;

DEVICE float norm_result(const RowNormArgs& a, int64_t i, float x, double mean, double rstd) {
  float w = 1, b = 0;
  if (a.weight) w = global<const float>(a.weight)[i];
  if (a.bias) b = global<const float>(a.bias)[i];
  return normalized<float>(x, mean, rstd, w, b);
}
DEVICE double norm_rstd(const RowNormArgs& a, double squares) {
  return 1 / math::detail::sqrt_of(squares / static_cast<double>(a.width) + a.eps);
}
DEVICE void norm_statistics(const RowNormArgs& a, int64_t row, double mean, double rstd) {
  if (a.mean) global<double>(a.mean)[row] = mean;
  global<double>(a.rstd)[row] = rstd;
}

// Threads `first`, `first` + step, … do row `row`; reduce(value) adds over them.
template <class Reduce>
DEVICE void norm_in_three_passes(const RowNormArgs& a, int64_t row, int64_t first, int64_t step,
                                 Reduce&& reduce) {
  const auto x = global<const float>(a.in) + row * a.width;
  const auto y = global<float>(a.out) + row * a.width;
  double mean = 0, squares = 0;
  for (int64_t i = first; i < a.width && a.mean; i += step) {
    const float v = x[i];
    mean += static_cast<double>(v);
  }
  mean = reduce(mean) / static_cast<double>(a.width);
  for (int64_t i = first; i < a.width; i += step) {
    const float v = x[i];
    const double d = static_cast<double>(v) - mean;
    squares += d * d;
  }
  const double rstd = norm_rstd(a, reduce(squares));
  if (first == 0) norm_statistics(a, row, mean, rstd);
  for (int64_t i = first; i < a.width; i += step) {
    const float v = x[i];
    y[i] = norm_result(a, i, v, mean, rstd);
  }
}

// The reference: what is written above, and nothing else.
KERNEL norm_thread_per_row(RowNormArgs a) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < a.rows) norm_in_three_passes(a, row, 0, 1, [](double v) { return v; });
}
KERNEL norm_block_per_row(RowNormArgs a) {
  norm_in_three_passes(a, blockIdx.x, threadIdx.x, kNormLadderThreads, [](double v) {
    SHARED(double, parts, kNormLadderThreads);
    const int t = static_cast<int>(threadIdx.x);
    __syncthreads();
    parts[t] = v;
    __syncthreads();
    for (int half = kNormLadderThreads / 2; half > 0; half /= 2) {
      if (t < half) parts[t] += parts[t + half];
      __syncthreads();
    }
    return static_cast<double>(parts[0]);
  });
}
KERNEL norm_warp_per_row(RowNormArgs a) {
  const Team team = this_team(32);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kNormLadderThreads / 32) + team.index;
  if (row >= a.rows) return;
  norm_in_three_passes(a, row, team.lane, 32,
                       [&team](double v) { return team_reduce(team, v, Plus()); });
}

KERNEL norm_two_passes(RowNormArgs a) {
  const Team team = this_team(32);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kNormLadderThreads / 32) + team.index;
  if (row >= a.rows) return;
  const auto x = global<const float>(a.in) + row * a.width;
  const auto y = global<float>(a.out) + row * a.width;
  // Sums of d = x − x₀ and of d²: x₀ is one of the elements, so nothing is lost to cancellation.
  const double n = static_cast<double>(a.width);
  double shift = 0;
  if (a.mean) {
    const float first = x[0];
    shift = static_cast<double>(first);
  }
  double sum = 0, squares = 0;
  for (int64_t i = team.lane; i < a.width; i += 32) {
    const float v = x[i];
    const double d = static_cast<double>(v) - shift;
    sum += d;
    squares += d * d;
  }
  sum = a.mean ? team_reduce(team, sum, Plus()) : 0;
  squares = team_reduce(team, squares, Plus());
  const double mean = shift + sum / n;
  const double rstd = norm_rstd(a, squares - sum * (sum / n));
  if (team.lane == 0) norm_statistics(a, row, mean, rstd);
  for (int64_t i = team.lane; i < a.width; i += 32) {
    const float v = x[i];
    y[i] = norm_result(a, i, v, mean, rstd);
  }
}

template <void (*kKernel)(RowNormArgs)>
void run_norm_step(const RowNormArgs& a, const char* name, int64_t rows_per_block) {
  if (a.rows == 0 || a.width == 0) return;
  launch(norm_launch(name, blocks_for(a.rows, rows_per_block), kNormLadderThreads), kKernel, a);
}

inline Ladder<RowNormArgs> layer_norm_ladder() {
  return {
      {"thread per row",
       "One thread finds mean, variance and result of a row. Lanes of a warp read addresses a row "
       "apart: of every 32 bytes that travel, 4 are used.",
       [](const RowNormArgs& a) {
         run_norm_step<norm_thread_per_row>(a, "norm_thread_per_row", kNormLadderThreads);
       }},
      {"block per row",
       "Neighbouring threads read neighbouring elements, so that all bytes that travel are used. "
       "Their sums meet in a tree in shared memory, a barrier for each of its levels.",
       [](const RowNormArgs& a) { run_norm_step<norm_block_per_row>(a, "norm_block_per_row", 1); }},
      {"warp per row",
       "The lanes of one warp add up by shuffles: no shared memory and no barrier. Short rows "
       "leave no thread idle; the row is still read three times.",
       [](const RowNormArgs& a) {
         run_norm_step<norm_warp_per_row>(a, "norm_warp_per_row", kNormLadderThreads / 32);
       }},
      {"two passes",
       "Sum and sum of squares are found in one pass, of differences from the first element, so "
       "that a common offset cancels before it is squared. The row is read twice.",
       [](const RowNormArgs& a) {
         run_norm_step<norm_two_passes>(a, "norm_two_passes", kNormLadderThreads / 32);
       }},
      {"row in registers",
       "A row is read once, 16 bytes at a time, and stays in registers; weight and bias wait in "
       "shared memory for all rows of a block: one read, one write.",
       &row_norm<float>},
  };
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
