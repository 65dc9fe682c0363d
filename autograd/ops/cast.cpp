#include <cutaway/autograd/ops/cast.h>

#include <cutaway/autograd/node.h>
#include <cutaway/autograd/ops/elementwise_onnx.h>
#include <cutaway/autograd/ops/pointwise_samples.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

struct CastAttrs {
  DType dtype;
};

const OpRecord kCast{
    .name = "cast",
    .signature = "cast(x, dtype) → y",
    .meaning = "The same values in another type.",
    .formula = "y = x, rounded or saturated to dtype",
    .shapes = kSameShape,
    .dtypes = kAllTypes,
    .forward =
        [](Call& c) {
          const Tensor& x = c.in(0);
          Tensor& out = c.out(0, x.sizes(), c.attrs<CastAttrs>().dtype);
          if (!c.meta()) copy_elements(out, x);
        },
    .backward_text = "dx = g in the type of x",
    .backward = [](Backward& b) { b.set(0, cast(b.upstream(), b.input_dtype(0))); },
    .samples = cast_samples,
    .onnx = [](OnnxCall& c) { c.result(c.cast(0, c.type())); }};

const OpRecord kClone{.name = "clone",
                      .signature = "clone(x) → y",
                      .meaning = "A row-major copy with values of its own.",
                      .formula = "y = x",
                      .shapes = kSameShape,
                      .dtypes = kAllTypes,
                      .forward =
                          [](Call& c) {
                            Tensor& out = c.out(0, c.in(0).sizes(), c.in(0).dtype());
                            if (!c.meta()) copy_elements(out, c.in(0));
                          },
                      .backward_text = "dx = g",
                      .backward = [](Backward& b) { b.set(0, b.upstream()); },
                      .samples = clone_samples,
                      .onnx = onnx_same<"Identity">};

struct DeviceAttrs {
  Device device;
};

// Copies row-major values between two places; one of them is the host, or both are the same device.
void copy_between(const Tensor& to, const Tensor& from) {
  const int64_t bytes = from.numel() * size_of(from.dtype());
  const Device a = from.device(), b = to.device();
  if (recording_somewhere()) [[unlikely]]
    recording::refuse("to", "moves values between devices");
  if (bytes == 0 || b.kind == DeviceKind::meta) return;
  if (a.kind == DeviceKind::meta) {
    throw DeviceError("to_device", "meta tensors have sizes only, no values to move; got " +
                                       to_string(from.sizes()));
  }
  if (a.kind == DeviceKind::cpu) {
    backend(b.kind).copy_from_host(b.index, to.raw(), from.raw(), bytes);
  } else if (b.kind == DeviceKind::cpu) {
    backend(a.kind).copy_to_host(a.index, to.raw(), from.raw(), bytes);
  } else if (a == b) {
    backend(a.kind).copy(a.index, to.raw(), from.raw(), bytes);
  } else {
    const Tensor host = empty(from.sizes(), {.dtype = from.dtype()});
    copy_between(host, from);
    copy_between(to, host);
  }
}

const OpRecord kToDevice{
    .name = "to_device",
    .signature = "to_device(x, device) → y",
    .meaning = "A row-major copy on another device.",
    .formula = "y = x",
    .shapes = kSameShape,
    .dtypes = kAllTypes,
    .forward =
        [](Call& c) {
          const Tensor& x = c.in(0);
          Tensor& out = c.out(0, x.sizes(), x.dtype(), c.attrs<DeviceAttrs>().device);
          copy_between(out, contiguous_raw(x));
        },
    .backward_text = "dx = g on the device of x",
    .backward =
        [](Backward& b) {
          const Edge& e = b.node.edges()[0];
          b.set(0, to_device(b.upstream(), e.node.get()->outputs()[e.slot].device));
        },
    .samples = to_device_samples,
    .onnx = onnx_same<"Identity">};

}  // namespace

Tensor cast(TensorArg x, DType dtype) {
  if (x->dtype() == dtype) return *x;
  return run(kCast, {x}, CastAttrs{dtype});
}
Tensor clone(TensorArg x) { return run(kClone, {x}); }
Tensor contiguous(TensorArg x) {
  if (x->is_contiguous()) return *x;
  return run(kClone, {x});
}
Tensor to_device(TensorArg x, Device device) {
  if (x->device() == device) return *x;
  if (device.kind != DeviceKind::meta) backend(device.kind);  // raises when it is not in this build
  return run(kToDevice, {x}, DeviceAttrs{device});
}

Tensor Tensor::clone(std::source_location at) const { return cutaway::clone({*this, at}); }
Tensor Tensor::contiguous(std::source_location at) const {
  return cutaway::contiguous({*this, at});
}
Tensor Tensor::to(DType dtype, std::source_location at) const { return cast({*this, at}, dtype); }
Tensor Tensor::to(Device device, std::source_location at) const {
  return to_device({*this, at}, device);
}

void register_cast_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kCast, &kClone, &kToDevice});
}

}  // namespace cutaway
