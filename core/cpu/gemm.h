#pragma once
#include <cstdint>
#include <type_traits>

#include <cutaway/core/math/half.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {

// A matrix with any strides: element (i, j) at data[i·row + j·column].
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;
  Matrix block(int64_t i, int64_t j) const { return {data + i * row + j * column, row, column}; }
};

// out [rows, columns] dense = m, converted.
template <class T, class To>
void copy_dense(const Matrix<T>& m, int64_t rows, int64_t columns, To* out) {
  if (m.column == 1) {
    for (int64_t i = 0; i < rows; ++i) {
      const T* in = m.data + i * m.row;
      To* o = out + i * columns;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) o[j] = static_cast<To>(in[j]);
    }
    return;
  }
  constexpr int64_t kTile = 16;  // both sides stay in L1
  for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
    const int64_t i1 = rows < i0 + kTile ? rows : i0 + kTile;
    for (int64_t j = 0; j < columns; ++j) {
      const T* in = m.data + j * m.column;
      for (int64_t i = i0; i < i1; ++i) out[i * columns + j] = static_cast<To>(in[i * m.row]);
    }
  }
}

// C = alpha · A · B + beta · C, plus `bias` [n] in every row. A is [m,k], B [k,n], C [m,n] with
// unit column stride. C is not read when beta is 0, A and B when alpha or k is 0; a bias needs
// beta = 0.
template <class T>
struct Product {
  int64_t m, n, k;
  Matrix<T> a, b;
  T* c;
  int64_t c_row;
  std::conditional_t<std::is_same_v<T, float>, float, double> alpha = 1, beta = 0;
  const T* bias = nullptr;
};

// Runs the product. Every element of C is summed in an order that depends on k alone, so the result
// has the same bits for every thread count. Raises ValueError for sizes the BLAS library cannot
// take, where it is used.
void gemm(const Product<float>& p);
void gemm(const Product<double>& p);

// The same in bf16, summed in f32 and rounded once; subnormal numbers count as zero. Returns false,
// with nothing done, where the processor has no instruction for it, or there is nothing to sum.
bool try_gemm(const Product<BFloat16>& p);

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
