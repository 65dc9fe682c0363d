#include <cutaway/core/kernels/pool.h>
#include <cutaway/core/kernels/resize.h>

#include <tests/cuda/both_devices.h>

namespace cutaway::cuda::emu {
namespace {

// Tables of windows of `size` every `stride` inputs from −padding on, or of adaptive pooling.
struct Windows {
  PoolArgs args;
  std::vector<int64_t> begin[3], end[3];
  std::vector<double> divisor[3];

  void add(int d, int64_t from, int64_t to) {
    begin[d].push_back(from);
    end[d].push_back(to);
    divisor[d].push_back(double(to - from) + 0.5 * d);
  }
  void slide(int d, int64_t n, int64_t size, int64_t stride, int64_t padding, int64_t step) {
    args.in[d] = n;
    args.step[d] = step;
    for (int64_t from = -padding; from + (size - 1) * step < n + padding; from += stride) {
      int64_t first = from;
      while (first < 0) first += step;
      add(d, first, std::min(from + (size - 1) * step + 1, n));
    }
    args.out[d] = int64_t(begin[d].size());
  }
  void adapt(int d, int64_t n, int64_t m) {
    args.in[d] = n;
    args.out[d] = m;
    for (int64_t o = 0; o < m; ++o) add(d, o * n / m, ((o + 1) * n + m - 1) / m);
  }
  PoolArgs finish(int64_t planes) {
    args.planes = planes;
    for (int d = 0; d < 3; ++d) {
      args.begin[d] = begin[d].data();
      args.end[d] = end[d].data();
      args.divisor[d] = divisor[d].data();
    }
    return args;
  }
};

template <class T>
void compare_pools(const PoolArgs& a, bool means) {
  const size_t in = size_t(a.planes * a.in[0] * a.in[1] * a.in[2]);
  const size_t out = size_t(a.planes * a.out[0] * a.out[1] * a.out[2]);
  std::vector<T> values = some<T>(in);
  values[in / 2] = std::numeric_limits<T>::quiet_NaN();
  Both<T> with_nan(values), x(some<T>(in)), y(out, T(0.0f)), g(some<T>(out, 2)), dx(in, T(9.0f));
  Both<int64_t> indices(out, -1);
  const auto with = [&](auto& from, auto& to) {
    return [&](DeviceKind kind) {
      PoolArgs b = a;
      b.x = from.on(kind);
      b.result = to.on(kind);
      b.indices = indices.on(kind);
      return b;
    };
  };
  const double tolerance = TypeOf<T>::kTolerance;
  run_both(kernels::max_pool, TypeOf<T>::value, with(with_nan, y));
  y.expect_same("max_pool");
  indices.expect_same("indices");
  const auto planes = [&](auto& from, auto& to) {
    return [&](DeviceKind kind) {
      return PlaneIndexArgs{a.planes,
                            a.in[0] * a.in[1] * a.in[2],
                            a.out[0] * a.out[1] * a.out[2],
                            indices.on(kind),
                            from.on(kind),
                            to.on(kind)};
    };
  };
  run_both(kernels::plane_scatter, TypeOf<T>::value, planes(g, dx));
  dx.expect_near(tolerance, "plane_scatter");
  run_both(kernels::plane_gather, TypeOf<T>::value, planes(x, y));
  y.expect_same("plane_gather");
  if (!means) return;
  run_both(kernels::avg_pool, TypeOf<T>::value, with(x, y));
  y.expect_near(tolerance, "avg_pool");
  run_both(kernels::avg_pool_grad, TypeOf<T>::value, with(g, dx));
  dx.expect_near(tolerance, "avg_pool_grad");
}

TEST(CudaPool, SlidingWindowsAgreeWithTheCpu) {
  for_floats([]<class T>(T) {
    Windows w;
    w.adapt(0, 1, 1);
    w.slide(1, 9, 3, 2, 1, 1);
    w.slide(2, 8, 2, 1, 0, 1);
    PoolArgs a = w.finish(3);
    compare_pools<T>(a, true);
    a.fixed_divisor = 7;
    compare_pools<T>(a, true);
  });
}
TEST(CudaPool, AdaptiveWindowsAgreeWithTheCpu) {
  for_floats([]<class T>(T) {
    Windows w;
    w.adapt(0, 3, 2);
    w.adapt(1, 5, 7);
    w.adapt(2, 11, 4);
    compare_pools<T>(w.finish(2), true);
  });
}
TEST(CudaPool, DilatedWindowsAgreeWithTheCpu) {
  for_floats([]<class T>(T) {
    Windows w;
    w.slide(0, 5, 2, 1, 0, 3);
    w.slide(1, 6, 3, 2, 2, 2);
    w.slide(2, 9, 2, 3, 1, 2);
    compare_pools<T>(w.finish(2), false);
  });
}
TEST(CudaPool, InEveryOrderOfThreads) {
  in_three_orders([] {
    Windows w;
    w.adapt(0, 1, 1);
    w.slide(1, 9, 3, 1, 1, 1);
    w.slide(2, 9, 3, 1, 1, 1);
    compare_pools<float>(w.finish(2), true);
  });
}
TEST(CudaPool, NoPlanes) {
  kernels::max_pool(kEmuDevice, DType::f32, PoolArgs{});
  kernels::avg_pool(kEmuDevice, DType::f32, PoolArgs{});
  kernels::avg_pool_grad(kEmuDevice, DType::f32, PoolArgs{});
  kernels::plane_scatter(kEmuDevice, DType::f32, PlaneIndexArgs{});
  kernels::plane_gather(kEmuDevice, DType::f32, PlaneIndexArgs{});
}

// ---- resizing

struct Neighbours {
  ResizeArgs args;
  std::vector<int64_t> low[3], high[3];
  std::vector<double> share[3];

