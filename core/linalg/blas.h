#pragma once
#include <cstdint>
#include <string>

namespace cutaway::blas {

// C = alpha · op(A) · op(B) + beta · C, all row-major. op(A) is [m,k], op(B) [k,n], C [m,n]; a
// transposed operand is stored the other way round. The distance between stored rows is lda, ldb
// and ldc (at least the stored row's length).
template <class T>
struct Gemm {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  T alpha = 1;
  const T* a = nullptr;
  int64_t lda = 0;
  const T* b = nullptr;
  int64_t ldb = 0;
  T beta = 0;
  T* c = nullptr;
  int64_t ldc = 0;
};

// Runs the product. C is not read when beta is 0; A and B are not read when alpha or k is 0. Large
// products are cut into blocks whose sizes depend on m, n, k alone, so the result has the same bits
// for every thread count. Raises ValueError when k or a row distance exceeds 2^31 - 1.
void gemm(const Gemm<double>& g);
void gemm(const Gemm<float>& g);

// Name, version and CPU kernels of the BLAS library in use.
std::string blas_config();
// Its version alone, "0.3.21".
std::string blas_version();

}  // namespace cutaway::blas
