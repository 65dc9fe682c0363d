#pragma once
#include <algorithm>

#include <cutaway/core/kernels/rearrange.h>
#include <cutaway/cuda/device/tables.h>
#include <cutaway/cuda/device/walk.h>

// Kernels that move elements without looking at them: one instance for each element size, a thread
// for each element of the result.
namespace cutaway::cuda::CUTAWAY_TARGET {

template <class T, class I>
KERNEL triangle_elements(TriangleArgs a, I n) {
  const I i = static_cast<I>(thread_number());
  if (i >= n) return;
  const I row = i / static_cast<I>(a.columns);
  const auto column = static_cast<int64_t>(i - row * static_cast<I>(a.columns));
  const int64_t diagonal = static_cast<int64_t>(row % static_cast<I>(a.rows)) + a.diagonal;
  T v = T(0);
  if (a.upper ? column >= diagonal : column <= diagonal) v = global<const T>(a.in)[i];
  global<T>(a.out)[i] = v;
}
template <class T>
void triangle(const TriangleArgs& a) {
  const int64_t n = a.count * a.rows * a.columns;
  if (n == 0) return;
  const Launch l = one_thread_each("triangle", n);
  fits32(n) ? launch(l, triangle_elements<T, uint32_t>, a, static_cast<uint32_t>(n))
            : launch(l, triangle_elements<T, uint64_t>, a, static_cast<uint64_t>(n));
}

// ---- concat

inline constexpr int kParts = 32;  // inputs of one launch

struct ConcatParts {
  const void* in[kParts];
  int64_t begin[kParts];  // of the part in a row of the result, in units
  int64_t units[kParts];  // of a row
  void* out;
  int64_t rows, row_units;  // of the result
};

// A thread moves one unit, W elements of U; blocks with the same y take the same input.
template <class U, int W>
KERNEL concat_units(ConcatParts a) {
  const int part = static_cast<int>(blockIdx.y);
  const int64_t units = a.units[part], i = thread_number();
  if (i >= a.rows * units) return;
  int64_t row, unit;
  if (a.rows * units < (int64_t{1} << 31)) {
    row = static_cast<uint32_t>(i) / static_cast<uint32_t>(units);
    unit = i - row * units;
  } else {
    row = i / units;
    unit = i - row * units;
  }
  const Vec<U, W> v = load<W>(global<const U>(a.in[part]), i * W);
  store(global<U>(a.out), (row * a.row_units + a.begin[part] + unit) * W, v);
}

template <class U, int W>
void concat_by(const ConcatArgs& a, int64_t total) {
  constexpr int64_t kUnit = sizeof(U) * W;
  ConcatParts p{};
  p.out = a.out;
  p.rows = a.rows;
  p.row_units = total / kUnit;
  int64_t begin = 0, largest = 0;
  unsigned parts = 0;
  for (int64_t i = 0; i < a.count; ++i) {
    const int64_t units = a.row_bytes[i] / kUnit;
    if (units > 0) {
      p.in[parts] = a.in[i];
      p.begin[parts] = begin;
      p.units[parts++] = units;
      largest = std::max(largest, units);
    }
    begin += units;
    if (parts == kParts || (i + 1 == a.count && parts > 0)) {
      Launch l = one_thread_each("concat", a.rows * largest);
      l.grid.y = parts;
      launch(l, concat_units<U, W>, p);
      parts = 0;
      largest = 0;
    }
  }
}
inline void concat(const ConcatArgs& a) {
  int64_t total = 0;
  for (int64_t i = 0; i < a.count; ++i) total += a.row_bytes[i];
  if (total * a.rows == 0) return;
  const auto fits = [&](int64_t bytes) {
    bool all = is_aligned(a.out, bytes);
    for (int64_t i = 0; i < a.count; ++i) {
      all =
          all && a.row_bytes[i] % bytes == 0 && (a.row_bytes[i] == 0 || is_aligned(a.in[i], bytes));
    }
    return all;
  };
  if (fits(16)) return concat_by<uint32_t, 4>(a, total);
  if (fits(8)) return concat_by<uint32_t, 2>(a, total);
  if (fits(4)) return concat_by<uint32_t, 1>(a, total);
  if (fits(2)) return concat_by<uint16_t, 1>(a, total);
  concat_by<uint8_t, 1>(a, total);
}

// ---- remap

template <class I>
struct RemapPlan {
  int rank;
  I out_sizes[kMaxRank], in_strides[kMaxRank];
  const int64_t* map[kMaxRank];
};

template <class T, class I>
KERNEL remap_elements(RemapPlan<I> p, const void* in, const void* fill, void* out, I n) {
  const I i = static_cast<I>(thread_number());
  if (i >= n) return;
  int64_t from = 0;
  I rest = i;
  for (int d = p.rank - 1; d >= 0; --d) {
    const I q = d ? rest / p.out_sizes[d] : 0, at = rest - q * p.out_sizes[d];
    rest = q;
    int64_t place = static_cast<int64_t>(at);
    if (p.map[d]) place = global<const int64_t>(p.map[d])[at];
    if (place < 0) {
      from = -1;
      break;
    }
    from += place * static_cast<int64_t>(p.in_strides[d]);
  }
  T v = T(0);
  if (from >= 0) {
    v = global<const T>(in)[from];
  } else if (fill) {
    v = global<const T>(fill)[0];
  }
  global<T>(out)[i] = v;
}

template <class T, class I>
void remap_with(const RemapArgs& a, int64_t n) {
  Tables tables;
  int64_t number[kMaxRank];
  for (int d = 0; d < a.rank; ++d) number[d] = tables.add(a.map[d], a.out_sizes[d]);
  tables.send();
  RemapPlan<I> p{};
  p.rank = a.rank;
  I step = 1;
  for (int d = a.rank - 1; d >= 0; --d) {
    p.out_sizes[d] = static_cast<I>(a.out_sizes[d]);
    p.in_strides[d] = step;
    step *= static_cast<I>(a.in_sizes[d]);
    p.map[d] = tables.at<int64_t>(number[d]);
  }
  launch(one_thread_each("remap", n), remap_elements<T, I>, p, a.in, a.fill, a.out,
         static_cast<I>(n));
}
template <class T>
void remap(const RemapArgs& a) {
  int64_t n = 1, inputs = 1;
  for (int d = 0; d < a.rank; ++d) {
    n *= a.out_sizes[d];
    inputs *= a.in_sizes[d];
  }
  if (n == 0) return;
  fits32(n) && fits32(inputs) ? remap_with<T, uint32_t>(a, n) : remap_with<T, uint64_t>(a, n);
}

// ---- image_to_columns; what lies in the padding is zero.

template <class T, class I>
KERNEL column_elements(ColumnsArgs a, I n) {
  const I i = static_cast<I>(thread_number());
  if (i >= n) return;
  const I j = i % static_cast<I>(a.out_w), up = i / static_cast<I>(a.out_w);
  const I row = up / static_cast<I>(a.out_h), k = up - row * static_cast<I>(a.out_h);
  const auto kw = static_cast<I>(a.kernel[1]), taps = static_cast<I>(a.kernel[0]) * kw;
  const I plane = row / taps, tap = row - plane * taps;
  const auto h = static_cast<int64_t>(tap / kw) * a.dilation[0] - a.padding[0] +
                 static_cast<int64_t>(k) * a.stride[0];
  const auto w = static_cast<int64_t>(tap % kw) * a.dilation[1] - a.padding[1] +
                 static_cast<int64_t>(j) * a.stride[1];
  T v = T(0);
  if (h >= 0 && h < a.height && w >= 0 && w < a.width) {
    v = global<const T>(a.in)[(static_cast<int64_t>(plane) * a.height + h) * a.width + w];
  }
  global<T>(a.out)[i] = v;
}
template <class T>
void image_to_columns(const ColumnsArgs& a) {
  const int64_t n = a.planes * a.kernel[0] * a.kernel[1] * a.out_h * a.out_w;
  if (n == 0) return;
  const Launch l = one_thread_each("image_to_columns", n);
  fits32(n) ? launch(l, column_elements<T, uint32_t>, a, static_cast<uint32_t>(n))
            : launch(l, column_elements<T, uint64_t>, a, static_cast<uint64_t>(n));
}

template <class T>
void set_rearrange(DType t) {
  kernels::triangle.set(kDevice, t, &triangle<T>);
  kernels::concat.set(kDevice, t, &concat);
  kernels::remap.set(kDevice, t, &remap<T>);
  kernels::image_to_columns.set(kDevice, t, &image_to_columns<T>);
}

void register_rearrange_kernels() {
  for (DType t : {DType::f64, DType::i64}) set_rearrange<uint64_t>(t);
  for (DType t : {DType::f32, DType::i32}) set_rearrange<uint32_t>(t);
  for (DType t : {DType::bf16, DType::f16}) set_rearrange<uint16_t>(t);
  for (DType t : {DType::u8, DType::i8, DType::boolean}) set_rearrange<uint8_t>(t);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
