#include <algorithm>
#include <cstdint>

#include <cutaway/core/cpu/index_lines.h>

// Reductions at indices.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// Values meet in f64 for floating types and are rounded once; integers wrap.
template <class T>
using Acc = std::conditional_t<kIsFloating<T>, double, int64_t>;

template <class T>
[[gnu::always_inline]] inline Acc<T> wide(T x) {
  return Acc<T>(compute(x));
}

[[gnu::always_inline]] inline double plus(double a, double b) { return a + b; }
[[gnu::always_inline]] inline int64_t plus(int64_t a, int64_t b) {
  return int64_t(uint64_t(a) + uint64_t(b));
}
[[gnu::always_inline]] inline double times(double a, double b) { return a * b; }
[[gnu::always_inline]] inline int64_t times(int64_t a, int64_t b) {
  return int64_t(uint64_t(a) * uint64_t(b));
}
[[gnu::always_inline]] inline double quotient(double a, int64_t n) { return a / double(n); }
// Rounded down.
[[gnu::always_inline]] inline int64_t quotient(int64_t a, int64_t n) { return a / n - (a % n < 0); }

// a and b brought together; a NaN wins.
template <ScatterMode mode, class A>
[[gnu::always_inline]] inline A merge(A a, A b) {
  if constexpr (mode == ScatterMode::sum || mode == ScatterMode::mean) return plus(a, b);
  if constexpr (mode == ScatterMode::prod) return times(a, b);
  if constexpr (mode == ScatterMode::amax) return b > a || b != b ? b : a;
  if constexpr (mode == ScatterMode::amin) return b < a || b != b ? b : a;
}

// The state of a block of places while values arrive.
template <class T, ScatterMode mode>
struct Block {
  Acc<T>* value;
  int32_t* hits;
  bool include_self;

  [[gnu::always_inline]] void begin(int64_t i, T old) {
    value[i] = wide(old);
    hits[i] = 0;
  }
  [[gnu::always_inline]] void hit(int64_t i, T x) {
    value[i] = !include_self && hits[i] == 0 ? wide(x) : merge<mode>(value[i], wide(x));
    ++hits[i];
  }
  int64_t count(int64_t i) {
    const int64_t n = hits[i];
    return n == 0 ? 1 : n + include_self;
  }
};

// One task: the lanes [first, first + count) of one line, places [low, high).
template <class T, ScatterMode mode>
struct ScatterLoop {
  const ScatterReduceArgs& a;
  ScatterLines lines;
  int64_t width, blocks, parts = 1, part;

  explicit ScatterLoop(const ScatterReduceArgs& args) : a(args), lines(args) {
    width = std::clamp<int64_t>(8192 / std::max<int64_t>(a.n, 1), 1, 64);
    width = std::min(width, lines.lanes);
    blocks = (lines.lanes + width - 1) / width;
    // Too few lines for all threads: the places of a line are shared out, and each task reads the
    // whole index. A place is still filled by one task, in order.
    if (lines.lines * blocks < 8 && lines.length >= 2 * kGrain) {
      parts = std::min<int64_t>(num_threads(), a.n);
    }
    part = (a.n + parts - 1) / parts;
  }

  void run() {
    const int64_t work = std::max<int64_t>(1, (lines.length + a.n) * width);
    parallel_for(lines.lines * blocks * parts, std::max<int64_t>(1, kGrain / work),
                 [&](int64_t from, int64_t to) {
                   Scratch<Acc<T>> value(part * width);
                   Scratch<int32_t> hits(part * width);
                   const Block<T, mode> block{value.get(), hits.get(), a.include_self};
                   for (int64_t i = from; i < to; ++i) {
                     task(i / (blocks * parts), i / parts % blocks * width, i % parts * part,
                          block);
                   }
                 });
  }

  // The block is a copy, so that its pointers stay in registers.
  [[gnu::noinline]] void task(int64_t line, int64_t first, int64_t low, Block<T, mode> block) {
    const int64_t high = std::min(a.n, low + part), count = std::min(width, lines.lanes - first);
    if (low >= high) return;
    const int64_t out_at = lines.out_at(line, first), out_along = lines.out_along;
    const int64_t src_along = lines.src_along, src_beside = lines.src_beside;
    const int64_t index_along = lines.index_along, length = lines.length;
    T* y = static_cast<T*>(a.out) + out_at;
    const T* x = static_cast<const T*>(a.src) + lines.src_at(line, first);
    const int64_t* index = a.index + lines.index_at(line, first);
    for (int64_t t = low; t < high; ++t) {
      for (int64_t j = 0; j < count; ++j) {
        block.begin((t - low) * count + j, y[t * out_along + j * lines.out_beside]);
      }
    }
    for (int64_t k = 0; k < length; ++k) {
      for (int64_t j = 0; j < count; ++j) {
        const int64_t t = index[k * index_along + j];
        if (t < low || t >= high) continue;
        block.hit((t - low) * count + j, x[k * src_along + j * src_beside]);
      }
    }
    for (int64_t t = low; t < high; ++t) {
      for (int64_t j = 0; j < count; ++j) {
        const int64_t at = t * out_along + j * lines.out_beside;
        y[at] = result(block, (t - low) * count + j, y[at]);
        if (mode == ScatterMode::mean && a.counts) {
          a.counts[out_at + at] = block.count((t - low) * count + j);
        }
      }
    }
  }

