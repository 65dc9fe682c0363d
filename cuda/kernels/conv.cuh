#pragma once
#include <cutaway/core/kernels/conv.h>
#include <cutaway/cuda/device/language.h>
#include <cutaway/cuda/lib/conv.h>

// Convolution and its two gradients: through the library, or by own direct kernels for what it has
// no plan for and for empty operands.
namespace cutaway::cuda::CUTAWAY_TARGET {

inline constexpr int kConvThreads = 256;

// What the kernels ask of the sizes.
struct ConvSizes {
  int64_t c_group, k_group, in, out, taps;
};
DEVICE_HOST ConvSizes conv_sizes(const ConvArgs& a) {
  return {a.c / a.groups, a.k / a.groups, a.in[0] * a.in[1] * a.in[2],
          a.out[0] * a.out[1] * a.out[2], a.kernel[0] * a.kernel[1] * a.kernel[2]};
}
inline int64_t x_size(const ConvArgs& a) { return a.n * a.c * conv_sizes(a).in; }
inline int64_t y_size(const ConvArgs& a) { return a.n * a.k * conv_sizes(a).out; }
inline int64_t w_size(const ConvArgs& a) {
  return a.k * conv_sizes(a).c_group * conv_sizes(a).taps;
}

struct Place {
  int64_t at[3];
};
DEVICE_HOST Place place_of(int64_t index, const int64_t (&sizes)[3]) {
  const int64_t rest = index / sizes[2];
  return {{rest / sizes[1], rest % sizes[1], index % sizes[2]}};
}
// Where in the input an output position meets a tap; false in the padding.
DEVICE bool input_place(const ConvArgs& a, const Place& out, const Place& tap, int64_t& index) {
  index = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t at = out.at[d] * a.stride[d] - a.pad[d] + tap.at[d] * a.dilation[d];
    if (at < 0 || at >= a.in[d]) return false;
    index = index * a.in[d] + at;
  }
  return true;
}
// The output position at which a tap meets an input position; false when there is none.
DEVICE bool output_place(const ConvArgs& a, const Place& in, const Place& tap, int64_t& index) {
  index = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t at = in.at[d] + a.pad[d] - tap.at[d] * a.dilation[d];
    if (at < 0 || at % a.stride[d] != 0 || at / a.stride[d] >= a.out[d]) return false;
    index = index * a.out[d] + at / a.stride[d];
  }
  return true;
}

// A thread for each output.
template <class T>
KERNEL conv_outputs(ConvArgs a, int64_t count) {
  const auto x = global<const T>(a.x), w = global<const T>(a.w), bias = global<const T>(a.bias);
  const auto y = global<T>(a.result);
  const ConvSizes s = conv_sizes(a);
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Place out = place_of(i % s.out, a.out);
    const int64_t k = i / s.out % a.k, n = i / s.out / a.k;
    const int64_t c0 = k / s.k_group * s.c_group;
    T sum = 0;
    if (a.bias) sum = bias[k];
    for (int64_t tap = 0; tap < s.taps; ++tap) {
      int64_t at = 0;
      if (!input_place(a, out, place_of(tap, a.kernel), at)) continue;
      for (int64_t c = 0; c < s.c_group; ++c) {
        const T u = x[(n * a.c + c0 + c) * s.in + at], v = w[(k * s.c_group + c) * s.taps + tap];
        sum += u * v;
      }
    }
    y[i] = sum;
  }
}

// A thread for each input: gathers from the outputs it took part in.
template <class T>
KERNEL conv_inputs(ConvArgs a, int64_t count) {
  const auto g = global<const T>(a.g), w = global<const T>(a.w);
  const auto dx = global<T>(a.result);
  const ConvSizes s = conv_sizes(a);
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Place in = place_of(i % s.in, a.in);
    const int64_t channel = i / s.in % a.c, n = i / s.in / a.c;
    const int64_t k0 = channel / s.c_group * s.k_group, c = channel % s.c_group;
    T sum = 0;
    for (int64_t tap = 0; tap < s.taps; ++tap) {
      int64_t at = 0;
      if (!output_place(a, in, place_of(tap, a.kernel), at)) continue;
      for (int64_t k = k0; k < k0 + s.k_group; ++k) {
        const T u = g[(n * a.k + k) * s.out + at], v = w[(k * s.c_group + c) * s.taps + tap];
        sum += u * v;
      }
    }
    dx[i] = sum;
  }
}

