#pragma once
#include <cutaway/core/kernel.h>

namespace cutaway {

// Pooling over three spatial dimensions (missing leading ones have size 1), one plane [in…] →
// [out…] for each of `planes`. The window of output o along dimension d holds the inputs
// begin[d][o], begin[d][o] + step[d], … below end[d][o]; it lies inside the input.
struct PoolArgs {
  int64_t planes = 0;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  const int64_t* begin[3] = {};  // host
  const int64_t* end[3] = {};    // host
  int64_t step[3] = {1, 1, 1};
  const double* divisor[3] = {};  // host; average: 1 / (product over d of divisor[d][o]) …
  double fixed_divisor = 0;       // … or this number where it is not 0
  const void* x = nullptr;        // input; of average_grad the upstream [planes,out…]
  void* result = nullptr;
  int64_t* indices = nullptr;  // max: flat position of each maximum in its plane
};

// Moves single elements of planes: scatter adds from[p,o] into result[p, indices[p,o]]; gather
// reads them back.
struct PlaneIndexArgs {
  int64_t planes = 0, in = 0,
          out = 0;  // elements of one plane: of the large side, of the index side
  const int64_t* indices = nullptr;
  const void* from = nullptr;
  void* result = nullptr;
};

inline void visit_args(ArgumentVisitor& v, PoolArgs& a) {
  v.numbers({{"planes", a.planes}, {"h", a.out[1]}, {"w", a.out[2]}});
  for (int d = 0; d < 3; ++d) {
    v.host(a.begin[d], a.out[d]);
    v.host(a.end[d], a.out[d]);
    v.host(a.divisor[d], a.out[d]);
  }
  v.reads(a.x);
  v.writes(a.result);
  v.writes(a.indices);
}
inline void visit_args(ArgumentVisitor& v, PlaneIndexArgs& a) {
  v.numbers({{"planes", a.planes}, {"in", a.in}, {"out", a.out}});
  v.reads(a.indices);
  v.reads(a.from);
  v.writes(a.result);
}

namespace kernels {
inline constinit Kernel<PoolArgs> max_pool{"max_pool"};
inline constinit Kernel<PoolArgs> avg_pool{"avg_pool"};
inline constinit Kernel<PoolArgs> avg_pool_grad{"avg_pool_grad"};
inline constinit Kernel<PlaneIndexArgs> plane_scatter{"plane_scatter"};
inline constinit Kernel<PlaneIndexArgs> plane_gather{"plane_gather"};
}  // namespace kernels

}  // namespace cutaway
