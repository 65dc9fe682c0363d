#include <cutaway/core/kernels/loss.h>
#include <cutaway/cuda/emu/counters.h>

#include <tests/cuda/both_devices.h>

namespace cutaway::cuda::emu {
namespace {

struct Sizes {
  int64_t outer, classes, inner;
};
struct LossOptions {
  bool soft = false, weighted = false, normalized = false, reduce = true, mean = true;
  double smoothing = 0, scale = 3;
};

template <class T>
void compare_losses(const Sizes& size, const LossOptions& c = {}) {
  const int64_t rows = size.outer * size.inner, n = rows * size.classes;
  std::vector<T> positive = some<T>(size_t(n), 2), weights = some<T>(size_t(size.classes), 3);
  for (T& v : positive) v = T(std::abs(float(v)) / float(size.classes));
  for (T& w : weights) w = T(std::abs(float(w)));
  std::vector<int64_t> classes = some_indices(size_t(rows), 0, size.classes);
  for (size_t r = 0; r < classes.size(); r += 5) classes[r] = -100;
  const int64_t results = c.reduce ? 1 : rows;
  Both<T> x(some<T>(size_t(n), 1, c.scale)), soft(positive), weight(weights);
  Both<T> y(size_t(results), T(0.0f)), upstream(some<T>(size_t(results), 4)),
      grad(size_t(n), T(7.0f));
  Both<int64_t> target(classes);
  Both<double> stats(size_t(rows + 1), -1.0);
  const auto make = [&](DeviceKind kind) {
    CrossEntropyArgs a;
    a.x = x.on(kind);
    a.target = c.soft ? nullptr : target.on(kind);
    a.soft = c.soft ? soft.on(kind) : nullptr;
    a.weight = c.weighted ? weight.on(kind) : nullptr;
    a.y = y.on(kind);
    a.stats = stats.on(kind);
    a.upstream = upstream.on(kind);
    a.grad = grad.on(kind);
    a.outer = size.outer;
    a.classes = size.classes;
    a.inner = size.inner;
    a.smoothing = c.smoothing;
    a.normalized = c.normalized;
    a.reduce = c.reduce;
    a.mean = c.mean;
    return a;
  };
  const double tolerance = TypeOf<T>::kTolerance;
  run_both(kernels::cross_entropy, TypeOf<T>::value, make);
  y.expect_near(tolerance, "loss");
  stats.expect_near(std::max(tolerance / 10, 1e-13), "stats");
  run_both(kernels::cross_entropy_backward, TypeOf<T>::value, make);
  grad.expect_near(tolerance, "gradient");
}

TEST(CudaLoss, RowsOfClasses) {
  for_floats([]<class T>(T) {
    for (int64_t classes : {1, 3, 16, 101, 515}) compare_losses<T>({5, classes, 1});
    compare_losses<T>({3, 2500, 1});
    compare_losses<T>({3, 2500, 1}, {.reduce = false});
    compare_losses<T>({37, 12, 1}, {.mean = false});
  });
}
TEST(CudaLoss, ClassesThatAreApart) {
  for_floats([]<class T>(T) {
    compare_losses<T>({2, 5, 3});
    compare_losses<T>({3, 11, 40}, {.reduce = false});
    compare_losses<T>({2, 40, 33}, {.weighted = true});
    compare_losses<T>({3, 300, 5}, {.smoothing = 0.1});
  });
}
TEST(CudaLoss, SoftTargetsWeightsAndSmoothing) {
  for_floats([]<class T>(T) {
    for (int64_t inner : {1, 4}) {
      compare_losses<T>({6, 33, inner}, {.soft = true});
      compare_losses<T>({6, 33, inner}, {.soft = true, .weighted = true, .smoothing = 0.1});
      compare_losses<T>({6, 33, inner}, {.smoothing = 0.2});
      compare_losses<T>({6, 33, inner}, {.weighted = true, .smoothing = 0.2});
      compare_losses<T>({6, 33, inner}, {.normalized = true});
      compare_losses<T>({6, 33, inner}, {.weighted = true, .normalized = true, .mean = false});
    }
  });
}
TEST(CudaLoss, LargeScores) {
  compare_losses<float>({4, 300, 1}, {.scale = 1e4});
  compare_losses<double>({4, 300, 1}, {.scale = 1e6});
}
TEST(CudaLoss, ManyRowsAreAddedInParts) {
  for (int64_t inner : {1, 2}) {
    const OptionsScope fast({.check = false});
    compare_losses<float>({9000 / inner, 3, inner});
  }
}
TEST(CudaLoss, NoRows) { compare_losses<float>({0, 5, 1}); }
TEST(CudaLoss, InEveryOrderOfThreads) {
  in_three_orders([] {
    compare_losses<float>({3, 2100, 1}, {.smoothing = 0.1});
    compare_losses<float>({2, 9, 40});
  });
}

// Scores whose exponentials are not finite take the same way as on the CPU.
TEST(CudaLoss, InfinitiesAndNan) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> scores(5 * 8, 1.0f);
  for (int c = 0; c < 8; ++c) scores[size_t(c)] = -kInf;
  scores[8] = kInf;
  scores[16] = std::numeric_limits<float>::quiet_NaN();
  scores[24] = -kInf;
  Both<float> x(scores), y(5, 0.0f);
  Both<int64_t> target(std::vector<int64_t>{0, 0, 1, 1, 0});
  Both<double> stats(6, 0.0);
  run_both(kernels::cross_entropy, DType::f32, [&](DeviceKind kind) {
    CrossEntropyArgs a;
    a.x = x.on(kind);
    a.target = target.on(kind);
    a.y = y.on(kind);
    a.stats = stats.on(kind);
    a.outer = 5;
    a.classes = 8;
    a.reduce = false;
    return a;
  });
  y.expect_near(1e-6, "loss");
  EXPECT_TRUE(std::isnan(y.emu()[0]) && std::isnan(y.emu()[1]) && std::isnan(y.emu()[2]));
}

// Forward: scores and targets in, stats and losses out. Backward: scores, gradients.
TEST(CudaLoss, MovesScoresOnce) {
  constexpr int64_t kRows = 16, kClasses = 4096;
  const Buffer<float> x(some<float>(kRows * kClasses)), grad(kRows * kClasses), y(1);
  const Buffer<float> upstream(std::vector<float>{1.0f});
  const Buffer<int64_t> target(some_indices(kRows, 0, kClasses));
  const Buffer<double> stats(kRows + 1);
  CrossEntropyArgs a;
  a.x = x.get();
  a.target = target.get();
  a.y = y.get();
  a.stats = stats.get();
  a.upstream = upstream.get();
  a.grad = grad.get();
  a.outer = kRows;
  a.classes = kClasses;
  const OptionsScope scope({.count = true});
  take_collected();
  kernels::cross_entropy(kEmuDevice, DType::f32, a);
  kernels::cross_entropy_backward(kEmuDevice, DType::f32, a);
  int64_t read = 0, written = 0, conflicts = 0;
  for (const Collected& c : take_collected()) {
    read += c.counters.bytes_read();
    written += c.counters.bytes_written();
    conflicts += c.counters.bank_conflicts();
  }
  constexpr double kBytes = 4.0 * kRows * kClasses;
  EXPECT_LE(double(read), 1.05 * 2 * kBytes);
  EXPECT_LE(double(written), 1.05 * kBytes);
  EXPECT_EQ(conflicts, 0);
}

}  // namespace
}  // namespace cutaway::cuda::emu
