#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Sparse linear map in which `group` consecutive outputs share the indices of their inputs
// ("HASTE", Ullah et al., ICML 2026): y[b, l] = bias[l] + Σ_j weight[l, j] · x[b, index[l / group,
// j]]. x [B,H], index [K,F] of type i32 or i64 with K = ⌈L / group⌉, weight [L,F], bias [L] or
// undefined → [B,L]. With group 1 every output has indices of its own. An index that occurs twice
// counts twice. Raises ShapeError when sizes do not fit, ValueError for a group below 1, IndexError
// for an index outside of [0, H).
Tensor group_shared_linear(TensorArg x, TensorArg index, TensorArg weight, TensorArg bias,
                           int64_t group);

// Its derivative in x for the upstream gradient g [B,L]: → [B,features],
// y[b, h] = Σ weight[l, j] · g[b, l] over all l, j with index[l / group, j] = h. Raises as above.
Tensor group_shared_input_grad(TensorArg g, TensorArg index, TensorArg weight, int64_t features,
                               int64_t group);

// Its derivative in weight: → [L,F], y[l, j] = Σ_b g[b, l] · x[b, index[l / group, j]]. Raises as
// above.
Tensor group_shared_weight_grad(TensorArg g, TensorArg index, TensorArg x, int64_t group);

}  // namespace cutaway
