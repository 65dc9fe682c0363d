#include <algorithm>

#include <cutaway/core/kernels/pool.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// Type of arithmetic: 16-bit values are added in f32.
template <class T>
struct Wide {
  using type = float;
};
template <>
struct Wide<double> {
  using type = double;
};

template <class F>
void for_planes(int64_t planes, int64_t work_per_plane, F&& body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(work_per_plane, 1));
  parallel_for(planes, grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) body(p);
  });
}

// Calls body(flat output, o0, o1, o2) for every output of a plane.
template <class F>
void for_outputs(const PoolArgs& a, F&& body) {
  int64_t flat = 0;
  for (int64_t o0 = 0; o0 < a.out[0]; ++o0) {
    for (int64_t o1 = 0; o1 < a.out[1]; ++o1) {
      for (int64_t o2 = 0; o2 < a.out[2]; ++o2) body(flat++, o0, o1, o2);
    }
  }
}

// The first NaN, else the first largest value of the window.
template <class T, class W>
void max_of_window(const PoolArgs& a, const T* x, int64_t o0, int64_t o1, int64_t o2, T& value,
                   int64_t& index) {
  bool first = true;
  W best = 0;
  for (int64_t d = a.begin[0][o0]; d < a.end[0][o0]; d += a.step[0]) {
    for (int64_t h = a.begin[1][o1]; h < a.end[1][o1]; h += a.step[1]) {
      const int64_t row = (d * a.in[1] + h) * a.in[2];
      for (int64_t w = a.begin[2][o2]; w < a.end[2][o2]; w += a.step[2]) {
        const W v = W(x[row + w]);
        if (first || v > best || (v != v && best == best)) {
          first = false;
          best = v;
          index = row + w;
        }
      }
    }
  }
  value = x[index];
}

template <class T>
void max_pool(const PoolArgs& a) {
  using W = typename Wide<T>::type;
  const int64_t in_size = a.in[0] * a.in[1] * a.in[2], out_size = a.out[0] * a.out[1] * a.out[2];
  const T* x = static_cast<const T*>(a.x);
  T* y = static_cast<T*>(a.result);
  for_planes(a.planes, in_size, [&](int64_t p) {
    for_outputs(a, [&](int64_t flat, int64_t o0, int64_t o1, int64_t o2) {
      max_of_window<T, W>(a, x + p * in_size, o0, o1, o2, y[p * out_size + flat],
                          a.indices[p * out_size + flat]);
    });
  });
}

template <class W>
W factor(const PoolArgs& a, int64_t o0, int64_t o1, int64_t o2) {
  if (a.fixed_divisor != 0) return W(1 / a.fixed_divisor);
  return W(1 / (a.divisor[0][o0] * a.divisor[1][o1] * a.divisor[2][o2]));
}

template <class T>
void avg_pool(const PoolArgs& a) {
  using W = typename Wide<T>::type;
  const int64_t in_size = a.in[0] * a.in[1] * a.in[2], out_size = a.out[0] * a.out[1] * a.out[2];
  const T* x = static_cast<const T*>(a.x);
  T* y = static_cast<T*>(a.result);
  for_planes(a.planes, in_size, [&](int64_t p) {
    const T* plane = x + p * in_size;
    for_outputs(a, [&](int64_t flat, int64_t o0, int64_t o1, int64_t o2) {
      W sum = 0;
      for (int64_t d = a.begin[0][o0]; d < a.end[0][o0]; ++d) {
        for (int64_t h = a.begin[1][o1]; h < a.end[1][o1]; ++h) {
          const T* row = plane + (d * a.in[1] + h) * a.in[2];
          for (int64_t w = a.begin[2][o2]; w < a.end[2][o2]; ++w) sum += W(row[w]);
        }
      }
      y[p * out_size + flat] = T(sum * factor<W>(a, o0, o1, o2));
    });
  });
}

template <class T>
void avg_pool_grad(const PoolArgs& a) {
  using W = typename Wide<T>::type;
  const int64_t in_size = a.in[0] * a.in[1] * a.in[2], out_size = a.out[0] * a.out[1] * a.out[2];
  const T* g = static_cast<const T*>(a.x);
  T* dx = static_cast<T*>(a.result);
  for_planes(a.planes, in_size, [&](int64_t p) {
    T* plane = dx + p * in_size;
    std::fill(plane, plane + in_size, T(0));
    for_outputs(a, [&](int64_t flat, int64_t o0, int64_t o1, int64_t o2) {
      const W share = W(g[p * out_size + flat]) * factor<W>(a, o0, o1, o2);
      for (int64_t d = a.begin[0][o0]; d < a.end[0][o0]; ++d) {
        for (int64_t h = a.begin[1][o1]; h < a.end[1][o1]; ++h) {
          T* row = plane + (d * a.in[1] + h) * a.in[2];
          for (int64_t w = a.begin[2][o2]; w < a.end[2][o2]; ++w) row[w] = T(W(row[w]) + share);
        }
      }
    });
  });
}

template <class T>
void plane_scatter(const PlaneIndexArgs& a) {
  using W = typename Wide<T>::type;
  const T* from = static_cast<const T*>(a.from);
  T* to = static_cast<T*>(a.result);
  for_planes(a.planes, a.in, [&](int64_t p) {
    std::fill(to + p * a.in, to + (p + 1) * a.in, T(0));
    for (int64_t o = p * a.out; o < (p + 1) * a.out; ++o) {
      T& place = to[p * a.in + a.indices[o]];
      place = T(W(place) + W(from[o]));
    }
  });
}

template <class T>
void plane_gather(const PlaneIndexArgs& a) {
  const T* from = static_cast<const T*>(a.from);
  T* to = static_cast<T*>(a.result);
  for_planes(a.planes, a.out, [&](int64_t p) {
    for (int64_t o = p * a.out; o < (p + 1) * a.out; ++o) to[o] = from[p * a.in + a.indices[o]];
  });
}

template <class T>
void register_type(DType t) {
  const DeviceKind cpu = DeviceKind::cpu;
  kernels::max_pool.set(cpu, t, max_pool<T>);
  kernels::avg_pool.set(cpu, t, avg_pool<T>);
  kernels::avg_pool_grad.set(cpu, t, avg_pool_grad<T>);
  kernels::plane_scatter.set(cpu, t, plane_scatter<T>);
  kernels::plane_gather.set(cpu, t, plane_gather<T>);
}

}  // namespace

void register_pool_kernels() {
  register_type<double>(DType::f64);
  register_type<float>(DType::f32);
  register_type<BFloat16>(DType::bf16);
  register_type<Float16>(DType::f16);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
