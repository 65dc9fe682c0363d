#pragma once
#include <string>
#include <utility>
#include <vector>

#include <cutaway/core/kernels/group_shared.h>
#include <cutaway/core/tensor.h>
#include <cutaway/models/haste/data.h>
#include <cutaway/nn/module.h>

namespace cutaway::haste {

// What a label reads:
//   haste       F features that G consecutive labels share
//   ffi         F features of its own (fixed fan-in)
//   dense       all features
//   block       F consecutive features, from a place that G labels share
//   bottleneck  all of F features, a linear map of the layer's input
enum class OutputKind : uint8_t { haste, ffi, dense, block, bottleneck };
enum class OutputLoss : uint8_t { bce, hinge };

struct OutputOptions {
  OutputKind kind = OutputKind::haste;
  int64_t labels = 0, features = 0;
  int64_t group = 16, fan_in = 16;
  DType dtype = DType::f32;  // of the weights: f32 or bf16 with stochastic rounding
  uint64_t seed = 1;
  bool index_replace = false;  // indices of a group drawn with replacement
  std::vector<float> bias;     // [labels] at the start; empty: 0
  int64_t chunk = 2048;        // labels whose logits exist at a time
  OutputLoss loss = OutputLoss::bce;
  bool momentum = true;  // keep a buffer for it
};

struct SgdOptions {
  double lr = 0, momentum = 0, weight_decay = 0;  // the decay is of weights, not of biases
  uint64_t seed = 1;                              // with `step` the key of stochastic rounding
  int64_t step = 0;
  bool want_loss = false;
  double scale = 1;  // factor of the loss and its gradients
};

// Output layer over many labels whose loss, gradients and update happen chunk by chunk of labels:
// logits of all labels never exist. Features and logits are transposed: x [features,batch],
// z [labels,batch]. The same bits for any number of threads.
class OutputLayer {
 public:
  // Raises ValueError for sizes below 1, fan_in above features and other types.
  explicit OutputLayer(const OutputOptions& options);

  struct Result {
    Tensor dx;        // [features,batch], of the loss summed over batch and labels
    double loss = 0;  // 0 unless wanted
  };
  // Forward, loss gradient, dx and the update in place: g ← g + wd·w; m ← μ m + g; w ← w − lr·m,
  // with stochastic rounding for bf16 (section 3, optimisers). positives [batch, labels].
  Result step(const Tensor& x, const Csr& positives, const SgdOptions& options);
  // Logits of labels [first, first + count): [count,batch].
  Tensor scores(const Tensor& x, int64_t first, int64_t count) const;

  int64_t labels() const { return options_.labels; }
  // Labels that share an index set; 1 for ffi.
  int64_t group() const { return options_.group; }
  // Bytes of every tensor by name, exactly.
  std::vector<std::pair<std::string, int64_t>> memory() const;
  nn::NamedTensors tensors() const;  // index, weight, bias, bottleneck
  nn::NamedTensors momenta() const;
  const Tensor& index() const { return index_; }        // [K,F] i32 (block: [K]); undefined: dense
  const Tensor& weight() const { return weight_; }      // [L,F]
  const Tensor& bias() const { return bias_; }          // [L], f32
  const Tensor& momentum() const { return momentum_; }  // [L,F], f32; undefined without

 private:
  GroupSharedShape shape(const Tensor& x, int64_t first, int64_t count) const;
  void forward(const Tensor& x, int64_t first, int64_t count, float* z) const;
  void backward(const Tensor& x, int64_t first, const Tensor& dz, const Tensor& dx) const;
  void update(int64_t first, int64_t count, const SgdOptions& options);

  OutputOptions options_;
  Tensor index_, zeros_, weight_, bias_, projection_;
  Tensor momentum_, bias_momentum_, projection_momentum_;
  mutable Tensor dweight_, dbias_;  // of one chunk
};

}  // namespace cutaway::haste
