#include <cutaway/core/tensor.h>

#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/error.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;

const DType kTypes[] = {DType::f64, DType::f32, DType::bf16, DType::f16,    DType::i64,
                        DType::i32, DType::u8,  DType::i8,   DType::boolean};

template <class E, class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "(nothing was thrown)";
}

TEST(Tensor, AHandleCountsItsReferences) {
  const int64_t live = memory_stats().live;
  {
    Tensor a = empty({3});
    Tensor b = a;
    EXPECT_TRUE(a.is_same(b));
    EXPECT_EQ(a.impl()->refs.load(), 2u);
    Tensor c = std::move(b);
    EXPECT_FALSE(b.defined());
    EXPECT_EQ(a.impl()->refs.load(), 2u);
    a = c;
    c = empty({2});
    EXPECT_EQ(a.impl()->refs.load(), 1u);
    b = std::move(a);
    EXPECT_EQ(b.sizes(), Shape({3}));
  }
  EXPECT_EQ(memory_stats().live, live);
}

TEST(Tensor, AnEmptyHandleRaises) {
  Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_THROW(t.sizes(), ValueError);
  EXPECT_THROW(t.dtype(), ValueError);
  EXPECT_THROW(t.raw(), ValueError);
  EXPECT_THROW(t.item(), ValueError);
  EXPECT_THROW(t.to_string(), ValueError);
}

TEST(Tensor, DataChecksTheType) {
  Tensor t = zeros({2}, {.dtype = DType::i32});
  EXPECT_NO_THROW(t.data<int32_t>());
  EXPECT_EQ(message<DTypeError>([&] {
              t.data<float>();
            }).find("[data] asked for elements of f32; the tensor is i32 [2]"),
            0u);
  Tensor b = zeros({2}, {.dtype = DType::boolean});
  EXPECT_NO_THROW(b.data<bool>());
  EXPECT_NO_THROW(b.data<uint8_t>());
  EXPECT_THROW(b.data<int8_t>(), DTypeError);
  EXPECT_THROW(empty({2}, {.device = kMeta}).data<float>(), DeviceError);
}

TEST(Tensor, SizeCountsFromTheEnd) {
  const Tensor t = empty({2, 3, 4});
  EXPECT_EQ(t.size(0), 2);
  EXPECT_EQ(t.size(-1), 4);
  EXPECT_THROW(t.size(3), IndexError);
  EXPECT_THROW(t.size(-4), IndexError);
  EXPECT_EQ(t.numel(), 24);
  EXPECT_EQ(t.dim(), 3);
}

TEST(Tensor, ItemNeedsOneElementAndSaturates) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(tensor({2.5}).item(), 2.5);
  EXPECT_EQ(tensor({2.5}, Shape{}, {.dtype = DType::f64}).item<float>(), 2.5f);
  EXPECT_EQ(tensor({-2.5}).item<int64_t>(), -2);
  EXPECT_TRUE(tensor({0.5}).item<bool>());
  EXPECT_FALSE(tensor({0}).item<bool>());
  EXPECT_EQ(tensor({1e30}).item<int64_t>(), INT64_MAX);
  EXPECT_EQ(tensor({-inf}).item<int64_t>(), INT64_MIN);
  EXPECT_EQ(tensor({std::nan("")}).item<int64_t>(), 0);
  const int64_t odd = (int64_t(1) << 60) + 1;
  EXPECT_EQ(index_tensor(std::vector<int64_t>{odd}).item<int64_t>(), odd);
  EXPECT_THROW(empty({2}).item(), ShapeError);
  EXPECT_THROW(empty({0}).item(), ShapeError);
  EXPECT_EQ(message<DeviceError>([] { empty({1}, {.device = kMeta}).item(); }).find("[item] meta"),
            0u);
  EXPECT_THROW(empty({1}, {.device = kMeta}).to_vector(), DeviceError);
}

