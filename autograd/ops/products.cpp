#include <cutaway/autograd/ops/products.h>

#include <algorithm>
#include <numeric>

#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/index.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

// Values in the order of their places, and where each group begins and ends. Found on the host.
struct Groups {
  std::vector<int64_t> order, rank, begin, end;

  explicit Groups(const Tensor& places)
      : order(size_t(places.numel())), rank(order.size()), begin(order.size()), end(order.size()) {
    const Tensor host = host_copy("products_of_others", places);
    const int64_t* at = host.data<int64_t>();
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return at[a] < at[b]; });
    const size_t n = order.size();
    for (size_t i = 0, j = 0; i < n; i = j) {
      while (j < n && at[order[j]] == at[order[i]]) ++j;
      for (size_t k = i; k < j; ++k) begin[k] = int64_t(i), end[k] = int64_t(j);
    }
    for (size_t k = 0; k < n; ++k) rank[size_t(order[k])] = int64_t(k);
  }
  int64_t longest() const {
    int64_t n = 0;
    for (size_t k = 0; k < begin.size(); ++k) n = std::max(n, end[k] - begin[k]);
    return n;
  }
};

// y_k = x_{k+step} inside the group, 1 beyond its ends.
Tensor shifted(const Tensor& x, const Groups& g, int64_t step) {
  const int64_t n = x.numel();
  std::vector<int64_t> from(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    const int64_t at = k + step;
    from[size_t(k)] = at >= g.begin[size_t(k)] && at < g.end[size_t(k)] ? at : n;
  }
  const Tensor one = ones({1}, {.dtype = x.dtype(), .device = x.device()});
  return index_select(cat({x, one}), 0, index_tensor(from).to(x.device()));
}

// Products of the values before (direction -1) or behind (1) each one in its group.
Tensor products_towards(const Tensor& sorted, const Groups& g, int64_t direction) {
  Tensor product = shifted(sorted, g, direction);
  for (int64_t step = 1; step + 1 < g.longest(); step *= 2) {
    product = product * shifted(product, g, direction * step);
  }
  return product;
}

}  // namespace

Tensor products_of_others(const Tensor& values, const Tensor& places) {
  const Groups groups(places);
  const Device device = values.device();
  const Tensor sorted = index_select(values, 0, index_tensor(groups.order).to(device));
  const Tensor others = products_towards(sorted, groups, -1) * products_towards(sorted, groups, 1);
  return index_select(others, 0, index_tensor(groups.rank).to(device));
}

}  // namespace cutaway
