#include <cutaway/core/device.h>

#include <cutaway/core/error.h>
#include <cutaway/cuda/emu/memory.h>
#include <cutaway/cuda/kernels/families.h>

namespace cutaway::cuda {
namespace emu {

#define CUTAWAY_DECLARE(family) void register_##family##_kernels();
CUTAWAY_CUDA_FAMILIES(CUTAWAY_DECLARE)
#undef CUTAWAY_DECLARE

namespace {

void* allocate_on(int8_t index, int64_t bytes) {
  if (index != 0) {
    throw DeviceError("emu",
                      "there is one emulated device, emu:0; got emu:" + std::to_string(index));
  }
  return allocate(bytes);
}
void release_on(int8_t, void* data, int64_t) noexcept { release(data); }

void copy_from_host(int8_t, void* out, const void* in, int64_t bytes) { copy_in(out, in, bytes); }
void copy_to_host(int8_t, void* out, const void* in, int64_t bytes) { copy_out(out, in, bytes); }
void copy_on_device(int8_t, void* out, const void* in, int64_t bytes) {
  copy_within(out, in, bytes);
}

void register_kernels() {
#define CUTAWAY_CALL(family) register_##family##_kernels();
  CUTAWAY_CUDA_FAMILIES(CUTAWAY_CALL)
#undef CUTAWAY_CALL
}

void synchronize_on(int8_t) { raise_faults(); }

constexpr Backend kEmu{allocate_on,    release_on,       copy_from_host, copy_to_host,
                       copy_on_device, register_kernels, synchronize_on};

}  // namespace
}  // namespace emu

const Backend* emu_backend() noexcept { return &emu::kEmu; }

}  // namespace cutaway::cuda
