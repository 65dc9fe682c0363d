#pragma once
#include <vector>

#include <cutaway/core/kernels/index.h>
#include <cutaway/core/kernels/pool.h>
#include <cutaway/cuda/device/numbers.h>
#include <cutaway/cuda/device/tables.h>
#include <cutaway/cuda/device/walk.h>

// Pooling: a thread for each output, or, for gradients, for each input, which adds what windows
// give it in the order of the outputs and rounds once. 16-bit values are added in f32.
namespace cutaway::cuda::CUTAWAY_TARGET {

template <class T>
using PoolSum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A plane's element number as coordinates.
struct Place3 {
  int64_t plane, at[3];
};
DEVICE Place3 place_of(int64_t i, const int64_t (&sizes)[3]) {
  Place3 p{};
  int64_t at[3];
  if (i < (int64_t{1} << 31)) {
    auto rest = static_cast<uint32_t>(i);
    CUTAWAY_UNROLL
    for (int d = 2; d >= 0; --d) {
      const uint32_t q = rest / static_cast<uint32_t>(sizes[d]);
      at[d] = rest - q * static_cast<uint32_t>(sizes[d]);
      rest = q;
    }
    p.plane = rest;
  } else {
    int64_t rest = i;
    CUTAWAY_UNROLL
    for (int d = 2; d >= 0; --d) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    p.plane = rest;
  }
  for (int d = 0; d < 3; ++d) p.at[d] = at[d];
  return p;
}

DEVICE int64_t entry(const int64_t* table, int64_t i) { return global<const int64_t>(table)[i]; }

// The window of an output: [begin, end) along each dimension.
struct Window {
  int64_t begin[3], end[3];
};
DEVICE Window window_of(const PoolArgs& a, const int64_t (&o)[3]) {
  Window w{};
  CUTAWAY_UNROLL
  for (int d = 0; d < 3; ++d) {
    w.begin[d] = entry(a.begin[d], o[d]);
    w.end[d] = entry(a.end[d], o[d]);
  }
  return w;
}

// The first NaN, else the first largest value of each window.
template <class T>
KERNEL max_of_windows(PoolArgs a, int64_t n) {
  using W = PoolSum<T>;
  const int64_t i = thread_number();
  if (i >= n) return;
  const Place3 o = place_of(i, a.out);
  const Window w = window_of(a, o.at);
  const auto x = global<const T>(a.x);
  const int64_t plane = o.plane * a.in[0] * a.in[1] * a.in[2];
  W best = 0;
  T value = T(0.0f);
  int64_t index = -1;
  for (int64_t d = w.begin[0]; d < w.end[0]; d += a.step[0]) {
    for (int64_t h = w.begin[1]; h < w.end[1]; h += a.step[1]) {
      const int64_t row = (d * a.in[1] + h) * a.in[2];
      for (int64_t k = w.begin[2]; k < w.end[2]; k += a.step[2]) {
        const T here = x[plane + row + k];
        const W v = static_cast<W>(here);
        if (index < 0 || v > best || (v != v && best == best)) {
          best = v;
          value = here;
          index = row + k;
        }
      }
    }
  }
  global<T>(a.result)[i] = value;
  global<int64_t>(a.indices)[i] = index;
}

// One over the divisor of an output.
template <class W>
DEVICE W factor_of(const PoolArgs& a, int64_t o0, int64_t o1, int64_t o2) {
  if (a.fixed_divisor != 0) return static_cast<W>(1 / a.fixed_divisor);
  const double d0 = global<const double>(a.divisor[0])[o0];
  const double d1 = global<const double>(a.divisor[1])[o1];
  const double d2 = global<const double>(a.divisor[2])[o2];
  return static_cast<W>(1 / (d0 * d1 * d2));
}

template <class T>
KERNEL mean_of_windows(PoolArgs a, int64_t n) {
  using W = PoolSum<T>;
  const int64_t i = thread_number();
  if (i >= n) return;
  const Place3 o = place_of(i, a.out);
  const Window w = window_of(a, o.at);
  const auto x = global<const T>(a.x);
  W sum = 0;
  for (int64_t d = w.begin[0]; d < w.end[0]; ++d) {
    for (int64_t h = w.begin[1]; h < w.end[1]; ++h) {
      const int64_t row = ((o.plane * a.in[0] + d) * a.in[1] + h) * a.in[2];
      for (int64_t k = w.begin[2]; k < w.end[2]; ++k) {
        const T v = x[row + k];
        sum += static_cast<W>(v);
      }
    }
  }
  global<T>(a.result)[i] = T(sum * factor_of<W>(a, o.at[0], o.at[1], o.at[2]));
}

// The outputs [first[d][i], last[d][i]) whose windows hold coordinate i.
struct Holders {
  const int64_t* first[3];
  const int64_t* last[3];
};

template <class T>
KERNEL mean_gradient(PoolArgs a, Holders holders, int64_t n) {
  using W = PoolSum<T>;
  const int64_t i = thread_number();
  if (i >= n) return;
  const Place3 p = place_of(i, a.in);
  int64_t first[3], last[3];
  CUTAWAY_UNROLL
  for (int d = 0; d < 3; ++d) {
    first[d] = entry(holders.first[d], p.at[d]);
    last[d] = entry(holders.last[d], p.at[d]);
  }
  const auto g = global<const T>(a.x);
  W sum = 0;
  for (int64_t o0 = first[0]; o0 < last[0]; ++o0) {
    for (int64_t o1 = first[1]; o1 < last[1]; ++o1) {
      const int64_t row = ((p.plane * a.out[0] + o0) * a.out[1] + o1) * a.out[2];
      for (int64_t o2 = first[2]; o2 < last[2]; ++o2) {
        const T v = g[row + o2];
        sum += static_cast<W>(v) * factor_of<W>(a, o0, o1, o2);
      }
    }
  }
  global<T>(a.result)[i] = T(sum);
}

// Copies of the host tables in device memory.
class PoolTables {
 public:
  explicit PoolTables(const PoolArgs& a) : args_(a) {
    for (int d = 0; d < 3; ++d) {
      begin_[d] = tables_.add(a.begin[d], a.out[d]);
      end_[d] = tables_.add(a.end[d], a.out[d]);
      divisor_[d] = tables_.add(a.divisor[d], a.out[d]);
    }
  }
  int64_t add(const std::vector<int64_t>& table) {
    return tables_.add(table.data(), static_cast<int64_t>(table.size()));
  }
  // The arguments with pointers to device memory.
  const PoolArgs& send() {
    tables_.send();
    for (int d = 0; d < 3; ++d) {
      args_.begin[d] = tables_.at<int64_t>(begin_[d]);
      args_.end[d] = tables_.at<int64_t>(end_[d]);
      args_.divisor[d] = tables_.at<double>(divisor_[d]);
    }
    return args_;
  }
  const int64_t* at(int64_t number) const { return tables_.at<int64_t>(number); }

