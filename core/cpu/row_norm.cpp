#include <cutaway/core/cpu/row_lanes.h>
#include <cutaway/core/kernels/rows.h>

#include <cmath>

// Normalisation of rows: x, y [width].
// Note: f32 rows. From each element a mean rounded to f32 is subtracted first, which is exact where
// a large common offset cancels; what the rounding lost comes back as a shift, known from the sum
// of the differences. Sums are f32 in blocks and f64 over them. Rows whose squares leave the range
// of f32, or whose spread is near the rounding of their mean, take the f64 functions.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// ---- in f64

template <class T>
void normalize_row(const RowNormArgs& a, int64_t row) {
  using C = ComputeOf<T>;
  const int64_t n = a.width;
  const T* x = static_cast<const T*>(a.in) + row * n;
  T* y = static_cast<T*>(a.out) + row * n;
  const T *weight = static_cast<const T*>(a.weight), *bias = static_cast<const T*>(a.bias);
  double mean = 0;
  if (a.mean) mean = a.mean[row] = sum_f64(n, [x](int64_t i) { return wide(x[i]); }) / double(n);
  const double squares = sum_f64(n, [x, mean](int64_t i) {
    const double d = wide(x[i]) - mean;
    return d * d;
  });
  const double rstd = a.rstd[row] = 1 / std::sqrt(squares / double(n) + a.eps);
  for (int64_t i = 0; i < n; ++i) {
    C v = C((wide(x[i]) - mean) * rstd);
    if (weight) v *= compute(weight[i]);
    if (bias) v += compute(bias[i]);
    y[i] = T(v);
  }
}

// With ĝ = g · weight and x̂ = (x − mean) rstd: dx = rstd (ĝ − mean ĝ − x̂ mean(ĝ x̂)).
template <class T>
void normalize_row_grad(const RowNormArgs& a, int64_t row) {
  const int64_t n = a.width;
  const T* x = static_cast<const T*>(a.in) + row * n;
  const T* g = static_cast<const T*>(a.grad) + row * n;
  const T* weight = static_cast<const T*>(a.weight);
  T* dx = static_cast<T*>(a.out) + row * n;
  const double mean = a.mean ? a.mean[row] : 0, rstd = a.rstd[row];
  const auto hat = [x, mean, rstd](int64_t i) { return (wide(x[i]) - mean) * rstd; };
  const auto finish = [&](auto scaled) {
    const double mean_g = a.mean ? sum_f64(n, scaled) / double(n) : 0;
    const double mean_gx = sum_f64(n, [=](int64_t i) { return scaled(i) * hat(i); }) / double(n);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = T(rstd * (scaled(i) - mean_g - hat(i) * mean_gx));
  };
  if (weight) {
    finish([g, weight](int64_t i) { return wide(g[i]) * wide(weight[i]); });
  } else {
    finish([g](int64_t i) { return wide(g[i]); });
  }
}

// Adds a row's part of the gradients of weight and bias.
template <class T>
void add_weight_grad(const RowNormArgs& a, int64_t row, double* grad_weight, double* grad_bias) {
  const int64_t n = a.width;
  const T* x = static_cast<const T*>(a.in) + row * n;
  const T* g = static_cast<const T*>(a.grad) + row * n;
  const double mean = a.mean ? a.mean[row] : 0, rstd = a.rstd[row];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    grad_weight[i] += wide(g[i]) * ((wide(x[i]) - mean) * rstd);
    grad_bias[i] += wide(g[i]);
  }
}

// ---- in f32

constexpr double kLargest = 1e30;  // of a sum of squares, and of sums that are added to others

// x̂ = fma(x − mean, rstd, shift).
struct Hat {
  float mean, rstd, shift;
  Hat(double exact_mean, double exact_rstd)
      : mean(float(exact_mean)),
        rstd(float(exact_rstd)),
        shift(float((double(mean) - exact_mean) * exact_rstd)) {}
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return (x - mean) * rstd + shift;
  }
};

