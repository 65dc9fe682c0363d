#pragma once
#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/kernels/index.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {

// How a scatter is cut into lines: places that differ in no dimension but `dim` lie on one line,
// and only they can meet. Neighbouring lines (lanes) lie along the last dimension.
struct ScatterLines {
  int64_t length;            // of the index along dim
  int64_t lanes, lines = 1;  // lines: of the dimensions that are neither dim nor the last
  int64_t index_along = 1, out_along, src_along;  // one step along a line
  int64_t out_beside, src_beside;                 // one lane further
  int rank = 0;
  int64_t sizes[kMaxRank] = {}, out_strides[kMaxRank] = {}, src_strides[kMaxRank] = {},
          index_strides[kMaxRank] = {};

  explicit ScatterLines(const ScatterArgs& a) {
    const int last = a.rank - 1;
    length = a.sizes[a.dim];
    lanes = a.dim == last ? 1 : a.sizes[last];
    int64_t dense[kMaxRank] = {};
    int64_t step = 1;
    for (int d = last; d >= 0; --d) {
      dense[d] = step;
      step *= a.sizes[d];
    }
    index_along = dense[a.dim];
    out_along = a.out_strides[a.dim];
    src_along = a.src_strides[a.dim];
    out_beside = a.dim == last ? 0 : a.out_strides[last];
    src_beside = a.dim == last ? 0 : a.src_strides[last];
    for (int d = 0; d < a.rank; ++d) {
      if (d == a.dim || d == last) continue;
      sizes[rank] = a.sizes[d];
      out_strides[rank] = a.out_strides[d];
      src_strides[rank] = a.src_strides[d];
      index_strides[rank++] = dense[d];
      lines *= a.sizes[d];
    }
  }
  // Offset of lane `first` of a line.
  int64_t out_at(int64_t line, int64_t first) const {
    return Odometer(rank, sizes, out_strides, line).offset + first * out_beside;
  }
  int64_t src_at(int64_t line, int64_t first) const {
    return Odometer(rank, sizes, src_strides, line).offset + first * src_beside;
  }
  int64_t index_at(int64_t line, int64_t first) const {
    return Odometer(rank, sizes, index_strides, line).offset + first;
  }
};

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
