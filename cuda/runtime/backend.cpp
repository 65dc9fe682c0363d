#include <cutaway/core/device.h>

#include <cuda_runtime_api.h>

#include <string>

#include <cutaway/core/error.h>
#include <cutaway/cuda/kernels/families.h>
#include <cutaway/cuda/runtime/error.h>
#include <cutaway/cuda/runtime/memory.h>
#include <cutaway/cuda/runtime/stream.h>

namespace cutaway::cuda {
namespace gpu {

#define CUTAWAY_DECLARE(family) void register_##family##_kernels();
CUTAWAY_CUDA_FAMILIES(CUTAWAY_DECLARE)
#undef CUTAWAY_DECLARE

namespace {

// One GPU a process: which one is the driver's choice to make.
void check_index(int8_t index) {
  if (index == 0) [[likely]]
    return;
  throw DeviceError("cuda", "a process uses one GPU, cuda:0; got cuda:" + std::to_string(index),
                    "choose it with CUDA_VISIBLE_DEVICES; several GPUs take one process each");
}

void* allocate_on(int8_t index, int64_t bytes) {
  check_index(index);
  return allocate(bytes);
}
void release_on(int8_t, void* data, int64_t) noexcept { release(data); }
void copy_from_host(int8_t, void* to, const void* from, int64_t bytes) { copy_in(to, from, bytes); }
void copy_to_host(int8_t, void* to, const void* from, int64_t bytes) { copy_out(to, from, bytes); }
void copy_on_device(int8_t, void* to, const void* from, int64_t bytes) {
  copy_within(to, from, bytes);
}

void register_kernels() {
#define CUTAWAY_CALL(family) register_##family##_kernels();
  CUTAWAY_CUDA_FAMILIES(CUTAWAY_CALL)
#undef CUTAWAY_CALL
}

void synchronize_on(int8_t index) {
  check_index(index);
  check("synchronize", cudaStreamSynchronize(static_cast<cudaStream_t>(current_stream())));
  check("synchronize", cudaGetLastError());
}

constexpr Backend kCuda{allocate_on,    release_on,       copy_from_host, copy_to_host,
                        copy_on_device, register_kernels, synchronize_on};

// Whether there is a GPU here, asked once.
struct Probe {
  bool found = false;
  std::string missing;
  Probe() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    found = status == cudaSuccess && count > 0;
    if (found) return;
    cudaGetLastError();
    if (status == cudaErrorInsufficientDriver) {
      missing =
          "this build has the CUDA part, but there is no NVIDIA driver here, or one that is too "
          "old for CUDA " +
          std::to_string(CUDART_VERSION / 1000);
    } else {
      missing = std::string("this build has the CUDA part, but found no GPU: ") +
                (status == cudaSuccess ? "there are 0" : cudaGetErrorString(status));
    }
    missing += "; emu runs the same kernels on the CPU";
  }
};
const Probe& probe() {
  static const Probe p;
  return p;
}

}  // namespace
}  // namespace gpu

const Backend* cuda_backend() noexcept {
  try {
    return gpu::probe().found ? &gpu::kCuda : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

const char* cuda_missing() noexcept {
  try {
    return gpu::probe().missing.c_str();
  } catch (const std::exception&) {
    return "this build has the CUDA part, but no memory to look for a GPU";
  }
}

}  // namespace cutaway::cuda
