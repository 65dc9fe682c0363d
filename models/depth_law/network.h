#pragma once
#include <string>

#include <cutaway/core/rng.h>
#include <cutaway/core/tensor.h>

namespace cutaway::depth {

enum class Arch { mlp, cnn, resnet, vit };
enum class Activation { relu, gelu, linear };
enum class Padding { circular, zero, reflect };
// Residual branches of section 3.4: x + φ(W x) (the authors' block), x + W φ(x), and two-layer
// branches x + W₂ φ(W₁ φ(x)) with the last or both layers scaled.
enum class Block { post, pre, last, both };
// Scale of branch weights: none, 1/√K, 1/K, K blocks.
enum class Branch { plain, sqrt_k, k };

// A network by its effective depth L: MLP and CNN layers, residual blocks (a trained stem is not
// counted), 2 · blocks of a transformer.
struct Spec {
  Arch arch = Arch::mlp;
  int64_t depth = 4, width = 128;
  Activation activation = Activation::relu;
  Block block = Block::post;
  Branch branch = Branch::sqrt_k;
  bool mean_field = true;  // readout N(0, 1/n²), else N(0, 1/n)
  bool dense = false;      // resnet of matrices instead of convolutions
  int spatial = 2;         // dimensions of convolutions: 1 or 2
  Padding padding = Padding::circular;
  double layer_scale = 0;   // factor on every branch; 0: none
  bool zero_init = false;   // the last matrix of every branch starts at 0
  bool post_norm = false;   // transformer: LayerNorm after the sum
  bool batch_norm = false;  // cnn, resnet: after every convolution, statistics of the batch
  int64_t in = 0;           // features or channels; 0: width
  int64_t side = 8;  // pixels of a side (cnn, resnet), tokens · … (vit: side/4 patches a side)
  int64_t outputs = 1;
  // Transformer over sequences: words known and words of a sequence; 0: patches of an image.
  int64_t vocabulary = 0, tokens = 0;
  // What would make the −3/2 rule not apply: "LayerNorm", "BatchNorm", "LayerScale", "zero-init
  // branches"; empty when nothing does.
  std::string outside_of_law() const;
};
// "mlp", "cnn", "resnet", "vit"; "he", "res-sqrtK", "res-K", "mf": raise ValueError for others.
Arch arch_named(const std::string& name);
void set_init(Spec& spec, const std::string& name);

// The network's weights, drawn anew for each seed. Trained are `weights`; the readout only in
// `trainable` order's last place.
class Network {
 public:
  // Raises ValueError for depth < 1 or odd depths of a transformer.
  Network(const Spec& spec, uint64_t seed, DType dtype = DType::f32);
  // x [B,in], [B,in,side(,side)] or words [B,tokens] (i64) → [B,outputs]; pre-activations of the L
  // units are appended to `units` when given.
  Tensor forward(const Tensor& x, Tensors* units = nullptr) const;
  Tensors& weights() { return weights_; }  // hidden layers, in order
  Tensor& readout() { return readout_; }
  const Spec& spec() const { return spec_; }
  // A random input of norm² = number of features (one-sample mode).
  Tensor random_input(int64_t batch, Generator& generator) const;

 private:
  Tensor draw(const Shape& sizes, double variance);
  Tensor apply(const Tensor& x, const Tensor& w) const;  // matrix or convolution
  Tensor act(const Tensor& x) const;
  Tensor chain(const Tensor& x, Tensors* units) const;
  Tensor residual(const Tensor& x, Tensors* units) const;
  Tensor embed(const Tensor& x) const;
  Tensor transformer(const Tensor& x, Tensors* units) const;
  void init_residual();
  void init_transformer();
  Shape weight_sizes(int64_t out, int64_t in) const;

  Spec spec_;
  Generator generator_;
  DType dtype_;
  Tensors weights_;
  Tensor readout_;
};

}  // namespace cutaway::depth
