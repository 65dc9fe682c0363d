#include <cutaway/autograd/ops/shape.h>

namespace cutaway {

// The shape methods of Tensor: the ops of the same names, with the place of the call handed on.

Tensor Tensor::reshape(const Shape& sizes, At at) const {
  return cutaway::reshape(TensorArg(*this, at), sizes);
}
Tensor Tensor::view(const Shape& sizes, At at) const {
  return cutaway::view(TensorArg(*this, at), sizes);
}
Tensor Tensor::flatten(int64_t from, int64_t to, At at) const {
  return cutaway::flatten(TensorArg(*this, at), from, to);
}
Tensor Tensor::permute(const Shape& dims, At at) const {
  return cutaway::permute(TensorArg(*this, at), dims);
}
Tensor Tensor::transpose(int64_t a, int64_t b, At at) const {
  return cutaway::transpose(TensorArg(*this, at), a, b);
}
Tensor Tensor::t(At at) const { return cutaway::t(TensorArg(*this, at)); }
Tensor Tensor::squeeze(At at) const { return cutaway::squeeze(TensorArg(*this, at)); }
Tensor Tensor::squeeze(int64_t dim, At at) const {
  return cutaway::squeeze(TensorArg(*this, at), dim);
}
Tensor Tensor::unsqueeze(int64_t dim, At at) const {
  return cutaway::unsqueeze(TensorArg(*this, at), dim);
}
Tensor Tensor::expand(const Shape& sizes, At at) const {
  return cutaway::expand(TensorArg(*this, at), sizes);
}
Tensor Tensor::select(int64_t dim, int64_t index, At at) const {
  return cutaway::select(TensorArg(*this, at), dim, index);
}
Tensor Tensor::slice(int64_t dim, int64_t begin, int64_t end, int64_t step, At at) const {
  return cutaway::slice(TensorArg(*this, at), dim, begin, end, step);
}

}  // namespace cutaway
