#include <cutaway/nn/layers/position.h>

#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/init.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {
namespace {

// (begin + t) · base^(−2i/width), [T, ⌈width/2⌉] in f64: angles of distant places stay exact.
Tensor angles(int64_t begin, int64_t steps, int64_t width, double base) {
  const int64_t pairs = (width + 1) / 2;
  const Tensor place = arange(begin, begin + steps).to(DType::f64);
  const Tensor power = arange(0, pairs).to(DType::f64) * (-2 * std::log(base) / double(width));
  return unsqueeze(place, 1) * unsqueeze(exp(power), 0);
}

void require_vectors(const char* layer, const Tensor& x) {
  if (x.dim() < 2) {
    throw ShapeError(layer, "x must be [...,T,width]; got " + to_string(x.sizes()));
  }
}

}  // namespace

Tensor rotary(const Tensor& x, int64_t begin, RotaryOptions o) {
  require_vectors("rotary", x);
  const int64_t width = x.size(-1);
  if (width % 2 != 0) {
    throw ShapeError("rotary", "the last size must be even; got " + to_string(x.sizes()));
  }
  const Tensor turn = angles(begin, x.size(-2), width, o.base);
  const Tensor c = cos(turn).to(x.dtype()).to(x.device());
  const Tensor s = sin(turn).to(x.dtype()).to(x.device());
  if (!o.interleaved) {
    const Tensors half = chunk(x, 2, -1);
    return cat({half[0] * c - half[1] * s, half[1] * c + half[0] * s}, -1);
  }
  const Tensor pairs = unflatten(x, -1, {width / 2, 2});
  const Tensor a = select(pairs, -1, 0), b = select(pairs, -1, 1);
  return reshape(stack({a * c - b * s, b * c + a * s}, -1), x.sizes());
}

LearnedPositions::LearnedPositions(const PositionsOptions& o) {
  require_at_least("LearnedPositions", "length", o.length, 1);
  require_at_least("LearnedPositions", "width", o.width, 1);
  weight = init::normal_(empty({o.length, o.width}), 0, 0.02);
  add("weight", weight);
}
Tensor LearnedPositions::forward(const Tensor& x) {
  require_vectors("LearnedPositions", x);
  if (x.size(-2) > weight.size(0) || x.size(-1) != weight.size(1)) {
    throw ShapeError("LearnedPositions",
                     fmt::format("x must be [...,T,{}] with T up to {}; got {}", weight.size(1),
                                 weight.size(0), to_string(x.sizes())));
  }
  return x + slice(weight, 0, 0, x.size(-2));
}

Tensor SinusoidalPositions::forward(const Tensor& x) {
  require_vectors("SinusoidalPositions", x);
  const int64_t steps = x.size(-2), width = x.size(-1);
  const Tensor turn = angles(0, steps, width, 10000);
  const Tensor both = reshape(stack({sin(turn), cos(turn)}, -1), {steps, 2 * turn.size(1)});
  return x + slice(both, 1, 0, width).to(x.dtype()).to(x.device());
}

}  // namespace cutaway::nn
