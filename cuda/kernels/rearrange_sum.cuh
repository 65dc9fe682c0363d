#pragma once
#include <cutaway/core/kernels/rearrange.h>
#include <cutaway/cuda/device/numbers.h>
#include <cutaway/cuda/device/tables.h>
#include <cutaway/cuda/device/walk.h>

// The adjoints of kernels that copy elements: the thread of an element adds its copies in order, in
// f64 for floating types, wrapping for integers.
namespace cutaway::cuda::CUTAWAY_TARGET {

template <class T>
DEVICE SumAcc<T> term(T x) {
  return static_cast<SumAcc<T>>(compute(x));
}

// Dimensions are counted from the last one, the unused ones in front have one place. Places of
// coordinate i of dimension d: places[d][starts[d][i]] … or, without a list, i.
template <int R>
struct RemapSumPlan {
  int64_t in_sizes[R], out_strides[R];
  const int64_t* starts[R];
  const int64_t* places[R];
};

template <class T, int R>
KERNEL remap_sum_elements(RemapSumPlan<R> p, const void* out, void* in, int64_t n) {
  const int64_t i = thread_number();
  if (i >= n) return;
  int64_t begin[R], count[R], copies = 1, rest = i;
  CUTAWAY_UNROLL
  for (int d = 0; d < R; ++d) {
    const int64_t q = rest / p.in_sizes[d], at = rest - q * p.in_sizes[d];
    rest = q;
    begin[d] = at;
    count[d] = 1;
    if (p.places[d]) {
      begin[d] = global<const int64_t>(p.starts[d])[at];
      count[d] = global<const int64_t>(p.starts[d])[at + 1] - begin[d];
    }
    copies *= count[d];
  }
  const auto x = global<const T>(out);
  SumAcc<T> sum = 0;
  for (int64_t c = 0; c < copies; ++c) {
    int64_t from = 0, left = c;
    CUTAWAY_UNROLL
    for (int d = 0; d < R; ++d) {
      int64_t place = begin[d];
      if (p.places[d]) {
        const int64_t q = left / count[d];
        place = global<const int64_t>(p.places[d])[place + left - q * count[d]];
        left = q;
      }
      from += place * p.out_strides[d];
    }
    const T v = x[from];
    sum += term(v);
  }
  global<T>(in)[i] = T(sum);
}

template <class T, int R>
void remap_sum_with(const RemapSumArgs& a, int64_t n) {
  Tables tables;
  int64_t starts[R], places[R];
  RemapSumPlan<R> p{};
  int64_t step = 1;
  for (int d = 0; d < R; ++d) {
    starts[d] = places[d] = -1;
    p.in_sizes[d] = 1;
    if (d >= a.rank) continue;
    const int from = a.rank - 1 - d;
    p.in_sizes[d] = a.in_sizes[from];
    p.out_strides[d] = step;
    step *= a.out_sizes[from];
    if (!a.places[from]) continue;
    starts[d] = tables.add(a.starts[from], a.in_sizes[from] + 1);
    places[d] = tables.add(a.places[from], a.starts[from][a.in_sizes[from]]);
  }
  tables.send();
  for (int d = 0; d < R; ++d) {
    p.starts[d] = tables.at<int64_t>(starts[d]);
    p.places[d] = tables.at<int64_t>(places[d]);
  }
  launch(one_thread_each("remap_sum", n), remap_sum_elements<T, R>, p, a.out, a.in, n);
}
template <class T>
void remap_sum(const RemapSumArgs& a) {
  int64_t n = 1;
  for (int d = 0; d < a.rank; ++d) n *= a.in_sizes[d];
  if (n == 0) return;
  if (a.rank <= 2) return remap_sum_with<T, 2>(a, n);
  if (a.rank <= 4) return remap_sum_with<T, 4>(a, n);
  remap_sum_with<T, kMaxRank>(a, n);
}

template <class T>
KERNEL window_sum_elements(WindowSumArgs a) {
  const int64_t at = thread_number();
  if (at >= a.outer * a.n * a.inner) return;
  const int64_t row = at / a.inner, i = at - row * a.inner, o = row / a.n, p = row - o * a.n;
  // Windows w with w·step <= p < w·step + size.
  const int64_t first = p < a.size ? 0 : (p - a.size) / a.step + 1;
  const int64_t end = min(p / a.step + 1, a.windows);
  const auto x = global<const T>(a.in);
  SumAcc<T> sum = 0;
  for (int64_t w = first; w < end; ++w) {
    const T v = x[((o * a.windows + w) * a.inner + i) * a.size + p - w * a.step];
    sum += term(v);
  }
  global<T>(a.out)[at] = T(sum);
}
template <class T>
void window_sum(const WindowSumArgs& a) {
  const int64_t n = a.outer * a.n * a.inner;
  if (n > 0) launch(one_thread_each("window_sum", n), window_sum_elements<T>, a);
}

template <class T>
KERNEL image_elements(ColumnsArgs a) {
  const int64_t at = thread_number();
  if (at >= a.planes * a.height * a.width) return;
  const int64_t row = at / a.width, w = at - row * a.width;
  const int64_t plane = row / a.height, h = row - plane * a.height;
  const int64_t taps = a.kernel[0] * a.kernel[1];
  const auto x = global<const T>(a.in);
  SumAcc<T> sum = 0;
  for (int64_t ki = 0; ki < a.kernel[0]; ++ki) {
    const int64_t top = h + a.padding[0] - ki * a.dilation[0], k = top / a.stride[0];
    if (top < 0 || k * a.stride[0] != top || k >= a.out_h) continue;
    for (int64_t kj = 0; kj < a.kernel[1]; ++kj) {
      const int64_t left = w + a.padding[1] - kj * a.dilation[1], j = left / a.stride[1];
      if (left < 0 || j * a.stride[1] != left || j >= a.out_w) continue;
      const T v = x[((plane * taps + ki * a.kernel[1] + kj) * a.out_h + k) * a.out_w + j];
      sum += term(v);
    }
  }
  global<T>(a.out)[at] = T(sum);
}
template <class T>
void columns_to_image(const ColumnsArgs& a) {
  const int64_t n = a.planes * a.height * a.width;
  if (n > 0) launch(one_thread_each("columns_to_image", n), image_elements<T>, a);
}

template <class T>
void set_rearrange_sum(DType t) {
  kernels::remap_sum.set(kDevice, t, &remap_sum<T>);
  kernels::window_sum.set(kDevice, t, &window_sum<T>);
  kernels::columns_to_image.set(kDevice, t, &columns_to_image<T>);
}

void register_rearrange_sum_kernels() {
  set_rearrange_sum<double>(DType::f64);
  set_rearrange_sum<float>(DType::f32);
  set_rearrange_sum<BFloat16>(DType::bf16);
  set_rearrange_sum<Float16>(DType::f16);
  set_rearrange_sum<int64_t>(DType::i64);
  set_rearrange_sum<int32_t>(DType::i32);
  set_rearrange_sum<uint8_t>(DType::u8);
  set_rearrange_sum<int8_t>(DType::i8);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
