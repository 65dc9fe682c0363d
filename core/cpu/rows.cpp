#include <cutaway/core/cpu/row_lanes.h>
#include <cutaway/core/cpu/vector_math.h>
#include <cutaway/core/kernels/rows.h>

#include <cmath>

// Softmax rows. A row is read once from memory: its later passes find it in the cache.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kSideBySide = 128;

// ---- forward, rows: x [n], y [n]; in f64

template <bool kLog>
void softmax_row(const double* x, double* y, int64_t n) {
  const double m = reduce_run<Extreme<double, 1>>(x, n, 1, 0);
  if constexpr (kLog) {
    const double shift = std::log(sum_f64(n, [=](int64_t i) { return math::exp(x[i] - m); }));
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) - shift;
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = math::exp(x[i] - m);
    const double scale = 1 / sum_f64(n, [=](int64_t i) { return y[i]; });
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
  }
}

// ---- forward, rows, in f32

// The largest element; a NaN may be lost.
float row_max(const float* x, int64_t n) {
  using L = math::Lanes<Vector<float>>;
  constexpr int64_t kStep = LaneSums::kStep;
  float most = Extreme<float, 1>::identity();
  Vector<float> lane[4] = {L::all(most), L::all(most), L::all(most), L::all(most)};
  int64_t i = 0;
  for (; i + 4 * kStep <= n; i += 4 * kStep) {
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; ++k) lane[k] = L::at_least(lane[k], load_vector(x + i + k * kStep));
  }
  for (; i + kStep <= n; i += kStep) lane[0] = L::at_least(lane[0], load_vector(x + i));
  for (int64_t k = 1; k < 4; ++k) lane[0] = L::at_least(lane[0], lane[k]);
  for (int64_t j = 0; j < kStep; ++j) most = lane[0][j] > most ? lane[0][j] : most;
  for (; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// Σ exp(x − m), where wanted with e = exp(x − m). NaN wherever x has one.
template <bool kKeep>
double exponentials(const float* x, float* e, float m, int64_t n) {
  double total = 0;
  LaneSums sums;
  for_row(
      n,
      [&, m](int64_t i, int64_t k) {
        const auto v = math::lanes::exp(load_vector(x + i) - m);
        if constexpr (kKeep) store_vector(e + i, v);
        sums.lane[k] += v;
      },
      [&](int64_t i) {
        const float v = math::exp(x[i] - m);
        if constexpr (kKeep) e[i] = v;
        total += double(v);
      },
      [&] { total += sums.take(); });
  return total;
}

// `room` [n] may be y, unless y is streamed.
template <bool kLog, Store kStore>
void softmax_row(const float* x, float* y, int64_t n, float* room) {
  const float m = row_max(x, n);
  if constexpr (kLog) {
    const float shift = float(std::log(exponentials<false>(x, room, m, n)));
    write_row<kStore>(y, n, [=](auto at) { return (at(x) - m) - shift; });
  } else {
    const float scale = float(1 / exponentials<true>(x, room, m, n));
    write_row<kStore>(y, n, [=](auto at) { return at(room) * scale; });
  }
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

template <bool kLog>
void softmax_grad_row(const double* y, const double* g, double* dx, int64_t n) {
  const double dot = sum_f64(n, [=](int64_t i) { return kLog ? g[i] : g[i] * y[i]; });
  for (int64_t i = 0; i < n; ++i) {
    dx[i] = kLog ? g[i] - math::exp(y[i]) * dot : y[i] * (g[i] - dot);
  }
}

template <bool kLog, Store kStore>
void softmax_grad_row(const float* y, const float* g, float* dx, int64_t n) {
  double total = 0;
  LaneSums sums;
  for_row(
      n,
      [&](int64_t i, int64_t k) {
        const auto u = load_vector(g + i);
        sums.lane[k] += kLog ? u : u * load_vector(y + i);
      },
      [&](int64_t i) { total += double(kLog ? g[i] : g[i] * y[i]); },
      [&] { total += sums.take(); });
  if (!std::isfinite(total)) {
    total = sum_f64(n, [=](int64_t i) { return double(g[i]) * (kLog ? 1 : double(y[i])); });
  }
  const float dot = float(total);
  write_row<kStore>(dx, n, [=](auto at) {
    if constexpr (kLog) {
      return at(g) - math::lanes::exp(at(y)) * dot;
    } else {
      return at(y) * (at(g) - dot);
    }
  });
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

// Rows [begin, end), read and written as floats.
template <class T, bool kLog, Store kStore>
void softmax_rows(const SoftmaxArgs& a, int64_t begin, int64_t end) {
  constexpr bool kRoom = kStore == Store::stream;
  const int64_t n = a.n;
  Scratch<float> in(kIsHalf<T> ? n : 0), room(kRoom ? n : 0);
  FloatResult<T> result(n);
  for (int64_t r = begin; r < end; ++r) {
    const float* x = float_row(static_cast<const T*>(a.in) + r * n, n, in.get());
    T* y = static_cast<T*>(a.out) + r * n;
    float* to = result.begin(y);
    softmax_row<kLog, kStore>(x, to, n, kRoom ? room.get() : to);
    result.done(y, n);
  }
  if (kRoom) end_stream();
}

template <class T, bool kLog, Store kStore>
void softmax_grad_rows(const SoftmaxArgs& a, int64_t begin, int64_t end) {
  const int64_t n = a.n;
  Scratch<float> in(kIsHalf<T> ? 2 * n : 0);
  FloatResult<T> result(n);
  for (int64_t r = begin; r < end; ++r) {
    const float* y = float_row(static_cast<const T*>(a.in) + r * n, n, in.get());
    const float* g = float_row(static_cast<const T*>(a.grad) + r * n, n, in.get() + n);
    T* dx = static_cast<T*>(a.out) + r * n;
    softmax_grad_row<kLog, kStore>(y, g, result.begin(dx), n);
    result.done(dx, n);
  }
  if (kStore == Store::stream) end_stream();
}

template <class T, bool kLog>
void softmax(const SoftmaxArgs& a) {
  const T* x = static_cast<const T*>(a.in);
  T* y = static_cast<T*>(a.out);
  const bool stream = streams_rows<T>(a.out, a.outer, a.n);
  walk(
      a,
      [&](int64_t begin, int64_t end) {
        if constexpr (std::is_same_v<T, double>) {
          for (int64_t r = begin; r < end; ++r) softmax_row<kLog>(x + r * a.n, y + r * a.n, a.n);
        } else if (stream) {
          softmax_rows<T, kLog, Store::stream>(a, begin, end);
        } else {
          softmax_rows<T, kLog, Store::plain>(a, begin, end);
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
  const bool stream = streams_rows<T>(a.out, a.outer, a.n);
  walk(
      a,
      [&](int64_t begin, int64_t end) {
        if constexpr (std::is_same_v<T, double>) {
          for (int64_t r = begin; r < end; ++r) {
            softmax_grad_row<kLog>(y + r * a.n, g + r * a.n, dx + r * a.n, a.n);
          }
        } else if (stream) {
          softmax_grad_rows<T, kLog, Store::stream>(a, begin, end);
        } else {
          softmax_grad_rows<T, kLog, Store::plain>(a, begin, end);
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
