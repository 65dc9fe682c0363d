#include <algorithm>
#include <cstdint>
#include <cstring>

#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/kernels/rearrange.h>

// Kernels that move elements without looking at them: one instance for each element size.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

template <class T>
void triangle(const TriangleArgs& a) {
  const auto* in = static_cast<const T*>(a.in);
  auto* out = static_cast<T*>(a.out);
  const int64_t m = a.columns;
  parallel_for(a.count * a.rows, std::max<int64_t>(1, kGrain / m), [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) {
      // Kept: columns [0, end) below the diagonal, [begin, m) above it.
      const int64_t i = row % a.rows;
      const int64_t begin = a.upper ? std::clamp<int64_t>(i + a.diagonal, 0, m) : 0;
      const int64_t end = a.upper ? m : std::clamp<int64_t>(i + a.diagonal + 1, 0, m);
      T* y = out + row * m;
      const T* x = in + row * m;
      for (int64_t j = 0; j < begin; ++j) y[j] = 0;
      for (int64_t j = begin; j < end; ++j) y[j] = x[j];
      for (int64_t j = end; j < m; ++j) y[j] = 0;
    }
  });
}

// One task copies a block of rows.
void concat(const ConcatArgs& a) {
  int64_t total = 0;
  for (int64_t i = 0; i < a.count; ++i) total += a.row_bytes[i];
  if (total == 0) return;
  auto* out = static_cast<char*>(a.out);
  parallel_for(a.rows, std::max<int64_t>(1, 8 * kGrain / total), [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) {
      char* y = out + row * total;
      for (int64_t i = 0; i < a.count; ++i) {
        const int64_t n = a.row_bytes[i];
        if (n) std::memcpy(y, static_cast<const char*>(a.in[i]) + row * n, size_t(n));
        y += n;
      }
    }
  });
}

// Strides of a dense tensor, and the offset of row `row` (all dimensions but the last) of `in`, or
// -1 where some coordinate is filled.
struct RowMap {
  const RemapArgs& a;
  int64_t strides[kMaxRank];

  explicit RowMap(const RemapArgs& args) : a(args) {
    int64_t step = 1;
    for (int d = a.rank - 1; d >= 0; --d) {
      strides[d] = step;
      step *= a.in_sizes[d];
    }
  }
  int64_t operator()(int64_t row) const {
    int64_t offset = 0;
    for (int d = a.rank - 2; d >= 0; --d) {
      const int64_t i = row % a.out_sizes[d];
      row /= a.out_sizes[d];
      const int64_t from = a.map[d] ? a.map[d][i] : i;
      if (from < 0) return -1;
      offset += from * strides[d];
    }
    return offset;
  }
};

// A piece of a row: n elements of out from out_at on, read from in_at on, or filled when that is
// -1.
struct Run {
  int64_t out_at, in_at, n;
};

int64_t runs_of(const int64_t* map, int64_t n, Run* runs) {
  int64_t count = 0;
  for (int64_t j = 0; j < n; ++j) {
    Run* last = count ? &runs[count - 1] : nullptr;
    const bool joins = last && (map[j] < 0 ? last->in_at < 0
                                           : last->in_at >= 0 && map[j] == last->in_at + last->n);
    if (joins) {
      ++last->n;
    } else {
      runs[count++] = {j, map[j], 1};
    }
  }
  return count;
}

// One task writes a block of rows of out. Long runs are copied as blocks, short ones one by one.
template <class T>
void remap(const RemapArgs& a) {
  const int64_t n = a.out_sizes[a.rank - 1];
  int64_t rows = 1;
  for (int d = 0; d < a.rank - 1; ++d) rows *= a.out_sizes[d];
  if (rows * n == 0) return;
  const int64_t* map = a.map[a.rank - 1];
  Scratch<Run> runs(map ? n : 1);
  int64_t count = 1;
  if (map) {
    count = runs_of(map, n, runs.get());
  } else {
    runs[0] = {0, 0, n};
  }
  const bool blocks = count * 8 <= n || count == 1;
  const RowMap row_map(a);
  const auto* in = static_cast<const T*>(a.in);
  const T fill = a.fill ? *static_cast<const T*>(a.fill) : T(0);
  const auto write_row = [&](T* y, const T* x) {
    if (!blocks) {
      for (int64_t j = 0; j < n; ++j) y[j] = map[j] < 0 ? fill : x[map[j]];
      return;
    }
    for (int64_t r = 0; r < count; ++r) {
      const Run run = runs[r];
      T* part = y + run.out_at;
      if (run.in_at >= 0) {
        std::memcpy(part, x + run.in_at, size_t(run.n) * sizeof(T));
      } else {
        for (int64_t j = 0; j < run.n; ++j) part[j] = fill;
      }
    }
  };
  auto* out = static_cast<T*>(a.out);
  parallel_for(rows, std::max<int64_t>(1, kGrain / n), [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) {
      const int64_t offset = row_map(row);
      T* y = out + row * n;
      if (offset >= 0) {
        write_row(y, in + offset);
      } else {
        for (int64_t j = 0; j < n; ++j) y[j] = fill;
      }
    }
  });
}

// One task fills the columns of a few (plane, kernel element) rows; what lies in the padding is
// zero.
template <class T>
void image_to_columns(const ColumnsArgs& a) {
  const auto* in = static_cast<const T*>(a.in);
  auto* out = static_cast<T*>(a.out);
  const int64_t taps = a.kernel[0] * a.kernel[1], n = a.out_h * a.out_w;
  if (n == 0) return;
  parallel_for(a.planes * taps, std::max<int64_t>(1, kGrain / n), [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) {
      const T* image = in + row / taps * a.height * a.width;
      const int64_t top = row % taps / a.kernel[1] * a.dilation[0] - a.padding[0];
      const int64_t left = row % a.kernel[1] * a.dilation[1] - a.padding[1];
      T* y = out + row * n;
      for (int64_t i = 0; i < a.out_h; ++i, y += a.out_w) {
        const int64_t h = top + i * a.stride[0];
        const bool inside = h >= 0 && h < a.height;
        for (int64_t j = 0; j < a.out_w; ++j) {
          const int64_t w = left + j * a.stride[1];
          y[j] = inside && w >= 0 && w < a.width ? image[h * a.width + w] : T(0);
        }
      }
    }
  });
}

// Fills a kernel's row for every type with the instance of its size.
template <class Args>
void set_by_size(Kernel<Args>& kernel, typename Kernel<Args>::Fn b1, typename Kernel<Args>::Fn b2,
                 typename Kernel<Args>::Fn b4, typename Kernel<Args>::Fn b8) {
  for (int t = 0; t < kNumDTypes; ++t) {
    const int64_t size = size_of(DType(t));
    kernel.set(DeviceKind::cpu, DType(t), size == 1 ? b1 : size == 2 ? b2 : size == 4 ? b4 : b8);
  }
}

}  // namespace

void register_rearrange_kernels() {
  set_by_size(kernels::triangle, triangle<uint8_t>, triangle<uint16_t>, triangle<uint32_t>,
              triangle<uint64_t>);
  set_by_size(kernels::concat, concat, concat, concat, concat);
  set_by_size(kernels::remap, remap<uint8_t>, remap<uint16_t>, remap<uint32_t>, remap<uint64_t>);
  set_by_size(kernels::image_to_columns, image_to_columns<uint8_t>, image_to_columns<uint16_t>,
              image_to_columns<uint32_t>, image_to_columns<uint64_t>);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
