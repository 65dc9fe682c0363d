#include <gtest/gtest.h>

#include <cutaway/core/device.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor.h>
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
// One device a process: another index is refused by name, on the first use of the device.
TEST(CudaRuntime, OneDeviceAProcess) {
  for (const DeviceKind kind : {DeviceKind::emu, DeviceKind::cuda}) {
    if (!has_backend(kind)) continue;
    for (const int8_t index : {int8_t{1}, int8_t{7}, int8_t{-1}}) {
      const Device other{kind, index};
      try {
        zeros({3}, {.device = other});
        ADD_FAILURE() << to_string(other);
      } catch (const DeviceError& e) {
        EXPECT_NE(std::string(e.what()).find("got " + to_string(other)), std::string::npos)
            << e.what();
      }
    }
    EXPECT_EQ(zeros({3}, {.device = {kind, 0}}).to_vector()[2], 0);
  }
}

}  // namespace
}  // namespace cutaway::cuda
