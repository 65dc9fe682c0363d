#pragma once
#include <cutaway/core/rng.h>
#include <cutaway/core/tensor.h>

namespace cutaway {

// Random tensors. Note: random ops. Numbers come from `generator`, or from default_generator() when
// it is null, and depend on its state and the element's index only: not on threads, device or how
// many elements follow. Each call moves the generator on.

// Uniform in [0, 1); normal with mean 0 and variance 1. Floating types, else DTypeError.
Tensor rand(const Shape& sizes, Opts opts = {}, Generator* generator = nullptr);
Tensor randn(const Shape& sizes, Opts opts = {}, Generator* generator = nullptr);
// Whole numbers in [low, high), each equally likely; low ≥ high raises ValueError.
Tensor randint(int64_t low, int64_t high, const Shape& sizes, Opts opts = {.dtype = DType::i64},
               Generator* generator = nullptr);
// A random order of 0 … n−1; n < 0 raises ValueError.
Tensor randperm(int64_t n, Opts opts = {.dtype = DType::i64}, Generator* generator = nullptr);

// 1 with probability p, else 0, in p's type; p outside [0, 1] or NaN raises ValueError.
Tensor bernoulli(TensorArg p, Generator* generator = nullptr);
// x with each element set to 0 with probability p, the others divided by 1 − p; p = 1 gives zeros.
// Keeps no mask: backward draws the same numbers again. p outside [0, 1] raises ValueError.
Tensor dropout(TensorArg x, double p = 0.5, Generator* generator = nullptr);

struct MultinomialOptions {
  bool replacement = false;
};
// Indices drawn with probabilities proportional to weights [C] or [N,C]; y [n] or [N,n] of i64. An
// index of weight 0 is never drawn. Negative, infinite or NaN weights, a sum of 0, and more draws
// without replacement than positive weights raise ValueError.
Tensor multinomial(const Tensor& weights, int64_t n, MultinomialOptions options = {},
                   Generator* generator = nullptr);

// Overwrite a floating tensor; in place, so under the rules of in-place ops: a leaf that requires
// grad needs NoGradGuard.
Tensor& random_uniform_(Tensor& t, double low = 0, double high = 1, Generator* generator = nullptr);
Tensor& random_normal_(Tensor& t, double mean = 0, double deviation = 1,
                       Generator* generator = nullptr);

}  // namespace cutaway
