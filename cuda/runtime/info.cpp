#include <cutaway/cuda/info.h>

#include <cuda_runtime_api.h>

#include <cutaway/core/device.h>
#include <cutaway/cuda/runtime/library.h>

namespace cutaway::cuda {

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> out;
  int count = 0;
  if (!cuda_backend() || cudaGetDeviceCount(&count) != cudaSuccess) return out;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, i) != cudaSuccess) continue;
    out.push_back({p.name, p.major, p.minor, int64_t(p.totalGlobalMem), p.multiProcessorCount});
  }
  return out;
}

std::vector<LibraryInfo> libraries() {
  std::vector<LibraryInfo> out;
  for (gpu::Library* l : {&gpu::gemm_library(), &gpu::conv_library(), &gpu::sparse_library()}) {
    out.push_back({l->name(), l->file(), l->missing()});
  }
  return out;
}

}  // namespace cutaway::cuda
