#pragma once
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct DropoutOptions {
  double p = 0.5;  // share of elements that is dropped, in [0, 1]
};
// In training, elements become 0 with probability p and the others grow by 1/(1 − p); in eval mode
// y = x. Draws from the default generator. Raises ValueError for p outside [0, 1].
class Dropout : public Module {
 public:
  explicit Dropout(const DropoutOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};

// The same for whole channels: x [N,C,spatial…]. Raises ShapeError for other ranks.
class ChannelDropout : public Module {
 public:
  Tensor forward(const Tensor& x) override;

 protected:
  ChannelDropout(const char* name, int min_rank, int max_rank, const DropoutOptions& options);

 private:
  const char* layer_;
  int min_rank_, max_rank_;
  double p_;
};
class Dropout1d : public ChannelDropout {  // x [N,C,L]
 public:
  explicit Dropout1d(const DropoutOptions& o = {}) : ChannelDropout("Dropout1d", 3, 3, o) {}
};
class Dropout2d : public ChannelDropout {  // x [N,C,H,W], or any [N,C,…]
 public:
  explicit Dropout2d(const DropoutOptions& o = {}) : ChannelDropout("Dropout2d", 2, 8, o) {}
};
class Dropout3d : public ChannelDropout {  // x [N,C,D,H,W]
 public:
  explicit Dropout3d(const DropoutOptions& o = {}) : ChannelDropout("Dropout3d", 5, 5, o) {}
};

// Dropout that keeps mean and variance of inputs of mean 0 and variance 1: dropped elements become
// the negative limit of selu, then everything is scaled and shifted (Klambauer et al. 2017).
class AlphaDropout : public Module {
 public:
  explicit AlphaDropout(const DropoutOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};
// The same for whole channels of x [N,C,…].
class FeatureAlphaDropout : public Module {
 public:
  explicit FeatureAlphaDropout(const DropoutOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};

}  // namespace cutaway::nn
