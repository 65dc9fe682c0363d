#pragma once
#include <atomic>
#include <cstdint>

#include <cutaway/core/device.h>

namespace cutaway {

// A counted buffer. Views share it, and with it the version counter that in-place writes bump.
struct Storage {
  std::atomic<uint32_t> refs{1};
  uint32_t version = 0;
  void* data = nullptr;
  int64_t bytes = 0;
  Device device;
  const char* writer = nullptr;  // op of the last in-place write, for messages
  void (*release)(Storage*) noexcept = nullptr;   // frees data and this header
  void* owner = nullptr;                          // of wrapped memory: file mapping, foreign object
  void (*release_owner)(void*) noexcept = nullptr;

  void retain() { refs.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept {
    if (refs.load(std::memory_order_acquire) == 1 ||
        refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      release(this);
    }
  }
  // Marks a write by the named op, so that values saved for backward are known to be stale.
  void bump(const char* op) {
    ++version;
    writer = op;
  }
};

// A new storage with a count of 1, its data 64-byte aligned and not initialised (all bits set in a
// debug build, NaN for floating types). On meta there is no data. Raises MemoryError with a table
// of holders, DeviceError when the device is not part of this build.
Storage* make_storage(Device device, int64_t bytes);
// Wraps foreign memory; `release_owner(owner)`, if given, runs when the last tensor is gone.
Storage* wrap_storage(Device device, void* data, int64_t bytes, void* owner = nullptr,
                      void (*release_owner)(void*) noexcept = nullptr);

}  // namespace cutaway
