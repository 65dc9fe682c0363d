#include <cutaway/cuda/lib/gemm.h>

#include <cublasLt.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include <cutaway/core/error.h>
#include <cutaway/cuda/runtime/library.h>
#include <cutaway/cuda/runtime/memory.h>
#include <cutaway/cuda/runtime/stream.h>

// Note: cuBLASLt thinks in columns. Our row-major C = A·B is its column-major Cᵀ = Bᵀ·Aᵀ, so B is
// its first operand and A its second, each as it lies; the bias of our rows is that of its columns.
namespace cutaway::cuda::gpu {
namespace {

struct Functions {
  Library library{"cuBLASLt", CUTAWAY_LIBRARY_FILE("libcublasLt.so.", CUBLAS_VER_MAJOR)};
  CUTAWAY_LIBRARY_FUNCTION(cublasLtCreate);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatmul);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatmulDescCreate);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatmulDescDestroy);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatmulDescSetAttribute);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatrixLayoutCreate);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatrixLayoutDestroy);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatrixLayoutSetAttribute);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatmulPreferenceCreate);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatmulPreferenceDestroy);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  CUTAWAY_LIBRARY_FUNCTION(cublasLtGetStatusString);
};
Functions& functions() {
  static Functions* const f = new Functions;
  return *f;
}

void check_blas(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  throw CudaError("gemm",
                  std::string("cuBLASLt reports ") + functions().cublasLtGetStatusString(status));
}

cublasLtHandle_t handle() {
  static const cublasLtHandle_t h = [] {
    cublasLtHandle_t created = nullptr;
    check_blas(functions().cublasLtCreate(&created));
    return created;
  }();
  return h;
}

cudaDataType_t data_type(DType t) {
  switch (t) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      throw DTypeError("gemm",
                       std::string("products of the library are of floats; got ") + name_of(t));
  }
}

// Everything a plan depends on. Compared as bytes, so without gaps.
struct Key {
  int64_t m, n, k, lda, ldb, ldc, batch, a_stride, b_stride, c_stride;
  int32_t alignment[4];  // of A, B, C and the bias, in bytes
  int32_t dtype, transposes, epilogue, reads_c;
  bool operator<(const Key& o) const { return std::memcmp(this, &o, sizeof(Key)) < 0; }
};

// The largest power of two up to 256 that divides address and stride.
int32_t alignment_of(const void* p, int64_t stride_bytes) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(p) | uint64_t(stride_bytes) | 256;
  return int32_t(bits & (~bits + 1));
}

Key key_of(const Gemm& g) {
  const int64_t size = size_of(g.dtype);
  const auto stride = [&](int64_t s) { return g.batch > 1 ? s * size : 0; };
  return {
      .m = g.m,
      .n = g.n,
      .k = g.k,
      .lda = g.lda,
      .ldb = g.ldb,
      .ldc = g.ldc,
      .batch = g.batch,
      .a_stride = g.a_stride,
      .b_stride = g.b_stride,
      .c_stride = g.c_stride,
      .alignment = {alignment_of(g.a, stride(g.a_stride)), alignment_of(g.b, stride(g.b_stride)),
                    alignment_of(g.c, stride(g.c_stride)), alignment_of(g.bias, 0)},
      .dtype = int32_t(g.dtype),
      .transposes = int32_t(g.transpose_a) + 2 * int32_t(g.transpose_b),
      .epilogue = int32_t(g.epilogue),
      .reads_c = g.beta != 0};
}

struct Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
  int64_t workspace = 0;
  bool usable = false;
};

cublasLtMatrixLayout_t layout_of(const Gemm& g, int64_t rows, int64_t columns, int64_t distance,
                                 int64_t stride) {
  const Functions& f = functions();
  cublasLtMatrixLayout_t l = nullptr;
  check_blas(f.cublasLtMatrixLayoutCreate(&l, data_type(g.dtype), uint64_t(rows), uint64_t(columns),
                                          distance));
  if (g.batch == 1) return l;
  const auto count = int32_t(g.batch);
  check_blas(f.cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof(count)));
  check_blas(f.cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride, sizeof(stride)));
  return l;
}

