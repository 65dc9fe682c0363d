#pragma once
#include <optional>

#include <cutaway/core/shape.h>

namespace cutaway {

// How elements lie in a storage: sizes, strides and offset, all in elements. Strides are never
// negative; 0 repeats one element (broadcast). Pure functions only, no data.
struct Layout {
  Shape sizes;
  Shape strides;
  int64_t offset = 0;

  static Layout contiguous(const Shape& sizes);

  // Row-major without gaps.
  bool is_contiguous() const;
  // Some permutation of the dimensions is row-major without gaps.
  bool is_dense() const;

  Layout permute(const Shape& dims) const;
  Layout transpose(int a, int b) const;
  // Elements begin, begin+step, … below end of one dimension; bounds already clamped.
  Layout slice(int dim, int64_t begin, int64_t end, int64_t step) const;
  // The dimension `dim` fixed at `index` and removed.
  Layout select(int dim, int64_t index) const;
  // Size-1 and missing leading dimensions repeated to `sizes`.
  Layout expand(const Shape& to) const;
  // The same elements in row-major order under new sizes, if that needs no copy.
  std::optional<Layout> reshape(const Shape& to) const;
};

// Row-major strides of `sizes`.
Shape contiguous_strides(const Shape& sizes);

// `requested` with a -1 entry replaced; raises ShapeError when the number of elements differs or -1
// is ambiguous.
Shape resolve_reshape(const char* op, const Shape& from, const Shape& requested);

// Joins neighbouring dimensions that every operand walks alike, in place, and drops size-1 ones.
// sizes [rank], strides[k] [rank] for each of n operands. Returns the new rank (0 for one element).
int collapse_dims(int rank, int64_t* sizes, int64_t (*strides)[kMaxRank], int n);

}  // namespace cutaway
