#include <cutaway/cuda/step_graph.h>

#include <cutaway/core/error.h>
#include <cutaway/cuda/emu/graph.h>

namespace cutaway::cuda {

// cuda/runtime/graph.cpp, or the stub.
std::unique_ptr<StepGraph> record_step_on_gpu(const std::function<void()>& step);

std::unique_ptr<StepGraph> record_step(Device device, const std::function<void()>& step) {
  if (device.kind == DeviceKind::emu) {
    backend(device.kind);  // kernels are registered
    return std::make_unique<emu::Graph>(step);
  }
  if (device.kind == DeviceKind::cuda) {
    backend(device.kind);  // raises when there is none
    return record_step_on_gpu(step);
  }
  throw DeviceError("graph", "steps are recorded on cuda or emu; got " + to_string(device));
}

}  // namespace cutaway::cuda
