#include <cutaway/cuda/lib/gemm.h>

#include <cutaway/core/kernels/matmul.h>
#include <cutaway/cuda/emu/graph.h>
#include <cutaway/cuda/emu/library.h>

namespace cutaway::cuda::emu {

bool gemm(const Gemm& g) {
  // As cuBLASLt, whose epilogues are not for f64.
  if (g.dtype == DType::f64 && g.epilogue != Epilogue::none) return false;
  if (recording()) {
    record([g] { gemm(g); });
    return true;
  }
  const LibraryCall call("gemm");
  const int64_t size = size_of(g.dtype);
  const int64_t a_rows = g.transpose_a ? g.k : g.m, a_columns = g.transpose_a ? g.m : g.k;
  const int64_t b_rows = g.transpose_b ? g.n : g.k, b_columns = g.transpose_b ? g.k : g.n;
  const auto at = [size](const void* p, int64_t i) {
    return static_cast<const char*>(p) + i * size;
  };
  for (int64_t i = 0; i < g.batch; ++i) {
    call.reads("A", at(g.a, i * g.a_stride), a_rows, a_columns * size, g.lda * size);
    call.reads("B", at(g.b, i * g.b_stride), b_rows, b_columns * size, g.ldb * size);
    const void* c = at(g.c, i * g.c_stride);
    if (g.beta != 0) call.reads("C", c, g.m, g.n * size, g.ldc * size);
    call.writes(c, g.m, g.n * size, g.ldc * size);
  }
  MatmulArgs x{.batch = g.batch, .m = g.m, .n = g.n, .k = g.k};
  x.rank = 1;
  x.sizes[0] = g.batch;
  x.strides[0][0] = g.c_stride;
  x.strides[1][0] = g.a_stride;
  x.strides[2][0] = g.b_stride;
  x.a_row = g.transpose_a ? 1 : g.lda;
  x.a_column = g.transpose_a ? g.lda : 1;
  x.b_row = g.transpose_b ? 1 : g.ldb;
  x.b_column = g.transpose_b ? g.ldb : 1;
  x.c_row = g.ldc;
  x.alpha = g.alpha;
  x.beta = g.beta;
  x.a = g.a;
  x.b = g.b;
  x.c = g.c;
  if (g.epilogue == Epilogue::bias) {
    call.reads("bias", g.bias, 1, g.n * size, 0);
    x.bias = g.bias;
  }
  kernels::matmul.find(DeviceKind::cpu, g.dtype)(x);
  return true;
}

}  // namespace cutaway::cuda::emu
