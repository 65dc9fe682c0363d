#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// Ops that put tensors together, take them apart, or write elements in another order.

// Tensors one after the other along `dim`; other sizes must agree, types are promoted. As in
// PyTorch a 1-d tensor of size 0 fits everywhere and is skipped. Raises ValueError for an empty
// list, ShapeError.
Tensor cat(const Tensors& tensors, int64_t dim = 0,
           std::source_location at = std::source_location::current());
// Tensors of equal sizes as slices of a new dimension `dim`; types are promoted.
Tensor stack(const Tensors& tensors, int64_t dim = 0,
             std::source_location at = std::source_location::current());

// Pieces of `size` along `dim`, the last one may be smaller; one empty piece for an empty
// dimension. Views. Raises ValueError for size < 1 (0 is allowed for an empty dimension).
Tensors split(TensorArg x, int64_t size, int64_t dim = 0);
// Pieces of the given sizes, which must add up. Views.
Tensors split_sizes(TensorArg x, std::span<const int64_t> sizes, int64_t dim = 0);
// At most `chunks` pieces of ceil(n / chunks) elements. Views.
Tensors chunk(TensorArg x, int64_t chunks, int64_t dim = 0);
// Exactly `sections` pieces whose sizes differ by at most one, larger ones first. Views.
Tensors tensor_split(TensorArg x, int64_t sections, int64_t dim = 0);
// Pieces between the given bounds, clamped as in slices. Views.
Tensors tensor_split_at(TensorArg x, std::span<const int64_t> bounds, int64_t dim = 0);
// The slices x[0], x[1], … of dimension `dim`, without it. Views.
Tensors unbind(TensorArg x, int64_t dim = 0);

struct MeshgridOptions {
  bool xy = false;  // the first two results swapped, as for pictures: sizes [m, n, ...]
};
// For vectors of sizes n, m, …: grids [n, m, ...] with grid_k[i_0, i_1, …] = x_k[i_k]. Views.
Tensors meshgrid(const Tensors& vectors, MeshgridOptions options = {},
                 std::source_location at = std::source_location::current());

// Elements in reverse order along each of `dims`.
Tensor flip(TensorArg x, const Shape& dims);
// Elements moved by shifts[i] along dims[i]; those beyond the end come in at the front. Without
// dims the flattened tensor is rolled.
Tensor roll(TensorArg x, const Shape& shifts, const Shape& dims = {});

enum class PadMode : uint8_t { constant, reflect, replicate, circular };
struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0;  // of new elements in mode constant
};
// Elements added before and after along the last dimensions: pads = {before, after} of the last
// one, then of the one before it, and so on; negative numbers cut. reflect mirrors without the edge
// (pads < size), replicate repeats the edge, circular continues from the other end (pads <= size).
// Raises ShapeError.
Tensor pad(TensorArg x, const Shape& pads, PadOptions options = {});

// The whole tensor repeats[i] times along dimension i; new dimensions come in front. Copies.
Tensor repeat(TensorArg x, const Shape& repeats);
// As repeat, but a short list applies to the last dimensions.
Tensor tile(TensorArg x, const Shape& repeats);
// Each element `n` times in a row along `dim`.
Tensor repeat_interleave(TensorArg x, int64_t n, int64_t dim);

// A window that moves over the two last dimensions.
struct Window2d {
  int64_t kernel[2] = {1, 1};  // height, width
  int64_t stride[2] = {1, 1};
  int64_t padding[2] = {0, 0};  // zeros on both sides
  int64_t dilation[2] = {1, 1};
};
// Every window as a column: x [N,C,H,W] → y [N, C·kh·kw, L], L = windows in row-major order.
// y[n, (c·kh+a)·kw+b, l] = x[n, c, i·stride - padding + a·dilation, …]. Raises ShapeError.
Tensor unfold2d(TensorArg x, const Window2d& window);
// The adjoint: windows added up into zeros, x [N, C·kh·kw, L] → y [N,C,H,W] with H, W = sizes.
Tensor fold2d(TensorArg x, const Shape& sizes, const Window2d& window);

}  // namespace cutaway