// A block for each weight: its threads share the outputs, the sum is a tree in f64.
template <class T>
KERNEL conv_weights(ConvArgs a) {
  SHARED(double, parts, kConvThreads);
  const auto x = global<const T>(a.x), g = global<const T>(a.g);
  const auto dw = global<T>(a.result);
  const ConvSizes s = conv_sizes(a);
  const int64_t tap = blockIdx.x % s.taps, c = blockIdx.x / s.taps % s.c_group;
  const int64_t k = blockIdx.x / s.taps / s.c_group;
  const int64_t channel = k / s.k_group * s.c_group + c;
  const Place offset = place_of(tap, a.kernel);
  const int thread = int(threadIdx.x);
  double sum = 0;
  for (int64_t i = thread; i < a.n * s.out; i += kConvThreads) {
    const int64_t n = i / s.out, out = i % s.out;
    int64_t at = 0;
    if (!input_place(a, place_of(out, a.out), offset, at)) continue;
    const T u = x[(n * a.c + channel) * s.in + at], v = g[(n * a.k + k) * s.out + out];
    sum += double(u) * double(v);
  }
  parts[thread] = sum;
  for (int step = kConvThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (thread < step) {
      sum += parts[thread + step];
      parts[thread] = sum;
    }
  }
  if (thread == 0) dw[blockIdx.x] = T(sum);
}

// Adds the bias to what the library wrote.
template <class T>
KERNEL conv_bias(ConvArgs a, int64_t count, int64_t out) {
  const auto bias = global<const T>(a.bias);
  const auto y = global<T>(a.result);
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const T added = bias[i / out % a.k];
    y[i] += added;
  }
}

inline Launch conv_launch(const char* name, int64_t count) {
  const int64_t blocks = blocks_for(count, kConvThreads);
  return {.name = name,
          .grid = {unsigned(blocks < (1 << 20) ? blocks : 1 << 20)},
          .block = {kConvThreads},
          .sync = Sync::none};
}

template <class T, DType Type>
void conv_forward(const ConvArgs& a) {
  const int64_t count = y_size(a);
  if (count == 0) return;
  if (x_size(a) > 0 && w_size(a) > 0 && convolve(ConvPass::forward, Type, a)) {
    if (a.bias) {
      launch(conv_launch("conv_bias", count), conv_bias<T>, a, count, conv_sizes(a).out);
    }
    return;
  }
  launch(conv_launch("conv_forward", count), conv_outputs<T>, a, count);
}

template <class T, DType Type>
void conv_input_grad(const ConvArgs& a) {
  const int64_t count = x_size(a);
  if (count == 0) return;
  if (y_size(a) > 0 && w_size(a) > 0 && convolve(ConvPass::input_grad, Type, a)) return;
  launch(conv_launch("conv_input_grad", count), conv_inputs<T>, a, count);
}

template <class T, DType Type>
void conv_weight_grad(const ConvArgs& a) {
  const int64_t count = w_size(a);
  if (count == 0) return;
  if (x_size(a) > 0 && y_size(a) > 0 && convolve(ConvPass::weight_grad, Type, a)) return;
  launch({.name = "conv_weight_grad", .grid = {unsigned(count)}, .block = {kConvThreads}},
         conv_weights<T>, a);
}

template <class T, DType Type>
void register_conv_type() {
  kernels::conv_forward.set(kDevice, Type, &conv_forward<T, Type>);
  kernels::conv_input_grad.set(kDevice, Type, &conv_input_grad<T, Type>);
  kernels::conv_weight_grad.set(kDevice, Type, &conv_weight_grad<T, Type>);
}

void register_conv_kernels() {
  register_conv_type<double, DType::f64>();
  register_conv_type<float, DType::f32>();
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
