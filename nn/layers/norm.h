#pragma once
#include <optional>

#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct BatchNormLayerOptions {
  int64_t num_features = 0;  // channels
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: the plain average of all batches
  bool affine = true;
  bool track_running_stats = true;
};
// batch_norm with its statistics. In training those of the batch (biased variance), which also move
// the running ones: running ← (1 − momentum) running + momentum · batch, with the unbiased
// variance. In eval mode the running statistics, if they are tracked (Ioffe & Szegedy 2015). Raises
// ShapeError for other ranks or channels, ValueError when a channel has a single value in training.
class BatchNorm : public Module {
 public:
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;
  Tensor running_mean, running_var, num_batches_tracked;

 protected:
  BatchNorm(const char* name, int min_rank, int max_rank, const BatchNormLayerOptions& options);

 private:
  const char* layer_;
  int min_rank_, max_rank_;
  BatchNormLayerOptions options_;
};
class BatchNorm1d : public BatchNorm {  // x [N,C] or [N,C,L]
 public:
  explicit BatchNorm1d(const BatchNormLayerOptions& o) : BatchNorm("BatchNorm1d", 2, 3, o) {}
};
class BatchNorm2d : public BatchNorm {  // x [N,C,H,W]
 public:
  explicit BatchNorm2d(const BatchNormLayerOptions& o) : BatchNorm("BatchNorm2d", 4, 4, o) {}
};
class BatchNorm3d : public BatchNorm {  // x [N,C,D,H,W]
 public:
  explicit BatchNorm3d(const BatchNormLayerOptions& o) : BatchNorm("BatchNorm3d", 5, 5, o) {}
};

struct LayerNormLayerOptions {
  Shape normalized_shape;
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
};
// layer_norm over the last dimensions, of sizes normalized_shape; weight 1 and bias 0 at the start.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const LayerNormLayerOptions& options);
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;

 private:
  LayerNormLayerOptions options_;
};

struct RMSNormOptions {
  Shape normalized_shape;
  std::optional<double> eps;  // default: machine epsilon of the type of x
  bool elementwise_affine = true;
};
// rms_norm over the last dimensions.
class RMSNorm : public Module {
 public:
  explicit RMSNorm(const RMSNormOptions& options);
  Tensor forward(const Tensor& x) override;

  Tensor weight;

 private:
  RMSNormOptions options_;
};

struct GroupNormOptions {
  int64_t num_groups = 1, num_channels = 0;
  double eps = 1e-5;
  bool affine = true;
};
// group_norm; raises ValueError unless num_groups divides num_channels.
class GroupNorm : public Module {
 public:
  explicit GroupNorm(const GroupNormOptions& options);
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;

 private:
  GroupNormOptions options_;
};

struct InstanceNormOptions {
  int64_t num_features = 0;
  double eps = 1e-5;
  double momentum = 0.1;  // weight of a batch in the running statistics
  bool affine = false;
  bool track_running_stats = false;
};
// instance_norm of x [N,C,spatial…], or [C,spatial…]: statistics of each input in both modes. With
// track_running_stats training moves running ones, by the mean over the batch (with the unbiased
// variance), and eval mode uses them.
class InstanceNorm : public Module {
 public:
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;
  // As in PyTorch the number of batches stays 0.
  Tensor running_mean, running_var, num_batches_tracked;

 protected:
  InstanceNorm(const char* name, int rank, const InstanceNormOptions& options);

 private:
  void move_statistics(const Tensor& x);

  const char* layer_;
  int rank_;
  InstanceNormOptions options_;
};
class InstanceNorm1d : public InstanceNorm {
 public:
  explicit InstanceNorm1d(const InstanceNormOptions& o) : InstanceNorm("InstanceNorm1d", 3, o) {}
};
class InstanceNorm2d : public InstanceNorm {
 public:
  explicit InstanceNorm2d(const InstanceNormOptions& o) : InstanceNorm("InstanceNorm2d", 4, o) {}
};
class InstanceNorm3d : public InstanceNorm {
 public:
  explicit InstanceNorm3d(const InstanceNormOptions& o) : InstanceNorm("InstanceNorm3d", 5, o) {}
};

struct LocalResponseNormOptions {
  int64_t size = 5;  // channels in a window
  double alpha = 1e-4, beta = 0.75, k = 1;
};
// x / (k + alpha/size Σ x²)^beta, the sum over `size` channels around each one, zeros beyond the
// first and the last (Krizhevsky et al. 2012): x [N,C,…]. Raises ShapeError for fewer dimensions.
class LocalResponseNorm : public Module {
 public:
  explicit LocalResponseNorm(const LocalResponseNormOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  LocalResponseNormOptions options_;
};

}  // namespace cutaway::nn
