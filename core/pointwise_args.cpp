#include <cutaway/core/pointwise_args.h>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

PointwiseArgs pointwise_args(const Tensor& out, std::initializer_list<const Tensor*> inputs) {
  PointwiseArgs a;
  const TensorImpl& o = *out.impl();
  a.numel = o.numel;
  a.out = out.raw();
  const int n = 1 + int(inputs.size());
  bool flat = o.contiguous;
  int k = 0;
  for (const Tensor* t : inputs) {
    const TensorImpl& in = *t->impl();
    a.in[k++] = t->raw();
    flat = flat && in.contiguous && in.numel == o.numel;
  }
  if (flat) {
    a.rank = 1;
    a.sizes[0] = o.numel;
    for (int i = 0; i < n; ++i) a.strides[i][0] = 1;
    return a;
  }
  const int rank = o.layout.sizes.rank();
  for (int d = 0; d < rank; ++d) {
    a.sizes[d] = o.layout.sizes[d];
    a.strides[0][d] = o.layout.strides[d];
  }
  k = 1;
  for (const Tensor* t : inputs) {
    const Layout& in = t->layout();
    const int shift = rank - in.sizes.rank();
    for (int d = 0; d < shift; ++d) a.strides[k][d] = 0;
    for (int d = 0; d < in.sizes.rank(); ++d) {
      a.strides[k][shift + d] = in.sizes[d] == 1 ? 0 : in.strides[d];
    }
    ++k;
  }
  a.rank = collapse_dims(rank, a.sizes, a.strides, n);
  return a;
}

void copy_elements(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0) return;
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
