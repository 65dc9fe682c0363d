#include <cutaway/core/kernels/rearrange.h>

#include <tests/cuda/both_devices.h>

namespace cutaway::cuda::emu {
namespace {

TEST(CudaRearrange, TrianglesAgreeWithTheCpu) {
  for_numbers([]<class T>(T) {
    for (bool upper : {false, true}) {
      for (int64_t diagonal : {-9, -2, 0, 1, 30}) {
        Both<T> x(some<T>(3 * 5 * 9)), y(3 * 5 * 9, T(3));
        run_both(kernels::triangle, TypeOf<T>::value, [&](DeviceKind kind) {
          return TriangleArgs{x.on(kind), y.on(kind), 3, 5, 9, diagonal, upper};
        });
        y.expect_same("triangle");
      }
    }
  });
}

template <class T>
void compare_concat(int64_t rows, const std::vector<int64_t>& widths) {
  std::vector<std::unique_ptr<Both<T>>> parts;
  std::vector<int64_t> bytes;
  int64_t total = 0;
  for (int64_t w : widths) {
    parts.push_back(std::make_unique<Both<T>>(some<T>(size_t(rows * w), uint64_t(total + 1))));
    bytes.push_back(w * int64_t(sizeof(T)));
    total += w;
  }
  Both<T> y(size_t(rows * total), T(0));
  std::vector<const void*> pointers(parts.size());
  run_both(kernels::concat, TypeOf<T>::value, [&](DeviceKind kind) {
    for (size_t i = 0; i < parts.size(); ++i) pointers[i] = parts[i]->on(kind);
    return ConcatArgs{pointers.data(), bytes.data(), int64_t(parts.size()), rows, y.on(kind)};
  });
  y.expect_same("concat");
}
TEST(CudaRearrange, ConcatAgreesWithTheCpu) {
  for_numbers([]<class T>(T) {
    compare_concat<T>(1, {5});
    compare_concat<T>(3, {5, 0, 1, 7});
    compare_concat<T>(4, {16, 32, 16});
    compare_concat<T>(2, std::vector<int64_t>(70, 3));
    compare_concat<T>(2, {0, 0});
  });
}

// Maps of flip, of padding, of repetition, and none.
std::vector<int64_t> map_of(int kind, int64_t n) {
  std::vector<int64_t> map;
  for (int64_t i = 0; i < n && kind == 1; ++i) map.push_back(n - 1 - i);
  for (int64_t i = -2; i < n + 1 && kind == 2; ++i) map.push_back(i < n ? i : -1);
  for (int64_t i = 0; i < 3 * n && kind == 3; ++i) map.push_back(i % n);
  if (kind == 2) map[0] = map[1] = -1;
  return map;
}
struct Remap {
  std::vector<int64_t> sizes;
  std::vector<int> kinds;
};
const Remap kRemaps[] = {{{7}, {1}},
                         {{4, 5}, {0, 2}},
                         {{3, 1, 4}, {3, 1, 2}},
                         {{2, 3, 2, 3}, {2, 0, 3, 1}},
                         {{2, 2, 1, 2, 2, 3}, {3, 0, 2, 1, 0, 3}},
                         {{40, 30}, {1, 3}}};

// The places of each coordinate, in order.
struct Inverse {
  std::vector<int64_t> starts, places;
  Inverse(const std::vector<int64_t>& map, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      starts.push_back(int64_t(places.size()));
      for (size_t j = 0; j < map.size(); ++j) {
        if (map[j] == i) places.push_back(int64_t(j));
      }
    }
    starts.push_back(int64_t(places.size()));
  }
};

template <class T>
void compare_remap(const Remap& r) {
  std::vector<std::vector<int64_t>> maps;
  std::vector<Inverse> inverses;
  int64_t in = 1, out = 1;
  for (size_t d = 0; d < r.sizes.size(); ++d) {
    maps.push_back(map_of(r.kinds[d], r.sizes[d]));
    inverses.emplace_back(maps.back(), r.sizes[d]);
    in *= r.sizes[d];
    out *= maps.back().empty() ? r.sizes[d] : int64_t(maps.back().size());
  }
  const auto fill_sizes = [&](auto& a) {
    a.rank = int(r.sizes.size());
    for (size_t d = 0; d < r.sizes.size(); ++d) {
      a.in_sizes[d] = r.sizes[d];
      a.out_sizes[d] = maps[d].empty() ? r.sizes[d] : int64_t(maps[d].size());
    }
  };
  Both<T> x(some<T>(size_t(in))), y(size_t(out), T(0)), fill(1, T(9)), sums(size_t(in), T(0));
  for (bool filled : {true, false}) {
    run_both(kernels::remap, TypeOf<T>::value, [&](DeviceKind kind) {
      RemapArgs a;
      fill_sizes(a);
      for (size_t d = 0; d < maps.size(); ++d)
        a.map[d] = maps[d].empty() ? nullptr : maps[d].data();
      a.in = x.on(kind);
      a.out = y.on(kind);
      a.fill = filled ? fill.on(kind) : nullptr;
      return a;
    });
    y.expect_same("remap");
  }
  run_both(kernels::remap_sum, TypeOf<T>::value, [&](DeviceKind kind) {
    RemapSumArgs a;
    fill_sizes(a);
    for (size_t d = 0; d < maps.size(); ++d) {
      if (maps[d].empty()) continue;
      a.starts[d] = inverses[d].starts.data();
      a.places[d] = inverses[d].places.data();
    }
    a.in = sums.on(kind);
    a.out = y.on(kind);
    return a;
  });
  sums.expect_same("remap_sum");
}
TEST(CudaRearrange, RemapsAndTheirAdjointsAgreeWithTheCpu) {
  for_numbers([]<class T>(T) {
    for (const Remap& r : kRemaps) compare_remap<T>(r);
  });
}

TEST(CudaRearrange, WindowSumsAgreeWithTheCpu) {
  for_numbers([]<class T>(T) {
    for (const WindowSumArgs& shape :
         {WindowSumArgs{.outer = 2, .n = 11, .inner = 3, .windows = 4, .size = 5, .step = 2},
          WindowSumArgs{.outer = 1, .n = 20, .inner = 1, .windows = 3, .size = 2, .step = 7},
          WindowSumArgs{.outer = 3, .n = 9, .inner = 2, .windows = 9, .size = 1, .step = 1}}) {
      Both<T> g(some<T>(size_t(shape.outer * shape.windows * shape.inner * shape.size)));
      Both<T> y(size_t(shape.outer * shape.n * shape.inner), T(1));
      run_both(kernels::window_sum, TypeOf<T>::value, [&](DeviceKind kind) {
        WindowSumArgs a = shape;
        a.in = g.on(kind);
        a.out = y.on(kind);
        return a;
      });
      y.expect_same("window_sum");
    }
  });
}

template <class T>
void compare_columns(ColumnsArgs shape) {
  const int64_t image = shape.planes * shape.height * shape.width;
  const int64_t columns =
      shape.planes * shape.kernel[0] * shape.kernel[1] * shape.out_h * shape.out_w;
  Both<T> x(some<T>(size_t(image))), y(size_t(columns), T(1)), back(size_t(image), T(1));
  run_both(kernels::image_to_columns, TypeOf<T>::value, [&](DeviceKind kind) {
    ColumnsArgs a = shape;
    a.in = x.on(kind);
    a.out = y.on(kind);
    return a;
  });
  y.expect_same("image_to_columns");
  run_both(kernels::columns_to_image, TypeOf<T>::value, [&](DeviceKind kind) {
    ColumnsArgs a = shape;
    a.in = y.on(kind);
    a.out = back.on(kind);
    return a;
  });
  back.expect_same("columns_to_image");
}
TEST(CudaRearrange, ColumnsAgreeWithTheCpu) {
  for_numbers([]<class T>(T) {
    ColumnsArgs a{.planes = 2, .height = 7, .width = 6, .out_h = 7, .out_w = 6};
    a.kernel[0] = a.kernel[1] = 3;
    a.stride[0] = a.stride[1] = a.dilation[0] = a.dilation[1] = 1;
    a.padding[0] = a.padding[1] = 1;
    compare_columns<T>(a);
    a.kernel[1] = 2;
    a.stride[0] = 2;
    a.stride[1] = 3;
    a.dilation[0] = 2;
    a.padding[0] = 2;
    a.out_h = (7 + 4 - 4 - 1) / 2 + 1;
    a.out_w = (6 + 2 - 1 - 1) / 3 + 1;
    compare_columns<T>(a);
  });
}
TEST(CudaRearrange, NothingToMove) {
  kernels::triangle(kEmuDevice, DType::f32, TriangleArgs{});
  kernels::concat(kEmuDevice, DType::f32, ConcatArgs{});
  kernels::window_sum(kEmuDevice, DType::f32, WindowSumArgs{});
  kernels::image_to_columns(kEmuDevice, DType::f32, ColumnsArgs{});
  kernels::columns_to_image(kEmuDevice, DType::f32, ColumnsArgs{});
}

}  // namespace
}  // namespace cutaway::cuda::emu
