#pragma once
#include <cstdint>

#include <cutaway/core/alloc/pool.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {

// Memory from the pool for n plain values (none for n ≤ 0), 64-byte aligned, not initialised and
// given back at the end of the scope.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n)
      : bytes_(n > 0 ? n * int64_t(sizeof(T)) : 0),
        data_(bytes_ > 0 ? static_cast<T*>(pool_allocate(bytes_)) : nullptr) {}
  ~Scratch() {
    if (data_) pool_free(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  int64_t bytes_;
  T* data_;
};

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
