#pragma once
#include <cutaway/core/tensor.h>

// Values of fresh parameters. Names and meaning are those of torch.nn.init. All functions write
// into the tensor, for all its handles and without history, and return it; random ones draw from
// the default generator, so that manual_seed fixes a model. Raise ShapeError, DTypeError for other
// than floating tensors, ValueError for arguments outside their range.
namespace cutaway::nn::init {

// What follows the layer; sets the gain that keeps the variance of activations.
enum class Nonlinearity : uint8_t { linear, sigmoid, tanh, relu, leaky_relu, selu };
// linear, sigmoid 1; tanh 5/3; relu √2; leaky_relu √(2/(1 + slope²)); selu 3/4.
double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);

// Inputs and outputs of one unit: sizes 1 and 0 of the weight, times its kernel.
struct Fans {
  int64_t in, out;
};
// Raises ShapeError for fewer than 2 dimensions.
Fans fans(const Tensor& weight);

Tensor constant_(Tensor t, double value);
inline Tensor zeros_(Tensor t) { return constant_(std::move(t), 0); }
inline Tensor ones_(Tensor t) { return constant_(std::move(t), 1); }
// Uniform in [lo, hi).
Tensor uniform_(Tensor t, double lo = 0, double hi = 1);
Tensor normal_(Tensor t, double mean = 0, double std = 1);
// Normal, drawn again outside [lo, hi].
struct TruncNormalOptions {
  double mean = 0, std = 1, lo = -2, hi = 2;
};
Tensor trunc_normal_(Tensor t, const TruncNormalOptions& options = {});
// Uniform in ±gain √(6 / (in + out)), normal with std gain √(2 / (in + out)) (Glorot & Bengio
// 2010).
Tensor xavier_uniform_(Tensor t, double gain = 1);
Tensor xavier_normal_(Tensor t, double gain = 1);

enum class Fan : uint8_t { in, out };
struct KaimingOptions {
  double a = 0;  // negative slope, for leaky_relu
  Fan mode = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};
// Uniform in ±gain √(3 / fan), normal with std gain / √fan (He et al. 2015).
Tensor kaiming_uniform_(Tensor t, const KaimingOptions& options = {});
Tensor kaiming_normal_(Tensor t, const KaimingOptions& options = {});
// gain times a matrix with orthonormal rows or columns, whichever are fewer; the dimensions after
// the first count as one (Saxe et al. 2014).
Tensor orthogonal_(Tensor t, double gain = 1);
// The identity, for matrices.
Tensor eye_(Tensor t);

}  // namespace cutaway::nn::init
