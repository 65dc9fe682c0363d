#include <cutaway/core/device.h>
#include <cutaway/core/error.h>
#include <cutaway/cuda/step_graph.h>

// Stands in for cuda/runtime in builds without it.
namespace cutaway::cuda {

const Backend* cuda_backend() noexcept { return nullptr; }

const char* cuda_missing() noexcept {
  return CUTAWAY_CUDA_MISSING
      "; install the CUDA toolkit 12 or newer (its nvcc on PATH, or CUDACXX=/path/to/nvcc) and "
      "configure again with -DCUTAWAY_CUDA=ON; emu runs the same kernels on the CPU";
}

std::unique_ptr<StepGraph> record_step_on_gpu(const std::function<void()>&) {
  throw DeviceError("graph", cuda_missing());
}

}  // namespace cutaway::cuda
