#pragma once
#include <memory>

#include <cutaway/core/tensor.h>

namespace cutaway {

namespace detail {

// Parameters converted so far; the newest scope of the thread is used. A guard has one; a recording
// takes one of its own, as it may not use tensors that were there before.
class ConvertedParameters {
 public:
  ConvertedParameters();
  ~ConvertedParameters();
  ConvertedParameters(const ConvertedParameters&) = delete;
  // `t` in the type `low`, with its history; from the newest scope if it is a parameter.
  static Tensor convert(const Tensor& t, DType low);

 private:
  struct Entry {
    Tensor source, low;
    uint32_t version;  // of the source, when it was converted
  };
  const Tensor& values(const Tensor& t, DType low);
  std::vector<Entry> entries_;
  ConvertedParameters* before_;
};

}  // namespace detail

// Mixed precision while alive: products, convolutions and attention compute in `low` (bf16 or f16;
// f32 switches an outer guard off), ops that lose too much there (losses, norms, sums, …: the
// `autocast` line of `cutaway ops NAME`) in f32, all others in the type they are given. Parameters
// stay f32 and so do their gradients. Use it around the forward pass and the loss; the backward
// pass follows the types of the forward pass.
//
//   {
//     AutocastGuard autocast;
//     loss = cross_entropy(model(x), y);
//   }
//   loss.backward();
//
// A parameter that several ops read is converted once for each guard and each change of its values.
// Raises DTypeError for other types. f16 has gradients that vanish below 6e−8: scale the loss.
class AutocastGuard {
 public:
  explicit AutocastGuard(DType low = DType::bf16);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;

 private:
  uint8_t before_;
  detail::ConvertedParameters parameters_;
};

}  // namespace cutaway
