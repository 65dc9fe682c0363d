#include <gtest/gtest.h>

#include <functional>
#include <random>

#include <cutaway/core/error.h>
#include <cutaway/core/kernels/matmul.h>
#include <cutaway/core/math/half.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/fault.h>
#include <cutaway/cuda/emu/options.h>
#include <cutaway/cuda/lib/gemm.h>

#include <tests/cuda/emu_buffer.h>
#include <tests/cuda/orders.h>

namespace cutaway::cuda::emu {
namespace {

template <class T>
std::vector<T> random_values(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = T(float(int(engine() % 2001) - 1000) / 500.0f);
  if constexpr (std::is_integral_v<T>) {
    for (T& x : v) x = T(engine() % 250);
  }
  return v;
}
template <class T>
double number(const T& x) {
  if constexpr (sizeof(T) == 2) return float(x);
  return double(x);
}
template <>
double number(const BFloat16& x) {
  return float(x);
}
template <>
double number(const Float16& x) {
  return float(x);
}
template <class T>
void expect_near(const std::vector<T>& got, const std::vector<T>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double w = number(want[i]);
    EXPECT_NEAR(number(got[i]), w, tolerance * (1 + std::abs(w))) << "at " << i;
  }
}
template <class T>
struct Type;
template <>
struct Type<double> {
  static constexpr DType value = DType::f64;
  static constexpr double tolerance = 1e-13;
};
template <>
struct Type<float> {
  static constexpr DType value = DType::f32;
  static constexpr double tolerance = 2e-5;
};
template <>
struct Type<BFloat16> {
  static constexpr DType value = DType::bf16;
  static constexpr double tolerance = 1e-2;
};
template <>
struct Type<Float16> {
  static constexpr DType value = DType::f16;
  static constexpr double tolerance = 2e-3;
};
template <>
struct Type<int64_t> {
  static constexpr DType value = DType::i64;
  static constexpr double tolerance = 0;
};
template <>
struct Type<int32_t> {
  static constexpr DType value = DType::i32;
  static constexpr double tolerance = 0;
};
template <>
struct Type<uint8_t> {
  static constexpr DType value = DType::u8;
  static constexpr double tolerance = 0;
};
template <>
struct Type<int8_t> {
  static constexpr DType value = DType::i8;
  static constexpr double tolerance = 0;
};

// Runs the same product on both devices and compares all of C, what lies between its rows too.
template <class T>
void compare(const MatmulArgs& args, int64_t a_size, int64_t b_size, int64_t c_size) {
  const auto a = random_values<T>(a_size, 1), b = random_values<T>(b_size, 2);
  const auto bias = random_values<T>(args.n, 3);
  std::vector<T> want = random_values<T>(c_size, 4);
  const Buffer<T> da(a), db(b), dc(want), dbias(bias);
  MatmulArgs x = args;
  x.a = a.data();
  x.b = b.data();
  x.c = want.data();
  x.bias = args.bias ? bias.data() : nullptr;
  kernels::matmul.find(DeviceKind::cpu, Type<T>::value)(x);
  x.a = da.get();
  x.b = db.get();
  x.c = dc.get();
  x.bias = args.bias ? dbias.get() : nullptr;
  kernels::matmul.find(DeviceKind::emu, Type<T>::value)(x);
  expect_near(dc.values(), want, Type<T>::tolerance);
  check_red_zones();
}
MatmulArgs plain(int64_t m, int64_t n, int64_t k) {
  MatmulArgs x{.m = m, .n = n, .k = k};
  x.a_row = k;
  x.a_column = x.b_column = 1;
  x.b_row = x.c_row = n;
  return x;
}
void add_batch(MatmulArgs& x, int64_t size, int64_t c, int64_t a, int64_t b) {
  x.sizes[x.rank] = size;
  x.strides[0][x.rank] = c;
  x.strides[1][x.rank] = a;
  x.strides[2][x.rank] = b;
  x.batch *= size;
  ++x.rank;
}
void in_every_order(const std::function<void()>& body) {
  for (const Order order : tested_orders()) {
    const OptionsScope scope({.order = order, .seed = 3});
    body();
  }
}

template <class T>
class CudaMatmul : public testing::Test {};
using Types = testing::Types<double, float, BFloat16, Float16, int64_t, int32_t, uint8_t, int8_t>;
TYPED_TEST_SUITE(CudaMatmul, Types);

TYPED_TEST(CudaMatmul, PlainAndTransposed) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 7}, {17, 33, 20}, {70, 66, 18}}) {
    MatmulArgs x = plain(m, n, k);
    compare<TypeParam>(x, m * k, k * n, m * n);
    x.a_row = 1;
    x.a_column = m;
    x.b_row = 1;
    x.b_column = k;
    x.alpha = 2;
    compare<TypeParam>(x, m * k, k * n, m * n);
  }
}
TYPED_TEST(CudaMatmul, OddStridesGoToTheOwnKernel) {
  in_every_order([] {
    MatmulArgs x = plain(35, 18, 19);
    x.a_row = 40;
    x.a_column = 2;
    x.b_row = 3;
    x.b_column = 60;
    x.c_row = 21;
    compare<TypeParam>(x, 35 * 40, 18 * 60, 35 * 21);
    x.alpha = -1;
    x.beta = 2;
    compare<TypeParam>(x, 35 * 40, 18 * 60, 35 * 21);
    x.m = 66;
    x.a_row = 1;
    x.a_column = 70;
    x.beta = 0;
    x.bias = &x;
    compare<TypeParam>(x, 19 * 70, 18 * 60, 66 * 21);
  });
}
TYPED_TEST(CudaMatmul, BatchesBroadcastAndSum) {
  MatmulArgs x = plain(4, 5, 6);
  add_batch(x, 2, 3 * 20, 3 * 24, 0);
  add_batch(x, 3, 20, 24, 30);
  compare<TypeParam>(x, 6 * 24, 3 * 30, 6 * 20);
  MatmulArgs tall = plain(4, 5, 6);
  add_batch(tall, 7, 20, 24, 0);
  compare<TypeParam>(tall, 7 * 24, 30, 7 * 20);
  MatmulArgs many = plain(2, 2, 2);  // more calls than the library gets
  add_batch(many, 20, 4, 8, 4);
  add_batch(many, 3, 80, 4, 0);
  compare<TypeParam>(many, 20 * 8 + 8, 80, 3 * 80);
  MatmulArgs sum = plain(4, 5, 6);
  sum.sum_batch = true;
  add_batch(sum, 3, 0, 24, 0);
  compare<TypeParam>(sum, 72, 30, 20);
  sum.strides[2][0] = 30;
  sum.a_row = 1;
  sum.a_column = 4;  // one inner size of 18
  compare<TypeParam>(sum, 72, 90, 20);
  sum.batch = sum.sizes[0] = 0;
  compare<TypeParam>(sum, 72, 90, 20);
}
TYPED_TEST(CudaMatmul, EmptyAndUnreadOperands) {
  MatmulArgs x = plain(3, 4, 0);
  compare<TypeParam>(x, 0, 0, 12);
  x.bias = &x;
  compare<TypeParam>(x, 0, 0, 12);
  x = plain(0, 4, 2);
  compare<TypeParam>(x, 0, 8, 0);
  x = plain(3, 4, 2);
  x.alpha = 0;
  x.beta = 1;
  compare<TypeParam>(x, 6, 8, 12);
}
TYPED_TEST(CudaMatmul, ColumnSums) {
  for (const auto& [rows, columns] : {std::array<int64_t, 2>{1, 1}, {0, 3}, {50, 33}, {3, 100}}) {
    const auto in = random_values<TypeParam>(rows * columns, 5);
    std::vector<TypeParam> want(static_cast<size_t>(columns));
    const Buffer<TypeParam> din(in), dout(columns);
    constexpr DType kType = Type<TypeParam>::value;
    kernels::column_sums.find(DeviceKind::cpu, kType)({rows, columns, in.data(), want.data()});
    kernels::column_sums.find(DeviceKind::emu, kType)({rows, columns, din.get(), dout.get()});
    expect_near(dout.values(), want, Type<TypeParam>::tolerance);
  }
}

