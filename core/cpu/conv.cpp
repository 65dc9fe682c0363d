// Convolution on the CPU: blocks of the input are laid out as a matrix (im2col) and multiplied by
// the weights (depthwise convolution: conv_depthwise.cpp). The adjoints use the same layout
// backwards (col2im), so all three agree on it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

#include <cutaway/core/cpu/conv_depthwise.h>
#include <cutaway/core/cpu/conv_tiles.h>
#include <cutaway/core/cpu/conv_winograd.h>
#include <cutaway/core/cpu/gemm.h>
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/kernels/conv.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kBlockBytes =
    512 * 1024;  // of the im2col matrix: half of a usual second-level cache
constexpr int64_t kWeightChunks =
    8;  // partial weight gradients; fixed, so that sums do not depend on threads

// C = A·B + beta·C, row-major, A [m,k] or its transpose, B [k,n] or its transpose.
template <class T>
void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
             int64_t ldb, T beta, T* c, int64_t ldc) {
  gemm(Product<T>{.m = m,
                  .n = n,
                  .k = k,
                  .a = {a, ta ? 1 : lda, ta ? lda : 1},
                  .b = {b, tb ? 1 : ldb, tb ? ldb : 1},
                  .c = c,
                  .c_row = ldc,
                  .beta = beta});
}

// Sizes that follow from the arguments.
struct Geometry {
  int64_t c_group, k_group;   // channels of one group
  int64_t in_size, out_size;  // positions of one channel
  int64_t taps;               // kernel positions
  int64_t rows;               // of the im2col matrix: c_group · taps
  int64_t out_rows;           // rows of output positions: out[0] · out[1]
  int64_t block_rows;         // of them in one block
  bool direct;                // 1×1, stride 1, no padding: the input already is the matrix

  explicit Geometry(const ConvArgs& a, int64_t element) {
    c_group = a.c / a.groups;
    k_group = a.k / a.groups;
    in_size = a.in[0] * a.in[1] * a.in[2];
    out_size = a.out[0] * a.out[1] * a.out[2];
    taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
    rows = c_group * taps;
    out_rows = a.out[0] * a.out[1];
    direct = taps == 1;
    for (int d = 0; d < 3; ++d) direct = direct && a.stride[d] == 1 && a.pad[d] == 0;
    const int64_t row_bytes = std::max<int64_t>(rows * a.out[2] * element, 1);
    block_rows = std::clamp<int64_t>(kBlockBytes / row_bytes, 1, std::max<int64_t>(out_rows, 1));
  }
};

// Positions [first, last) of an output row whose input lies inside [0, n): x = o·stride + shift.
inline void valid_range(int64_t n, int64_t outputs, int64_t stride, int64_t shift, int64_t& first,
                        int64_t& last) {
  first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  last = n - shift <= 0 ? 0 : (n - shift + stride - 1) / stride;
  first = std::min(first, outputs);
  last = std::clamp(last, first, outputs);
}

// col [rows, positions of output rows begin … end): one row for each (channel, kernel position).
template <class T>
void im2col(const ConvArgs& a, const Geometry& q, const T* x, int64_t begin, int64_t end, T* col) {
  const int64_t width = a.out[2], count = (end - begin) * width;
  for (int64_t row = 0; row < q.rows; ++row) {
    const int64_t tap = row % q.taps, kw = tap % a.kernel[2], kh = tap / a.kernel[2] % a.kernel[1];
    const int64_t kd = tap / (a.kernel[2] * a.kernel[1]);
    const T* channel = x + row / q.taps * q.in_size;
    const int64_t shift = kw * a.dilation[2] - a.pad[2], stride = a.stride[2];
    int64_t first, last;
    valid_range(a.in[2], width, stride, shift, first, last);
    T* out = col + row * count;
    for (int64_t r = begin; r < end; ++r, out += width) {
      const int64_t d = r / a.out[1] * a.stride[0] + kd * a.dilation[0] - a.pad[0];
      const int64_t h = r % a.out[1] * a.stride[1] + kh * a.dilation[1] - a.pad[1];
      if (d < 0 || d >= a.in[0] || h < 0 || h >= a.in[1] || first >= last) {
        std::fill(out, out + width, T(0));
        continue;
      }
      const T* in = channel + (d * a.in[1] + h) * a.in[2] + shift;
      for (int64_t o = 0; o < first; ++o) out[o] = 0;
      if (stride == 1) {
        std::memcpy(out + first, in + first, size_t(last - first) * sizeof(T));
      } else {
        for (int64_t o = first; o < last; ++o) out[o] = in[o * stride];
      }
      for (int64_t o = last; o < width; ++o) out[o] = 0;
    }
  }
}

