#include <gtest/gtest.h>

#include <cutaway/core/device.h>
#include <cutaway/core/error.h>
#include <cutaway/cuda/info.h>

namespace cutaway::cuda {
namespace {

TEST(CudaRuntime, SaysWhyThereIsNone) {
  if (has_backend(DeviceKind::cuda)) {
    EXPECT_FALSE(devices().empty());
    return;
  }
  EXPECT_TRUE(devices().empty());
  EXPECT_NE(std::string(cuda_missing()).find("emu runs the same kernels"), std::string::npos);
  try {
    backend(DeviceKind::cuda);
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find(cuda_missing()), std::string::npos) << e.what();
  }
}
// Every function that is called by name is there under that name, GPU or not.
TEST(CudaRuntime, LibrariesHaveTheFunctionsWeCall) {
  for (const LibraryInfo& l : libraries()) {
    if (l.file.empty()) continue;
    EXPECT_TRUE(l.missing.empty()) << l.name << " lacks " << l.missing[0];
  }
}

}  // namespace
}  // namespace cutaway::cuda
