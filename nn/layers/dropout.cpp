#include <cutaway/nn/layers/dropout.h>

#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/core/math/philox.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {
namespace {

// 0 with probability p, otherwise 1/(1 − p).
Tensor mask(const Tensor& x, const Shape& sizes, double p) {
  if (x.is_meta()) return empty(sizes, {x.dtype(), x.device()});
  const Tensor m = empty(sizes);
  const Generator g = draw(m.numel());
  float* out = m.data<float>();
  const float keep = float(1 - p), scale = p < 1 ? 1 / keep : 0;
  const int64_t n = m.numel(), blocks = (n + 3) / 4;
  parallel_for(blocks, kGrain / 8, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const math::Philox4 words = math::philox4(g.seed, g.stream, g.offset + uint64_t(b));
      for (int64_t i = 0; i < 4 && 4 * b + i < n; ++i) {
        out[4 * b + i] = math::bernoulli(words.word[i], keep) ? scale : 0;
      }
    }
  });
  return m.to(x.dtype()).to(x.device());
}

}  // namespace

Dropout::Dropout(const DropoutOptions& o) : p_(require_share("Dropout", "p", o.p)) {}
Tensor Dropout::forward(const Tensor& x) {
  return !training() || p_ == 0 ? x : x * mask(x, x.sizes(), p_);
}

Dropout2d::Dropout2d(const DropoutOptions& o) : p_(require_share("Dropout2d", "p", o.p)) {}
Tensor Dropout2d::forward(const Tensor& x) {
  if (x.dim() < 2) {
    throw ShapeError("Dropout2d", fmt::format("x needs channels; got {}, need [N,C,spatial…]",
                                              to_string(x.sizes())));
  }
  if (!training() || p_ == 0) return x;
  Shape sizes = Shape::filled(x.dim(), 1);
  sizes[0] = x.size(0);
  sizes[1] = x.size(1);
  return x * mask(x, sizes, p_);
}

}  // namespace cutaway::nn
