#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/kernels/rows.h>
#include <cutaway/core/math/exponential.h>

#include <cmath>

// Softmax rows. A row is read once from memory: its later passes find it in the cache.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kBlock = 256;
constexpr int64_t kSideBySide = 128;

// Room for a row in the compute type, where the result's own type is narrower.
template <class T>
struct RowBuffer {
  explicit RowBuffer(int64_t n) : memory(kIsHalf<T> ? n : 0) {}
  ComputeOf<T>* get(T* row) {
    if constexpr (kIsHalf<T>)
      return memory.get();
    else
      return row;
  }
  Scratch<ComputeOf<T>> memory;
};

template <class T>
ComputeOf<T> row_max(const T* x, int64_t n) {
  return reduce_run<Extreme<T, 1>>(x, n, 1, 0);
}

// ---- forward, rows: x [n], y [n]

// e = exp(x − m); their sum, in f32 over blocks and in f64 over these.
template <class T>
double exponentials(const T* x, ComputeOf<T>* e, ComputeOf<T> m, int64_t n) {
  double total = 0;
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t to = from + kBlock < n ? from + kBlock : n;
#pragma omp simd
    for (int64_t i = from; i < to; ++i) e[i] = math::exp(compute(x[i]) - m);
    ComputeOf<T> part = 0;
#pragma omp simd reduction(+ : part)
    for (int64_t i = from; i < to; ++i) part += e[i];
    total += double(part);
  }
  return total;
}

template <class T>
void softmax_row(const T* x, T* y, int64_t n, RowBuffer<T>& buffer) {
  using C = ComputeOf<T>;
  C* e = buffer.get(y);
  const C scale = C(1 / exponentials(x, e, row_max(x, n), n));
  for (int64_t i = 0; i < n; ++i) y[i] = T(e[i] * scale);
}

template <class T>
void log_softmax_row(const T* x, T* y, int64_t n, RowBuffer<T>& buffer) {
  using C = ComputeOf<T>;
  const C m = row_max(x, n);
  const C shift = C(std::log(exponentials(x, buffer.get(y), m, n)));
  for (int64_t i = 0; i < n; ++i) y[i] = T((compute(x[i]) - m) - shift);
}

// ---- forward, columns: `width` lists side by side, elements `stride` apart

template <class T, bool kLog>
void softmax_columns(const T* x, T* y, int64_t n, int64_t stride, int64_t width) {
  using C = ComputeOf<T>;
  C m[kSideBySide], scale[kSideBySide];
  double total[kSideBySide];
  for (int64_t k = 0; k < width; ++k) {
    m[k] = Extreme<T, 1>::identity();
    total[k] = 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    const T* row = x + i * stride;
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) m[k] = Extreme<T, 1>::add(m[k], row[k], 0);
  }
  // exp(x − m) waits in y where that loses nothing.
  constexpr bool kKeep = !kLog && !kIsHalf<T>;
  for (int64_t i = 0; i < n; ++i) {
    const T* row = x + i * stride;
    T* out = y + i * stride;
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) {
      const C e = math::exp(compute(row[k]) - m[k]);
      total[k] += double(e);
      if constexpr (kKeep) out[k] = e;
    }
  }
  for (int64_t k = 0; k < width; ++k) scale[k] = C(kLog ? std::log(total[k]) : 1 / total[k]);
  for (int64_t i = 0; i < n; ++i) {
    const T* row = x + i * stride;
    T* out = y + i * stride;
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) {
      if constexpr (kKeep) {
        out[k] *= scale[k];
      } else {
        const C d = compute(row[k]) - m[k];
        out[k] = T(kLog ? d - scale[k] : math::exp(d) * scale[k]);
      }
    }
  }
}

// ---- backward: y, g, dx as x

