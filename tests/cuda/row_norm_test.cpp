#include <cutaway/core/kernels/rows.h>

#include <cutaway/cuda/ladder.h>
#include <tests/cuda/kernel_check.h>

namespace cutaway::cuda::emu {
namespace {

struct Case {
  int64_t rows, width;
  bool weight, bias, mean;
};
std::string text(const char* kernel, const Case& c, DType t) {
  return std::string(kernel) + " [" + std::to_string(c.rows) + ", " + std::to_string(c.width) +
         "] of type " + std::to_string(int(t));
}

template <class T>
struct Data {
  std::vector<T> x, g, weight, bias;
  Data(const Case& c, double center)
      : x(random_values<T>(c.rows * c.width, 1, center, 2)),
        g(random_values<T>(c.rows * c.width, 2)),
        weight(random_values<T>(c.width, 3)),
        bias(random_values<T>(c.width, 4)) {}
};
template <class T>
struct Results {
  std::vector<T> y, dx, grad_weight, grad_bias;
  std::vector<double> mean, rstd;
};
RowNormArgs sized(const Case& c) {
  RowNormArgs a;
  a.rows = c.rows;
  a.width = c.width;
  a.eps = 1e-5;
  return a;
}

// In f64.
template <class T>
Results<T> on_cpu(const Case& c, const Data<T>& d) {
  const auto x = converted<double>(d.x), g = converted<double>(d.g);
  const auto weight = converted<double>(d.weight), bias = converted<double>(d.bias);
  std::vector<double> y(d.x.size()), dx(d.x.size()), gw(d.weight.size()), gb(d.bias.size());
  Results<T> r;
  r.mean.resize(size_t(c.rows));
  r.rstd.resize(size_t(c.rows));
  RowNormArgs a = sized(c);
  a.in = x.data();
  a.out = y.data();
  a.weight = c.weight ? weight.data() : nullptr;
  a.bias = c.bias ? bias.data() : nullptr;
  a.mean = c.mean ? r.mean.data() : nullptr;
  a.rstd = r.rstd.data();
  kernels::row_norm(kCpu, DType::f64, a);
  a.grad = g.data();
  a.out = dx.data();
  a.grad_weight = c.weight ? gw.data() : nullptr;
  a.grad_bias = c.bias ? gb.data() : nullptr;
  kernels::row_norm_backward(kCpu, DType::f64, a);
  r.y = converted<T>(y);
  r.dx = converted<T>(dx);
  r.grad_weight = converted<T>(gw);
  r.grad_bias = converted<T>(gb);
  return r;
}

template <class T>
void compare(const Case& c, DType t, double center = 0) {
  const Data<T> d(c, center);
  const Results<T> want = on_cpu(c, d);
  in_each_order([&] {
    Buffer<T> x(d.x), g(d.g), w(d.weight), b(d.bias), y(int64_t(d.x.size()));
    Buffer<T> dx(int64_t(d.x.size())), gw(c.width), gb(c.width);
    Buffer<double> mean(c.rows), rstd(c.rows);
    RowNormArgs a = sized(c);
    a.in = x.get();
    a.out = y.get();
    a.weight = c.weight ? w.get() : nullptr;
    a.bias = c.bias ? b.get() : nullptr;
    a.mean = c.mean ? mean.get() : nullptr;
    a.rstd = rstd.get();
    kernels::row_norm(kEmu, t, a);
    expect_close(y.values(), want.y, text("row_norm", c, t));
    expect_close(rstd.values(), want.rstd, 1e-11, "rstd");
    if (c.mean) expect_close(mean.values(), want.mean, 1e-11, "mean");
    a.grad = g.get();
    a.out = dx.get();
    a.grad_weight = c.weight ? gw.get() : nullptr;
    a.grad_bias = c.bias ? gb.get() : nullptr;
    kernels::row_norm_backward(kEmu, t, a);
    expect_close(dx.values(), want.dx, text("row_norm_backward", c, t));
    if (c.weight) expect_close(gw.values(), want.grad_weight, text("grad_weight", c, t));
    if (c.bias) expect_close(gb.values(), want.grad_bias, text("grad_bias", c, t));
  });
}

TEST(CudaRowNorm, AllTypesAndWidths) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (const Case& c : {Case{9, 1, true, true, true},
                          {7, 10, true, true, true},
                          {3, 33, true, false, false},
                          {3, 256, true, true, true},
                          {5, 1024, true, true, true},
                          {3, 770, false, true, true},
                          {2, 1030, false, false, true}}) {
      compare<T>(c, t);
    }
  });
}
TEST(CudaRowNorm, LongRows) {
  compare<float>({2, 4100, true, true, true}, DType::f32);
  compare<BFloat16>({1, 8200, true, true, true}, DType::bf16);
  compare<double>({3, 5001, true, false, false}, DType::f64);
}
TEST(CudaRowNorm, ALargeCommonOffsetCancels) {
  compare<float>({4, 100, true, true, true}, DType::f32, 1e4);
  compare<float>({1, 8300, true, true, true}, DType::f32, 1e4);
}
TEST(CudaRowNorm, SeveralRoundsOfRows) { compare<float>({2300, 8, true, true, true}, DType::f32); }

