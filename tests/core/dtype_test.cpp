#include <cutaway/core/dtype.h>

#include <gtest/gtest.h>

#include <cutaway/core/device.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

// The whole promotion table, by name; rows and columns in the order of the enumeration.
TEST(DType, PromotionTable) {
  constexpr const char* kTable[kNumDTypes][kNumDTypes] = {
      // f64    f32    bf16    f16    i64    i32    u8     i8     bool
      {"f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64", "f64"},
      {"f64", "f32", "f32", "f32", "f32", "f32", "f32", "f32", "f32"},
      {"f64", "f32", "bf16", "f32", "bf16", "bf16", "bf16", "bf16", "bf16"},
      {"f64", "f32", "f32", "f16", "f16", "f16", "f16", "f16", "f16"},
      {"f64", "f32", "bf16", "f16", "i64", "i64", "i64", "i64", "i64"},
      {"f64", "f32", "bf16", "f16", "i64", "i32", "i32", "i32", "i32"},
      {"f64", "f32", "bf16", "f16", "i64", "i32", "u8", "i32", "u8"},
      {"f64", "f32", "bf16", "f16", "i64", "i32", "i32", "i8", "i8"},
      {"f64", "f32", "bf16", "f16", "i64", "i32", "u8", "i8", "bool"},
  };
  for (int a = 0; a < kNumDTypes; ++a) {
    for (int b = 0; b < kNumDTypes; ++b) {
      EXPECT_STREQ(name_of(promote(DType(a), DType(b))), kTable[a][b])
          << name_of(DType(a)) << " with " << name_of(DType(b));
    }
  }
}

TEST(DType, NamesSizesAndSets) {
  constexpr int64_t kBytes[kNumDTypes] = {8, 4, 2, 2, 8, 4, 1, 1, 1};
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType t = DType(i);
    EXPECT_EQ(dtype_from_name(name_of(t)), t);
    EXPECT_EQ(size_of(t), kBytes[i]);
    EXPECT_TRUE(kAllTypes.has(t));
    EXPECT_EQ(kFloating.has(t), is_floating(t));
    EXPECT_EQ(kIntegers.has(t), is_integer(t));
    EXPECT_EQ(kBoolOnly.has(t), t == DType::boolean);
    EXPECT_EQ(kNumbers.has(t), t != DType::boolean);
    EXPECT_EQ(kFullFloats.has(t), t == DType::f64 || t == DType::f32);
  }
  EXPECT_EQ(to_string(kFloating), "f64 f32 bf16 f16");
  EXPECT_EQ(to_string(kFullFloats | kBoolOnly), "f64 f32 bool");
  EXPECT_THROW(dtype_from_name("float32"), DTypeError);
  EXPECT_THROW(dtype_from_name(""), DTypeError);
}

TEST(Device, Names) {
  for (const char* name : {"cpu", "meta", "emu"})
    EXPECT_EQ(to_string(device_from_name(name)), name);
  EXPECT_EQ(device_from_name("cuda"), (Device{DeviceKind::cuda, 0}));
  EXPECT_EQ(to_string(device_from_name("cuda:3")), "cuda:3");
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:10", "CPU"}) {
    EXPECT_THROW(device_from_name(name), DeviceError) << name;
  }
}

TEST(Device, AKindThatIsNotBuiltSaysSo) {
  if (has_backend(DeviceKind::cuda)) GTEST_SKIP() << "this build has CUDA";
  try {
    backend(DeviceKind::cuda);
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("this build has no part for cuda"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("hint: "), std::string::npos);
  }
  EXPECT_THROW(set_backend(DeviceKind::cpu, nullptr), DeviceError);
  EXPECT_TRUE(has_backend(DeviceKind::cpu));
}

}  // namespace
}  // namespace cutaway