 private:
  PoolArgs args_;
  Tables tables_;
  int64_t begin_[3], end_[3], divisor_[3];
};

inline int64_t plane_size(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

template <class T>
void max_pool(const PoolArgs& a) {
  const int64_t n = a.planes * plane_size(a.out);
  if (n == 0) return;
  PoolTables tables(a);
  launch(one_thread_each("max_pool", n), max_of_windows<T>, tables.send(), n);
}
template <class T>
void avg_pool(const PoolArgs& a) {
  const int64_t n = a.planes * plane_size(a.out);
  if (n == 0) return;
  PoolTables tables(a);
  launch(one_thread_each("avg_pool", n), mean_of_windows<T>, tables.send(), n);
}

// Windows begin and end in ascending order, so those that hold a coordinate are neighbours.
template <class T>
void avg_pool_grad(const PoolArgs& a) {
  const int64_t n = a.planes * plane_size(a.in);
  if (n == 0) return;
  PoolTables tables(a);
  int64_t first[3], last[3];
  for (int d = 0; d < 3; ++d) {
    std::vector<int64_t> from(static_cast<size_t>(a.in[d])), to(from.size());
    int64_t begun = 0, ended = 0;
    for (int64_t i = 0; i < a.in[d]; ++i) {
      while (begun < a.out[d] && a.begin[d][begun] <= i) ++begun;
      while (ended < a.out[d] && a.end[d][ended] <= i) ++ended;
      from[static_cast<size_t>(i)] = ended;
      to[static_cast<size_t>(i)] = begun;
    }
    first[d] = tables.add(from);
    last[d] = tables.add(to);
  }
  const PoolArgs& args = tables.send();
  Holders holders{};
  for (int d = 0; d < 3; ++d) {
    holders.first[d] = tables.at(first[d]);
    holders.last[d] = tables.at(last[d]);
  }
  launch(one_thread_each("avg_pool_grad", n), mean_gradient<T>, args, holders, n);
}

template <class T>
KERNEL zero_elements(void* out, int64_t n) {
  const int64_t i = thread_number();
  if (i < n) global<T>(out)[i] = T(0.0f);
}

// Several outputs may have their maximum at one place: a reduction at indices, in order.
template <class T, DType Type>
void plane_scatter(const PlaneIndexArgs& a) {
  const int64_t n = a.planes * a.in;
  if (n == 0) return;
  launch(one_thread_each("plane_scatter", n), zero_elements<T>, a.result, n);
  if (a.out == 0) return;
  ScatterReduceArgs s;
  s.rank = 2;
  s.dim = 1;
  s.sizes[0] = a.planes;
  s.sizes[1] = s.src_strides[0] = a.out;
  s.out_strides[0] = s.n = a.in;
  s.out_strides[1] = s.src_strides[1] = 1;
  s.index = a.indices;
  s.src = a.from;
  s.out = a.result;
  kernels::scatter_reduce.find(kDevice, Type)(s);
}

template <class T>
KERNEL plane_gather_elements(PlaneIndexArgs a) {
  const int64_t i = thread_number();
  if (i >= a.planes * a.out) return;
  const int64_t at = i / a.out * a.in + entry(a.indices, i);
  const T v = global<const T>(a.from)[at];
  global<T>(a.result)[i] = v;
}
template <class T>
void plane_gather(const PlaneIndexArgs& a) {
  const int64_t n = a.planes * a.out;
  if (n > 0) launch(one_thread_each("plane_gather", n), plane_gather_elements<T>, a);
}

template <class T, DType Type>
void set_pool() {
  kernels::max_pool.set(kDevice, Type, &max_pool<T>);
  kernels::avg_pool.set(kDevice, Type, &avg_pool<T>);
  kernels::avg_pool_grad.set(kDevice, Type, &avg_pool_grad<T>);
  kernels::plane_scatter.set(kDevice, Type, &plane_scatter<T, Type>);
  kernels::plane_gather.set(kDevice, Type, &plane_gather<T>);
}

void register_pool_kernels() {
  set_pool<double, DType::f64>();
  set_pool<float, DType::f32>();
  set_pool<BFloat16, DType::bf16>();
  set_pool<Float16, DType::f16>();
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