double row_sum(const float* x, int64_t n) {
  double total = 0;
  LaneSums sums;
  for_row(
      n, [&](int64_t i, int64_t k) { sums.lane[k] += load_vector(x + i); },
      [&](int64_t i) { total += double(x[i]); }, [&] { total += sums.take(); });
  return total;
}

// Σ d and Σ d² for d = x − middle.
struct RowMoments {
  double sum = 0, squares = 0;
};
RowMoments row_moments(const float* x, float middle, int64_t n) {
  RowMoments r;
  LaneSums sum, squares;
  for_row(
      n,
      [&](int64_t i, int64_t k) {
        const auto d = load_vector(x + i) - middle;
        sum.lane[k] += d;
        squares.lane[k] += d * d;
      },
      [&](int64_t i) {
        const float d = x[i] - middle;
        r.sum += double(d);
        r.squares += double(d * d);
      },
      [&] {
        r.sum += sum.take();
        r.squares += squares.take();
      });
  return r;
}

// y = x̂ · weight + bias; false, with nothing written, where f32 does not reach.
template <Store kStore>
bool normalize_row_f32(const RowNormArgs& a, int64_t row, const float* x, float* y,
                       const float* weight, const float* bias) {
  const int64_t n = a.width;
  const float middle = a.mean ? float(row_sum(x, n) / double(n)) : 0;
  const RowMoments m = row_moments(x, middle, n);
  const double lost = a.mean ? m.sum / double(n) : 0;
  const double variance = m.squares / double(n) - lost * lost;
  if (!(m.squares < kLargest) || lost * lost > 0.01 * variance) return false;
  if (variance + a.eps < 1e-20) return false;
  const double mean = double(middle) + lost, rstd = 1 / std::sqrt(variance + a.eps);
  if (a.mean) a.mean[row] = mean;
  a.rstd[row] = rstd;
  const Hat hat(mean, rstd);
  write_row<kStore>(y, n, [=](auto at) { return hat(at(x)) * at(weight) + at(bias); });
  return true;
}

// Σ ĝ, Σ ĝ x̂ and Σ |g| of a row.
struct RowDots {
  double g = 0, gx = 0, size = 0;
};
// Where wanted also adds the row's part of the gradients of weight and bias.
template <bool kWeights>
RowDots row_dots(const float* x, const float* g, const float* weight, int64_t n, Hat hat,
                 float* grad_weight, float* grad_bias) {
  RowDots r;
  LaneSums sum_g, sum_gx, size;
  for_row(
      n,
      [&, hat](int64_t i, int64_t k) {
        const auto u = load_vector(g + i), h = hat(load_vector(x + i));
        if constexpr (kWeights) {
          store_vector(grad_weight + i, load_vector(grad_weight + i) + u * h);
          store_vector(grad_bias + i, load_vector(grad_bias + i) + u);
        }
        const auto scaled = u * load_vector(weight + i);
        sum_g.lane[k] += scaled;
        sum_gx.lane[k] += scaled * h;
        size.lane[k] += u < 0 ? -u : u;
      },
      [&](int64_t i) {
        const float h = hat(x[i]), scaled = g[i] * weight[i];
        if constexpr (kWeights) {
          grad_weight[i] += g[i] * h;
          grad_bias[i] += g[i];
        }
        r.g += double(scaled);
        r.gx += double(scaled * h);
        r.size += std::fabs(double(g[i]));
      },
      [&] {
        r.g += sum_g.take();
        r.gx += sum_gx.take();
        r.size += size.take();
      });
  return r;
}

template <Store kStore>
void row_grad(const float* x, const float* g, const float* weight, float* dx, int64_t n, Hat hat,
              float mean_g, float mean_gx) {
  write_row<kStore>(dx, n, [=](auto at) {
    return hat.rstd * ((at(g) * at(weight) - mean_g) - hat(at(x)) * mean_gx);
  });
}

