#include <gtest/gtest.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/tensor.h>

#include <tests/cuda/kernel_check.h>

// Elementwise kernels: values are checked by the generated op tests, traffic here.
namespace cutaway::cuda::emu {
namespace {

Tensor on_emu(const Shape& sizes, DType dtype) {
  return full(sizes, 0.5, {.dtype = dtype}).to(kEmu);
}

TEST(CudaPointwise, MovesEachByteOnce) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const Tensor a = on_emu({50, 400}, dtype), b = on_emu({50, 400}, dtype);
    const double bytes = double(a.numel()) * double(size_of(dtype));
    const Traffic sum = traffic_of([&] { a + b; });
    EXPECT_EQ(double(sum.read), 2 * bytes) << name_of(dtype);
    EXPECT_EQ(double(sum.written), bytes) << name_of(dtype);
    EXPECT_EQ(sum.launches, 1);
    const Traffic curve = traffic_of([&] { gelu(a); });
    EXPECT_EQ(double(curve.read), bytes) << name_of(dtype);
    EXPECT_EQ(double(curve.written), bytes) << name_of(dtype);
  }
}

TEST(CudaPointwise, AnOddLengthCostsAFewSectorsMore) {
  const Tensor a = on_emu({10007}, DType::f32);
  const Traffic t = traffic_of([&] { a * 2.0; });
  // The last three elements come one by one.
  EXPECT_LE(t.read, (10007 * 4 + 31) / 32 * 32 + 3 * 32);
  EXPECT_EQ(t.written, t.read);
}

TEST(CudaPointwise, AConversionReadsNarrowAndWritesWide) {
  const Tensor a = on_emu({4096}, DType::bf16);
  const Traffic t = traffic_of([&] { a.to(DType::f32); });
  EXPECT_EQ(t.read, 8192);
  EXPECT_EQ(t.written, 16384);
}

TEST(CudaPointwise, ARepeatedNumberIsNotReadForEveryElement) {
  const Tensor a = on_emu({4096}, DType::f32), one = on_emu({1}, DType::f32).expand({4096});
  const Traffic t = traffic_of([&] { a + one; });
  EXPECT_LE(double(t.read), 1.05 * 16384 + 32 * 32);  // a sector for each warp
  EXPECT_EQ(t.written, 16384);
}

TEST(CudaPointwise, StridesAndOffsetsTakeTheNarrowWay) {
  const Tensor whole = on_emu({9, 33}, DType::f32);
  const Tensor part = whole.slice(1, 1, 33);  // not a multiple of 16 bytes into the row
  const Traffic t = traffic_of([&] { relu(part); });
  EXPECT_EQ(t.launches, 1);
  EXPECT_EQ(relu(part).to(kCpu).sizes(), (Shape{9, 32}));
}

}  // namespace
}  // namespace cutaway::cuda::emu
