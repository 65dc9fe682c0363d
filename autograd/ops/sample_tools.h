#pragma once
#include <cutaway/autograd/reference.h>

namespace cutaway {

// Position of `index` among the row-major elements of `sizes`.
inline int64_t flat_index(const Shape& sizes, const Shape& index) {
  int64_t at = 0;
  for (int d = 0; d < sizes.rank(); ++d) at = at * sizes[d] + index[d];
  return at;
}

// Calls f(index) for every index of `sizes`, in row-major order.
template <class F>
void for_each_index(const Shape& sizes, F&& f) {
  const int64_t n = sizes.numel();
  for (int64_t flat = 0; flat < n; ++flat) {
    Shape index = sizes;
    int64_t rest = flat;
    for (int d = sizes.rank() - 1; d >= 0; --d) {
      index[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    f(index);
  }
}

// y[i] = x[from(i)] for every index i of `sizes`: the plain form of all ops that only move
// elements.
template <class F>
Tensors moved(const Tensor& x, const Shape& sizes, F&& from) {
  const Ref in(x);
  Ref out(sizes);
  size_t k = 0;
  for_each_index(sizes,
                 [&](const Shape& i) { out.v[k++] = in.v[size_t(flat_index(in.sizes, from(i)))]; });
  return {out.tensor()};
}

// The same elements in row-major order under other sizes.
inline Tensors relabelled(const Tensor& x, const Shape& sizes) {
  Ref out(sizes);
  out.v = Ref(x).v;
  return {out.tensor()};
}

}  // namespace cutaway
