#include <cutaway/cuda/info.h>

namespace cutaway::cuda {

std::vector<DeviceInfo> devices() { return {}; }
std::vector<LibraryInfo> libraries() { return {}; }

}  // namespace cutaway::cuda