TEST(CudaMatmulTiles, NoBankConflicts) {
  const OptionsScope scope({.check = false, .count = true});
  take_collected();
  for (bool turned : {false, true}) {
    MatmulArgs x = plain(128, 64, 48);
    if (turned) {
      x.a_row = 1;
      x.a_column = 128;
      x.b_row = 1;
      x.b_column = 48;
    }
    compare<int32_t>(x, 128 * 48, 64 * 48, 128 * 64);
    compare<int64_t>(x, 128 * 48, 64 * 48, 128 * 64);
    x.m = x.n = 16;
    compare<int32_t>(x, 128 * 48, 64 * 48, 128 * 64);
  }
  const auto launches = take_collected();
  ASSERT_EQ(launches.size(), 6u);
  for (const Collected& l : launches) EXPECT_EQ(l.counters.bank_conflicts(), 0);
}

TEST(CudaLibrary, GemmWithRowDistancesAndBatches) {
  // op(A) [2,3] stored as [3, lda 4], B [3, ldb 5], C [2, ldc 6]; two of each.
  const auto a = random_values<double>(24, 1), b = random_values<double>(30, 2);
  std::vector<double> c = random_values<double>(24, 3);
  const Buffer<double> da(a), db(b), dc(c);
  gemm({.dtype = DType::f64,
        .transpose_a = true,
        .m = 2,
        .n = 4,
        .k = 3,
        .alpha = 2,
        .beta = 3,
        .a = da.get(),
        .lda = 4,
        .b = db.get(),
        .ldb = 5,
        .c = dc.get(),
        .ldc = 6,
        .batch = 2,
        .a_stride = 12,
        .b_stride = 15,
        .c_stride = 12});
  for (size_t s = 0; s < 2; ++s) {
    for (size_t i = 0; i < 2; ++i) {
      for (size_t j = 0; j < 4; ++j) {
        double& out = c[12 * s + 6 * i + j];
        out *= 3;
        for (size_t q = 0; q < 3; ++q) out += 2 * a[12 * s + 4 * q + i] * b[15 * s + 5 * q + j];
      }
    }
  }
  expect_near(dc.values(), c, 1e-14);
}
TEST(CudaLibrary, OperandsAreChecked) {
  std::vector<float> host(16, 1.0f);
  const Buffer<float> written(host), empty(16), small(std::vector<float>(15, 1.0f));
  const auto product = [](const void* a, const void* b, void* c) {
    gemm({.m = 4, .n = 4, .k = 4, .a = a, .lda = 4, .b = b, .ldb = 4, .c = c, .ldc = 4});
  };
  const Buffer<float> out(16);
  product(written.get(), written.get(), out.get());
  EXPECT_EQ(out.values()[5], 4.0f);
  EXPECT_THROW(product(host.data(), written.get(), out.get()), DeviceError);
  EXPECT_THROW(product(small.get(), written.get(), out.get()), DeviceError);
  EXPECT_THROW(product(written.get(), written.get(), small.get()), DeviceError);
  try {
    product(written.get(), empty.get(), out.get());
    FAIL();
  } catch (const KernelFault& e) {
    EXPECT_EQ(e.kind, FaultKind::uninitialized);
    EXPECT_NE(std::string(e.what()).find("B"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace cutaway::cuda::emu
