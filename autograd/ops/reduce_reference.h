#pragma once
#include <functional>

#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/reduction.h>
#include <cutaway/autograd/ops/sample_tools.h>

// Plain references for reductions and rows. Used by *_samples.cpp only.
namespace cutaway {

// Full Jacobians are for small inputs.
inline bool in_reach_of_checks(const Sample& s) {
  for (const Tensor& t : s.inputs) {
    if (t.defined() && t.numel() > 200) return false;
  }
  return true;
}

using ListFn = std::function<double(const std::vector<double>&)>;

// For each output of a reduction: f of the list of its reduced elements, in row-major order.
inline Tensors reduce_ref(const Tensor& x, const ReduceAttrs& attrs, const ListFn& f) {
  const Ref in(x);
  const uint32_t mask = reduced_mask("reference", attrs, in.sizes);
  const Shape kept = reduced_sizes(in.sizes, mask, true);
  std::vector<std::vector<double>> lists(size_t(kept.numel()));
  size_t k = 0;
  for_each_index(in.sizes, [&](Shape i) {
    for (int d = 0; d < i.rank(); ++d) {
      if (mask >> d & 1) i[d] = 0;
    }
    lists[size_t(flat_index(kept, i))].push_back(in.v[k++]);
  });
  Ref out(reduced_sizes(in.sizes, mask, attrs.keepdim));
  for (size_t o = 0; o < lists.size(); ++o) out.v[o] = f(lists[o]);
  return {out.tensor()};
}

// A list for a list along dimension `dim`: y has the sizes of x.
using RowFn = std::function<std::vector<double>(const std::vector<double>&)>;
inline Tensors row_ref(const Tensor& x, int64_t dim, const RowFn& f) {
  Ref in(x);
  if (in.sizes.rank() == 0) {
    in.v = f(in.v);
    return {in.tensor()};
  }
  const int d = normalize_dim("reference", dim, in.sizes.rank());
  const int64_t n = in.sizes[d], inner = in.inner(d);
  for (int64_t o = 0; o < in.outer(d); ++o) {
    for (int64_t k = 0; k < inner; ++k) {
      std::vector<double> list;
      for (int64_t i = 0; i < n; ++i) list.push_back(in.v[size_t((o * n + i) * inner + k)]);
      list = f(list);
      for (int64_t i = 0; i < n; ++i) in.v[size_t((o * n + i) * inner + k)] = list[size_t(i)];
    }
  }
  return {in.tensor()};
}

}  // namespace cutaway
