#include <cutaway/core/kernels/random.h>
#include <cutaway/cuda/emu/counters.h>

#include <tests/cuda/both_devices.h>

namespace cutaway::cuda::emu {
namespace {

RandomArgs draw_of(int64_t n, double a, double b) {
  return {.n = n, .seed = 0x123456789abcdefu, .stream = 5, .offset = 1000, .a = a, .b = b};
}

// Every kernel, n elements at `skip` elements from an aligned address.
template <class T>
void compare_draws(int64_t n, int64_t skip) {
  const std::vector<T> in = [&] {
    std::vector<T> v = some<T>(size_t(n + skip));
    for (T& p : v) p = T(std::abs(float(p)) / 2);
    return v;
  }();
  struct Case {
    Kernel<RandomArgs>* kernel;
    double a, b;
  };
  for (const Case& c :
       {Case{&kernels::random_uniform, -1.5, 2.25}, Case{&kernels::random_normal, 0.5, 3},
        Case{&kernels::random_bernoulli, 0, 0}, Case{&kernels::random_dropout, 0.75, 1 / 0.75}}) {
    Both<T> x(in), y(size_t(n + skip), T(7.0f));
    run_both(*c.kernel, TypeOf<T>::value, [&](DeviceKind kind) {
      RandomArgs a = draw_of(n, c.a, c.b);
      a.in = x.on(kind) + skip;
      a.out = y.on(kind) + skip;
      return a;
    });
    y.expect_same(c.kernel->name);
  }
}

TEST(CudaRandom, BitForBitTheNumbersOfTheCpu) {
  for_floats([]<class T>(T) {
    for (int64_t n : {1, 3, 4, 5, 1027}) compare_draws<T>(n, 0);
    compare_draws<T>(70, 1);
  });
}
TEST(CudaRandom, WholeNumbers) {
  // The largest range has many words that are drawn again.
  for (uint64_t range : {uint64_t{1}, uint64_t{10}, (uint64_t{1} << 63) + 1}) {
    Both<int64_t> y(1001, 0);
    run_both(kernels::random_integers, DType::i64, [&](DeviceKind kind) {
      RandomArgs a = draw_of(1001, 0, 0);
      a.out = y.on(kind);
      a.low = -5;
      a.range = range;
      return a;
    });
    y.expect_same("random_integers");
  }
}
TEST(CudaRandom, NothingToDraw) {
  kernels::random_uniform(kEmuDevice, DType::f32, RandomArgs{});
  kernels::random_integers(kEmuDevice, DType::i64, RandomArgs{});
}
TEST(CudaRandom, MovesEveryByteOnce) {
  constexpr int64_t kN = 4096;
  Both<float> x(some<float>(kN)), y(kN, 0);
  const OptionsScope scope({.count = true});
  take_collected();
  RandomArgs a = draw_of(kN, 0.9, 1 / 0.9);
  a.in = x.on(DeviceKind::emu);
  a.out = y.on(DeviceKind::emu);
  kernels::random_dropout(kEmuDevice, DType::f32, a);
  const auto list = take_collected();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].counters.bytes_read(), 4 * kN);
  EXPECT_EQ(list[0].counters.bytes_written(), 4 * kN);
}

}  // namespace
}  // namespace cutaway::cuda::emu
