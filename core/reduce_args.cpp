#include <cutaway/core/reduce_args.h>

#include <utility>

#include <cutaway/core/layout.h>

namespace cutaway {
namespace {

// Largest stride first (insertion sort: at most 8 entries).
void sort_by_stride(int rank, int64_t* sizes, int64_t* strides) {
  for (int i = 1; i < rank; ++i) {
    for (int j = i; j > 0 && strides[j] > strides[j - 1]; --j) {
      std::swap(strides[j], strides[j - 1]);
      std::swap(sizes[j], sizes[j - 1]);
    }
  }
}

int collapse(int rank, int64_t* sizes, int64_t* strides) {
  int64_t walk[1][kMaxRank];
  for (int d = 0; d < rank; ++d) walk[0][d] = strides[d];
  const int collapsed = collapse_dims(rank, sizes, walk, 1);
  for (int d = 0; d < collapsed; ++d) strides[d] = walk[0][d];
  return collapsed;
}

}  // namespace

ReduceArgs reduce_args(const Tensor& x, const Tensor& out, uint32_t reduced, bool ordered) {
  ReduceArgs a;
  a.in = x.raw();
  a.out = out.raw();
  const Layout& layout = x.layout();
  if (x.is_contiguous() && reduced + 1 == 1u << layout.sizes.rank()) {  // all of it, in one run
    a.reduced_rank = 1;
    a.reduced_sizes[0] = a.count = x.numel();
    a.reduced_strides[0] = 1;
    return a;
  }
  for (int d = 0; d < layout.sizes.rank(); ++d) {
    const bool is_reduced = reduced >> d & 1;
    int& rank = is_reduced ? a.reduced_rank : a.kept_rank;
    (is_reduced ? a.reduced_sizes : a.kept_sizes)[rank] = layout.sizes[d];
    (is_reduced ? a.reduced_strides : a.kept_strides)[rank] = layout.strides[d];
    (is_reduced ? a.count : a.outputs) *= layout.sizes[d];
    ++rank;
  }
  if (!ordered) sort_by_stride(a.reduced_rank, a.reduced_sizes, a.reduced_strides);
  if (a.outputs == 0 || a.count == 0) return a;
  a.kept_rank = collapse(a.kept_rank, a.kept_sizes, a.kept_strides);
  a.reduced_rank = collapse(a.reduced_rank, a.reduced_sizes, a.reduced_strides);
  return a;
}

}  // namespace cutaway
