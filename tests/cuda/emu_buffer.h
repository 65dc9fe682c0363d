#pragma once
#include <cstdint>
#include <vector>

#include <cutaway/cuda/emu/memory.h>

namespace cutaway::cuda::emu {

// A buffer of the emulated device.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t n) : data_(static_cast<T*>(allocate(n * int64_t(sizeof(T))))), n_(n) {}
  explicit Buffer(const std::vector<T>& values) : Buffer(int64_t(values.size())) {
    copy_in(data_, values.data(), n_ * int64_t(sizeof(T)));
  }
  ~Buffer() { release(data_); }
  Buffer(const Buffer&) = delete;
  T* get() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> out(static_cast<size_t>(n_));
    copy_out(out.data(), data_, n_ * int64_t(sizeof(T)));
    return out;
  }

 private:
  T* data_;
  int64_t n_;
};

}  // namespace cutaway::cuda::emu
