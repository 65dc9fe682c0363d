#pragma once
#include <optional>

#include <cutaway/autograd/op.h>

namespace cutaway {

// Normalisation layers as functions. Variances divide by n; statistics are computed in f64. weight
// and bias have the type of x and may be undefined. Floating types.

struct LayerNormOptions {
  double eps = 1e-5;
};
// y = (x − mean) / sqrt(var + eps) ⊙ weight + bias, mean and var over the last dimensions, whose
// sizes are `normalized`. x [..., normalized], weight and bias `normalized`. Raises ShapeError.
// [Ba, Kiros and Hinton 2016]
Tensor layer_norm(TensorArg x, const Shape& normalized, TensorArg weight = Tensor(),
                  TensorArg bias = Tensor(), LayerNormOptions options = {});

struct RmsNormOptions {
  std::optional<double> eps;  // default: machine epsilon of the type of x
};
// y = x / sqrt(mean(x²) + eps) ⊙ weight over the last dimensions. [Zhang and Sennrich 2019]
Tensor rms_norm(TensorArg x, const Shape& normalized, TensorArg weight = Tensor(),
                RmsNormOptions options = {});

struct BatchNormOptions {
  bool training = false;  // statistics of the batch, else the running ones
  double momentum = 0.1;  // weight of the batch in the running statistics
  double eps = 1e-5;
};
// y = (x − mean) / sqrt(var + eps) ⊙ weight + bias for each channel, x [N,C,...], all others [C].
// In training running = (1 − momentum) running + momentum · batch is written in place where given,
// with the variance divided by n − 1. Weight and bias have the type of x, or f32 where x has 16
// bits. Raises ShapeError, DTypeError, and ValueError for a single value per channel in training or
// missing statistics in evaluation. [Ioffe and Szegedy 2015]
Tensor batch_norm(TensorArg x, TensorArg weight = Tensor(), TensorArg bias = Tensor(),
                  TensorArg running_mean = Tensor(), TensorArg running_var = Tensor(),
                  BatchNormOptions options = {});

// As layer_norm over groups of consecutive channels with all their positions; weight and bias scale
// channels. x [N,C,...], weight, bias [C], in types as for batch_norm. Raises ShapeError unless
// `groups` divides C, and DTypeError. [Wu and He 2018]
Tensor group_norm(TensorArg x, int64_t groups, TensorArg weight = Tensor(),
                  TensorArg bias = Tensor(), LayerNormOptions options = {});
// group_norm with one group a channel: x [N,C,...].
Tensor instance_norm(TensorArg x, TensorArg weight = Tensor(), TensorArg bias = Tensor(),
                     LayerNormOptions options = {});

}  // namespace cutaway