template <class T>
void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, const T& value) {
  check_blas(functions().cublasLtMatmulDescSetAttribute(d, what, &value, sizeof(value)));
}

constexpr int64_t kMostWorkspace = int64_t{32} << 20;

// Sums of split products go through the workspace in a fixed order: the same bits every time.
constexpr uint32_t kReduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

void choose_algorithm(const Key& key, Plan& plan) {
  const Functions& f = functions();
  cublasLtMatmulPreference_t wish = nullptr;
  check_blas(f.cublasLtMatmulPreferenceCreate(&wish));
  const auto ask = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    check_blas(f.cublasLtMatmulPreferenceSetAttribute(wish, what, &value, sizeof(value)));
  };
  ask(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(kMostWorkspace));
  ask(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReduction);
  ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t(key.alignment[1]));
  ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t(key.alignment[0]));
  ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t(key.alignment[2]));
  ask(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t(key.alignment[2]));
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  const cublasStatus_t status =
      f.cublasLtMatmulAlgoGetHeuristic(handle(), plan.product, plan.first, plan.second, plan.result,
                                       plan.result, wish, 1, &found, &count);
  f.cublasLtMatmulPreferenceDestroy(wish);
  plan.usable =
      status == CUBLAS_STATUS_SUCCESS && count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
  plan.algorithm = found.algo;
  plan.workspace = int64_t(found.workspaceSize);
}

Plan make_plan(const Gemm& g, const Key& key) {
  Plan p;
  if (!functions().library.complete()) return p;
  const bool wide = g.dtype == DType::f64;
  check_blas(functions().cublasLtMatmulDescCreate(
      &p.product, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, wide ? CUDA_R_64F : CUDA_R_32F));
  set(p.product, CUBLASLT_MATMUL_DESC_TRANSA, g.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(p.product, CUBLASLT_MATMUL_DESC_TRANSB, g.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (g.epilogue == Epilogue::bias) {
    set(p.product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(p.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias);
  }
  p.first = layout_of(g, g.transpose_b ? g.k : g.n, g.transpose_b ? g.n : g.k, g.ldb, g.b_stride);
  p.second = layout_of(g, g.transpose_a ? g.m : g.k, g.transpose_a ? g.k : g.m, g.lda, g.a_stride);
  p.result = layout_of(g, g.n, g.m, g.ldc, g.c_stride);
  choose_algorithm(key, p);
  return p;
}

}  // namespace

Library& gemm_library() { return functions().library; }

bool gemm(const Gemm& g) {
  static std::mutex mutex;  // the bias pointer is part of a plan
  static auto* const plans = new std::map<Key, Plan>;
  std::lock_guard lock(mutex);
  const Key key = key_of(g);
  const auto at = plans->find(key);
  Plan& plan = at != plans->end() ? at->second : (*plans)[key] = make_plan(g, key);
  if (!plan.usable) return false;
  if (g.epilogue == Epilogue::bias) {
    set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias);
  }
  const auto alpha = float(g.alpha), beta = float(g.beta);
  const bool wide = g.dtype == DType::f64;
  void* workspace = plan.workspace > 0 ? allocate(plan.workspace) : nullptr;
  const cublasStatus_t status = functions().cublasLtMatmul(
      handle(), plan.product, wide ? static_cast<const void*>(&g.alpha) : &alpha, g.b, plan.first,
      g.a, plan.second, wide ? static_cast<const void*>(&g.beta) : &beta, g.c, plan.result, g.c,
      plan.result, &plan.algorithm, workspace, size_t(plan.workspace),
      static_cast<cudaStream_t>(current_stream()));
  release(workspace);
  check_blas(status);
  return true;
}

}  // namespace cutaway::cuda::gpu
