#include <cutaway/cuda/ladder.h>

namespace cutaway::cuda {

Ladders& ladders(DeviceKind kind) {
  static Ladders emu, gpu;
  return kind == DeviceKind::cuda ? gpu : emu;
}

}  // namespace cutaway::cuda
