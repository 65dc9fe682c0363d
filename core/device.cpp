#include <cutaway/core/device.h>

#include <atomic>
#include <cstring>

#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

constexpr const char* kNames[kNumDeviceKinds] = {"cpu", "meta", "cuda", "emu"};

void* host_allocate(int8_t, int64_t bytes) { return pool_allocate(bytes); }
void host_release(int8_t, void* data, int64_t bytes) noexcept { pool_free(data, bytes); }
void host_copy(int8_t, void* dst, const void* src, int64_t bytes) {
  if (bytes) std::memcpy(dst, src, size_t(bytes));
}
void host_synchronize(int8_t) {}
const Backend kHost{host_allocate, host_release, host_copy,       host_copy,
                    host_copy,     nullptr,      host_synchronize};
std::atomic<const Backend*> replaced[kNumDeviceKinds] = {};

const Backend* find_backend(DeviceKind kind) noexcept {
  if (kind == DeviceKind::cpu) return &kHost;
  if (kind == DeviceKind::meta) return nullptr;
  const Backend* other = replaced[int(kind)].load(std::memory_order_acquire);
  if (other) return other;
  return kind == DeviceKind::emu ? cuda::emu_backend() : cuda::cuda_backend();
}

}  // namespace

std::string to_string(Device device) {
  std::string s = kNames[static_cast<int>(device.kind)];
  if (device.kind == DeviceKind::cuda) s += ":" + std::to_string(device.index);
  return s;
}

Device device_from_name(const std::string& name) {
  for (int k = 0; k < kNumDeviceKinds; ++k) {
    if (name == kNames[k]) return {DeviceKind(k), 0};
  }
  if (name.size() == 6 && name.starts_with("cuda:") && name[5] >= '0' && name[5] <= '9') {
    return {DeviceKind::cuda, int8_t(name[5] - '0')};
  }
  throw DeviceError("device",
                    "unknown device \"" + name + "\"; need cpu, meta, cuda, cuda:N or emu");
}

void set_backend(DeviceKind kind, const Backend* backend) {
  if (kind == DeviceKind::cpu || kind == DeviceKind::meta) {
    throw DeviceError("set_backend",
                      "cpu and meta are built in; only cuda and emu can be plugged in");
  }
  replaced[int(kind)].store(backend, std::memory_order_release);
}

bool has_backend(DeviceKind kind) noexcept { return find_backend(kind) != nullptr; }

const Backend& backend(DeviceKind kind) {
  const Backend* b = find_backend(kind);
  if (b) return *b;
  if (kind == DeviceKind::meta) {
    throw DeviceError("device", "meta tensors have sizes only, no memory", "use cpu for values");
  }
  throw DeviceError("device", std::string("this build has no part for ") + kNames[int(kind)],
                    cuda::cuda_missing());
}

void synchronize(Device device) {
  if (device.kind != DeviceKind::meta) backend(device.kind).synchronize(device.index);
}

}  // namespace cutaway
