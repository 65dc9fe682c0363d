#include <cutaway/core/cpu/reduce_loop.h>

// Largest and smallest elements, where they stand, and medians.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// ---- where an extreme stands

template <class T>
bool matches(T x, T value) {
  const auto a = compute(x), b = compute(value);
  return (a == b) | ((a != a) & (b != b));
}

// Start of the first block of kFindBlock elements in which test(x) holds for one, or of what is
// left.
inline constexpr int64_t kFindBlock = 64;
template <class T, class F>
int64_t skip_blocks(const T* x, int64_t n, F test) {
  int64_t i = 0;
  for (; i + kFindBlock <= n; i += kFindBlock) {
    int found = 0;
#pragma omp simd reduction(+ : found)
    for (int64_t j = 0; j < kFindBlock; ++j) found += test(compute(x[i + j])) ? 1 : 0;
    if (found) break;
  }
  return i;
}

template <class T>
int64_t find_in_run(const T* x, int64_t n, int64_t s, T value) {
  const auto v = compute(value);
  int64_t i = 0;
  if (s == 1) {
    i = v == v ? skip_blocks(x, n, [v](auto a) { return a == v; })
               : skip_blocks(x, n, [](auto a) { return a != a; });
  }
  for (; i < n; ++i) {
    if (matches(x[i * s], value)) return i;
  }
  return -1;
}

template <class T>
int64_t find_in_output(const ReduceArgs& a, const T* x, T value) {
  const int last = a.reduced_rank - 1;
  if (last < 0) return 0;
  const int64_t n = a.reduced_sizes[last], s = a.reduced_strides[last];
  Odometer outer(last, a.reduced_sizes, a.reduced_strides, 0);
  for (int64_t i = 0; i < a.count; i += n, outer.next()) {
    const int64_t at = find_in_run(x + outer.offset, n, s, value);
    if (at >= 0) return i + at;
  }
  return 0;
}

// Rows from the last to the first, so that the first match stays.
template <class T>
void find_by_columns(const ReduceArgs& a) {
  const auto* value = static_cast<const T*>(a.value);
  auto* out = static_cast<int64_t*>(a.out);
  const int last = a.kept_rank - 1;
  const int64_t columns = a.kept_sizes[last], width = columns < kColumns ? columns : kColumns;
  const int64_t blocks = (columns + width - 1) / width;
  parallel_for(a.outputs / columns * blocks, 1 + kGrain / (a.count * width),
               [&](int64_t b, int64_t e) {
                 for (int64_t i = b; i < e; ++i) {
                   const Odometer at(last, a.kept_sizes, a.kept_strides, i / blocks);
                   const int64_t first = i % blocks * width, o = i / blocks * columns + first;
                   const int64_t n = columns - first < width ? columns - first : width;
                   const auto* x = static_cast<const T*>(a.in) + at.offset + first;
                   for (int64_t k = 0; k < n; ++k) out[o + k] = a.count;
                   Odometer row(a.reduced_rank, a.reduced_sizes, a.reduced_strides, 0);
                   for (int64_t r = 0; r < a.count; ++r, row.next()) {
                     const T* p = x + row.offset;
#pragma omp simd
                     for (int64_t k = 0; k < n; ++k) {
                       const bool earlier = matches(p[k], value[o + k]) & (r < out[o + k]);
                       out[o + k] = earlier ? r : out[o + k];
                     }
                   }
                   for (int64_t k = 0; k < n; ++k)
                     out[o + k] = out[o + k] < a.count ? out[o + k] : 0;
                 }
               });
}

template <class T>
void find_first(const ReduceArgs& a) {
  if (a.outputs == 0) return;
  if (by_columns(a)) return find_by_columns<T>(a);
  const auto* value = static_cast<const T*>(a.value);
  auto* out = static_cast<int64_t*>(a.out);
  parallel_for(a.outputs, 1 + kGrain / (a.count + 1), [&](int64_t begin, int64_t end) {
    Odometer at(a.kept_rank, a.kept_sizes, a.kept_strides, begin);
    for (int64_t o = begin; o < end; ++o, at.next()) {
      out[o] = find_in_output(a, static_cast<const T*>(a.in) + at.offset, value[o]);
    }
  });
}

// ---- median

// True if a comes before b; NaN is the largest.
template <class C>
bool before(C a, C b) {
  return a < b || (a == a && b != b);
}

// Puts the k-th smallest of list [n] in place k, smaller ones before it (quickselect; the pivot is
// the median of three, so sorted input is no worst case).
template <class C>
C select_nth(C* list, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1;
  const auto swap_if = [&](int64_t i, int64_t j) {
    if (before(list[j], list[i])) {
      const C t = list[i];
      list[i] = list[j];
      list[j] = t;
    }
  };
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    swap_if(low, middle);
    swap_if(low, high);
    swap_if(middle, high);
    const C pivot = list[middle];
    int64_t i = low, j = high;
    while (i <= j) {
      while (before(list[i], pivot)) ++i;
      while (before(pivot, list[j])) --j;
      if (i > j) break;
      const C t = list[i];
      list[i++] = list[j];
      list[j--] = t;
    }
    if (k <= j) {
      high = j;
    } else if (k >= i) {
      low = i;
    } else {
      break;
    }
  }
  return list[k];
}

// One list: its lower middle element. A NaN wins, unless NaN are skipped and something else is
// left.
template <class T>
void median_of_list(const MedianArgs& a, const T* x, int64_t out, ComputeOf<T>* list) {
  int64_t n = 0, nans = 0, first_nan = 0;
  for (int64_t i = 0; i < a.n; ++i) {
    const auto v = compute(x[i * a.inner]);
    if (v != v) {
      if (nans++ == 0) first_nan = i;
    } else {
      list[n++] = v;
    }
  }
  int64_t index = first_nan;
  if (n > 0 && (nans == 0 || a.skip_nan)) {
    const auto middle = select_nth(list, n, (n - 1) / 2);
    index = 0;
    while (!(compute(x[index * a.inner]) == middle)) ++index;
  }
  static_cast<T*>(a.value)[out] = x[index * a.inner];
  if (a.index) a.index[out] = index;
}

template <class T>
void median(const MedianArgs& a) {
  parallel_for(a.outer * a.inner, 1 + kGrain / (8 * a.n + 1), [&](int64_t begin, int64_t end) {
    Scratch<ComputeOf<T>> list(a.n);
    for (int64_t o = begin; o < end; ++o) {
      const T* x = static_cast<const T*>(a.in) + o / a.inner * a.n * a.inner + o % a.inner;
      median_of_list(a, x, o, list.get());
    }
  });
}

template <class T>
void set_extremes(DType t) {
  const auto cpu = DeviceKind::cpu;
  kernels::amax.set(cpu, t, &reduce<Extreme<T, 1>>);
  kernels::amin.set(cpu, t, &reduce<Extreme<T, -1>>);
  kernels::find_first.set(cpu, t, &find_first<T>);
  kernels::median.set(cpu, t, &median<T>);
}

}  // namespace

void register_extreme_kernels() {
  set_extremes<double>(DType::f64);
  set_extremes<float>(DType::f32);
  set_extremes<BFloat16>(DType::bf16);
  set_extremes<Float16>(DType::f16);
  set_extremes<int64_t>(DType::i64);
  set_extremes<int32_t>(DType::i32);
  set_extremes<uint8_t>(DType::u8);
  set_extremes<int8_t>(DType::i8);
  set_extremes<uint8_t>(DType::boolean);  // true is 1
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
