#include <cutaway/cuda/runtime/stream.h>

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include <cutaway/core/error.h>
#include <cutaway/cuda/runtime/error.h>

namespace cutaway::cuda::gpu {
namespace {

thread_local void* scoped_stream = nullptr;

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

void* new_stream() {
  cudaStream_t s = nullptr;
  check("stream", cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return s;
}

// Waits after every kernel; for finding the one that fails.
bool synchronous() {
  static const bool on = [] {
    const char* v = std::getenv("CUTAWAY_CUDA_SYNC");
    return v && std::strcmp(v, "1") == 0;
  }();
  return on;
}

[[noreturn, gnu::cold]] void throw_launch(const Launch& l, cudaError_t status, const char* what) {
  cudaGetLastError();
  throw CudaError(
      l.name,
      fmt::format("{}: {}; grid {} x {} x {}, block {} x {} x {}, {} bytes of dynamic "
                  "shared memory, launched at {}:{}",
                  what, cudaGetErrorString(status), l.grid.x, l.grid.y, l.grid.z, l.block.x,
                  l.block.y, l.block.z, l.shared, l.at.file_name(), l.at.line()),
      "--device emu runs the same kernel with all accesses checked");
}

}  // namespace

void* compute_stream() {
  static void* const stream = new_stream();
  return stream;
}
void* copy_stream() {
  static void* const stream = new_stream();
  return stream;
}
void* current_stream() { return scoped_stream ? scoped_stream : compute_stream(); }

void begin_launch(const Launch& launch, const void* kernel) {
  // 48 KB come without asking, but static arrays of the kernel are part of them.
  constexpr int64_t kUnasked = 16 * 1024;
  if (launch.shared <= kUnasked) [[likely]]
    return;
  static std::mutex mutex;
  static std::unordered_map<const void*, int64_t> allowed;
  std::lock_guard lock(mutex);
  int64_t& bytes = allowed[kernel];
  if (bytes >= launch.shared) return;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(launch.shared));
  if (status != cudaSuccess) throw_launch(launch, status, "this GPU has less shared memory");
  bytes = launch.shared;
}

void end_launch(const Launch& launch) {
  cudaError_t status = cudaPeekAtLastError();
  if (status != cudaSuccess) [[unlikely]]
    throw_launch(launch, status, "the launch was refused");
  if (!synchronous()) [[likely]]
    return;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream_of(current_stream()), &capture);
  if (capture != cudaStreamCaptureStatusNone) return;
  status = cudaStreamSynchronize(stream_of(current_stream()));
  if (status != cudaSuccess) throw_launch(launch, status, "the kernel failed");
}

Event::Event() {
  cudaEvent_t e = nullptr;
  check("event", cudaEventCreate(&e));
  event_ = e;
}
Event::~Event() { cudaEventDestroy(event_of(event_)); }
void Event::record() {
  check("event", cudaEventRecord(event_of(event_), stream_of(current_stream())));
}
bool Event::passed() const {
  const cudaError_t status = cudaEventQuery(event_of(event_));
  if (status == cudaErrorNotReady) return false;
  check("event", status);
  return true;
}
void Event::wait() const { check("event", cudaEventSynchronize(event_of(event_))); }
double Event::milliseconds_since(const Event& earlier) const {
  float ms = 0;
  check("event", cudaEventElapsedTime(&ms, event_of(earlier.event_), event_of(event_)));
  return double(ms);
}

Stream::Stream() : stream_(new_stream()) {}
Stream::~Stream() {
  cudaStreamSynchronize(stream_of(stream_));
  cudaStreamDestroy(stream_of(stream_));
}
void Stream::wait_for(const Event& event) {
  check("stream", cudaStreamWaitEvent(stream_of(stream_), event_of(event.handle()), 0));
}
void Stream::synchronize() const { check("stream", cudaStreamSynchronize(stream_of(stream_))); }

StreamScope::StreamScope(void* stream) : before_(scoped_stream) { scoped_stream = stream; }
StreamScope::~StreamScope() { scoped_stream = before_; }

}  // namespace cutaway::cuda::gpu
