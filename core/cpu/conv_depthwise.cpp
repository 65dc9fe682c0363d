// Depthwise convolution on the CPU (one input channel a group): planes are walked directly, without
// a matrix.
#include <algorithm>

#include <cutaway/core/cpu/conv_depthwise.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// Sizes that follow from the arguments.
struct Planes {
  int64_t k_group;            // results of one channel
  int64_t in_size, out_size;  // positions of one channel
  int64_t taps;               // kernel positions

  explicit Planes(const ConvArgs& a) {
    k_group = a.k / a.groups;
    in_size = a.in[0] * a.in[1] * a.in[2];
    out_size = a.out[0] * a.out[1] * a.out[2];
    taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  }
};

// Runs body(plane) for every plane, each on one thread.
template <class F>
void for_planes(int64_t n, F&& body) {
  parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// Direct walk of depthwise convolution (one input channel a group): for each tap, one pass over the
// output rows. `visit(out row, in row + shift, first, last, tap)` does the arithmetic.
template <class F>
void for_rows(const ConvArgs& a, F&& visit) {
  for (int64_t kd = 0; kd < a.kernel[0]; ++kd) {
    for (int64_t kh = 0; kh < a.kernel[1]; ++kh) {
      for (int64_t kw = 0; kw < a.kernel[2]; ++kw) {
        const int64_t tap = (kd * a.kernel[1] + kh) * a.kernel[2] + kw;
        const int64_t shift = kw * a.dilation[2] - a.pad[2];
        int64_t first, last;
        valid_range(a.in[2], a.out[2], a.stride[2], shift, first, last);
        for (int64_t r = 0; r < a.out[0] * a.out[1]; ++r) {
          const int64_t d = r / a.out[1] * a.stride[0] + kd * a.dilation[0] - a.pad[0];
          const int64_t h = r % a.out[1] * a.stride[1] + kh * a.dilation[1] - a.pad[1];
          if (d < 0 || d >= a.in[0] || h < 0 || h >= a.in[1]) continue;
          visit(r * a.out[2], (d * a.in[1] + h) * a.in[2] + shift, first, last, tap);
        }
      }
    }
  }
}

}  // namespace

template <class T>
void depthwise_forward(const ConvArgs& a) {
  const Planes q(a);
  const T *x = static_cast<const T*>(a.x), *w = static_cast<const T*>(a.w),
          *bias = static_cast<const T*>(a.bias);
  T* y = static_cast<T*>(a.result);
  for_planes(a.n * a.k, [&](int64_t plane) {
    const int64_t i = plane / a.k, k = plane % a.k, s = a.stride[2];
    const T* in = x + (i * a.c + k / q.k_group) * q.in_size;
    T* out = y + plane * q.out_size;
    std::fill(out, out + q.out_size, bias ? bias[k] : T(0));
    for_rows(a, [&](int64_t to, int64_t from, int64_t first, int64_t last, int64_t tap) {
      const T weight = w[k * q.taps + tap];
      if (s == 1) {
#pragma omp simd
        for (int64_t o = first; o < last; ++o) out[to + o] += weight * in[from + o];
      } else {
        for (int64_t o = first; o < last; ++o) out[to + o] += weight * in[from + o * s];
      }
    });
  });
}

template <class T>
void depthwise_input_grad(const ConvArgs& a) {
  const Planes q(a);
  const T *grad = static_cast<const T*>(a.g), *w = static_cast<const T*>(a.w);
  T* dx = static_cast<T*>(a.result);
  for_planes(a.n * a.c, [&](int64_t plane) {
    const int64_t i = plane / a.c, c = plane % a.c, s = a.stride[2];
    T* in = dx + plane * q.in_size;
    std::fill(in, in + q.in_size, T(0));
    for (int64_t m = 0; m < q.k_group; ++m) {
      const int64_t k = c * q.k_group + m;
      const T* out = grad + (i * a.k + k) * q.out_size;
      for_rows(a, [&](int64_t to, int64_t from, int64_t first, int64_t last, int64_t tap) {
        const T weight = w[k * q.taps + tap];
        if (s == 1) {
#pragma omp simd
          for (int64_t o = first; o < last; ++o) in[from + o] += weight * out[to + o];
        } else {
          for (int64_t o = first; o < last; ++o) in[from + o * s] += weight * out[to + o];
        }
      });
    }
  });
}

template <class T>
void depthwise_weight_grad(const ConvArgs& a) {
  const Planes q(a);
  const T *x = static_cast<const T*>(a.x), *grad = static_cast<const T*>(a.g);
  T* dw = static_cast<T*>(a.result);
  for_planes(a.k, [&](int64_t k) {
    const int64_t s = a.stride[2];
    std::fill(dw + k * q.taps, dw + (k + 1) * q.taps, T(0));
    for (int64_t i = 0; i < a.n; ++i) {
      const T* in = x + (i * a.c + k / q.k_group) * q.in_size;
      const T* out = grad + (i * a.k + k) * q.out_size;
      for_rows(a, [&](int64_t to, int64_t from, int64_t first, int64_t last, int64_t tap) {
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t o = first; o < last; ++o) sum += out[to + o] * in[from + o * s];
        dw[k * q.taps + tap] += sum;
      });
    }
  });
}

template void depthwise_forward<float>(const ConvArgs&);
template void depthwise_forward<double>(const ConvArgs&);
template void depthwise_input_grad<float>(const ConvArgs&);
template void depthwise_input_grad<double>(const ConvArgs&);
template void depthwise_weight_grad<float>(const ConvArgs&);
template void depthwise_weight_grad<double>(const ConvArgs&);

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
