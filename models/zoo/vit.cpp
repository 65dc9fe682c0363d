#include <cutaway/models/zoo/vit.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::zoo {
namespace {

const VitOptions& checked(const VitOptions& o) {
  const bool positive = o.height > 0 && o.width > 0 && o.channels > 0 && o.classes > 0 &&
                        o.patch > 0 && o.dim > 0 && o.layers > 0 && o.heads > 0;
  if (!positive) throw ValueError("Vit", "sizes must be at least 1");
  if (o.height % o.patch != 0 || o.width % o.patch != 0) {
    throw ValueError("Vit", fmt::format(".patch must divide .height and .width; got {}, {}×{}",
                                        o.patch, o.height, o.width));
  }
  if (o.dim % o.heads != 0) {
    throw ValueError("Vit", fmt::format(".heads must divide .dim; got {} and {}", o.heads, o.dim));
  }
  return o;
}

nn::Linear dense(int64_t in, int64_t out) {
  nn::Linear layer({.in = in, .out = out});
  nn::init::trunc_normal_(layer.weight, {.std = 0.02});
  nn::init::zeros_(layer.bias);
  return layer;
}
nn::LayerNormLayerOptions norm_of(const VitOptions& o) {
  return {.normalized_shape = {o.dim}, .eps = 1e-6};
}

}  // namespace

VitOptions vit_options(const std::string& name) {
  if (name == "vit") return {.dim = 128, .layers = 6, .heads = 4};
  if (name == "vit-tiny") return {.dim = 192, .layers = 12, .heads = 3};
  if (name == "vit-small") return {.dim = 384, .layers = 12, .heads = 6};
  if (name == "vit-base") return {.dim = 768, .layers = 12, .heads = 12};
  throw ValueError("Vit", fmt::format("there is no \"{}\"; known are: vit, vit-tiny, vit-small, "
                                      "vit-base",
                                      name));
}

VitAttention::VitAttention(const VitOptions& o)
    : qkv(dense(o.dim, 3 * o.dim)), proj(dense(o.dim, o.dim)), heads_(o.heads) {
  add("qkv", qkv);
  add("proj", proj);
}
Tensor VitAttention::forward(const Tensor& x) {
  const int64_t batch = x.size(0), length = x.size(1), dim = x.size(2);
  const Tensor all = reshape(qkv(x), {batch, length, 3, heads_, dim / heads_});
  const Tensor parts = permute(all, {2, 0, 3, 1, 4});  // [3,B,heads,T,dim/heads]
  const Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2]);
  return proj(reshape(transpose(y, 1, 2), x.sizes()));
}

VitMlp::VitMlp(const VitOptions& o) : fc1(dense(o.dim, 4 * o.dim)), fc2(dense(4 * o.dim, o.dim)) {
  add("fc1", fc1);
  add("fc2", fc2);
}

VitBlock::VitBlock(const VitOptions& o)
    : norm1(norm_of(o)), attn(o), norm2(norm_of(o)), mlp(o), dropout({.p = o.dropout}) {
  add("norm1", norm1);
  add("attn", attn);
  add("norm2", norm2);
  add("mlp", mlp);
  add("dropout", dropout);
}
Tensor VitBlock::forward(const Tensor& x) {
  const Tensor y = x + dropout(attn(norm1(x)));
  return y + dropout(mlp(norm2(y)));
}

PatchEmbedding::PatchEmbedding(const VitOptions& o)
    : proj({.in = o.channels, .out = o.dim, .kernel = o.patch, .stride = o.patch}) {
  add("proj", proj);
}
Tensor PatchEmbedding::forward(const Tensor& x) { return transpose(flatten(proj(x), 2), 1, 2); }

Vit::Vit(const VitOptions& o)
    : patch_embed(checked(o)), norm(norm_of(o)), head(dense(o.dim, o.classes)), options_(o) {
  const int64_t patches = (o.height / o.patch) * (o.width / o.patch);
  cls_token = nn::init::trunc_normal_(empty({1, 1, o.dim}), {.std = 0.02});
  pos_embed = nn::init::trunc_normal_(empty({1, patches + 1, o.dim}), {.std = 0.02});
  for (int64_t i = 0; i < o.layers; ++i) blocks.append(VitBlock(o));
  add("cls_token", cls_token);
  add("pos_embed", pos_embed);
  add("patch_embed", patch_embed);
  add("blocks", blocks);
  add("norm", norm);
  add("head", head);
}

Tensor Vit::forward(const Tensor& x) {
  const Shape need{x.dim() > 0 ? x.size(0) : 0, options_.channels, options_.height, options_.width};
  if (x.sizes() != need) {
    throw ShapeError("Vit", fmt::format("x must be [N,{},{},{}]; got {}", need[1], need[2], need[3],
                                        to_string(x.sizes())));
  }
  Tensor y = cat({expand(cls_token, {x.size(0), -1, -1}), patch_embed(x)}, 1) + pos_embed;
  for (int64_t i = 0; i < blocks.size(); ++i) y = blocks[i](y);
  return head(select(norm(y), 1, 0));
}

}  // namespace cutaway::zoo
