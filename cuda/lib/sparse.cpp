#include <cutaway/cuda/lib/sparse.h>

namespace cutaway::cuda {

SparseLibrary& sparse_library(DeviceKind kind) {
  static SparseLibrary libraries[kNumDeviceKinds];
  return libraries[static_cast<int>(kind)];
}

}  // namespace cutaway::cuda
