#include <cutaway/cuda/lib/sparse.h>

#include <cusparse.h>

#include <mutex>

#include <cutaway/core/error.h>
#include <cutaway/cuda/runtime/library.h>
#include <cutaway/cuda/runtime/memory.h>
#include <cutaway/cuda/runtime/stream.h>

namespace cutaway::cuda::gpu {
namespace {

struct Functions {
  Library library{"cuSPARSE", CUTAWAY_LIBRARY_FILE("libcusparse.so.", CUSPARSE_VER_MAJOR)};
  CUTAWAY_LIBRARY_FUNCTION(cusparseCreate);
  CUTAWAY_LIBRARY_FUNCTION(cusparseSetStream);
  CUTAWAY_LIBRARY_FUNCTION(cusparseCreateCsr);
  CUTAWAY_LIBRARY_FUNCTION(cusparseDestroySpMat);
  CUTAWAY_LIBRARY_FUNCTION(cusparseCreateDnMat);
  CUTAWAY_LIBRARY_FUNCTION(cusparseDestroyDnMat);
  CUTAWAY_LIBRARY_FUNCTION(cusparseSpMM_bufferSize);
  CUTAWAY_LIBRARY_FUNCTION(cusparseSpMM);
  CUTAWAY_LIBRARY_FUNCTION(cusparseSDDMM_bufferSize);
  CUTAWAY_LIBRARY_FUNCTION(cusparseSDDMM);
  CUTAWAY_LIBRARY_FUNCTION(cusparseGetErrorString);
};
Functions& functions() {
  static Functions* const f = new Functions;
  return *f;
}

void check_sparse(const char* op, cusparseStatus_t status) {
  if (status == CUSPARSE_STATUS_SUCCESS) [[likely]]
    return;
  throw CudaError(op,
                  std::string("cuSPARSE reports ") + functions().cusparseGetErrorString(status));
}

// The handle, set to the current stream; hold the lock while it is used.
struct Session {
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  std::lock_guard<std::mutex> lock{mutex()};
  cusparseHandle_t handle;
  explicit Session(const char* op) {
    static const cusparseHandle_t shared = [op] {
      functions().library.require();
      cusparseHandle_t created = nullptr;
      check_sparse(op, functions().cusparseCreate(&created));
      return created;
    }();
    handle = shared;
    check_sparse(
        op, functions().cusparseSetStream(handle, static_cast<cudaStream_t>(current_stream())));
  }
};

cudaDataType data_type(const char* op, DType t) {
  if (t == DType::f32) return CUDA_R_32F;
  if (t == DType::f64) return CUDA_R_64F;
  throw DTypeError(op, std::string("sparse products are of f32 or f64; got ") + name_of(t));
}

class Sparse {
 public:
  Sparse(const char* op, const CsrMatrix& a, cudaDataType type) {
    check_sparse(op, functions().cusparseCreateCsr(
                         &matrix_, a.rows, a.columns, a.entries, const_cast<int64_t*>(a.starts),
                         const_cast<int64_t*>(a.indices), a.values, CUSPARSE_INDEX_64I,
                         CUSPARSE_INDEX_64I, CUSPARSE_INDEX_BASE_ZERO, type));
  }
  ~Sparse() { functions().cusparseDestroySpMat(matrix_); }
  Sparse(const Sparse&) = delete;
  cusparseSpMatDescr_t get() const { return matrix_; }

 private:
  cusparseSpMatDescr_t matrix_ = nullptr;
};
class Dense {
 public:
  Dense(const char* op, int64_t rows, int64_t columns, int64_t distance, const void* values,
        cudaDataType type) {
    check_sparse(
        op, functions().cusparseCreateDnMat(&matrix_, rows, columns, distance,
                                            const_cast<void*>(values), type, CUSPARSE_ORDER_ROW));
  }
  ~Dense() { functions().cusparseDestroyDnMat(matrix_); }
  Dense(const Dense&) = delete;
  cusparseDnMatDescr_t get() const { return matrix_; }

 private:
  cusparseDnMatDescr_t matrix_ = nullptr;
};
class Workspace {
 public:
  explicit Workspace(size_t bytes) : data_(allocate(int64_t(bytes))) {}
  ~Workspace() { release(data_); }
  Workspace(const Workspace&) = delete;
  void* get() const { return data_; }

 private:
  void* data_;
};

// A number of the type that the product computes in.
struct Factor {
  double wide;
  float narrow;
  bool is_wide;
  Factor(double v, cudaDataType t) : wide(v), narrow(float(v)), is_wide(t == CUDA_R_64F) {}
  const void* get() const { return is_wide ? static_cast<const void*>(&wide) : &narrow; }
};

}  // namespace

Library& sparse_library() { return functions().library; }

void spmm(const Spmm& x) {
  constexpr const char* kOp = "spmm";
  const cudaDataType type = data_type(kOp, x.dtype);
  const Session session(kOp);
  const int64_t m = x.transpose_a ? x.a.columns : x.a.rows;
  const int64_t inner = x.transpose_a ? x.a.rows : x.a.columns;
  const Sparse a(kOp, x.a, type);
  const Dense b(kOp, inner, x.n, x.ldb, x.b, type), c(kOp, m, x.n, x.ldc, x.c, type);
  const Factor alpha(x.alpha, type), beta(x.beta, type);
  const auto op_a = x.transpose_a ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
  // The third gives the same bits every time; products with a transposed matrix have no such way.
  const auto algorithm = x.transpose_a ? CUSPARSE_SPMM_ALG_DEFAULT : CUSPARSE_SPMM_CSR_ALG3;
  size_t bytes = 0;
  check_sparse(kOp, functions().cusparseSpMM_bufferSize(
                        session.handle, op_a, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha.get(),
                        a.get(), b.get(), beta.get(), c.get(), type, algorithm, &bytes));
  const Workspace workspace(bytes);
  check_sparse(kOp, functions().cusparseSpMM(session.handle, op_a, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                             alpha.get(), a.get(), b.get(), beta.get(), c.get(),
                                             type, algorithm, workspace.get()));
}

void sddmm(const Sddmm& x) {
  constexpr const char* kOp = "sddmm";
  const cudaDataType type = data_type(kOp, x.dtype);
  const Session session(kOp);
  const Sparse s(kOp, x.s, type);
  const Dense a(kOp, x.s.rows, x.k, x.lda, x.a, type), b(kOp, x.s.columns, x.k, x.ldb, x.b, type);
  const Factor alpha(x.alpha, type), beta(x.beta, type);
  size_t bytes = 0;
  check_sparse(kOp, functions().cusparseSDDMM_bufferSize(
                        session.handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                        CUSPARSE_OPERATION_TRANSPOSE, alpha.get(), a.get(), b.get(), beta.get(),
                        s.get(), type, CUSPARSE_SDDMM_ALG_DEFAULT, &bytes));
  const Workspace workspace(bytes);
  check_sparse(kOp, functions().cusparseSDDMM(session.handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                              CUSPARSE_OPERATION_TRANSPOSE, alpha.get(), a.get(),
                                              b.get(), beta.get(), s.get(), type,
                                              CUSPARSE_SDDMM_ALG_DEFAULT, workspace.get()));
}

}  // namespace cutaway::cuda::gpu
