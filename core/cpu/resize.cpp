#include <algorithm>

#include <cutaway/core/kernels/resize.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

template <class T>
struct Wide {
  using type = float;
};
template <>
struct Wide<double> {
  using type = double;
};

// Calls visit(flat output, flat input, weight) for every pair that touches. Corners of weight 0 are
// left out, so that a value that is not finite stays where it is.
template <class F>
void for_corners(const ResizeArgs& a, F&& visit) {
  int64_t flat = 0;
  for (int64_t i = 0; i < a.out[0]; ++i) {
    for (int64_t j = 0; j < a.out[1]; ++j) {
      for (int64_t k = 0; k < a.out[2]; ++k, ++flat) {
        const int64_t at[3] = {i, j, k};
        for (int corner = 0; corner < 8; ++corner) {
          double weight = 1;
          int64_t place = 0;
          for (int d = 0; d < 3; ++d) {
            const bool high = corner >> d & 1;
            const double share = a.share[d][at[d]];
            weight *= high ? share : 1 - share;
            place = place * a.in[d] + (high ? a.high[d] : a.low[d])[at[d]];
          }
          if (weight != 0) visit(flat, place, weight);
        }
      }
    }
  }
}

template <class F>
void for_planes(const ResizeArgs& a, F&& body) {
  const int64_t size = a.out[0] * a.out[1] * a.out[2];
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(size, 1));
  parallel_for(a.planes, grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) body(p);
  });
}

template <class T>
void resize(const ResizeArgs& a) {
  using W = typename Wide<T>::type;
  const int64_t in_size = a.in[0] * a.in[1] * a.in[2], out_size = a.out[0] * a.out[1] * a.out[2];
  for_planes(a, [&](int64_t p) {
    const T* x = static_cast<const T*>(a.from) + p * in_size;
    T* y = static_cast<T*>(a.result) + p * out_size;
    int64_t current = -1;
    W sum = 0;
    for_corners(a, [&](int64_t o, int64_t i, double weight) {
      if (o != current) {
        if (current >= 0) y[current] = T(sum);
        current = o;
        sum = 0;
      }
      sum += W(weight) * W(x[i]);
    });
    if (current >= 0) y[current] = T(sum);
  });
}

template <class T>
void resize_grad(const ResizeArgs& a) {
  using W = typename Wide<T>::type;
  const int64_t in_size = a.in[0] * a.in[1] * a.in[2], out_size = a.out[0] * a.out[1] * a.out[2];
  for_planes(a, [&](int64_t p) {
    const T* g = static_cast<const T*>(a.from) + p * out_size;
    T* dx = static_cast<T*>(a.result) + p * in_size;
    std::fill(dx, dx + in_size, T(0));
    for_corners(
        a, [&](int64_t o, int64_t i, double weight) { dx[i] = T(W(dx[i]) + W(weight) * W(g[o])); });
  });
}

template <class T>
void register_type(DType t) {
  kernels::resize.set(DeviceKind::cpu, t, resize<T>);
  kernels::resize_grad.set(DeviceKind::cpu, t, resize_grad<T>);
}

}  // namespace

void register_resize_kernels() {
  register_type<double>(DType::f64);
  register_type<float>(DType::f32);
  register_type<BFloat16>(DType::bf16);
  register_type<Float16>(DType::f16);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
