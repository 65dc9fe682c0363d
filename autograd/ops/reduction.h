#pragma once
#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/op.h>
#include <cutaway/core/reduce_args.h>

// What the records of reductions share. Internal: not part of ops.h.
namespace cutaway {

// Result type of sums and products.
inline DType sum_type(DType t) { return is_floating(t) ? t : DType::i64; }

// Which dimensions a reduction takes away. `p` is the order of a norm or the correction of a
// variance.
struct ReduceAttrs {
  Shape dims;
  bool all = true;  // every dimension; dims is not read
  bool keepdim = false;
  double p = 0;
};
inline ReduceAttrs over_all(bool keepdim, double p = 0) { return {.keepdim = keepdim, .p = p}; }
inline ReduceAttrs over(const Shape& dims, bool keepdim, double p = 0) {
  return {.dims = dims, .all = false, .keepdim = keepdim, .p = p};
}

// Bit d is set when dimension d of `sizes` is reduced. Raises IndexError for a dimension out of
// range and ValueError for one named twice.
uint32_t reduced_mask(const char* op, const ReduceAttrs& attrs, const Shape& sizes);
// Sizes of the result.
Shape reduced_sizes(const Shape& sizes, uint32_t mask, bool keepdim);
// Number of elements reduced into one.
int64_t reduced_count(const Shape& sizes, uint32_t mask);
// Raises ShapeError when outputs of a reduction without identity would have no element.
void require_elements(const char* op, const Shape& sizes, uint32_t mask);

// A result or its gradient with the reduced dimensions put back as size 1.
Tensor with_reduced_dims(const Tensor& t, const Shape& sizes, uint32_t mask);
// The dimensions of a mask as a list.
Shape mask_dims(uint32_t mask);

// 0, 1, … along `dim` (i64), size 1 elsewhere: compared with an index, it says where that points.
Tensor positions(const Shape& sizes, int dim, Device device);

// What a rule needs to know again in backward.
struct Reduced {
  const ReduceAttrs& attrs;
  Shape sizes;  // of the input
  uint32_t mask;
  Shape dims;

  explicit Reduced(const Backward& b)
      : attrs(b.attrs<ReduceAttrs>()),
        sizes(b.input_sizes(0)),
        mask(reduced_mask("backward", attrs, sizes)),
        dims(mask_dims(mask)) {}
  // Number of elements in one result, 1 for none (then there is no gradient to divide).
  double divisor() const {
    const int64_t n = reduced_count(sizes, mask);
    return n > 0 ? double(n) : 1;
  }
  Tensor restore(const Tensor& t) const { return with_reduced_dims(t, sizes, mask); }
};

// Checks, output of type `out`, and one run of `kernel`.
void reduce_into(Call& c, Kernel<ReduceArgs>& kernel, DType out);

// The same as one node of ONNX, which gives result 0; operands in type `t`.
void onnx_reduce(OnnxCall& c, const char* type, DType t);

}  // namespace cutaway
