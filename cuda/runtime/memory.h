#pragma once
#include <cstdint>

#include <cutaway/cuda/alloc/caching.h>

namespace cutaway::cuda::gpu {

// Device memory, given back and reused in the order of the current stream.
void* allocate(int64_t bytes);
void release(void* data) noexcept;
// The current stream uses memory that was allocated for another one.
void note_use(void* data);
// Gives cached memory back to the driver; returns how many bytes.
int64_t trim();
CachingAllocator::Stats memory_stats();

// Copies in the order of the current stream. copy_in takes the values away before it returns;
// copy_out waits until they are there. Small ones go through pinned memory, so that copy_in does
// not wait for the device.
void copy_in(void* to, const void* from, int64_t bytes);
void copy_out(void* to, const void* from, int64_t bytes);
void copy_within(void* to, const void* from, int64_t bytes);

// Host memory that the device reads and writes at full speed, without a stop on the way.
class PinnedBuffer {
 public:
  explicit PinnedBuffer(int64_t bytes);
  ~PinnedBuffer();
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // Starts a copy between this buffer and the device on the current stream; do not touch the bytes
  // until an event behind it has passed.
  void start_to_device(void* to, int64_t bytes) const;
  void start_from_device(const void* from, int64_t bytes) const;

 private:
  void* data_ = nullptr;
  int64_t bytes_;
};

// What a captured graph needs as long as it can be replayed (graph.cpp): the calling thread's
// allocations go to a queue of their own, and values copied in are kept.
class CaptureMemory;
class CaptureScope {
 public:
  explicit CaptureScope(CaptureMemory& memory);
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;
};
class CaptureMemory {
 public:
  CaptureMemory() = default;
  ~CaptureMemory();  // the memory serves everybody again
  CaptureMemory(const CaptureMemory&) = delete;
  CaptureMemory& operator=(const CaptureMemory&) = delete;
  // A pinned copy of host values that lives as long as this does.
  const PinnedBuffer& keep(const void* from, int64_t bytes);

 private:
  std::vector<std::unique_ptr<PinnedBuffer>> kept_;
};

}  // namespace cutaway::cuda::gpu