// The adjoint: adds col into x.
template <class T>
void col2im(const ConvArgs& a, const Geometry& q, const T* col, int64_t begin, int64_t end, T* x) {
  const int64_t width = a.out[2], count = (end - begin) * width;
  for (int64_t row = 0; row < q.rows; ++row) {
    const int64_t tap = row % q.taps, kw = tap % a.kernel[2], kh = tap / a.kernel[2] % a.kernel[1];
    const int64_t kd = tap / (a.kernel[2] * a.kernel[1]);
    T* channel = x + row / q.taps * q.in_size;
    const int64_t shift = kw * a.dilation[2] - a.pad[2], stride = a.stride[2];
    int64_t first, last;
    valid_range(a.in[2], width, stride, shift, first, last);
    const T* from = col + row * count;
    for (int64_t r = begin; r < end; ++r, from += width) {
      const int64_t d = r / a.out[1] * a.stride[0] + kd * a.dilation[0] - a.pad[0];
      const int64_t h = r % a.out[1] * a.stride[1] + kh * a.dilation[1] - a.pad[1];
      if (d < 0 || d >= a.in[0] || h < 0 || h >= a.in[1]) continue;
      T* to = channel + (d * a.in[1] + h) * a.in[2] + shift;
      if (stride == 1) {
#pragma omp simd
        for (int64_t o = first; o < last; ++o) to[o] += from[o];
      } else {
        for (int64_t o = first; o < last; ++o) to[o * stride] += from[o];
      }
    }
  }
}

