#include <cutaway/core/kernel.h>
#include <cutaway/cuda/ladder.h>

namespace cutaway::cuda {

Ladders& ladders_to_fill(DeviceKind kind) {
  static Ladders emu, gpu;
  return kind == DeviceKind::cuda ? gpu : emu;
}

const Ladders& ladders(DeviceKind kind) {
  cutaway::detail::initialize_kernels();
  return ladders_to_fill(kind);
}

}  // namespace cutaway::cuda
