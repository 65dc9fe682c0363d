#pragma once
#include <cutaway/core/kernels/rows.h>
#include <cutaway/cuda/device/team.h>

// Normalisation of rows that are too long for the registers of a block: they are read several
// times. The family is row_norm.cuh.
namespace cutaway::cuda::CUTAWAY_TARGET {

constexpr int kNormThreads = 256;

template <class T>
DEVICE T normalized(ComputeOf<T> x, double mean, double rstd, T weight, T bias) {
  const auto hat = static_cast<ComputeOf<T>>((static_cast<double>(x) - mean) * rstd);
  return static_cast<T>(hat * compute(weight) + compute(bias));
}

// A block for each row of any length.
template <class T>
KERNEL row_norm_of_long_rows(RowNormArgs a) {
  const Team team = this_team(kNormThreads);
  const int64_t row = blockIdx.x, n = a.width, base = row * n;
  const auto x = global<const T>(a.in), weight = global<const T>(a.weight);
  const auto bias = global<const T>(a.bias);
  const auto y = global<T>(a.out);
  double mean = 0, squares = 0;
  if (a.mean) {
    for (int64_t i = team.lane; i < n; i += kNormThreads) {
      const T value = x[base + i];
      mean += wide(value);
    }
    mean = team_reduce(team, mean, Plus()) / static_cast<double>(n);
  }
  for (int64_t i = team.lane; i < n; i += kNormThreads) {
    const T value = x[base + i];
    const double d = wide(value) - mean;
    squares += d * d;
  }
  squares = team_reduce(team, squares, Plus());
  const double rstd = 1 / math::detail::sqrt_of(squares / static_cast<double>(n) + a.eps);
  if (team.lane == 0) {
    if (a.mean) global<double>(a.mean)[row] = mean;
    global<double>(a.rstd)[row] = rstd;
  }
  for (int64_t i = team.lane; i < n; i += kNormThreads) {
    const T value = x[base + i];
    T w(1.0f), b(0.0f);
    if (a.weight) w = weight[i];
    if (a.bias) b = bias[i];
    y[base + i] = normalized<T>(compute(value), mean, rstd, w, b);
  }
}

// dx alone, a block for each row of any length.
template <class T>
KERNEL row_norm_backward_of_long_rows(RowNormArgs a) {
  const Team team = this_team(kNormThreads);
  const int64_t row = blockIdx.x, n = a.width, base = row * n;
  const auto x = global<const T>(a.in), g = global<const T>(a.grad);
  const auto weight = global<const T>(a.weight);
  const auto dx = global<T>(a.out);
  double mean = 0, sum = 0, dot = 0;
  if (a.mean) mean = global<const double>(a.mean)[row];
  const double rstd = global<const double>(a.rstd)[row];
  for (int64_t i = team.lane; i < n; i += kNormThreads) {
    const T xi = x[base + i], gi = g[base + i];
    T w(1.0f);
    if (a.weight) w = weight[i];
    sum += wide(gi) * wide(w);
    dot += wide(gi) * wide(w) * ((wide(xi) - mean) * rstd);
  }
  sum = a.mean ? team_reduce(team, sum, Plus()) / static_cast<double>(n) : 0;
  dot = team_reduce(team, dot, Plus()) / static_cast<double>(n);
  for (int64_t i = team.lane; i < n; i += kNormThreads) {
    const T xi = x[base + i], gi = g[base + i];
    T w(1.0f);
    if (a.weight) w = weight[i];
    const double hat = (wide(xi) - mean) * rstd;
    dx[base + i] = static_cast<T>(rstd * (wide(gi) * wide(w) - sum - hat * dot));
  }
}

// Sums for weight and bias over the rows of chunk blockIdx.y, for long rows: threads along x take
// neighbouring columns, those along y every eighth row.
template <class T>
KERNEL row_norm_sums_of_columns(RowNormArgs a, int64_t rows_per_chunk, double* partial) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x, n = a.width;
  const int64_t begin = blockIdx.y * rows_per_chunk;
  const int64_t end = begin + rows_per_chunk < a.rows ? begin + rows_per_chunk : a.rows;
  const auto x = global<const T>(a.in), g = global<const T>(a.grad);
  const auto means = global<const double>(a.mean), rstds = global<const double>(a.rstd);
  double for_weight = 0, for_bias = 0;
  for (int64_t row = begin + threadIdx.y; row < end && column < n; row += 8) {
    const T xi = x[row * n + column], gi = g[row * n + column];
    double mean = 0;
    if (a.mean) mean = means[row];
    const double rstd = rstds[row];
    for_weight += wide(gi) * ((wide(xi) - mean) * rstd);
    for_bias += wide(gi);
  }
  for_weight = column_reduce(for_weight, Plus());
  for_bias = column_reduce(for_bias, Plus());
  if (threadIdx.y == 0 && column < n) {
    const auto out = global<double>(partial);
    out[blockIdx.y * 2 * n + column] = for_weight;
    out[blockIdx.y * 2 * n + n + column] = for_bias;
  }
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
