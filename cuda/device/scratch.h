#pragma once
#include <cstdint>

#include <cutaway/core/device.h>
#include <cutaway/cuda/device/language.h>

namespace cutaway::cuda::CUTAWAY_TARGET {

// Device memory for the time of a kernel call: n elements, not initialised, given back at the end
// of the scope. Memory is given back in the order of the stream, so kernels that were launched
// before may still use it.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(int64_t n)
      : bytes_((n > 0 ? n : 1) * static_cast<int64_t>(sizeof(T))),
        data_(static_cast<T*>(backend(kDevice).allocate(0, bytes_))) {}
  // A copy of n elements of the host.
  DeviceArray(const T* host, int64_t n) : DeviceArray(n) {
    if (n > 0) {
      backend(kDevice).copy_from_host(0, data_, host, n * static_cast<int64_t>(sizeof(T)));
    }
  }
  ~DeviceArray() { backend(kDevice).release(0, data_, bytes_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }

 private:
  int64_t bytes_;
  T* data_;
};

// The value at `from`, a pointer to device memory.
template <class T>
T read_from_device(const T* from) {
  T value;
  backend(kDevice).copy_to_host(0, &value, from, sizeof(T));
  return value;
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
