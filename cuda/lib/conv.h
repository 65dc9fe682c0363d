#pragma once
#include <cutaway/core/dtype.h>
#include <cutaway/core/kernels/conv.h>

// Convolutions of the vendor's library, row-major NC[DH]W: on the GPU cuDNN, in the emulator the
// CPU kernels. Pointers are device memory.
namespace cutaway::cuda {

enum class ConvPass : uint8_t { forward, input_grad, weight_grad };

// Each runs one pass, without the bias, and says whether it did: false when the library has no
// plan for these sizes, and then nothing was written. Raises CudaError (gpu) or DeviceError,
// KernelFault (emu).
namespace emu {
bool convolve(ConvPass pass, DType dtype, const ConvArgs& a);
}
namespace gpu {
bool convolve(ConvPass pass, DType dtype, const ConvArgs& a);
}

}  // namespace cutaway::cuda
