#pragma once
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct RotaryOptions {
  double base = 10000;       // of the frequencies
  bool interleaved = false;  // pairs are neighbours (2i, 2i + 1) instead of (i, i + D/2)
};
// Rotary positions (Su et al. 2021): x [...,T,D], D even; the pair i of the vector at place t turns
// by the angle (begin + t) · base^(−2i/D). Products of two such vectors depend on the distance of
// their places only. Raises ShapeError for an odd D.
Tensor rotary(const Tensor& x, int64_t begin = 0, RotaryOptions options = {});

struct PositionsOptions {
  int64_t length = 0, width = 0;
};
// x [...,T,width] + weight[0 … T−1], a learned table [length, width], normal with deviation 0.02.
// Raises ShapeError when T exceeds length.
class LearnedPositions : public Module {
 public:
  explicit LearnedPositions(const PositionsOptions& options);
  Tensor forward(const Tensor& x) override;

  Tensor weight;
};
// x [...,T,width] + table, table[t, 2i] = sin(t / 10000^(2i/width)), table[t, 2i + 1] the cosine
// (Vaswani et al. 2017). Any T. No parameters.
class SinusoidalPositions : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

}  // namespace cutaway::nn
