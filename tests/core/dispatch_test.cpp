#include <cutaway/core/dispatch.h>

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include <cutaway/core/error.h>
#include <cutaway/core/kernel.h>
#include <cutaway/core/kernels/pointwise.h>

namespace cutaway {
namespace {

TEST(Dispatch, TheVariantIsOneOfThoseOffered) {
  const auto names = available_cpu_variants();
  ASSERT_FALSE(names.empty());
  EXPECT_NE(std::find(names.begin(), names.end(), cpu_variant()), names.end());
  if (const char* forced = std::getenv("CUTAWAY_CPU_VARIANT"); forced && *forced) {
    EXPECT_STREQ(cpu_variant(), forced);
  } else {
    EXPECT_EQ(cpu_variant(), names.back());
  }
}

TEST(Dispatch, AMissingKernelIsAnErrorThatNamesIt) {
  Kernel<PointwiseArgs> nothing{"nothing"};
  const auto text = [&](DeviceKind kind) -> std::string {
    try {
      nothing({kind, 0}, DType::i8, {});
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(text(DeviceKind::cpu).find("[nothing] there is no kernel for i8 on cpu"), 0u);
  EXPECT_EQ(text(DeviceKind::meta).find("[nothing] meta tensors have sizes only"), 0u);
  if (!has_backend(DeviceKind::cuda)) {
    EXPECT_EQ(text(DeviceKind::cuda).find("[nothing] this build has no part for cuda"), 0u);
  }
  EXPECT_THROW(nothing(kCpu, DType::f32, {}), DTypeError);
  EXPECT_THROW(nothing(kMeta, DType::f32, {}), DeviceError);
}

TEST(Dispatch, AKernelIsFoundByDeviceAndType) {
  Kernel<int> twice{"twice"};
  twice.set(DeviceKind::cpu, DType::f32, [](const int&) {});
  EXPECT_NO_THROW(twice(kCpu, DType::f32, 1));
  EXPECT_THROW(twice(kCpu, DType::f64, 1), DTypeError);
}

}  // namespace
}  // namespace cutaway
