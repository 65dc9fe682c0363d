#pragma once
#include <cutaway/core/kernel.h>
#include <cutaway/core/shape.h>

namespace cutaway {

// One triangle of each of `count` row-major matrices [rows, columns]; the rest becomes zero.
struct TriangleArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t count = 0, rows = 0, columns = 0;
  int64_t diagonal = 0;
  bool upper = false;
};

// `rows` rows, each made of row_bytes[0] bytes of in[0], then row_bytes[1] bytes of in[1], …; every
// input is dense.
struct ConcatArgs {
  const void* const* in = nullptr;     // host list of device pointers
  const int64_t* row_bytes = nullptr;  // host
  int64_t count = 0, rows = 0;
  void* out = nullptr;
};

// out[i_0, i_1, …] = in[map_0[i_0], map_1[i_1], …], or the fill value where an entry is -1; a null
// map is the identity. Both dense. Used by flip, roll, pad, repeat.
struct RemapArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int rank = 0;  // at least 1
  int64_t in_sizes[kMaxRank] = {};
  int64_t out_sizes[kMaxRank] = {};
  const int64_t* map[kMaxRank] = {};  // host
  const void* fill = nullptr;         // one element
};
// The adjoint: every element of `in` [in_sizes] is the sum of the elements of `out` it was copied
// to. Those of coordinate i of dimension d are places[d][starts[d][i]] …
// places[d][starts[d][i+1]-1]; a null list is the identity. Sums are taken in order, in f64 for
// floating types, and rounded once.
struct RemapSumArgs {
  void* in = nullptr;
  const void* out = nullptr;
  int rank = 0;
  int64_t in_sizes[kMaxRank] = {};
  int64_t out_sizes[kMaxRank] = {};
  const int64_t* starts[kMaxRank] = {};  // host
  const int64_t* places[kMaxRank] = {};  // host
};

// Windows of `size` every `step` elements: g [outer, windows, inner, size] is summed into
// out [outer, n, inner]. In order, in f64 for floating types.
struct WindowSumArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t outer = 0, n = 0, inner = 0, windows = 0, size = 0, step = 0;
};

// image [planes, height, width] ↔ columns [planes, kernel_h·kernel_w, out_h·out_w].
struct ColumnsArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t planes = 0, height = 0, width = 0, out_h = 0, out_w = 0;
  int64_t kernel[2] = {}, stride[2] = {}, padding[2] = {}, dilation[2] = {};
};

inline void visit_args(ArgumentVisitor& v, TriangleArgs& a) {
  v.numbers({{"count", a.count}, {"rows", a.rows}, {"columns", a.columns}});
  v.reads(a.in);
  v.writes(a.out);
}
inline void visit_args(ArgumentVisitor& v, ConcatArgs& a) {
  v.numbers({{"inputs", a.count}, {"rows", a.rows}});
  v.host(a.in, a.count);
  v.host(a.row_bytes, a.count);
  for (int64_t i = 0; i < a.count; ++i) v.reads(const_cast<const void*&>(a.in[i]));
  v.writes(a.out);
}
inline void visit_args(ArgumentVisitor& v, RemapArgs& a) {
  v.sizes(a.out_sizes, a.rank);
  for (int d = 0; d < a.rank; ++d) v.host(a.map[d], a.out_sizes[d]);
  v.reads(a.in);
  v.reads(a.fill);
  v.writes(a.out);
}
inline void visit_args(ArgumentVisitor& v, RemapSumArgs& a) {
  v.sizes(a.in_sizes, a.rank);
  for (int d = 0; d < a.rank; ++d) {
    if (a.starts[d]) v.host(a.places[d], a.starts[d][a.in_sizes[d]]);
    v.host(a.starts[d], a.in_sizes[d] + 1);
  }
  v.reads(a.out);
  v.writes(a.in);
}
inline void visit_args(ArgumentVisitor& v, WindowSumArgs& a) {
  v.numbers({{"outer", a.outer}, {"n", a.n}, {"inner", a.inner}, {"windows", a.windows}});
  v.reads(a.in);
  v.writes(a.out);
}
inline void visit_args(ArgumentVisitor& v, ColumnsArgs& a) {
  v.numbers({{"planes", a.planes}, {"h", a.height}, {"w", a.width}});
  v.reads(a.in);
  v.writes(a.out);
}

namespace kernels {
inline constinit Kernel<TriangleArgs> triangle{"triangle"};
inline constinit Kernel<ConcatArgs> concat{"concat"};
inline constinit Kernel<RemapArgs> remap{"remap"};
inline constinit Kernel<RemapSumArgs> remap_sum{"remap_sum"};
inline constinit Kernel<WindowSumArgs> window_sum{"window_sum"};
inline constinit Kernel<ColumnsArgs> image_to_columns{"image_to_columns"};
inline constinit Kernel<ColumnsArgs> columns_to_image{"columns_to_image"};
}  // namespace kernels

}  // namespace cutaway
