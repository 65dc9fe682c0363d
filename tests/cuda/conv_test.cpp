#include <gtest/gtest.h>

#include <random>

#include <cutaway/core/kernels/conv.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/options.h>

#include <tests/cuda/emu_buffer.h>
#include <tests/cuda/orders.h>

namespace cutaway::cuda::emu {
namespace {

template <class T>
std::vector<T> random_values(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = T(int(engine() % 2001) - 1000) / T(500);
  return v;
}
int64_t volume(const int64_t (&s)[3]) { return s[0] * s[1] * s[2]; }

void set_out(ConvArgs& a) {
  for (int d = 0; d < 3; ++d) {
    a.out[d] = (a.in[d] + 2 * a.pad[d] - a.dilation[d] * (a.kernel[d] - 1) - 1) / a.stride[d] + 1;
  }
}

// Runs the three passes on both devices.
template <class T>
void compare(ConvArgs a, bool with_bias) {
  constexpr DType kType = sizeof(T) == 8 ? DType::f64 : DType::f32;
  const double tolerance = sizeof(T) == 8 ? 1e-13 : 2e-5;
  set_out(a);
  const auto x = random_values<T>(a.n * a.c * volume(a.in), 1);
  const auto w = random_values<T>(a.k * (a.c / a.groups) * volume(a.kernel), 2);
  const auto g = random_values<T>(a.n * a.k * volume(a.out), 3), bias = random_values<T>(a.k, 4);
  const Buffer<T> dx(x), dw(w), dg(g), dbias(bias);
  const auto run = [&](Kernel<ConvArgs>& kernel, size_t size, bool biased) {
    ConvArgs host = a, device = a;
    std::vector<T> want(size);
    const Buffer<T> got{int64_t(size)};
    host.x = x.data();
    host.w = w.data();
    host.g = g.data();
    host.bias = biased ? bias.data() : nullptr;
    host.result = want.data();
    device.x = dx.get();
    device.w = dw.get();
    device.g = dg.get();
    device.bias = biased ? dbias.get() : nullptr;
    device.result = got.get();
    kernel.find(DeviceKind::cpu, kType)(host);
    kernel.find(DeviceKind::emu, kType)(device);
    const auto values = got.values();
    for (size_t i = 0; i < size; ++i) {
      EXPECT_NEAR(values[i], want[i], tolerance * (1 + std::abs(want[i]))) << kernel.name << i;
    }
  };
  run(kernels::conv_forward, g.size(), with_bias);
  run(kernels::conv_input_grad, x.size(), false);
  run(kernels::conv_weight_grad, w.size(), false);
  check_red_zones();
}

ConvArgs example() {
  ConvArgs a{.n = 2, .c = 4, .k = 6, .groups = 2};
  const int64_t in[] = {3, 5, 6}, kernel[] = {2, 3, 2}, stride[] = {1, 2, 1}, pad[] = {1, 0, 1},
                dilation[] = {1, 1, 2};
  for (int d = 0; d < 3; ++d) {
    a.in[d] = in[d];
    a.kernel[d] = kernel[d];
    a.stride[d] = stride[d];
    a.pad[d] = pad[d];
    a.dilation[d] = dilation[d];
  }
  return a;
}

// Three dimensions, groups and f64: no plan of the library, so the own kernels run.
TEST(CudaConv, OwnKernelsInEveryOrder) {
  for (const Order order : tested_orders()) {
    const OptionsScope scope({.order = order, .seed = 3});
    compare<double>(example(), true);
  }
}
TEST(CudaConv, ThroughTheLibrary) {
  compare<float>(example(), true);
  ConvArgs a = example();
  a.groups = 1;
  compare<double>(a, false);
  a.in[0] = a.kernel[0] = 1;
  a.pad[0] = 0;
  a.groups = 2;
  compare<double>(a, true);
  const OptionsScope scope({.count = true});
  take_collected();
  compare<double>(a, true);
  const auto launches = take_collected();  // of own kernels
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].counters.kernel, "conv_bias");
}
TEST(CudaConv, EmptyOperands) {
  ConvArgs a = example();
  a.n = 0;
  compare<float>(a, true);
  a = example();
  a.c = 0;
  compare<float>(a, true);
  compare<double>(a, false);
  a = example();
  a.k = 0;
  compare<float>(a, true);
}

}  // namespace
}  // namespace cutaway::cuda::emu