  void linear(int d, int64_t n, int64_t m) {
    args.in[d] = n;
    args.out[d] = m;
    for (int64_t o = 0; o < m; ++o) {
      const double at = std::max(0.0, (double(o) + 0.5) * double(n) / double(m) - 0.5);
      const int64_t l = std::min(int64_t(at), n - 1);
      low[d].push_back(l);
      high[d].push_back(std::min(l + 1, n - 1));
      share[d].push_back(l == n - 1 ? 0 : at - double(l));
    }
  }
  void nearest(int d, int64_t n, int64_t m) {
    args.in[d] = n;
    args.out[d] = m;
    for (int64_t o = 0; o < m; ++o) {
      low[d].push_back(o * n / m);
      high[d].push_back(o * n / m);
      share[d].push_back(0);
    }
  }
  ResizeArgs finish(int64_t planes) {
    args.planes = planes;
    for (int d = 0; d < 3; ++d) {
      args.low[d] = low[d].data();
      args.high[d] = high[d].data();
      args.share[d] = share[d].data();
    }
    return args;
  }
};

template <class T>
void compare_resizes(const ResizeArgs& a) {
  const size_t in = size_t(a.planes * a.in[0] * a.in[1] * a.in[2]);
  const size_t out = size_t(a.planes * a.out[0] * a.out[1] * a.out[2]);
  std::vector<T> values = some<T>(in);
  values[in / 2] = std::numeric_limits<T>::infinity();
  Both<T> x(values), y(out, T(0.0f)), g(some<T>(out, 2)), dx(in, T(9.0f));
  const auto with = [&](auto& from, auto& to) {
    return [&](DeviceKind kind) {
      ResizeArgs b = a;
      b.from = from.on(kind);
      b.result = to.on(kind);
      return b;
    };
  };
  run_both(kernels::resize, TypeOf<T>::value, with(x, y));
  y.expect_near(TypeOf<T>::kTolerance, "interpolate");
  run_both(kernels::resize_grad, TypeOf<T>::value, with(g, dx));
  dx.expect_near(2 * TypeOf<T>::kTolerance, "interpolate_grad");
}
TEST(CudaResize, LinearAgreesWithTheCpu) {
  for_floats([]<class T>(T) {
    Neighbours up;
    up.nearest(0, 1, 1);
    up.linear(1, 4, 7);
    up.linear(2, 5, 9);
    compare_resizes<T>(up.finish(3));
    Neighbours down;
    down.linear(0, 3, 2);
    down.linear(1, 9, 4);
    down.linear(2, 6, 6);
    compare_resizes<T>(down.finish(2));
  });
}
TEST(CudaResize, NearestAgreesWithTheCpu) {
  for_floats([]<class T>(T) {
    Neighbours n;
    n.nearest(0, 2, 3);
    n.nearest(1, 7, 3);
    n.nearest(2, 3, 8);
    compare_resizes<T>(n.finish(2));
  });
}

}  // namespace
}  // namespace cutaway::cuda::emu