// Weight or bias as floats, `missing` where there is none. Not used for f64.
template <class T>
struct FloatParameter {
  FloatParameter(const void*, int64_t, float) : room(0) {}
  FloatParameter(const void* given, int64_t n, float missing) requires(!std::is_same_v<T, double>)
      : room(kIsHalf<T> || !given ? n : 0) {
    const T* p = static_cast<const T*>(given);
    for (int64_t i = 0; !p && i < n; ++i) room[i] = missing;
    data = p ? float_row(p, n, room.get()) : room.get();
  }
  Scratch<float> room;
  const float* data = nullptr;
};

// ---- walking

template <class T>
void row_norm(const RowNormArgs& a) {
  if (a.width == 0) return;
  const int64_t n = a.width, grain = 1 + kGrain / (4 * n);
  if constexpr (std::is_same_v<T, double>) {
    return parallel_for(a.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) normalize_row<T>(a, r);
    });
  } else {
    const FloatParameter<T> weight(a.weight, n, 1), bias(a.bias, n, 0);
    const bool stream = streams_rows<T>(a.out, a.rows, n);
    parallel_for(a.rows, grain, [&](int64_t begin, int64_t end) {
      Scratch<float> room(kIsHalf<T> ? n : 0);
      FloatResult<T> result(n);
      for (int64_t r = begin; r < end; ++r) {
        const float* x = float_row(static_cast<const T*>(a.in) + r * n, n, room.get());
        T* y = static_cast<T*>(a.out) + r * n;
        float* to = result.begin(y);
        const bool done =
            stream ? normalize_row_f32<Store::stream>(a, r, x, to, weight.data, bias.data)
                   : normalize_row_f32<Store::plain>(a, r, x, to, weight.data, bias.data);
        done ? result.done(y, n) : normalize_row<T>(a, r);
      }
      if (stream) end_stream();
    });
  }
}

// Rows [begin, end), all in f64.
template <class T>
void grad_rows_f64(const RowNormArgs& a, int64_t begin, int64_t end, double* grad_weight,
                   double* grad_bias) {
  for (int64_t r = begin; r < end; ++r) {
    if (grad_weight) add_weight_grad<T>(a, r, grad_weight, grad_bias);
    if (a.out) normalize_row_grad<T>(a, r);
  }
}

// One row after another in f32.
template <class T>
class RowsBackward {
 public:
  RowsBackward(const RowNormArgs& a, const float* weight)
      : a_(a), weight_(weight), room_(kIsHalf<T> ? 2 * a.width : 0), result_(a.width) {}

  // Reads row r; adds its part of the gradients of weight and bias to sums [2, width], if any.
  // False where f32 does not reach.
  bool read(int64_t r, float* sums) {
    const int64_t n = a_.width;
    x_ = float_row(static_cast<const T*>(a_.in) + r * n, n, room_.get());
    g_ = float_row(static_cast<const T*>(a_.grad) + r * n, n, room_.get() + n);
    const Hat hat = hat_of(r);
    dots_ = sums ? row_dots<true>(x_, g_, weight_, n, hat, sums, sums + n)
                 : row_dots<false>(x_, g_, weight_, n, hat, nullptr, nullptr);
    good_ = std::fabs(dots_.g) < kLargest && std::fabs(dots_.gx) < kLargest &&
            dots_.size < kLargest && a_.rstd[r] > 1e-15 && a_.rstd[r] < 1e15;
    return good_;
  }

  // Writes dx of the row that was read.
  void write(int64_t r, bool stream) {
    const int64_t n = a_.width;
    if (!good_) return normalize_row_grad<T>(a_, r);
    T* dx = static_cast<T*>(a_.out) + r * n;
    float* to = result_.begin(dx);
    const float mean_g = float(a_.mean ? dots_.g / double(n) : 0);
    const float mean_gx = float(dots_.gx / double(n));
    if (stream) {
      row_grad<Store::stream>(x_, g_, weight_, to, n, hat_of(r), mean_g, mean_gx);
    } else {
      row_grad<Store::plain>(x_, g_, weight_, to, n, hat_of(r), mean_g, mean_gx);
    }
    result_.done(dx, n);
  }

 private:
  Hat hat_of(int64_t r) const { return {a_.mean ? a_.mean[r] : 0, a_.rstd[r]}; }

