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
