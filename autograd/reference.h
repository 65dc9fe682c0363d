#pragma once
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway {

// A plain f64 array for reference computations: row-major values and sizes, nothing clever.
struct Ref {
  Shape sizes;
  std::vector<double> v;

  explicit Ref(const Tensor& t) : sizes(t.sizes()), v(t.to_vector()) {}
  explicit Ref(const Shape& s, double fill = 0) : sizes(s), v(size_t(s.numel()), fill) {}
  Tensor tensor() const {
    Tensor t = cutaway::tensor(std::span<const double>(v), {.dtype = DType::f64});
    return make_view(t, Layout::contiguous(sizes));
  }
  // Product of sizes before, at, and after dimension d: the usual three loops.
  int64_t outer(int d) const { return sizes.slice(0, d).numel(); }
  int64_t inner(int d) const { return sizes.slice(d + 1, sizes.rank()).numel(); }
};

}  // namespace cutaway