// Runs body(sample) for every sample, each on one thread.
template <class F>
void for_samples(int64_t n, F&& body) {
  parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

template <class T>
void forward_gemm(const ConvArgs& a) {
  const Geometry q(a, sizeof(T));
  const T *x = static_cast<const T*>(a.x), *w = static_cast<const T*>(a.w),
          *bias = static_cast<const T*>(a.bias);
  T* y = static_cast<T*>(a.result);
  for_samples(a.n, [&](int64_t i) {
    const Scratch<T> col(q.direct ? 0 : q.rows * q.block_rows * a.out[2]);
    for (int64_t g = 0; g < a.groups; ++g) {
      const T* xg = x + (i * a.c + g * q.c_group) * q.in_size;
      T* yg = y + (i * a.k + g * q.k_group) * q.out_size;
      if (bias) {
        for (int64_t k = 0; k < q.k_group; ++k) {
          std::fill(yg + k * q.out_size, yg + (k + 1) * q.out_size, bias[g * q.k_group + k]);
        }
      }
      const T* wg = w + g * q.k_group * q.rows;
      const T beta = bias ? 1 : 0;
      if (q.direct) {
        product(false, false, q.k_group, q.out_size, q.rows, wg, q.rows, xg, q.in_size, beta, yg,
                q.out_size);
        continue;
      }
      for (int64_t r = 0; r < q.out_rows; r += q.block_rows) {
        const int64_t end = std::min(r + q.block_rows, q.out_rows), count = (end - r) * a.out[2];
        im2col(a, q, xg, r, end, col.get());
        product(false, false, q.k_group, count, q.rows, wg, q.rows, col.get(), count, beta,
                yg + r * a.out[2], q.out_size);
      }
    }
  });
}

template <class T>
void input_grad_gemm(const ConvArgs& a) {
  const Geometry q(a, sizeof(T));
  const T *grad = static_cast<const T*>(a.g), *w = static_cast<const T*>(a.w);
  T* dx = static_cast<T*>(a.result);
  for_samples(a.n, [&](int64_t i) {
    const Scratch<T> col(q.direct ? 0 : q.rows * q.block_rows * a.out[2]);
    for (int64_t g = 0; g < a.groups; ++g) {
      const T* gg = grad + (i * a.k + g * q.k_group) * q.out_size;
      const T* wg = w + g * q.k_group * q.rows;
      T* xg = dx + (i * a.c + g * q.c_group) * q.in_size;
      if (q.direct) {
        product(true, false, q.rows, q.out_size, q.k_group, wg, q.rows, gg, q.out_size, T(0), xg,
                q.in_size);
        continue;
      }
      std::fill(xg, xg + q.c_group * q.in_size, T(0));
      for (int64_t r = 0; r < q.out_rows; r += q.block_rows) {
        const int64_t end = std::min(r + q.block_rows, q.out_rows), count = (end - r) * a.out[2];
        product(true, false, q.rows, count, q.k_group, wg, q.rows, gg + r * a.out[2], q.out_size,
                T(0), col.get(), count);
        col2im(a, q, col.get(), r, end, xg);
      }
    }
  });
}

// Adds the weight gradient of sample i into dw.
template <class T>
void add_weight_grad(const ConvArgs& a, const Geometry& q, int64_t i, T* col, T* dw) {
  const T *x = static_cast<const T*>(a.x), *grad = static_cast<const T*>(a.g);
  for (int64_t g = 0; g < a.groups; ++g) {
    const T* xg = x + (i * a.c + g * q.c_group) * q.in_size;
    const T* gg = grad + (i * a.k + g * q.k_group) * q.out_size;
    T* wg = dw + g * q.k_group * q.rows;
    if (q.direct) {
      product(false, true, q.k_group, q.rows, q.out_size, gg, q.out_size, xg, q.in_size, T(1), wg,
              q.rows);
      continue;
    }
    for (int64_t r = 0; r < q.out_rows; r += q.block_rows) {
      const int64_t end = std::min(r + q.block_rows, q.out_rows), count = (end - r) * a.out[2];
      im2col(a, q, xg, r, end, col);
      product(false, true, q.k_group, q.rows, count, gg + r * a.out[2], q.out_size, col, count,
              T(1), wg, q.rows);
    }
  }
}

template <class T>
void weight_grad_gemm(const ConvArgs& a) {
  const Geometry q(a, sizeof(T));
  const int64_t size = a.k * q.rows;
  T* dw = static_cast<T*>(a.result);
  const int64_t chunks = std::clamp<int64_t>(a.n, 1, kWeightChunks);
  const Scratch<T> partial((chunks - 1) * size);
  parallel_chunks(chunks, [&](int64_t chunk) {
    T* sum = chunk == 0 ? dw : partial.get() + (chunk - 1) * size;
    std::fill(sum, sum + size, T(0));
    const Scratch<T> col(q.direct ? 0 : q.rows * q.block_rows * a.out[2]);
    const int64_t begin = a.n * chunk / chunks, end = a.n * (chunk + 1) / chunks;
    for (int64_t i = begin; i < end; ++i) add_weight_grad<T>(a, q, i, col.get(), sum);
  });
  for (int64_t chunk = 1; chunk < chunks; ++chunk) {
    const T* from = partial.get() + (chunk - 1) * size;
    parallel_for(size, kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) dw[i] += from[i];
    });
  }
}

bool depthwise(const ConvArgs& a) { return a.groups > 1 && a.groups == a.c; }

#ifdef CUTAWAY_OWN_GEMM
bool by_tiles(const ConvArgs& a) { return tiles::usable(a) && !Geometry(a, 1).direct; }
#endif

