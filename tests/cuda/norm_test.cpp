#include <cutaway/core/kernels/norm.h>

#include <cutaway/core/kernels/matmul.h>
#include <tests/cuda/kernel_check.h>

namespace cutaway::cuda::emu {
namespace {

// Vectors of the host and of the device by one name.
template <class T>
struct Pair {
  std::vector<T> host;
  Buffer<T> device;
  explicit Pair(std::vector<T> v) : host(std::move(v)), device(host) {}
  explicit Pair(int64_t n) : Pair(std::vector<T>(size_t(n))) {}
  T* on(Device d) { return d == kEmu ? device.get() : host.data(); }
  void check(const std::string& what, double tol = tolerance<T>()) const {
    expect_close(device.values(), host, tol, what);
  }
};

template <class T>
void compare_moments(DType t, int64_t samples, int64_t channels, int64_t width) {
  Pair<T> x(random_values<T>(samples * channels * width, 1, 3));
  Pair<double> mean(channels), var(channels);
  ReduceArgs a;
  a.kept_rank = 1;
  a.reduced_rank = width == 1 ? 1 : 2;
  a.kept_sizes[0] = a.outputs = channels;
  a.kept_strides[0] = width;
  a.reduced_sizes[0] = samples;
  a.reduced_strides[0] = channels * width;
  a.reduced_sizes[1] = width;
  a.reduced_strides[1] = 1;
  a.count = samples * width;
  for (const Device d : {kCpu, kEmu}) {
    a.in = x.on(d);
    a.out = mean.on(d);
    a.out2 = var.on(d);
    kernels::moments(d, t, a);
  }
  mean.check("mean", 1e-12);
  var.check("variance", 1e-11);
}

template <class T>
void compare_channels(DType t, int64_t samples, int64_t channels, int64_t width) {
  const int64_t n = samples * channels * width;
  Pair<T> x(random_values<T>(n, 1, 1)), g(random_values<T>(n, 2)), y(n), dx(n);
  Pair<double> center(random_values<double>(channels, 3)),
      scale(random_values<double>(channels, 4)), shift(random_values<double>(channels, 5)),
      grad_scale(random_values<double>(channels, 6)), sum(channels), dot(channels);
  for (const Device d : {kCpu, kEmu}) {
    ChannelArgs a;
    a.in = x.on(d);
    a.grad = g.on(d);
    a.rows = samples * channels;
    a.width = width;
    a.channels = channels;
    a.center = center.on(d);
    a.scale = scale.on(d);
    a.shift = shift.on(d);
    a.grad_scale = grad_scale.on(d);
    a.sum = sum.on(d);
    a.dot = dot.on(d);
    a.out = y.on(d);
    kernels::channel_affine(d, t, a);
    kernels::channel_dots(d, t, a);
    a.out = dx.on(d);
    kernels::channel_backward(d, t, a);
  }
  y.check("channel_affine");
  dx.check("channel_backward");
  sum.check("sum of channel_dots", 1e-12);
  dot.check("dot of channel_dots", 1e-12);
}

template <class T>
void compare_terms(DType t, int64_t channels, int64_t per_stat, int64_t weights, bool fixed,
                   bool affine) {
  const int64_t stats = channels / per_stat;
  Pair<T> weight(random_values<T>(weights, 1)), bias(random_values<T>(weights, 2)), gw(weights),
      gb(weights);
  std::vector<double> spread = random_values<double>(stats, 4);
  for (double& v : spread) v *= v;
  Pair<double> mean(random_values<double>(stats, 3)), var(spread), rstd(stats), center(channels),
      scale(channels), shift(channels), grad_scale(channels),
      sum(random_values<double>(channels, 5)), dot(random_values<double>(channels, 6));
  const auto terms = [&](Device d) {
    ChannelTermsArgs a;
    a.channels = channels;
    a.per_stat = per_stat;
    a.weights = weights;
    a.count = 12;
    a.eps = 1e-5;
    a.fixed = fixed;
    a.mean = mean.on(d);
    a.var = var.on(d);
    a.rstd = rstd.on(d);
    a.weight = affine ? weight.on(d) : nullptr;
    a.bias = affine ? bias.on(d) : nullptr;
    a.center = center.on(d);
    a.scale = scale.on(d);
    a.shift = shift.on(d);
    a.grad_scale = grad_scale.on(d);
    a.sum = sum.on(d);
    a.dot = dot.on(d);
    a.grad_weight = affine ? gw.on(d) : nullptr;
    a.grad_bias = affine ? gb.on(d) : nullptr;
    return a;
  };
  for (const Device d : {kCpu, kEmu}) kernels::channel_terms(d, t, terms(d));
  for (const auto* p : {&rstd, &center, &scale, &shift}) p->check("channel_terms", 1e-12);
  for (const Device d : {kCpu, kEmu}) kernels::channel_grad_terms(d, t, terms(d));
  for (const auto* p : {&center, &scale, &shift, &grad_scale}) {
    p->check("channel_grad_terms", 1e-12);
  }
  gw.check("grad_weight");
  gb.check("grad_bias");
}

TEST(CudaNorm, Moments) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    in_each_order([&] {
      compare_moments<T>(t, 3, 5, 7);
      compare_moments<T>(t, 4, 3, 16);
      compare_moments<T>(t, 50, 9, 1);
      compare_moments<T>(t, 1, 4, 2100);
    });
  });
}
TEST(CudaNorm, Channels) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    in_each_order([&] {
      compare_channels<T>(t, 3, 5, 7);
      compare_channels<T>(t, 4, 3, 16);
      compare_channels<T>(t, 50, 9, 1);
      compare_channels<T>(t, 1, 4, 2100);
      compare_channels<T>(t, 0, 4, 2);
    });
  });
}
TEST(CudaNorm, Terms) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    in_each_order([&] {
      for (const bool fixed : {false, true}) {
        compare_terms<T>(t, 7, 1, 7, fixed, true);
        compare_terms<T>(t, 300, 50, 100, fixed, true);
        compare_terms<T>(t, 12, 4, 6, fixed, false);
      }
    });
  });
}
TEST(CudaNorm, RunningStatistics) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    Pair<T> running(random_values<T>(300, 1));
    Pair<double> value(random_values<double>(300, 2));
    for (const Device d : {kCpu, kEmu}) {
      kernels::update_running(d, t,
                              {.running = running.on(d),
                               .value = value.on(d),
                               .momentum = 0.1,
                               .factor = 1.25,
                               .n = 300});
    }
    running.check("update_running");
  });
}

template <class T>
void compare_column_sums(DType t, int64_t rows, int64_t columns) {
  Pair<T> x(random_values<T>(rows * columns, 1)), sums(columns);
  for (const Device d : {kCpu, kEmu}) {
    kernels::column_sums(d, t,
                         {.rows = rows, .columns = columns, .in = x.on(d), .out = sums.on(d)});
  }
  sums.check("column_sums");
}
TEST(CudaNorm, ColumnSums) {
  const auto all = [](auto zero, DType t) {
    using T = decltype(zero);
    in_each_order([&] {
      compare_column_sums<T>(t, 5, 1);
      compare_column_sums<T>(t, 1, 40);
      compare_column_sums<T>(t, 700, 35);
      compare_column_sums<T>(t, 0, 3);
    });
  };
  for_floating_types(all);
  for_integer_types(all);
}

}  // namespace
}  // namespace cutaway::cuda::emu
