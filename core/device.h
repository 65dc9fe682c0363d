#pragma once
#include <cstdint>
#include <string>

namespace cutaway {

// cpu: host memory. meta: shapes only, no memory. cuda: a GPU. emu: CUDA kernels run on the host.
enum class DeviceKind : uint8_t { cpu, meta, cuda, emu };
inline constexpr int kNumDeviceKinds = 4;

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int8_t index = 0;
  friend constexpr bool operator==(Device, Device) = default;
};
inline constexpr Device kCpu{DeviceKind::cpu, 0};
inline constexpr Device kMeta{DeviceKind::meta, 0};

// "cpu", "meta", "cuda:1".
std::string to_string(Device device);
// The inverse; raises DeviceError for an unknown name.
Device device_from_name(const std::string& name);

// What a device must offer. A device kind plugs in with set_backend(); cpu is there from the start.
struct Backend {
  void* (*allocate)(int8_t index, int64_t bytes);  // 64-byte aligned; raises MemoryError
  void (*release)(int8_t index, void* data, int64_t bytes) noexcept;
  void (*copy_from_host)(int8_t index, void* dst, const void* src, int64_t bytes);
  void (*copy_to_host)(int8_t index, void* dst, const void* src, int64_t bytes);
  void (*copy)(int8_t index, void* dst, const void* src, int64_t bytes);  // on the device
  void (*register_kernels)();         // fills the kernel table for this kind, called once
  void (*synchronize)(int8_t index);  // waits for the device; raises what went wrong on it
};
// Replaces the back end of cuda or emu; null brings back the one of this build.
void set_backend(DeviceKind kind, const Backend* backend);
// The back end of a kind; raises DeviceError with a hint when it is not part of this build.
const Backend& backend(DeviceKind kind);
bool has_backend(DeviceKind kind) noexcept;
// Waits until all work on the device is done; raises DeviceError or CudaError for faults that its
// kernels left behind. cpu and meta are never busy.
void synchronize(Device device);

// The back ends of this build, defined in cuda/: called by name, so that no linker drops them.
namespace cuda {
const Backend* emu_backend() noexcept;
const Backend* cuda_backend() noexcept;  // null when there is none here
const char* cuda_missing() noexcept;     // then: why, and how to get one
}  // namespace cuda

}  // namespace cutaway