template <class T>
void forward(const ConvArgs& a) {
  if (depthwise(a)) return depthwise_forward<T>(a);
  if constexpr (std::is_same_v<T, float>) {
    if (winograd::forward_wins(a)) return winograd::forward<float>(a);
  }
#ifdef CUTAWAY_OWN_GEMM
  if (by_tiles(a)) return tiles::forward<T>(a);
#endif
  forward_gemm<T>(a);
}
template <class T>
void input_grad(const ConvArgs& a) {
  if (depthwise(a)) return depthwise_input_grad<T>(a);
  if constexpr (std::is_same_v<T, float>) {
    if (winograd::input_grad_wins(a)) return winograd::input_grad<float>(a);
  }
#ifdef CUTAWAY_OWN_GEMM
  if (by_tiles(a) && tiles::input_grad_is_forward(a)) return tiles::input_grad<T>(a);
#endif
  input_grad_gemm<T>(a);
}
template <class T>
void weight_grad(const ConvArgs& a) {
  if (depthwise(a)) return depthwise_weight_grad<T>(a);
  if constexpr (std::is_same_v<T, float>) {
    if (winograd::forward_wins(a)) return winograd::weight_grad<float>(a);
  }
#ifdef CUTAWAY_OWN_GEMM
  if (by_tiles(a)) return tiles::weight_grad<T>(a);
#endif
  weight_grad_gemm<T>(a);
}

// bf16 is read and rounded on the way where Winograd's algorithm takes the convolution; otherwise
// copies in f32 are.
class Widened {
 public:
  Widened(const void* from, int64_t n) : memory_(from ? n : 0) {
    const auto* in = static_cast<const BFloat16*>(from);
    parallel_for(from ? n : 0, kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) memory_[i] = float(in[i]);
    });
  }
  const float* get() const { return memory_.get(); }

 private:
  Scratch<float> memory_;
};

void in_f32(const ConvArgs& a, int64_t results, void (*run)(const ConvArgs&)) {
  const int64_t in = a.in[0] * a.in[1] * a.in[2], out = a.out[0] * a.out[1] * a.out[2];
  const int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  const Widened x(a.x, a.n * a.c * in), w(a.w, a.k * a.c / a.groups * taps), bias(a.bias, a.k),
      g(a.g, a.n * a.k * out);
  const Scratch<float> result(results);
  ConvArgs b = a;
  b.x = x.get();
  b.w = w.get();
  b.bias = bias.get();
  b.g = g.get();
  b.result = result.get();
  run(b);
  auto* to = static_cast<BFloat16*>(a.result);
  parallel_for(results, kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] = BFloat16(result[i]);
  });
}

void forward_bf16(const ConvArgs& a) {
  if (!depthwise(a) && winograd::forward_wins(a)) return winograd::forward<BFloat16>(a);
  in_f32(a, a.n * a.k * a.out[0] * a.out[1] * a.out[2], forward<float>);
}
void input_grad_bf16(const ConvArgs& a) {
  if (!depthwise(a) && winograd::input_grad_wins(a)) return winograd::input_grad<BFloat16>(a);
  in_f32(a, a.n * a.c * a.in[0] * a.in[1] * a.in[2], input_grad<float>);
}
void weight_grad_bf16(const ConvArgs& a) {
  if (!depthwise(a) && winograd::forward_wins(a)) return winograd::weight_grad<BFloat16>(a);
  in_f32(a, a.k * a.c / a.groups * a.kernel[0] * a.kernel[1] * a.kernel[2], weight_grad<float>);
}

}  // namespace

void register_conv_kernels() {
  const DeviceKind cpu = DeviceKind::cpu;
  kernels::conv_forward.set(cpu, DType::f32, forward<float>);
  kernels::conv_forward.set(cpu, DType::f64, forward<double>);
  kernels::conv_input_grad.set(cpu, DType::f32, input_grad<float>);
  kernels::conv_input_grad.set(cpu, DType::f64, input_grad<double>);
  kernels::conv_weight_grad.set(cpu, DType::f32, weight_grad<float>);
  kernels::conv_weight_grad.set(cpu, DType::f64, weight_grad<double>);
  kernels::conv_forward.set(cpu, DType::bf16, forward_bf16);
  kernels::conv_input_grad.set(cpu, DType::bf16, input_grad_bf16);
  kernels::conv_weight_grad.set(cpu, DType::bf16, weight_grad_bf16);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
