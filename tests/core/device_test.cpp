#include <cutaway/core/device.h>

#include <gtest/gtest.h>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/core/tensor.h>
#include <cutaway/cuda/emu/memory.h>

namespace cutaway {
namespace {

constexpr Device kEmu{DeviceKind::emu, 0};
using Values = std::vector<double>;

// What code outside of kernels may do with tensors of a device: with the guard on, every read of
// device memory as if it were the host's ends the program.
class GuardedDevice : public testing::Test {
 protected:
  void SetUp() override {
    before_ = cuda::emu::guard();
    cuda::emu::set_guard(true);
  }
  void TearDown() override { cuda::emu::set_guard(before_); }

 private:
  bool before_ = false;
};

template <class F>
std::string error_of(F&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_F(GuardedDevice, ValuesGoThereAndBack) {
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32,
                        DType::u8, DType::i8}) {
    const Tensor there = tensor({1, 2, 5}, {.dtype = t, .device = kEmu});
    EXPECT_EQ(there.device(), kEmu);
    EXPECT_EQ(there.to_vector(), (Values{1, 2, 5})) << name_of(t);
    EXPECT_EQ(there.to(kCpu).device(), kCpu);
    EXPECT_EQ(there.to(kCpu).to(kEmu).to_vector(), (Values{1, 2, 5}));
  }
}

TEST_F(GuardedDevice, FactoriesThatComputeOnTheHostDeliver) {
  EXPECT_EQ(arange(0, 4, 1, {.device = kEmu}).to_vector(), (Values{0, 1, 2, 3}));
  EXPECT_EQ(linspace(0, 1, 3, {.device = kEmu}).to_vector(), (Values{0, 0.5, 1}));
  EXPECT_EQ(eye(2, {.device = kEmu}).to_vector(), (Values{1, 0, 0, 1}));
  EXPECT_EQ(randperm(1, {.dtype = DType::i64, .device = kEmu}).to_vector(), (Values{0}));
}

TEST_F(GuardedDevice, OneElementIsReadAndPrinted) {
  EXPECT_EQ(tensor({2.5}, {.device = kEmu}).item(), 2.5);
  EXPECT_EQ(tensor({7}, {.dtype = DType::i64, .device = kEmu}).item<int64_t>(), 7);
  EXPECT_EQ(tensor({1, 2}, {.device = kEmu}).to_string(), "[1, 2]  [2] f32 emu");
}

TEST_F(GuardedDevice, FilesAreWrittenFromThere) {
  const std::string folder = testing::TempDir() + "cutaway_device_test";
  std::filesystem::create_directories(folder);
  const Tensor there = tensor({1, 2, 3, 4}, {2, 2}, {.device = kEmu});
  io::TensorFile file;
  file.tensors.emplace_back("w", there);
  io::save_safetensors(folder + "/w.safetensors", file);
  const auto read = io::load_safetensors(folder + "/w.safetensors");
  EXPECT_EQ(read.tensors.at(0).second.to_vector(), there.to_vector());
  io::save_npy(folder + "/w.npy", there);
  EXPECT_EQ(io::load_npy(folder + "/w.npy").to_vector(), there.to_vector());
  std::filesystem::remove_all(folder);
}

TEST_F(GuardedDevice, LinearAlgebraIsDoneOnTheHost) {
  const Tensor x = tensor({4, 1, 1, 3}, {2, 2}, {.dtype = DType::f64});
  const Tensor there = x.to(kEmu);
  const auto same = [](const Tensor& got, const Tensor& want) {
    EXPECT_EQ(got.device(), kEmu);
    EXPECT_EQ(got.to_vector(), want.to_vector());
  };
  same(linalg::cholesky(there), linalg::cholesky(x));
  same(linalg::inverse(there), linalg::inverse(x));
  same(linalg::det(there), linalg::det(x));
  same(linalg::solve(there, there), linalg::solve(x, x));
  same(linalg::slogdet(there).logabsdet, linalg::slogdet(x).logabsdet);
  same(linalg::qr(there).r, linalg::qr(x).r);
  same(linalg::eigh(there).vectors, linalg::eigh(x).vectors);
  same(linalg::svd(there).vh, linalg::svd(x).vh);
}

TEST_F(GuardedDevice, OperandsOfTwoDevicesAreRefused) {
  const Tensor here = tensor({1, 2}), there = here.to(kEmu);
  for (const std::string& text :
       {error_of([&] { add(here, there); }), error_of([&] { add(there, here); }),
        error_of([&] { matmul(here.unsqueeze(0), there.unsqueeze(1)); }),
        error_of([&] { copy_elements(here, there); })}) {
    EXPECT_NE(text.find("one device; got"), std::string::npos) << text;
    EXPECT_NE(text.find("to(device)"), std::string::npos) << text;
  }
}

TEST(Device, AMissingGpuIsExplained) {
  if (has_backend(DeviceKind::cuda)) {
    EXPECT_NO_THROW(backend(DeviceKind::cuda));
    return;
  }
  const std::string text = error_of([] { empty({1}, {.device = {DeviceKind::cuda, 0}}); });
  EXPECT_NE(text.find("this build has no part for cuda"), std::string::npos) << text;
  EXPECT_NE(text.find(cuda::cuda_missing()), std::string::npos) << text;
}

TEST(Device, SynchronizeIsForEveryDevice) {
  EXPECT_NO_THROW(synchronize(kCpu));
  EXPECT_NO_THROW(synchronize(kMeta));
  EXPECT_NO_THROW(synchronize(kEmu));
}

}  // namespace
}  // namespace cutaway
