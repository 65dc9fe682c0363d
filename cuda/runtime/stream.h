#pragma once
#include <cstdint>

#include <cutaway/cuda/launch_config.h>

// Streams of the GPU in use. Types of the CUDA headers are not needed here: a stream is a
// cudaStream_t, an event a cudaEvent_t.
namespace cutaway::cuda::gpu {

// The cudaStream_t that kernels of the calling thread go to.
void* current_stream();
// Before a launch: allows dynamic shared memory above 48 KB. After it: raises CudaError naming the
// kernel when the launch was refused; with CUTAWAY_CUDA_SYNC=1 in the environment also when the
// kernel failed.
void begin_launch(const Launch& launch, const void* kernel);
void end_launch(const Launch& launch);

// A point in the work of a stream.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  // Now, on the current stream.
  void record();
  bool passed() const;
  void wait() const;  // on the host
  // Milliseconds between two events that have passed, on the device's clock.
  double milliseconds_since(const Event& earlier) const;
  void* handle() const { return event_; }

 private:
  void* event_ = nullptr;
};

// Work that runs beside that of other streams. Memory that a stream uses and another has allocated
// must be announced with note_use (memory.h).
class Stream {
 public:
  Stream();
  ~Stream();  // waits for its work
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // Later work of this stream starts after the event.
  void wait_for(const Event& event);
  void synchronize() const;
  void* handle() const { return stream_; }

 private:
  void* stream_ = nullptr;
};
// Sends the work of the calling thread to a stream while it lives.
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream) : StreamScope(stream.handle()) {}
  explicit StreamScope(void* stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  void* before_;
};

// The streams of the device: kernels go to the first unless a StreamScope says otherwise; the
// second is for copies beside them.
void* compute_stream();
void* copy_stream();

}  // namespace cutaway::cuda::gpu
