#include <algorithm>
#include <cstdint>
#include <cstring>

#include <cutaway/core/cpu/index_lines.h>

// Reading and writing at indices, without arithmetic: one instance for each element size.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

void index_bounds(const BoundsArgs& a) {
  constexpr int64_t kBlock = 4096;
  *a.found = -1;
  const auto bad = [&](int64_t v) {
    return ((v < a.low) | (v >= a.high)) & !(a.has_ignored & (v == a.ignored));
  };
  for (int64_t begin = 0; begin < a.n; begin += kBlock) {
    const int64_t end = std::min(a.n, begin + kBlock);
    int64_t outside = 0;
    for (int64_t i = begin; i < end; ++i) outside |= bad(a.index[i]);
    if (!outside) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (bad(a.index[i])) {
        *a.found = i;
        return;
      }
    }
  }
}

// One task writes a block of rows of out (rows run along the last dimension).
template <class T>
void gather(const GatherArgs& a) {
  const int last = a.rank - 1;
  const int64_t n = a.sizes[last];
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= a.sizes[d];
  const auto* in = static_cast<const T*>(a.in);
  auto* out = static_cast<T*>(a.out);
  const int64_t along = a.in_strides[a.dim], beside = a.dim == last ? 0 : a.in_strides[last];
  int64_t strides[kMaxRank];
  for (int d = 0; d < last; ++d) strides[d] = d == a.dim ? 0 : a.in_strides[d];
  parallel_for(rows, std::max<int64_t>(1, kGrain / n), [&](int64_t from, int64_t to) {
    Odometer at(last, a.sizes, strides, from);
    for (int64_t row = from; row < to; ++row, at.next()) {
      const T* x = in + at.offset;
      const int64_t* index = a.index + row * n;
      T* y = out + row * n;
      for (int64_t j = 0; j < n; ++j) {
        y[j] = index[j] < 0 ? T(0) : x[index[j] * along + j * beside];
      }
    }
  });
}

// One task writes a block of lanes of one line, in the order of the index: the last value wins.
template <class T>
void scatter(const ScatterArgs& a) {
  const ScatterLines lines(a);
  const auto* src = static_cast<const T*>(a.src);
  const T value = a.value ? *static_cast<const T*>(a.value) : T(0);
  auto* out = static_cast<T*>(a.out);
  constexpr int64_t kLanes = 64;
  const int64_t blocks = (lines.lanes + kLanes - 1) / kLanes;
  const int64_t work = std::max<int64_t>(1, lines.length * std::min(lines.lanes, kLanes));
  parallel_for(lines.lines * blocks, std::max<int64_t>(1, kGrain / work),
               [&](int64_t from, int64_t to) {
                 for (int64_t task = from; task < to; ++task) {
                   const int64_t line = task / blocks, first = task % blocks * kLanes;
                   const int64_t count = std::min(kLanes, lines.lanes - first);
                   T* y = out + lines.out_at(line, first);
                   const int64_t* index = a.index + lines.index_at(line, first);
                   const T* x = src ? src + lines.src_at(line, first) : nullptr;
                   for (int64_t k = 0; k < lines.length; ++k) {
                     for (int64_t j = 0; j < count; ++j) {
                       const int64_t t = index[k * lines.index_along + j];
                       if (t < 0) continue;
                       y[t * lines.out_along + j * lines.out_beside] =
                           x ? x[k * lines.src_along + j * lines.src_beside] : value;
                     }
                   }
                 }
               });
}

// One task copies a block of rows.
template <class T>
void take_rows(const TakeRowsArgs& a) {
  const auto* in = static_cast<const T*>(a.in);
  auto* out = static_cast<T*>(a.out);
  const int64_t inner = a.inner;
  parallel_for(a.outer * a.count, std::max<int64_t>(1, kGrain / inner),
               [&](int64_t from, int64_t to) {
                 for (int64_t row = from; row < to; ++row) {
                   const int64_t t = a.index[row % a.count];
                   T* y = out + row * inner;
                   if (t < 0) {
                     for (int64_t j = 0; j < inner; ++j) y[j] = T(0);
                     continue;
                   }
                   const T* x = in + (row / a.count * a.n + t) * inner;
                   if (inner == 1) {
                     *y = *x;
                   } else {
                     std::memcpy(y, x, size_t(inner) * sizeof(T));
                   }
                 }
               });
}

// One task writes a block of places.
template <class T>
void put_rows(const PutRowsArgs& a) {
  Scratch<int64_t> last(a.n);
  for (int64_t t = 0; t < a.n; ++t) last[t] = -1;
  for (int64_t k = 0; k < a.count; ++k) {
    if (a.index[k] >= 0) last[a.index[k]] = k;
  }
  const auto* in = static_cast<const T*>(a.in);
  auto* out = static_cast<T*>(a.out);
  const int64_t inner = a.inner;
  parallel_for(a.outer * a.n, std::max<int64_t>(1, kGrain / inner), [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) {
      const int64_t k = last[row % a.n];
      if (k < 0) continue;
      std::memcpy(out + row * inner, in + (row / a.n * a.count + k) * inner,
                  size_t(inner) * sizeof(T));
    }
  });
}

template <class T>
void nonzero(const NonzeroArgs& a) {
  const auto* in = static_cast<const T*>(a.in);
  parallel_chunks((a.n + kNonzeroBlock - 1) / kNonzeroBlock, [&](int64_t block) {
    const int64_t begin = block * kNonzeroBlock, end = std::min(a.n, begin + kNonzeroBlock);
    if (!a.out) {
      int64_t count = 0;
      for (int64_t i = begin; i < end; ++i) count += compute(in[i]) != ComputeOf<T>(0);
      a.counts[block] = count;
      return;
    }
    int64_t* out = a.out + a.counts[block];
    for (int64_t i = begin; i < end; ++i) {
      if (compute(in[i]) != ComputeOf<T>(0)) *out++ = i;
    }
  });
}

template <class T>
void set_movers(DType t) {
  kernels::gather.set(DeviceKind::cpu, t, gather<T>);
  kernels::scatter.set(DeviceKind::cpu, t, scatter<T>);
  kernels::take_rows.set(DeviceKind::cpu, t, take_rows<T>);
  kernels::put_rows.set(DeviceKind::cpu, t, put_rows<T>);
}

}  // namespace

void register_index_kernels() {
  kernels::index_bounds.set(DeviceKind::cpu, DType::i64, index_bounds);
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType t = DType(i);
    switch (size_of(t)) {
      case 1:
        set_movers<uint8_t>(t);
        break;
      case 2:
        set_movers<uint16_t>(t);
        break;
      case 4:
        set_movers<uint32_t>(t);
        break;
      default:
        set_movers<uint64_t>(t);
    }
  }
  kernels::nonzero.set(DeviceKind::cpu, DType::f64, nonzero<double>);
  kernels::nonzero.set(DeviceKind::cpu, DType::f32, nonzero<float>);
  kernels::nonzero.set(DeviceKind::cpu, DType::bf16, nonzero<BFloat16>);
  kernels::nonzero.set(DeviceKind::cpu, DType::f16, nonzero<Float16>);
  kernels::nonzero.set(DeviceKind::cpu, DType::i64, nonzero<int64_t>);
  kernels::nonzero.set(DeviceKind::cpu, DType::i32, nonzero<int32_t>);
  for (DType t : {DType::u8, DType::i8, DType::boolean}) {
    kernels::nonzero.set(DeviceKind::cpu, t, nonzero<uint8_t>);
  }
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
