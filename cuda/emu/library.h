#pragma once
#include <cstdint>
#include <source_location>

#include <cutaway/cuda/emu/memory.h>

namespace cutaway::cuda::emu {

// A library call on emulated memory: device memory is open while it lives, and what the call reads
// and writes is checked as a kernel's accesses are.
class LibraryCall {
 public:
  explicit LibraryCall(const char* name, std::source_location at = std::source_location::current())
      : name_(name), at_(at) {
    raise_faults();
  }

  // Raises DeviceError unless `rows` rows of `bytes` bytes, `distance` bytes apart, lie in one live
  // block, and KernelFault unless all of them have been written.
  void reads(const char* what, const void* p, int64_t rows, int64_t bytes, int64_t distance) const;
  // The same for results; marks them as written.
  void writes(const void* p, int64_t rows, int64_t bytes, int64_t distance) const;

 private:
  Block block_of(const void* p, int64_t rows, int64_t bytes, int64_t distance) const;

  const char* name_;
  std::source_location at_;
  Access access_;
};

}  // namespace cutaway::cuda::emu