  const RowNormArgs& a_;
  const float* weight_;
  Scratch<float> room_;
  FloatResult<T> result_;
  const float *x_ = nullptr, *g_ = nullptr;
  RowDots dots_;
  bool good_ = false;
};

// Rows [begin, end) of one group: the gradients of weight and bias are summed in f32, and the sums
// added in f64. dx is written last where it replaces what these are made of.
template <class T>
void grad_rows_f32(const RowNormArgs& a, int64_t begin, int64_t end, const float* weight,
                   double* grad_weight, double* grad_bias) {
  const int64_t n = a.width;
  const bool stream = streams_rows<T>(a.out, a.rows, n);
  const bool over = a.out == a.in || a.out == a.grad;
  RowsBackward<T> rows(a, weight);
  Scratch<float> sums(grad_weight ? 2 * n : 0);
  for (int64_t i = 0; grad_weight && i < 2 * n; ++i) sums[i] = 0;
  bool reached = true;  // by f32
  for (int64_t r = begin; r < end; ++r) {
    reached = rows.read(r, sums.get()) && reached;
    if (a.out && !over) rows.write(r, stream);
  }
  if (grad_weight && reached) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      grad_weight[i] += double(sums[i]);
      grad_bias[i] += double(sums[n + i]);
    }
  } else if (grad_weight) {
    for (int64_t r = begin; r < end; ++r) add_weight_grad<T>(a, r, grad_weight, grad_bias);
  }
  for (int64_t r = begin; over && r < end; ++r) {
    rows.read(r, nullptr);
    rows.write(r, stream);
  }
  if (stream) end_stream();
}

// Rows are cut into chunks that depend on their number alone; each chunk sums the gradients of
// weight and bias for itself, the chunks are added in order.
template <class T>
void row_norm_backward(const RowNormArgs& a) {
  if (a.width == 0) return;
  constexpr int64_t kGroup = 16;
  const int64_t n = a.width, per_chunk = a.rows < kGroup * 64 ? kGroup : (a.rows + 63) / 64;
  const int64_t chunks = (a.rows + per_chunk - 1) / per_chunk;
  const bool weights = a.grad_weight || a.grad_bias;
  Scratch<double> parts(weights ? 2 * chunks * n : 0);
  const FloatParameter<T> weight(a.weight, n, 1);
  run_tasks(chunks, 4 * a.rows * n, [&](int64_t c) {
    double* w = weights ? parts.get() + 2 * c * n : nullptr;
    double* b = weights ? w + n : nullptr;
    for (int64_t i = 0; weights && i < 2 * n; ++i) w[i] = 0;
    const int64_t last = (c + 1) * per_chunk < a.rows ? (c + 1) * per_chunk : a.rows;
    for (int64_t r = c * per_chunk; r < last; r += kGroup) {
      const int64_t end = r + kGroup < last ? r + kGroup : last;
      if constexpr (std::is_same_v<T, double>) {
        grad_rows_f64<T>(a, r, end, w, b);
      } else {
        grad_rows_f32<T>(a, r, end, weight.data, w, b);
      }
    }
  });
  const auto gather = [&](void* to, int64_t offset) {
    if (!to) return;
    Scratch<double> total(n);
    double* sum = total.get();
    for (int64_t i = 0; i < n; ++i) sum[i] = 0;
    for (int64_t c = 0; c < chunks; ++c) {
      const double* part = parts.get() + 2 * c * n + offset;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) sum[i] += part[i];
    }
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(to)[i] = T(sum[i]);
  };
  gather(a.grad_weight, 0);
  gather(a.grad_bias, n);
}

template <class T>
void set_row_norms(DType t) {
  kernels::row_norm.set(DeviceKind::cpu, t, &row_norm<T>);
  kernels::row_norm_backward.set(DeviceKind::cpu, t, &row_norm_backward<T>);
}

}  // namespace

void register_row_norm_kernels() {
  set_row_norms<double>(DType::f64);
  set_row_norms<float>(DType::f32);
  set_row_norms<BFloat16>(DType::bf16);
  set_row_norms<Float16>(DType::f16);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
