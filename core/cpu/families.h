#pragma once

// The kernel families of the CPU, one a line. Each defines register_<family>_kernels() in the
// namespace of its variant.
#define CUTAWAY_CPU_FAMILIES(X) \
  X(attention) \
  X(conv) \
  X(extreme) \
  X(group_shared) \
  X(index) \
  X(index_reduce) \
  X(labels) \
  X(loss) \
  X(lstm) \
  X(magnitude) \
  X(matmul) \
  X(norm) \
  X(optim) \
  X(pointwise) \
  X(pool) \
  X(rearrange) \
  X(rearrange_sum) \
  X(reduce) \
  X(row_norm) \
  X(rows) \
  X(resize) \
  X(scan) \
  X(sort)
