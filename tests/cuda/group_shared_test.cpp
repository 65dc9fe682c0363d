#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/kernels/group_shared.h>

#include <tests/cuda/kernel_check.h>

namespace cutaway::cuda::emu {
namespace {

struct Case {
  int64_t batch, features, labels, fan_in, group;
  int64_t gap = 0;  // between rows of x, z and dx
  bool block = false;
};

std::vector<int32_t> indices_of(const Case& c) {
  std::mt19937 random(11);
  const int64_t groups = (c.labels + c.group - 1) / c.group;
  std::vector<int32_t> v(size_t(c.block ? groups : groups * c.fan_in));
  const int64_t top = c.block ? c.features - c.fan_in + 1 : c.features;
  for (int32_t& i : v) i = int32_t(random() % uint64_t(top));  // with duplicates
  return v;
}
GroupSharedShape shape_of(const Case& c, DType type, const int32_t* index) {
  GroupSharedShape s{c.batch, c.features, c.labels, c.fan_in, c.group, c.block, type};
  s.x_row = s.z_row = c.batch + c.gap;
  s.index = index;
  return s;
}

// Operands and results of all three kernels.
template <class T>
struct Values {
  std::vector<T> x, z, weight, bias, dweight, dbias, dx;
};
template <class T>
Values<T> operands(const Case& c) {
  const int64_t row = c.batch + c.gap, n = c.labels * c.fan_in;
  Values<T> v;
  v.x = random_values<T>(c.features * row, 1);
  v.z = random_values<T>(c.labels * row, 2);  // dz as well
  v.weight = random_values<T>(n, 3, 0, 0.3);
  v.bias = random_values<T>(c.labels, 4);
  v.dweight.assign(size_t(n), T(0.0f));
  v.dbias.assign(size_t(c.labels), T(0.0f));
  v.dx = random_values<T>(c.features * row, 5);
  return v;
}

// What is asked of one call.
struct Way {
  bool bias = true, accumulate = false, atomics = false;
};

template <class T>
constexpr DType kTypeOf = std::is_same_v<T, double>     ? DType::f64
                          : std::is_same_v<T, float>    ? DType::f32
                          : std::is_same_v<T, BFloat16> ? DType::bf16
                                                        : DType::f16;

// The three kernels on a device; z is read as dz before it is written.
template <class T>
void run_kernels(Device device, GroupSharedShape s, const Way& way, T* x, T* z, T* weight, T* bias,
                 T* dweight, T* dbias, T* dx) {
  constexpr DType type = kTypeOf<T>;
  GroupSharedWeightGradArgs w{s, x, z, dweight, way.bias ? dbias : nullptr};
  kernels::group_shared_weight_grad(device, type, w);
  GroupSharedInputGradArgs i{s, way.accumulate, way.atomics, weight, z, dx};
  kernels::group_shared_input_grad(device, type, i);
  GroupSharedForwardArgs f{s, x, weight, way.bias ? bias : nullptr, z};
  kernels::group_shared_forward(device, type, f);
}

// f64 on the CPU.
template <class T>
Values<double> wanted(const Case& c, const Way& way) {
  const Values<T> v = operands<T>(c);
  Values<double> w{converted<double>(v.x),       converted<double>(v.z),
                   converted<double>(v.weight),  converted<double>(v.bias),
                   converted<double>(v.dweight), converted<double>(v.dbias),
                   converted<double>(v.dx)};
  const auto index = indices_of(c);
  run_kernels(kCpu, shape_of(c, DType::f64, index.data()), way, w.x.data(), w.z.data(),
              w.weight.data(), w.bias.data(), w.dweight.data(), w.dbias.data(), w.dx.data());
  return w;
}
template <class T>
Values<T> got(const Case& c, const Way& way) {
  const Values<T> v = operands<T>(c);
  const Buffer<T> x(v.x), z(v.z), weight(v.weight), bias(v.bias), dweight(v.dweight),
      dbias(v.dbias), dx(v.dx);
  const Buffer<int32_t> index(indices_of(c));
  run_kernels(kEmu, shape_of(c, kTypeOf<T>, index.get()), way, x.get(), z.get(), weight.get(),
              bias.get(), dweight.get(), dbias.get(), dx.get());
  check_red_zones();
  return {v.x, z.values(), v.weight, v.bias, dweight.values(), dbias.values(), dx.values()};
}
template <class T>
void compare(const Case& c, const Way& way) {
  const Values<double> want = wanted<T>(c, way);
  const Values<T> have = got<T>(c, way);
  const std::string what = std::string(name_of(kTypeOf<T>)) + ", group " + std::to_string(c.group) +
                           ", fan-in " + std::to_string(c.fan_in) + ", batch " +
                           std::to_string(c.batch);
  const auto check = [&](const std::vector<T>& a, const std::vector<double>& b, const char* name) {
    // 1e-5 in f32, one rounding in 16 bits.
    const double tol = std::is_same_v<T, float> ? 1e-5 : tolerance<T>();
    expect_close(converted<double>(a), b, tol, what + ": " + name);
  };
  check(have.z, want.z, "z");
  check(have.dweight, want.dweight, "dweight");
  check(have.dbias, want.dbias, "dbias");
  check(have.dx, want.dx, "dx");
}

template <class T>
class CudaGroupShared : public testing::Test {};
using Types = testing::Types<float, BFloat16, Float16>;
TYPED_TEST_SUITE(CudaGroupShared, Types);

// Batches and labels that no tile divides, rows that 16-byte loads can and cannot read.
TYPED_TEST(CudaGroupShared, GroupsAndFanIns) {
  for (const int64_t group : {16, 32, 64}) {
    for (const int64_t fan_in : {16, 64, 128}) {
      const Case aligned{72, 40, 2 * group + 5, fan_in, group, 8};
      compare<TypeParam>(aligned, {.bias = fan_in != 64, .atomics = true});
      const Case odd{67, 40, group + 3, fan_in, group};
      compare<TypeParam>(odd, {.accumulate = true});
    }
  }
}
TYPED_TEST(CudaGroupShared, FanInsThatNoTileDivides) {
  for (const int64_t fan_in : {1, 7, 37, 72, 201}) {
    compare<TypeParam>({19, 210, 21, fan_in, 16, 5}, {});
    compare<TypeParam>({24, 210, 40, fan_in, 32, 0, true}, {.accumulate = true, .atomics = true});
  }
}
TYPED_TEST(CudaGroupShared, EachOrderOfLanesAndBlocks) {
  const Case cases[] = {{70, 33, 37, 24, 16}, {72, 33, 70, 72, 64}, {70, 33, 9, 40, 1}};
  for (const Case& c : cases) {
    Values<TypeParam> first;
    in_each_order([&] {
      compare<TypeParam>(c, {.atomics = true});
      const Values<TypeParam> v = got<TypeParam>(c, {.accumulate = true});
      if (first.z.empty()) first = v;
      expect_close(v.z, first.z, 0, "z in another order");
      expect_close(v.dweight, first.dweight, 0, "dweight in another order");
      expect_close(v.dx, first.dx, 0, "dx of two passes in another order");
    });
  }
}

// Other groups, group 1 above all, go label by label; f64 always.
TEST(CudaGroupSharedLabels, AnyGroupAndType) {
  for (const int64_t group : {1, 5, 24}) {
    for (const bool atomics : {false, true}) {
      for_floating_types([&](auto zero, DType) {
        using T = decltype(zero);
        compare<T>({70, 50, 27, 41, group, 2}, {.accumulate = !atomics, .atomics = atomics});
        compare<T>({136, 50, 11, 32, group}, {.bias = atomics, .atomics = atomics});
      });
    }
  }
  compare<double>({70, 50, 40, 41, 32}, {});
  compare<float>({9, 900, 17, 1100, 64}, {});  // more weights than shared memory holds
  compare<BFloat16>({9, 900, 17, 1100, 64}, {.atomics = true});
}
TEST(CudaGroupSharedLabels, NothingToDo) {
  compare<float>({0, 5, 3, 2, 16}, {});
  compare<float>({6, 5, 3, 0, 16}, {});
  compare<BFloat16>({6, 5, 3, 0, 1}, {.accumulate = true});
  compare<BFloat16>({6, 5, 0, 2, 32}, {});
}

std::vector<float> to_vector(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.numel()};
}

// The op and its derivatives on the emulated device, beside the CPU.
TEST(CudaGroupSharedLabels, DerivativesOfTheOp) {
  for (const bool in_order : {true, false}) {
    const DeterminismGuard guard(in_order);
    const Tensor x = randn({9, 20}), w = randn({35, 16}), b = randn({35}), g = randn({9, 35});
    const Tensor index = randint(0, 20, {3, 16});
    Tensor dx[2], dw[2], db[2];
    for (const Device device : {kCpu, kEmu}) {
      const int i = device.kind == DeviceKind::emu;
      Tensor p = x.detach().to(device).set_requires_grad(),
             q = w.detach().to(device).set_requires_grad(),
             r = b.detach().to(device).set_requires_grad();
      backward({group_shared_linear(p, index.to(device), q, r, 16)}, {g.to(device)});
      dx[i] = p.grad().to(kCpu);
      dw[i] = q.grad().to(kCpu);
      db[i] = r.grad().to(kCpu);
    }
    expect_close(to_vector(dx[1]), to_vector(dx[0]), 1e-5, "dx");
    expect_close(to_vector(dw[1]), to_vector(dw[0]), 1e-5, "dw");
    expect_close(to_vector(db[1]), to_vector(db[0]), 1e-5, "db");
  }
}

// Bytes of one kernel over the least there is, x being read once by every group (from the cache).
struct Moved {
  Traffic forward, weight_grad, input_grad;
};
template <class T>
Moved moved(const Case& c) {
  const Values<T> v = operands<T>(c);
  const Buffer<T> x(v.x), z(v.z), weight(v.weight), bias(v.bias), dweight(v.dweight),
      dbias(v.dbias), dx(v.dx);
  const Buffer<int32_t> index(indices_of(c));
  const GroupSharedShape s = shape_of(c, kTypeOf<T>, index.get());
  GroupSharedForwardArgs f{s, x.get(), weight.get(), bias.get(), z.get()};
  GroupSharedWeightGradArgs w{s, x.get(), z.get(), dweight.get(), dbias.get()};
  GroupSharedInputGradArgs i{s, false, true, weight.get(), z.get(), dx.get()};
  constexpr DType type = kTypeOf<T>;
  return {traffic_of([&] { kernels::group_shared_forward(kEmu, type, f); }),
          traffic_of([&] { kernels::group_shared_weight_grad(kEmu, type, w); }),
          traffic_of([&] { kernels::group_shared_input_grad(kEmu, type, i); })};
}
TYPED_TEST(CudaGroupShared, MovesEachElementOnceAndMeetsNoBankTwice) {
  for (const int64_t group : {32, 64}) {
    const Case c{128, 96, 6 * group, 64, group};
    const Moved m = moved<TypeParam>(c);
    const int64_t size = sizeof(TypeParam), groups = c.labels / group;
    const int64_t weights = c.labels * c.fan_in * size, z = c.labels * c.batch * size;
    const int64_t gathered = groups * c.fan_in * c.batch * size, index = groups * c.fan_in * 4;
    EXPECT_EQ(m.forward.conflicts, 0);
    EXPECT_EQ(m.weight_grad.conflicts, 0);
    EXPECT_EQ(m.input_grad.conflicts, 0);
    // So few groups have a block for each tile of the batch: weights and indices are read twice.
    EXPECT_LE(m.forward.bytes(), int64_t(1.1 * double(2 * (weights + index) + z + gathered)));
    EXPECT_LE(m.weight_grad.bytes(), int64_t(1.05 * double(weights + index + z + gathered)));
  }
}

}  // namespace
}  // namespace cutaway::cuda::emu
