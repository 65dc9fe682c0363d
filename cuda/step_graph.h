#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include <cutaway/core/device.h>

namespace cutaway::cuda {

// A whole step (forward, backward, optimiser) recorded on a device and replayed without op calls:
// on cuda as one CUDA graph, on emu as the list of its launches.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  // Runs the recorded step, in the order of the device's other work.
  virtual void replay() = 0;
  // Launches, copies and library calls that were recorded.
  virtual int64_t nodes() const = 0;
};

// Runs `step` once as usual, then records a second run, which executes nothing. A replay has the
// bits of an ordinary run when the step
//   works on the same tensors each time: copy new values into its inputs, read its outputs after,
//   reads no values on the host (item(), clipping by a norm, data-dependent sizes),
//   has its optimisers capturable (optim::Optimizer::set_capturable), for their step counts,
//   draws from the default generator only; each replay moves it on as a step does.
// Raises DeviceError on other devices; CudaError (cuda), DeviceError (emu) or ValueError when the
// step does what cannot be recorded.
std::unique_ptr<StepGraph> record_step(Device device, const std::function<void()>& step);

}  // namespace cutaway::cuda
