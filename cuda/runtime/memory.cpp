#include <cutaway/cuda/runtime/memory.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include <cutaway/core/context.h>
#include <cutaway/core/error.h>
#include <cutaway/cuda/runtime/error.h>
#include <cutaway/cuda/runtime/graph.h>
#include <cutaway/cuda/runtime/stream.h>

namespace cutaway::cuda::gpu {
namespace {

thread_local CaptureMemory* capturing = nullptr;

cudaStream_t stream() { return static_cast<cudaStream_t>(current_stream()); }

void* new_segment(int64_t bytes) {
  void* p = nullptr;
  const cudaError_t status = cudaMalloc(&p, size_t(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check("allocate", status);
  return p;
}
void* mark_of(void* queue) {
  cudaEvent_t e = nullptr;
  check("release", cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  check("release", cudaEventRecord(e, static_cast<cudaStream_t>(queue)));
  return e;
}
bool mark_passed(void* mark, bool wait) {
  const auto e = static_cast<cudaEvent_t>(mark);
  const cudaError_t status = wait ? cudaEventSynchronize(e) : cudaEventQuery(e);
  if (status == cudaErrorNotReady) return false;
  cudaEventDestroy(e);
  check("allocate", status);
  return true;
}
std::string room() {
  size_t free_bytes = 0, all = 0;
  cudaMemGetInfo(&free_bytes, &all);
  return fmt::format("{} of {} bytes of the GPU are free", free_bytes, all);
}

// Never destroyed: tensors may outlive every static object, and the driver takes the memory back.
CachingAllocator& allocator() {
  alignas(CachingAllocator) static unsigned char place[sizeof(CachingAllocator)];
  static CachingAllocator* const a =
      new (place) CachingAllocator({.allocate = new_segment,
                                    .release = [](void* p) { cudaFree(p); },
                                    .mark = mark_of,
                                    .passed = mark_passed,
                                    .room = room});
  return *a;
}

// Pinned memory that copies to the device pass through, in turns.
class Staging {
 public:
  static constexpr int64_t kBytes = int64_t{1} << 20;
  static constexpr int kSlots = 4;

  void copy(char* to, const char* from, int64_t bytes) {
    std::lock_guard lock(mutex_);
    for (int64_t done = 0; done < bytes; done += kBytes) {
      const int64_t part = std::min(kBytes, bytes - done);
      Slot& slot = slots_[next_];
      next_ = (next_ + 1) % kSlots;
      if (!slot.buffer) {
        slot.buffer = std::make_unique<PinnedBuffer>(kBytes);
        slot.event = std::make_unique<Event>();
      } else {
        slot.event->wait();
      }
      std::memcpy(slot.buffer->data(), from + done, size_t(part));
      slot.buffer->start_to_device(to + done, part);
      slot.event->record();
    }
  }

 private:
  struct Slot {
    std::unique_ptr<PinnedBuffer> buffer;
    std::unique_ptr<Event> event;
  };
  std::mutex mutex_;
  Slot slots_[kSlots];
  int next_ = 0;
};
Staging& staging() {
  alignas(Staging) static unsigned char place[sizeof(Staging)];
  static Staging* const s = new (place) Staging;
  return *s;
}

}  // namespace

void* allocate(int64_t bytes) {
  void* queue = capturing ? static_cast<void*>(capturing) : current_stream();
  return allocator().allocate(bytes, queue, context().op);
}
void release(void* data) noexcept { allocator().release(data); }
void note_use(void* data) {
  if (!capturing) allocator().note_use(data, current_stream());
}
int64_t trim() { return allocator().trim(); }
CachingAllocator::Stats memory_stats() { return allocator().stats(); }

void copy_in(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  if (capturing) return capturing->keep(from, bytes).start_to_device(to, bytes);
  staging().copy(static_cast<char*>(to), static_cast<const char*>(from), bytes);
}
void copy_out(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  if (capturing) {
    throw CudaError("graph", "a copy to the host cannot be part of a recorded step",
                    "keep values on the device until the replay has ended");
  }
  check("copy_to_host", cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToHost, stream()));
  check("copy_to_host", cudaStreamSynchronize(stream()));
}
void copy_within(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  check("copy", cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToDevice, stream()));
}

PinnedBuffer::PinnedBuffer(int64_t bytes) : bytes_(bytes) {
  const cudaError_t status = cudaHostAlloc(&data_, size_t(std::max<int64_t>(bytes, 1)), 0);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw MemoryError("cuda", fmt::format("no room for {} bytes of pinned host memory", bytes));
  }
  check("pinned memory", status);
}
PinnedBuffer::~PinnedBuffer() { cudaFreeHost(data_); }
void PinnedBuffer::start_to_device(void* to, int64_t bytes) const {
  check("copy", cudaMemcpyAsync(to, data_, size_t(bytes), cudaMemcpyHostToDevice, stream()));
}
void PinnedBuffer::start_from_device(const void* from, int64_t bytes) const {
  check("copy", cudaMemcpyAsync(data_, from, size_t(bytes), cudaMemcpyDeviceToHost, stream()));
}

bool recording() { return capturing != nullptr; }
CaptureScope::CaptureScope(CaptureMemory& memory) { capturing = &memory; }
CaptureScope::~CaptureScope() { capturing = nullptr; }

CaptureMemory::~CaptureMemory() { allocator().bequeath(this, compute_stream()); }
const PinnedBuffer& CaptureMemory::keep(const void* from, int64_t bytes) {
  kept_.push_back(std::make_unique<PinnedBuffer>(bytes));
  std::memcpy(kept_.back()->data(), from, size_t(bytes));
  return *kept_.back();
}

}  // namespace cutaway::cuda::gpu
