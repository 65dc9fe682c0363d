#pragma once
#include <optional>

#include <cutaway/autograd/op.h>

namespace cutaway {

// Shared by the ops with indices.

struct IndexAttrs {
  int64_t dim = 0;
  bool skip = false;  // an index of -1 means: nowhere. For backward rules only
};

// Dense i64 values of an index; raises DTypeError unless its type is i64 or i32.
Tensor index_values(const char* op, const Tensor& index);
// Raises IndexError unless all low <= index < n (low is -1 with `skip`, else 0). index:
// index_values.
void check_index(const char* op, const Tensor& index, int64_t n, bool skip = false);
// First position of a dense i64 tensor whose value lies outside of [low, high), or -1; `ignored`
// may stand anywhere. Waits for the device.
int64_t first_outside(const Tensor& dense, int64_t low, int64_t high,
                      std::optional<int64_t> ignored = {});
// The value at a position of a dense i64 tensor, for messages.
int64_t value_at(const Tensor& dense, int64_t at);
// Raises DTypeError unless the two have one type.
void require_same_type(const char* op, const Tensor& x, const Tensor& src);
// Raises DeviceError: results whose size depends on values have no sizes on meta.
void refuse_meta(const char* op, const Tensor& t);

Tensor zeros_like_sizes(const Shape& sizes, const Tensor& like);
// Output 0 with the values of input 0: its own buffer if that is a temporary, else a copy.
Tensor& copy_to_out(Call& c);

// Positions that are read by no other: gather and index_select with -1 allowed, giving zero.
Tensor gather_or_zero(const Tensor& x, int64_t dim, const Tensor& index);
Tensor take_or_zero(const Tensor& x, int64_t dim, const Tensor& index);
// Their adjoints.
Tensor scatter_add_skipping(Tensor x, int64_t dim, const Tensor& index, const Tensor& src);
Tensor index_add_skipping(Tensor x, int64_t dim, const Tensor& index, const Tensor& src);

// Flat positions (i64 [count]) of the elements of a dense tensor that are not zero.
Tensor nonzero_positions(const Tensor& dense);

// Where a and b are equal, or both NaN.
Tensor same_or_nan(const Tensor& a, const Tensor& b);

}  // namespace cutaway
