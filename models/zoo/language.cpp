#include <cutaway/models/zoo/language.h>

#include <fmt/format.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::zoo {
namespace {

// The token drawn from each row of logits [B,V]: [B,1].
Tensor pick(const Tensor& logits, const GenerateOptions& o, Generator& generator) {
  if (o.temperature == 0) return argmax(logits, -1, {.keepdim = true});
  const Tensor scores = logits / o.temperature;
  if (o.top_k == 0 || o.top_k >= logits.size(1)) {
    return multinomial(softmax(scores, -1), 1, {}, &generator);
  }
  const ValuesIndices best = topk(scores, o.top_k);
  return gather(best.indices, 1, multinomial(softmax(best.values, -1), 1, {}, &generator));
}

// Eval mode while alive.
class EvalGuard {
 public:
  explicit EvalGuard(nn::Module& module) : module_(module), before_(module.training()) {
    module_.eval();
  }
  ~EvalGuard() { module_.train(before_); }
  EvalGuard(const EvalGuard&) = delete;

 private:
  nn::Module& module_;
  bool before_;
};

}  // namespace

Tensor LanguageModel::loss(const Tensor& tokens, const Tensor& targets) {
  if (targets.sizes() != tokens.sizes()) {
    throw ShapeError(type(), fmt::format("targets must have the sizes of tokens; got {}, need {}",
                                         to_string(targets.sizes()), to_string(tokens.sizes())));
  }
  const Tensor logits = (*this)(tokens);
  return cross_entropy(reshape(logits, {tokens.numel(), logits.size(-1)}),
                       reshape(targets, {tokens.numel()}));
}

Tensor LanguageModel::generate(const Tensor& tokens, int64_t n, const GenerateOptions& o) {
  if (n < 0 || o.top_k < 0 || !(o.temperature >= 0)) {
    throw ValueError("generate", fmt::format("n, top_k and temperature must not be negative; got "
                                             "{}, {}, {}",
                                             n, o.top_k, o.temperature));
  }
  if (tokens.dim() != 2 || tokens.size(1) < 1) {
    throw ShapeError("generate", fmt::format("tokens must be [B,T] with T of at least 1; got {}",
                                             to_string(tokens.sizes())));
  }
  NoGradGuard no_grad;
  EvalGuard eval(*this);
  Generator generator{.seed = o.seed};
  Tensor all = tokens;
  Tensors memory;
  for (int64_t i = 0; i < n; ++i) {
    // Drawn on the host, so that a seed gives one text on every device.
    const Tensor logits = next_scores(all, memory).to(kCpu).to(DType::f32);
    all = cat({all, pick(logits, o, generator).to(tokens.dtype()).to(tokens.device())}, 1);
  }
  return all;
}

}  // namespace cutaway::zoo
