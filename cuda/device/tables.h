#pragma once
#include <cstring>
#include <optional>
#include <vector>

#include <cutaway/cuda/device/scratch.h>

namespace cutaway::cuda::CUTAWAY_TARGET {

// Host tables of 8-byte elements that a kernel takes a copy of, sent together: add() all of them,
// then send(), then at() gives their places on the device.
class Tables {
 public:
  // Returns the table's number; -1 for a null one.
  template <class T>
  int64_t add(const T* table, int64_t n) {
    static_assert(sizeof(T) == sizeof(int64_t));
    if (!table) return -1;
    const auto at = static_cast<int64_t>(words_.size());
    words_.resize(static_cast<size_t>(at + n));
    if (n > 0) std::memcpy(words_.data() + at, table, static_cast<size_t>(n) * sizeof(T));
    return at;
  }
  void send() { data_.emplace(words_.data(), static_cast<int64_t>(words_.size())); }
  template <class T>
  const T* at(int64_t number) const {
    return number < 0 ? nullptr : reinterpret_cast<const T*>(data_->get() + number);
  }

 private:
  std::vector<int64_t> words_;
  std::optional<DeviceArray<int64_t>> data_;
};

}  // namespace cutaway::cuda::CUTAWAY_TARGET