// No rows: gradients of weight and bias are zero.
TEST(CudaRowNorm, Empty) {
  Buffer<float> gw(3);
  RowNormArgs a = sized({0, 3, true, false, true});
  a.grad_weight = gw.get();
  kernels::row_norm(kEmu, DType::f32, a);
  kernels::row_norm_backward(kEmu, DType::f32, a);
  EXPECT_EQ(gw.values(), std::vector<float>(3, 0.0f));
}

// Weight, bias and statistics included.
template <class T>
void expect_minimal_traffic(DType t, int64_t rows, int64_t width, double backward_bound = 0,
                            int64_t blocks = 0) {
  const Data<T> d({rows, width, true, true, true}, 0);
  Buffer<T> x(d.x), g(d.g), w(d.weight), b(d.bias), y(rows * width), dx(rows * width);
  Buffer<T> gw(width), gb(width);
  Buffer<double> mean(rows), rstd(rows);
  RowNormArgs a = sized({rows, width, true, true, true});
  a.in = x.get();
  a.out = y.get();
  a.weight = w.get();
  a.bias = b.get();
  a.mean = mean.get();
  a.rstd = rstd.get();
  const double array = double(rows * width) * sizeof(T), row = 16.0 * double(rows);
  const double few = 2.0 * double(width) * sizeof(T);
  const Traffic forward = traffic_of([&] { kernels::row_norm(kEmu, t, a); });
  EXPECT_EQ(forward.conflicts, 0);
  a.grad = g.get();
  a.out = dx.get();
  a.grad_weight = gw.get();
  a.grad_bias = gb.get();
  const Traffic backward = traffic_of([&] { kernels::row_norm_backward(kEmu, t, a); });
  EXPECT_EQ(backward.conflicts, 0);
  if (blocks > 0) {
    EXPECT_EQ(double(forward.bytes()), 2 * array + row + double(blocks) * few);
  }
  if (backward_bound == 0) return;
  EXPECT_LE(double(forward.bytes()), 1.05 * (2 * array + row + few)) << rows << " x " << width;
  EXPECT_LE(double(backward.bytes()), backward_bound * (3 * array + row + 1.5 * few))
      << rows << " x " << width;
}
TEST(CudaRowNorm, MovesEachElementOnce) {
  expect_minimal_traffic<float>(DType::f32, 3200, 512, 1.10, 100);
  expect_minimal_traffic<float>(DType::f32, 8192, 128, 1.05, 256);
}
TEST(CudaRowNorm, ReadsWeightsOnceABlock) {
  expect_minimal_traffic<float>(DType::f32, 264, 512, 0, 33);
}
TEST(CudaRowNorm, NoBankConflicts) {
  for_floating_types([](auto zero, DType t) {
    for (const int64_t width : {64, 768, 1024, 2048, 4096}) {
      expect_minimal_traffic<decltype(zero)>(t, 4, width);
    }
  });
}

TEST(CudaRowNorm, TheLadderOfLayerNorm) {
  const auto ladder = ladders(DeviceKind::emu).layer_norm;
  ASSERT_GE(ladder.size(), 4u);
  for (const Case& c : {Case{9, 70, true, true, true}, {2, 1100, true, false, false}}) {
    const Data<float> d(c, 100);
    const Results<float> want = on_cpu(c, d);
    for (const auto& step : ladder) {
      in_each_order([&] {
        Buffer<float> x(d.x), w(d.weight), b(d.bias), y(int64_t(d.x.size()));
        Buffer<double> mean(c.rows), rstd(c.rows);
        RowNormArgs a = sized(c);
        a.in = x.get();
        a.out = y.get();
        a.weight = w.get();
        a.bias = c.bias ? b.get() : nullptr;
        a.mean = c.mean ? mean.get() : nullptr;
        a.rstd = rstd.get();
        step.run(a);
        expect_close(y.values(), want.y, text(step.name, c, DType::f32));
        expect_close(rstd.values(), want.rstd, 1e-9, step.name);
        if (c.mean) expect_close(mean.values(), want.mean, 1e-11, step.name);
      });
    }
  }
}

}  // namespace
}  // namespace cutaway::cuda::emu
