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
