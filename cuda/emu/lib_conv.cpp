#include <cutaway/cuda/lib/conv.h>

#include <cutaway/cuda/emu/graph.h>
#include <cutaway/cuda/emu/library.h>

namespace cutaway::cuda::emu {

bool convolve(ConvPass pass, DType dtype, const ConvArgs& a) {
  // As cuDNN, which has no plans for these.
  const bool three = a.in[0] * a.out[0] * a.kernel[0] > 1;
  if (dtype == DType::f64 && three && a.groups > 1) return false;
  if (recording()) {
    record([=] { convolve(pass, dtype, a); });
    return true;
  }
  const LibraryCall call("convolve");
  const int64_t size = size_of(dtype);
  const auto volume = [](const int64_t* s) { return s[0] * s[1] * s[2]; };
  const int64_t x = a.n * a.c * volume(a.in) * size, y = a.n * a.k * volume(a.out) * size;
  const int64_t w = a.k * (a.c / a.groups) * volume(a.kernel) * size;
  ConvArgs plain = a;
  plain.bias = nullptr;
  switch (pass) {
    case ConvPass::forward:
      call.reads("x", a.x, 1, x, 0);
      call.reads("w", a.w, 1, w, 0);
      call.writes(a.result, 1, y, 0);
      kernels::conv_forward.find(DeviceKind::cpu, dtype)(plain);
      break;
    case ConvPass::input_grad:
      call.reads("the upstream gradient", a.g, 1, y, 0);
      call.reads("w", a.w, 1, w, 0);
      call.writes(a.result, 1, x, 0);
      kernels::conv_input_grad.find(DeviceKind::cpu, dtype)(plain);
      break;
    case ConvPass::weight_grad:
      call.reads("the upstream gradient", a.g, 1, y, 0);
      call.reads("x", a.x, 1, x, 0);
      call.writes(a.result, 1, w, 0);
      kernels::conv_weight_grad.find(DeviceKind::cpu, dtype)(plain);
      break;
  }
  return true;
}

}  // namespace cutaway::cuda::emu