template <class T, bool kLog>
void softmax_grad_row(const T* y, const T* g, T* dx, int64_t n) {
  using C = ComputeOf<T>;
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < n; ++i) {
    total += kLog ? double(compute(g[i])) : double(compute(g[i])) * double(compute(y[i]));
  }
  const C dot = C(total);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const C gi = compute(g[i]), yi = compute(y[i]);
    dx[i] = T(kLog ? gi - math::exp(yi) * dot : yi * (gi - dot));
  }
}

template <class T, bool kLog>
void softmax_grad_columns(const T* y, const T* g, T* dx, int64_t n, int64_t stride, int64_t width) {
  using C = ComputeOf<T>;
  double dot[kSideBySide];
  C sum[kSideBySide];
  for (int64_t k = 0; k < width; ++k) dot[k] = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T *yr = y + i * stride, *gr = g + i * stride;
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) {
      dot[k] += kLog ? double(compute(gr[k])) : double(compute(gr[k])) * double(compute(yr[k]));
    }
  }
  for (int64_t k = 0; k < width; ++k) sum[k] = C(dot[k]);
  for (int64_t i = 0; i < n; ++i) {
    const T *yr = y + i * stride, *gr = g + i * stride;
    T* out = dx + i * stride;
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) {
      const C gk = compute(gr[k]), yk = compute(yr[k]);
      out[k] = T(kLog ? gk - math::exp(yk) * sum[k] : yk * (gk - sum[k]));
    }
  }
}

// ---- walking

// rows(begin, end) for inner = 1, else columns(first element, lists side by side).
template <class Rows, class Columns>
void walk(const SoftmaxArgs& a, Rows&& rows, Columns&& columns) {
  if (a.outer == 0 || a.n == 0 || a.inner == 0) return;
  if (a.inner == 1) return parallel_for(a.outer, 1 + kGrain / (4 * a.n), rows);
  const int64_t width = a.inner < kSideBySide ? a.inner : kSideBySide;
  const int64_t blocks = (a.inner + width - 1) / width;
  parallel_for(a.outer * blocks, 1 + kGrain / (4 * a.n * width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * width;
      columns(i / blocks * a.n * a.inner + first,
              a.inner - first < width ? a.inner - first : width);
    }
  });
}

template <class T, bool kLog>
void softmax(const SoftmaxArgs& a) {
  const T* x = static_cast<const T*>(a.in);
  T* y = static_cast<T*>(a.out);
  walk(
      a,
      [&](int64_t begin, int64_t end) {
        RowBuffer<T> buffer(a.n);
        for (int64_t r = begin; r < end; ++r) {
          if constexpr (kLog) {
            log_softmax_row(x + r * a.n, y + r * a.n, a.n, buffer);
          } else {
            softmax_row(x + r * a.n, y + r * a.n, a.n, buffer);
          }
        }
      },
      [&](int64_t first, int64_t width) {
        softmax_columns<T, kLog>(x + first, y + first, a.n, a.inner, width);
      });
}

template <class T, bool kLog>
void softmax_grad(const SoftmaxArgs& a) {
  const T *y = static_cast<const T*>(a.in), *g = static_cast<const T*>(a.grad);
  T* dx = static_cast<T*>(a.out);
  walk(
      a,
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          softmax_grad_row<T, kLog>(y + r * a.n, g + r * a.n, dx + r * a.n, a.n);
        }
      },
      [&](int64_t first, int64_t width) {
        softmax_grad_columns<T, kLog>(y + first, g + first, dx + first, a.n, a.inner, width);
      });
}

template <class T>
void set_rows(DType t) {
  const auto cpu = DeviceKind::cpu;
  kernels::softmax.set(cpu, t, &softmax<T, false>);
  kernels::log_softmax.set(cpu, t, &softmax<T, true>);
  kernels::softmax_backward.set(cpu, t, &softmax_grad<T, false>);
  kernels::log_softmax_backward.set(cpu, t, &softmax_grad<T, true>);
}

}  // namespace

void register_rows_kernels() {
  set_rows<double>(DType::f64);
  set_rows<float>(DType::f32);
  set_rows<BFloat16>(DType::bf16);
  set_rows<Float16>(DType::f16);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
