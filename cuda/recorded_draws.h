#pragma once
#include <cstdint>

#include <cutaway/core/device.h>
#include <cutaway/core/kernels/random.h>
#include <cutaway/core/rng.h>

namespace cutaway::cuda {

// The random numbers of a recorded step. Its kernels hold the place in the default generator at
// which they were recorded; what the generator has moved on since lies in device memory, and is
// written before each replay, so that replay after replay draws what step after step would.
class RecordedDraws {
 public:
  // Begins a recording on the device: from here the calling thread's draws are counted.
  explicit RecordedDraws(Device device);
  ~RecordedDraws();
  RecordedDraws(const RecordedDraws&) = delete;
  RecordedDraws& operator=(const RecordedDraws&) = delete;
  // Ends it: a recording executes nothing, so the default generator goes back to its begin.
  void end();
  // Before a replay: sets the distance, and moves the default generator over the step's numbers.
  // Raises ValueError when that has another seed or stream than it had when the step was recorded.
  void begin_replay();

 private:
  friend const uint64_t* draw_distance(const RandomArgs& a);

  Device device_;
  Generator start_;
  uint64_t blocks_ = 0;           // of one step
  uint64_t* distance_ = nullptr;  // device memory
  RecordedDraws* outer_;
};

// Where a kernel that draws finds how many blocks to add to its offset: null outside of recordings.
// Raises ValueError for draws from another generator than the default one: each replay would repeat
// their numbers.
const uint64_t* draw_distance(const RandomArgs& a);

}  // namespace cutaway::cuda
