#pragma once
#include <cutaway/core/dtype.h>

// Matrix products of the vendor's library, with its conventions: leading dimensions, transposes,
// batch strides. On the GPU cuBLASLt, in the emulator the CPU kernels. Pointers are device memory.
namespace cutaway::cuda {

// What happens to a product before it is stored.
enum class Epilogue : uint8_t { none, bias };

// C_i = alpha · op(A_i) · op(B_i) + beta · C_i (+ bias in every row), i = 0 … batch−1, row-major.
// op(A) is [m,k], op(B) [k,n]; a transposed operand is stored the other way round. The distance
// between stored rows is lda, ldb and ldc; strides lead from one matrix to the next, 0 repeats it.
struct Gemm {
  DType dtype = DType::f32;  // f64 f32 bf16 f16; 16-bit types multiply and add in f32
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  double alpha = 1, beta = 0;  // C is not read when beta is 0
  const void* a = nullptr;
  int64_t lda = 0;
  const void* b = nullptr;
  int64_t ldb = 0;
  void* c = nullptr;
  int64_t ldc = 0;
  Epilogue epilogue = Epilogue::none;
  const void* bias = nullptr;  // [n]
  int64_t batch = 1, a_stride = 0, b_stride = 0, c_stride = 0;
};

// Runs the product and says whether it did: false when the library has no way to, and then nothing
// was written. All sizes must be at least 1. Raises CudaError (gpu) or KernelFault (emu: memory
// that nothing wrote) and DeviceError (emu: ranges outside of device memory).
namespace emu {
bool gemm(const Gemm& g);
}
namespace gpu {
bool gemm(const Gemm& g);
}

}  // namespace cutaway::cuda