TEST(Tensor, FillAndReadBackInEveryType) {
  for (DType t : kTypes) {
    const double one = t == DType::boolean ? 1 : 3;
    EXPECT_EQ(full({2, 2}, 3, {.dtype = t}).to_vector(), Values(4, one)) << name_of(t);
    EXPECT_EQ(zeros({3}, {.dtype = t}).to_vector(), Values(3, 0)) << name_of(t);
    EXPECT_EQ(ones({}, {.dtype = t}).item(), 1) << name_of(t);
    EXPECT_EQ(tensor({0, 1, 1}, {.dtype = t}).to_vector(), Values({0, 1, 1})) << name_of(t);
    EXPECT_EQ(full({0, 4}, 1, {.dtype = t}).numel(), 0);
  }
}

TEST(Tensor, ZeroFillsAView) {
  Tensor x = full({2, 3}, 7);
  x[0].zero_();
  EXPECT_EQ(x.to_vector(), (std::vector<double>{0, 0, 0, 7, 7, 7}));
}

TEST(Tensor, FullRefusesWhatTheTypeCannotHold) {
  EXPECT_EQ(full({1}, 255, {.dtype = DType::u8}).item(), 255);
  EXPECT_THROW(full({1}, 256, {.dtype = DType::u8}), ValueError);
  EXPECT_THROW(full({1}, -1, {.dtype = DType::u8}), ValueError);
  EXPECT_THROW(full({1}, 128, {.dtype = DType::i8}), ValueError);
  EXPECT_THROW(full({1}, 3e9, {.dtype = DType::i32}), ValueError);
  EXPECT_THROW(full({1}, 1e30, {.dtype = DType::i64}), ValueError);
  EXPECT_THROW(full({1}, std::nan(""), {.dtype = DType::i64}), ValueError);
  EXPECT_EQ(full({1}, int64_t(INT64_MIN), {.dtype = DType::i64}).item<int64_t>(), INT64_MIN);
  EXPECT_TRUE(std::isnan(full({1}, std::nan("")).item()));
  EXPECT_EQ(full({1}, 1e300).item(), std::numeric_limits<double>::infinity());
}

TEST(Tensor, CopiesConvertBetweenAllTypes) {
  for (DType from : kTypes) {
    for (DType to : kTypes) {
      const Tensor t = tensor({0, 1, 5}, {.dtype = from});
      const bool flag = from == DType::boolean || to == DType::boolean;
      EXPECT_EQ(cast_raw(t, to).to_vector(), flag ? Values({0, 1, 1}) : Values({0, 1, 5}))
          << name_of(from) << " to " << name_of(to);
    }
  }
}

