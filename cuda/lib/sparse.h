#pragma once
#include <cutaway/core/device.h>
#include <cutaway/core/dtype.h>

// Products with sparse matrices of the vendor's library: on the GPU cuSPARSE, in the emulator plain
// loops. Pointers are device memory.
namespace cutaway::cuda {

// Compressed rows: row i holds entries starts[i] … starts[i+1] − 1. Columns ascend in a row.
struct CsrMatrix {
  int64_t rows = 0, columns = 0, entries = 0;
  const int64_t* starts = nullptr;   // [rows + 1]
  const int64_t* indices = nullptr;  // [entries]: column of each
  void* values = nullptr;            // [entries]
};

// C [m,n] = alpha · op(A) · B + beta · C with A sparse, B and C row-major with row distances ldb
// and ldc. op(A) is A or its transpose, B has as many rows as op(A) has columns.
struct Spmm {
  DType dtype = DType::f32;  // f32 f64
  bool transpose_a = false;
  CsrMatrix a;
  int64_t n = 0;
  double alpha = 1, beta = 0;
  const void* b = nullptr;
  int64_t ldb = 0;
  void* c = nullptr;
  int64_t ldc = 0;
};

// Values of S at its entries (i, j) = alpha · Σ_q A_iq B_jq + beta · value, with A [rows,k] and B
// [columns,k] row-major: the gradient of a sparse matrix.
struct Sddmm {
  DType dtype = DType::f32;  // f32 f64
  CsrMatrix s;
  int64_t k = 0;
  double alpha = 1, beta = 0;
  const void* a = nullptr;
  int64_t lda = 0;
  const void* b = nullptr;
  int64_t ldb = 0;
};

namespace emu {
void spmm(const Spmm& x);
void sddmm(const Sddmm& x);
}  // namespace emu
namespace gpu {
void spmm(const Spmm& x);
void sddmm(const Sddmm& x);
}  // namespace gpu

// The functions above of a device, for code outside of kernels: null where it has none.
struct SparseLibrary {
  void (*spmm)(const Spmm&) = nullptr;
  void (*sddmm)(const Sddmm&) = nullptr;
};
// Filled when kernels are registered.
SparseLibrary& sparse_library(DeviceKind kind);

}  // namespace cutaway::cuda
