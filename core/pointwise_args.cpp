#include <cutaway/core/pointwise_args.h>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

PointwiseArgs pointwise_args(const Tensor& out, const Tensor* const* inputs, int n) {
  PointwiseArgs a;
  const TensorImpl& o = *out.impl();
  a.numel = o.numel;
  a.out = out.raw();
  bool flat = o.contiguous;
  for (int k = 0; k < n; ++k) {
    const TensorImpl& in = *inputs[k]->impl();
    a.in[k] = inputs[k]->raw();
    flat = flat && in.contiguous && in.numel == o.numel;
  }
  if (flat) {
    a.rank = 1;
    a.sizes[0] = o.numel;
    for (int k = 0; k <= n; ++k) a.strides[k][0] = 1;
    return a;
  }
  const int rank = o.layout.sizes.rank();
  for (int d = 0; d < rank; ++d) {
    a.sizes[d] = o.layout.sizes[d];
    a.strides[0][d] = o.layout.strides[d];
  }
  for (int k = 1; k <= n; ++k) {
    const Layout& in = inputs[k - 1]->layout();
    const int shift = rank - in.sizes.rank();
    for (int d = 0; d < shift; ++d) a.strides[k][d] = 0;
    for (int d = 0; d < in.sizes.rank(); ++d) {
      a.strides[k][shift + d] = in.sizes[d] == 1 ? 0 : in.strides[d];
    }
  }
  a.rank = collapse_dims(rank, a.sizes, a.strides, n + 1);
  return a;
}

void copy_elements(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0) return;
  if (dst.device() != src.device()) [[unlikely]] {
    throw DeviceError("copy",
                      "values to copy must be on one device; got " + to_string(src.device()) +
                          " to " + to_string(dst.device()),
                      "move one of them with to(device)");
  }
  PointwiseArgs a = pointwise_args(dst, {&src});
  a.other = src.dtype();
  kernels::copy(dst.device(), dst.dtype(), a);
}

Tensor contiguous_raw(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor out = empty(t.sizes(), {.dtype = t.dtype(), .device = t.device()});
  if (!t.is_meta()) copy_elements(out, t);
  return out;
}

Tensor cast_raw(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return contiguous_raw(t);
  Tensor out = empty(t.sizes(), {.dtype = dtype, .device = t.device()});
  if (!t.is_meta()) copy_elements(out, t);
  return out;
}

}  // namespace cutaway
