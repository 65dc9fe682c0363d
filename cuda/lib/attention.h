#pragma once
#include <cutaway/core/dtype.h>
#include <cutaway/core/kernels/attention.h>

// Attention of the vendor's library, of bf16 and f16 numbers: on the GPU cuDNN, in the emulator the
// CPU kernels. Pointers are device memory.
namespace cutaway::cuda {

// Whose attention runs 16-bit heads: the own kernels of this project, or the library where it has a
// plan (otherwise still the own ones).
enum class AttentionBy : uint8_t { own, cudnn };
// The choice of the process. It starts from the environment variable CUTAWAY_ATTENTION=own|cudnn;
// own when that is not set, because the own kernels have been checked in the emulator, give the
// same bits every time and take every mask. Raises ValueError for another text.
AttentionBy& attention_by();

// Another choice while it lives.
class AttentionByScope {
 public:
  explicit AttentionByScope(AttentionBy by) : before_(attention_by()) { attention_by() = by; }
  ~AttentionByScope() { attention_by() = before_; }
  AttentionByScope(const AttentionByScope&) = delete;

 private:
  AttentionBy before_;
};

// How many passes the library has run in this process, to tell its results from those of the own
// kernels.
int64_t library_attention_passes();
void count_library_attention_pass();

// What the library is asked for: bf16 or f16, no mask but the causal one, at most two batch
// dimensions without repeats, depth and width multiples of 8 up to 128, operands aligned to 16
// bytes, nothing empty.
bool library_attends(DType dtype, const AttentionArgs& a);

enum class AttentionPass : uint8_t { forward, backward };

// Each runs one pass and says whether it did: false when the library has no plan for these
// arguments that gives the same bits every time, and then nothing was written. Raises CudaError
// (gpu) or DeviceError, KernelFault (emu).
namespace emu {
bool attend(AttentionPass pass, DType dtype, const AttentionArgs& a);
}
namespace gpu {
bool attend(AttentionPass pass, DType dtype, const AttentionArgs& a);
}

}  // namespace cutaway::cuda
