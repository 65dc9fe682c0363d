#pragma once
#include <cstdint>

#include <cutaway/core/cpu/vector.h>

// Layers in which every label has indices of its own: one label at a time, its sums or its
// gradients in registers while the rows of features pass by.
namespace cutaway::cpu::CUTAWAY_VARIANT {

// Calls f(constant number of vectors, first element) for the whole vectors of [from, to), eight,
// four, two or one at a time; returns where the rest begins.
template <class T, class F>
[[gnu::always_inline]] inline int64_t for_vectors(int64_t from, int64_t to, F&& f) {
  constexpr int64_t kL = kVectorLanes<T>;
  for (; from + 8 * kL <= to; from += 8 * kL) f(std::integral_constant<int, 8>{}, from);
  if (from + 4 * kL <= to) {
    f(std::integral_constant<int, 4>{}, from);
    from += 4 * kL;
  }
  if (from + 2 * kL <= to) {
    f(std::integral_constant<int, 2>{}, from);
    from += 2 * kL;
  }
  if (from + kL <= to) {
    f(std::integral_constant<int, 1>{}, from);
    from += kL;
  }
  return from;
}

// z[b] = bias + Σ_j weight[j] · x[row(j)·x_row + b].
template <class T, class Row>
void own_forward(int64_t batch, int64_t fan_in, const T* weight, T bias, const T* x, int64_t x_row,
                 Row row, T* z) {
  constexpr int kL = kVectorLanes<T>;
  const int64_t rest = for_vectors<T>(0, batch, [&](auto count, int64_t b) {
    constexpr int V = count;
    Vector<T> sum[V] = {};
    for (int64_t j = 0; j < fan_in; ++j) {
      const T* from = x + row(j) * x_row + b;
      const T w = weight[j];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[v] += w * load_vector(from + v * kL);
    }
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store_vector(z + b + v * kL, sum[v] + bias);
  });
  for (int64_t b = rest; b < batch; ++b) {
    T sum = 0;
    for (int64_t j = 0; j < fan_in; ++j) sum += weight[j] * x[row(j) * x_row + b];
    z[b] = sum + bias;
  }
}

// dweight[j] = Σ_b dz[b] · x[row(j)·x_row + b]; returns Σ_b dz[b].
template <class T, class Row>
T own_weight_grad(int64_t batch, int64_t fan_in, const T* dz, const T* x, int64_t x_row, Row row,
                  T* dweight) {
  constexpr int kL = kVectorLanes<T>;
  for (int64_t j = 0; j < fan_in; j += kL) {
    const int64_t used = fan_in - j < kL ? fan_in - j : kL;
    const T* from[kL];
    for (int64_t r = 0; r < kL; ++r) from[r] = x + row(j + (r < used ? r : 0)) * x_row;
    Vector<T> sum[kL] = {};
    int64_t b = 0;
    for (; b + kL <= batch; b += kL) {
      const Vector<T> g = load_vector(dz + b);
#pragma GCC unroll 16
      for (int r = 0; r < kL; ++r) sum[r] += g * load_vector(from[r] + b);
    }
    transpose_rows(sum);
#pragma GCC unroll 4
    for (int half = kL / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (int r = 0; r < half; ++r) sum[r] += sum[r + half];
    }
    for (int64_t r = 0; r < used; ++r) {
      T total = sum[0][r];
      for (int64_t i = b; i < batch; ++i) total += dz[i] * from[r][i];
      dweight[j + r] = total;
    }
  }
  T total = 0;
  for (int64_t b = 0; b < batch; ++b) total += dz[b];
  return total;
}

// dx[row(j)·dx_row + b] += weight[j] · dz[b] for b in [from, to).
template <class T, class Row>
void own_input_grad(int64_t from, int64_t to, int64_t fan_in, const T* weight, const T* dz, T* dx,
                    int64_t dx_row, Row row) {
  constexpr int kL = kVectorLanes<T>;
  const int64_t rest = for_vectors<T>(from, to, [&](auto count, int64_t b) {
    constexpr int V = count;
    Vector<T> g[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) g[v] = load_vector(dz + b + v * kL);
    for (int64_t j = 0; j < fan_in; ++j) {
      T* at = dx + row(j) * dx_row + b;
      const T w = weight[j];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        store_vector(at + v * kL, load_vector(at + v * kL) + w * g[v]);
      }
    }
  });
  for (int64_t b = rest; b < to; ++b) {
    for (int64_t j = 0; j < fan_in; ++j) dx[row(j) * dx_row + b] += weight[j] * dz[b];
  }
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
