#include <cutaway/cuda/runtime/error.h>

#include <fmt/format.h>

#include <cutaway/core/error.h>

namespace cutaway::cuda::gpu {

void throw_cuda(const char* op, cudaError_t status) {
  cudaGetLastError();  // so that it is not reported twice
  const char* hint = "";
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
      hint =
          "a kernel before this call failed; CUTAWAY_CUDA_SYNC=1 waits after each one and so names "
          "it. The process cannot use the GPU any more";
      break;
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureImplicit:
      hint = "a captured step must not read values on the host, print or wait for the device";
      break;
    default:
      break;
  }
  throw CudaError(op,
                  fmt::format("the CUDA runtime reports {}: {}", cudaGetErrorName(status),
                              cudaGetErrorString(status)),
                  hint);
}

}  // namespace cutaway::cuda::gpu
