#pragma once
#include <string>

#include <cutaway/nn/nn.h>

namespace cutaway::zoo {

struct VitOptions {
  int64_t height = 224, width = 224, channels = 3, classes = 1000;
  int64_t patch = 16;  // pixels on each side of a patch; divides height and width
  int64_t dim = 384, layers = 12, heads = 6;
  double dropout = 0;  // of what each residual adds
};
// Sizes by name, the image left as it is: vit-tiny (192, 3 heads), vit-small (384, 6), vit-base
// (768, 12), 12 layers each; vit, 6 layers of 128, 4 heads, which trains on a CPU. Raises
// ValueError for others.
VitOptions vit_options(const std::string& name);

// Self-attention of x [B,T,dim] with one projection for queries, keys and values.
class VitAttention : public nn::Module {
 public:
  explicit VitAttention(const VitOptions& options);
  Tensor forward(const Tensor& x) override;

  nn::Linear qkv, proj;

 private:
  int64_t heads_;
};
class VitMlp : public nn::Module {
 public:
  explicit VitMlp(const VitOptions& options);
  Tensor forward(const Tensor& x) override { return fc2(gelu(fc1(x))); }

  nn::Linear fc1, fc2;
};
// x + attn(norm1(x)), then the same with the MLP.
class VitBlock : public nn::Module {
 public:
  explicit VitBlock(const VitOptions& options);
  Tensor forward(const Tensor& x) override;

  nn::LayerNorm norm1;
  VitAttention attn;
  nn::LayerNorm norm2;
  VitMlp mlp;
  nn::Dropout dropout;
};
class PatchEmbedding : public nn::Module {
 public:
  explicit PatchEmbedding(const VitOptions& options);
  // x [B,channels,height,width] → [B,patches,dim]
  Tensor forward(const Tensor& x) override;

  nn::Conv2d proj;
};

// Vision transformer (Dosovitskiy et al. 2020): patches as tokens, a class token in front, learned
// positions. Names of weights as in timm: cls_token, pos_embed, patch_embed.proj, blocks.0.norm1,
// blocks.0.attn.qkv, …, norm, head. Matrices start normal with deviation 0.02, biases 0. Raises
// ValueError for options that make no network.
class Vit : public nn::Module {
 public:
  explicit Vit(const VitOptions& options);
  // x [N,channels,height,width] → logits [N,classes]
  Tensor forward(const Tensor& x) override;

  Tensor cls_token, pos_embed;  // [1,1,dim], [1,patches+1,dim]
  PatchEmbedding patch_embed;
  nn::ModuleList blocks;  // of VitBlock
  nn::LayerNorm norm;
  nn::Linear head;

 private:
  VitOptions options_;
};

}  // namespace cutaway::zoo
