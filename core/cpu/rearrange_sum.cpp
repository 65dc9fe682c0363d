#include <algorithm>
#include <cstdint>

#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/kernels/rearrange.h>

// The adjoints of kernels that copy elements: each source element is the sum of its copies. A task
// owns the elements it writes and adds in a fixed order, so threads never change a bit.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// The type of a sum: f64 for floating types, rounded once at the end; wrapping for integers.
template <class T>
using AccOf = std::conditional_t<kIsFloating<T>, double, uint64_t>;

template <class T>
[[gnu::always_inline]] inline AccOf<T> widen(T x) {
  return AccOf<T>(compute(x));
}

// Walks all combinations of copies of one row in the outer dimensions.
struct Copies {
  const RemapSumArgs& a;
  int64_t strides[kMaxRank];  // of out, in elements
  int64_t begin[kMaxRank], end[kMaxRank], at[kMaxRank];

  explicit Copies(const RemapSumArgs& args) : a(args) {
    int64_t step = 1;
    for (int d = a.rank - 1; d >= 0; --d) {
      strides[d] = step;
      step *= a.out_sizes[d];
    }
  }
  // Starts with the first copy of `row`; false when there is none.
  bool first(int64_t row) {
    for (int d = a.rank - 2; d >= 0; --d) {
      const int64_t i = row % a.in_sizes[d];
      row /= a.in_sizes[d];
      begin[d] = a.places[d] ? a.starts[d][i] : i;
      end[d] = a.places[d] ? a.starts[d][i + 1] : i + 1;
      at[d] = begin[d];
      if (begin[d] == end[d]) return false;
    }
    return true;
  }
  int64_t offset() const {
    int64_t sum = 0;
    for (int d = 0; d < a.rank - 1; ++d) {
      sum += (a.places[d] ? a.places[d][at[d]] : at[d]) * strides[d];
    }
    return sum;
  }
  bool next() {
    for (int d = a.rank - 2; d >= 0; --d) {
      if (++at[d] < end[d]) return true;
      at[d] = begin[d];
    }
    return false;
  }
};

template <class T>
void remap_sum(const RemapSumArgs& a) {
  const int last = a.rank - 1;
  const int64_t n = a.in_sizes[last];
  int64_t rows = 1, work = a.out_sizes[last];
  for (int d = 0; d < last; ++d) {
    rows *= a.in_sizes[d];
    work *= a.out_sizes[d];
  }
  if (rows * n == 0) return;
  const int64_t *starts = a.starts[last], *places = a.places[last];
  const auto* out = static_cast<const T*>(a.out);
  auto* in = static_cast<T*>(a.in);
  const int64_t grain = std::max<int64_t>(1, kGrain / (work / rows + n));
  parallel_for(rows, grain, [&](int64_t from, int64_t to) {
    Scratch<AccOf<T>> acc(n);
    Copies copies(a);
    for (int64_t row = from; row < to; ++row) {
      for (int64_t j = 0; j < n; ++j) acc[j] = 0;
      bool more = copies.first(row);
      while (more) {
        const T* y = out + copies.offset();
        if (!places) {
          for (int64_t j = 0; j < n; ++j) acc[j] += widen(y[j]);
        } else {
          for (int64_t j = 0; j < n; ++j) {
            for (int64_t k = starts[j]; k < starts[j + 1]; ++k) acc[j] += widen(y[places[k]]);
          }
        }
        more = copies.next();
      }
      for (int64_t j = 0; j < n; ++j) in[row * n + j] = T(acc[j]);
    }
  });
}

// One task sums the windows over a block of (outer, element) places, `inner` values each.
template <class T>
void window_sum(const WindowSumArgs& a) {
  const auto* in = static_cast<const T*>(a.in);
  auto* out = static_cast<T*>(a.out);
  const int64_t depth = std::max<int64_t>(1, a.size / a.step) * a.inner;
  parallel_for(a.outer * a.n, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, depth)),
               [&](int64_t from, int64_t to) {
                 for (int64_t row = from; row < to; ++row) {
                   const int64_t o = row / a.n, p = row % a.n;
                   // Windows w with w·step <= p < w·step + size.
                   const int64_t first = p < a.size ? 0 : (p - a.size) / a.step + 1;
                   const int64_t last = std::min(p / a.step, a.windows - 1);
                   for (int64_t i = 0; i < a.inner; ++i) {
                     AccOf<T> acc = 0;
                     for (int64_t w = first; w <= last; ++w) {
                       acc +=
                           widen(in[((o * a.windows + w) * a.inner + i) * a.size + p - w * a.step]);
                     }
                     out[row * a.inner + i] = T(acc);
                   }
                 }
               });
}

// One task sums the windows of whole image rows.
template <class T>
void columns_to_image(const ColumnsArgs& a) {
  const auto* in = static_cast<const T*>(a.in);
  auto* out = static_cast<T*>(a.out);
  const int64_t kh = a.kernel[0], kw = a.kernel[1], n = a.out_h * a.out_w;
  if (a.width == 0) return;
  parallel_for(a.planes * a.height, std::max<int64_t>(1, kGrain / (a.width * kh * kw)),
               [&](int64_t from, int64_t to) {
                 Scratch<AccOf<T>> acc(a.width);
                 for (int64_t row = from; row < to; ++row) {
                   const int64_t plane = row / a.height, h = row % a.height;
                   for (int64_t w = 0; w < a.width; ++w) acc[w] = 0;
                   for (int64_t ki = 0; ki < kh; ++ki) {
                     const int64_t top = h + a.padding[0] - ki * a.dilation[0];
                     if (top < 0 || top % a.stride[0] || top / a.stride[0] >= a.out_h) continue;
                     for (int64_t kj = 0; kj < kw; ++kj) {
                       const T* x =
                           in + ((plane * kh + ki) * kw + kj) * n + top / a.stride[0] * a.out_w;
                       const int64_t left = kj * a.dilation[1] - a.padding[1];
                       for (int64_t j = 0; j < a.out_w; ++j) {
                         const int64_t w = left + j * a.stride[1];
                         if (w >= 0 && w < a.width) acc[w] += widen(x[j]);
                       }
                     }
                   }
                   for (int64_t w = 0; w < a.width; ++w) out[row * a.width + w] = T(acc[w]);
                 }
               });
}

template <class T>
void set_all(DType t) {
  kernels::remap_sum.set(DeviceKind::cpu, t, remap_sum<T>);
  kernels::window_sum.set(DeviceKind::cpu, t, window_sum<T>);
  kernels::columns_to_image.set(DeviceKind::cpu, t, columns_to_image<T>);
}

}  // namespace

void register_rearrange_sum_kernels() {
  set_all<double>(DType::f64);
  set_all<float>(DType::f32);
  set_all<BFloat16>(DType::bf16);
  set_all<Float16>(DType::f16);
  set_all<int64_t>(DType::i64);
  set_all<int32_t>(DType::i32);
  set_all<uint8_t>(DType::u8);
  set_all<int8_t>(DType::i8);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