  // Places that are not hit keep their bits.
  static T result(Block<T, mode>& b, int64_t i, T old) {
    if (b.hits[i] == 0) return old;
    if constexpr (mode == ScatterMode::mean) return T(quotient(b.value[i], b.count(i)));
    return T(b.value[i]);
  }
};

// Target `row` of the result: its `hits` rows of the input, whose numbers are `order`, brought
// together in that order.
template <class T, ScatterMode mode>
[[gnu::noinline]] void reduce_target(const ReduceRowsArgs& a, int64_t row, const int64_t* order,
                                     int64_t hits, Acc<T>* acc, int64_t width) {
  const int64_t inner = a.inner, total = hits + a.include_self;
  for (int64_t j0 = 0; j0 < inner; j0 += width) {
    const int64_t n = std::min(width, inner - j0);
    T* y = static_cast<T*>(a.out) + row * inner + j0;
    const T* x = static_cast<const T*>(a.in) + row / a.n * a.count * inner + j0;
    int64_t k = 0;
    const T* initial = a.include_self ? y : x + order[k++] * inner;
    for (int64_t j = 0; j < n; ++j) acc[j] = wide(initial[j]);
    for (; k < hits; ++k) {
      const T* from_row = x + order[k] * inner;
      for (int64_t j = 0; j < n; ++j) acc[j] = merge<mode>(acc[j], wide(from_row[j]));
    }
    for (int64_t j = 0; j < n; ++j) {
      y[j] = T(mode == ScatterMode::mean ? quotient(acc[j], total) : acc[j]);
    }
  }
}

// Rows of one target, added in the order of k. One task fills a block of targets.
template <class T, ScatterMode mode>
void reduce_rows(const ReduceRowsArgs& a) {
  Scratch<int64_t> starts(a.n + 1), order(a.count);
  for (int64_t t = 0; t <= a.n; ++t) starts[t] = 0;
  for (int64_t k = 0; k < a.count; ++k) {
    if (a.index[k] >= 0) ++starts[a.index[k] + 1];
  }
  for (int64_t t = 0; t < a.n; ++t) starts[t + 1] += starts[t];
  for (int64_t k = 0; k < a.count; ++k) {
    if (a.index[k] >= 0) order[starts[a.index[k]]++] = k;  // starts[t] is now the end of t
  }
  constexpr int64_t kWidth = 512;
  const int64_t depth = 1 + a.count / a.n;
  parallel_for(a.outer * a.n, std::max<int64_t>(1, kGrain / (depth * a.inner)),
               [&](int64_t from, int64_t to) {
                 Scratch<Acc<T>> acc(kWidth);
                 for (int64_t row = from; row < to; ++row) {
                   const int64_t t = row % a.n, first = t ? starts[t - 1] : 0;
                   const int64_t hits = starts[t] - first;
                   if (a.counts && row < a.n) a.counts[t] = hits ? hits + a.include_self : 1;
                   if (hits == 0) continue;
                   reduce_target<T, mode>(a, row, order.get() + first, hits, acc.get(), kWidth);
                 }
               });
}

template <class T>
void scatter_reduce_all(const ScatterReduceArgs& a) {
  switch (a.mode) {
    case ScatterMode::sum:
      return ScatterLoop<T, ScatterMode::sum>(a).run();
    case ScatterMode::mean:
      return ScatterLoop<T, ScatterMode::mean>(a).run();
    case ScatterMode::prod:
      return ScatterLoop<T, ScatterMode::prod>(a).run();
    case ScatterMode::amax:
      return ScatterLoop<T, ScatterMode::amax>(a).run();
    case ScatterMode::amin:
      return ScatterLoop<T, ScatterMode::amin>(a).run();
  }
}

template <class T>
void reduce_rows_all(const ReduceRowsArgs& a) {
  switch (a.mode) {
    case ScatterMode::sum:
      return reduce_rows<T, ScatterMode::sum>(a);
    case ScatterMode::mean:
      return reduce_rows<T, ScatterMode::mean>(a);
    case ScatterMode::prod:
      return reduce_rows<T, ScatterMode::prod>(a);
    case ScatterMode::amax:
      return reduce_rows<T, ScatterMode::amax>(a);
    case ScatterMode::amin:
      return reduce_rows<T, ScatterMode::amin>(a);
  }
}

template <class T>
void set_all(DType t) {
  kernels::scatter_reduce.set(DeviceKind::cpu, t, scatter_reduce_all<T>);
  kernels::reduce_rows.set(DeviceKind::cpu, t, reduce_rows_all<T>);
}

}  // namespace

void register_index_reduce_kernels() {
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