TEST(Tensor, ViewsShareAndCopiesFollowStrides) {
  const Tensor t = tensor({0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor v = make_view(t, t.layout().transpose(0, 1));
  EXPECT_FALSE(v.is_contiguous());
  EXPECT_EQ(v.storage(), t.storage());
  EXPECT_EQ(v.to_vector(), Values({0, 3, 1, 4, 2, 5}));
  const Tensor row = make_view(t, t.layout().select(0, 1));
  EXPECT_EQ(row.raw(), t.data<float>() + 3);
  EXPECT_EQ(row.to_vector(), Values({3, 4, 5}));
  const Tensor c = contiguous_raw(v);
  EXPECT_TRUE(c.is_contiguous());
  EXPECT_NE(c.storage(), t.storage());
  EXPECT_EQ(c.to_vector(), v.to_vector());
  EXPECT_TRUE(contiguous_raw(t).is_same(t));
  EXPECT_TRUE(cast_raw(t, DType::f32).is_same(t));
  copy_elements(v, tensor({10, 11, 12, 13, 14, 15}, {3, 2}, {.dtype = DType::i32}));
  EXPECT_EQ(t.to_vector(), Values({10, 12, 14, 11, 13, 15}));
}

TEST(Factory, SizesAreChecked) {
  EXPECT_THROW(empty({-1}), ShapeError);
  EXPECT_THROW(empty({-1, 0}), ShapeError);
  EXPECT_THROW(zeros({int64_t(1) << 40, int64_t(1) << 40}), ShapeError);
  EXPECT_THROW(zeros({INT64_MAX}), ShapeError);
  EXPECT_THROW(empty({int64_t(1) << 60}), MemoryError);
  EXPECT_EQ(empty({int64_t(1) << 40, int64_t(1) << 40, 0}).numel(), 0);
  EXPECT_THROW(tensor({1, 2, 3, 4, 5, 6}, {-2, -3}), ShapeError);
  EXPECT_THROW(tensor({1, 2, 3}, {2, 2}), ShapeError);
  EXPECT_THROW(eye(-1), ShapeError);
  const Tensor one = empty({1, 1});
  EXPECT_THROW(make_view(one, one.layout().expand({int64_t(1) << 40, int64_t(1) << 40})),
               ShapeError);
}

TEST(Factory, MetaHasSizesOnly) {
  const Opts meta{.device = kMeta};
  EXPECT_TRUE(tensor({1, 2}, meta).is_meta());
  EXPECT_TRUE(tensor({1, 2}, {2, 1}, meta).is_meta());
  EXPECT_TRUE(zeros({2}, meta).is_meta());
  EXPECT_TRUE(full({2}, 3, meta).is_meta());
  EXPECT_TRUE(eye(3, meta).is_meta());
  EXPECT_TRUE(linspace(0, 1, 5, meta).is_meta());
  EXPECT_TRUE(arange(0, 5, 1, meta).is_meta());
  EXPECT_EQ(empty({int64_t(1) << 50}, meta).numel(), int64_t(1) << 50);
  EXPECT_EQ(arange(0, 5, 1, meta).raw(), nullptr);
  EXPECT_EQ(empty({2, 3}, meta).to_string(), "(sizes only)  [2,3] f32 meta");
}

TEST(Factory, Arange) {
  EXPECT_EQ(arange(0, 5).to_vector(), Values({0, 1, 2, 3, 4}));
  EXPECT_EQ(arange(0, 5).dtype(), DType::i64);
  EXPECT_EQ(arange(5, 0, -2).to_vector(), Values({5, 3, 1}));
  EXPECT_EQ(arange(5, 0).numel(), 0);
  EXPECT_EQ(arange(0, 0).numel(), 0);
  EXPECT_EQ(arange(0.0, 1.0, 0.25).to_vector(), Values({0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(arange(0.0, 1.0, 0.25).dtype(), DType::f32);
  EXPECT_EQ(arange(0, 3, 1, {.dtype = DType::f64}).dtype(), DType::f64);
  EXPECT_EQ(arange(INT64_MAX - 1, INT64_MAX).item<int64_t>() + 1, INT64_MAX);
  EXPECT_EQ(arange(INT64_MIN, INT64_MAX, INT64_MAX).numel(), 3);
  EXPECT_THROW(arange(0, 5, 0), ValueError);
  EXPECT_THROW(arange(0, std::numeric_limits<double>::infinity()), ValueError);
  EXPECT_THROW(arange(0, std::nan("")), ValueError);
  EXPECT_THROW(arange(INT64_MIN, INT64_MAX), ValueError);
}

TEST(Factory, LinspaceAndEye) {
  EXPECT_EQ(linspace(0, 1, 5).to_vector(), Values({0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(linspace(3, 7, 1).to_vector(), Values({3}));
  EXPECT_EQ(linspace(3, 7, 0).numel(), 0);
  EXPECT_EQ(linspace(0.1, 0.7, 4, {.dtype = DType::f64}).to_vector().back(), 0.7);
  EXPECT_THROW(linspace(0, 1, -1), ValueError);
  EXPECT_EQ(eye(2, 3).to_vector(), Values({1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(eye(0).numel(), 0);
}

TEST(Factory, LikeTakesSizesTypeAndDevice) {
  const Tensor t = empty({2, 3}, {.dtype = DType::i8, .device = kMeta});
  for (const Tensor& like : {empty_like(t), zeros_like(t), ones_like(t), full_like(t, 2)}) {
    EXPECT_EQ(like.sizes(), t.sizes());
    EXPECT_EQ(like.dtype(), DType::i8);
    EXPECT_TRUE(like.is_meta());
  }
}

TEST(Factory, FromBlobUsesTheCallersMemory) {
  alignas(8) float memory[6] = {0, 1, 2, 3, 4, 5};
  {
    Tensor t = from_blob(memory, {2, 3});
    EXPECT_EQ(t.data<float>(), memory);
    t.data<float>()[4] = 9;
  }
  EXPECT_EQ(memory[4], 9);
  EXPECT_THROW(from_blob(nullptr, {2}), ValueError);
  EXPECT_THROW(from_blob(reinterpret_cast<char*>(memory) + 1, {1}), ValueError);
  EXPECT_THROW(from_blob(memory, {-1}), ShapeError);
  EXPECT_THROW(from_blob(memory, {2}, {.device = kMeta}), DeviceError);
  EXPECT_EQ(from_blob(nullptr, {0}).numel(), 0);
}

TEST(Factory, AMissingDeviceLeavesNothingBehind) {
  if (has_backend(DeviceKind::cuda)) GTEST_SKIP() << "this build has CUDA";
  const int64_t live = memory_stats().live;
  const Opts gpu{.device = {DeviceKind::cuda, 0}};
  EXPECT_THROW(empty({2}, gpu), DeviceError);
  EXPECT_THROW(tensor({1, 2}, gpu), DeviceError);
  EXPECT_EQ(memory_stats().live, live);
}

TEST(Print, NestedListsWithOneWidth) {
  EXPECT_EQ(tensor({1, 2.5, -3}).to_string(), "[  1, 2.5,  -3]  [3] f32 cpu");
  EXPECT_EQ(tensor({1, 2, 3, 40}, {2, 2}, {.dtype = DType::i64}).to_string(),
            "[[ 1,  2],\n [ 3, 40]]  [2,2] i64 cpu");
  EXPECT_EQ(tensor({1, 0}, {.dtype = DType::boolean}).to_string(), "[ true, false]  [2] bool cpu");
  EXPECT_EQ(tensor({7}, Shape{}).to_string(), "7  [] f32 cpu");
  EXPECT_EQ(empty({0}).to_string(), "[]  [0] f32 cpu");
  EXPECT_EQ(empty({2, 0}).to_string(), "[[],\n []]  [2,0] f32 cpu");
  EXPECT_EQ(tensor({1, 2, 3, 4}, {1, 2, 2}).to_string(), "[[[1, 2],\n  [3, 4]]]  [1,2,2] f32 cpu");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(tensor({inf, -inf, std::nan("")}).to_string(), "[ inf, -inf,  nan]  [3] f32 cpu");
  const int64_t odd = (int64_t(1) << 60) + 1;
  EXPECT_EQ(index_tensor(std::vector<int64_t>{odd}).to_string(),
            "[1152921504606846977]  [1] i64 cpu");
}

TEST(Print, ViewsAndLongDimensions) {
  const Tensor t = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(make_view(t, t.layout().transpose(0, 1)).to_string(),
            "[[1, 4],\n [2, 5],\n [3, 6]]  [3,2] f32 cpu");
  EXPECT_EQ(arange(0, 2000).to_string(), "[   0,    1,    2, …, 1997, 1998, 1999]  [2000] i64 cpu");
  const std::string square = zeros({100, 100}).to_string();
  EXPECT_EQ(square.find("[[0, 0, 0, …, 0, 0, 0],\n [0, 0, 0, …, 0, 0, "), 0u);
  EXPECT_NE(square.find(" …,\n"), std::string::npos);
}

}  // namespace
}  // namespace cutaway
