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

namespace kernels {
inline constinit Kernel<TriangleArgs> triangle{"triangle"};
}  // namespace kernels

}  // namespace cutaway
