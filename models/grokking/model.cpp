#include <cutaway/models/grokking/model.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::grokking {
namespace {

Tensor normal(const Shape& sizes, double std, Generator& generator) {
  Tensor t = randn(sizes, {}, &generator) * std;
  t.set_requires_grad();
  return t;
}
Tensor zero(int64_t n) { return zeros({n}, {.requires_grad = true}); }

}  // namespace

Transformer::Transformer(const NetworkOptions& o) : Network(o) {
  if (o.heads < 1 || o.d < 1 || o.d % o.heads) {
    throw ValueError("grok", fmt::format("--d {} is not divisible by {} heads", o.d, o.heads));
  }
  Generator g{.seed = o.seed, .stream = 5};
  const double std = 1 / std::sqrt(double(o.d));
  E = normal({o.vocabulary, o.d}, std * o.embed_scale, g);
  P = normal({o.length + 1, o.d}, std, g);
  for (Tensor* w : {&W_Q, &W_K, &W_V, &W_O}) *w = normal({o.d, o.d}, std, g);
  W_in = normal({o.d, o.hidden}, std, g);
  W_out = normal({o.hidden, o.d}, std, g);
  U = normal({o.d, o.classes}, 1 / std::sqrt(double(o.vocabulary)), g);
  b_in = zero(o.hidden);
  b_out = zero(o.d);
  add("E", E), add("W_pos", P);
  add("W_Q", W_Q), add("W_K", W_K), add("W_V", W_V), add("W_O", W_O);
  add("W_in", W_in), add("b_in", b_in), add("W_out", W_out), add("b_out", b_out);
  add("W_U", U);
}

// Everything after attention, at the place of "=": y the heads' results, x the residual stream.
Tensor Transformer::last(const Tensor& y, const Tensor& x) const {
  const Tensor h = x + matmul(y, W_O);
  const Tensor z = h + matmul(relu(matmul(h, W_in) + b_in), W_out) + b_out;
  const Tensor logits = matmul(z, U);
  return options.output_scale == 1 ? logits : logits * options.output_scale;
}

// Note: one block. Place j of token t has the same key and value in every input, so scores
// s [vocabulary, heads] and values [vocabulary, heads, d_head] are tables; a row of the batch picks
// its own.
Tensor Transformer::forward(const Tensor& ids) {
  const int64_t n = ids.size(0), length = options.length, heads = options.heads;
  const int64_t d_head = options.d / heads;
  const Tensor x_last = E[options.vocabulary - 1] + P[length];  // of "="
  const Tensor q = matmul(x_last.unsqueeze(0), W_Q).reshape({1, heads, d_head});
  Tensors scores, values;
  for (int64_t j = 0; j <= length; ++j) {
    const Tensor x = j < length ? E + P[j] : x_last.unsqueeze(0);
    const Tensor k = matmul(x, W_K).reshape({x.size(0), heads, d_head});
    const Tensor v = matmul(x, W_V).reshape({x.size(0), heads, d_head});
    const Tensor s = sum(k * q, -1) * (1 / std::sqrt(double(d_head)));
    if (j == length) {
      scores.push_back(s.expand({n, heads}));
      values.push_back(v);
    } else {
      const Tensor column = ids.select(1, j).contiguous();
      scores.push_back(index_select(s, 0, column));
      values.push_back(index_select(v, 0, column));
    }
  }
  const Tensor weights = softmax(stack(scores), 0).unsqueeze(-1);  // [length+1, n, heads, 1]
  Tensor y = weights[0] * values[0];
  for (int64_t j = 1; j <= length; ++j) y = y + weights[j] * values[size_t(j)];
  return last(y.reshape({n, options.d}), x_last);
}

Tensor Transformer::from_embedded(const Tensor& tokens) {
  const int64_t n = tokens.size(0), places = options.length + 1, heads = options.heads;
  const Tensor equals = E[options.vocabulary - 1].reshape({1, 1, options.d});
  const Tensor x = cat({tokens, equals.expand({n, 1, options.d})}, 1) + P;
  const auto split_heads = [&](const Tensor& w) {
    return matmul(x, w).reshape({n, places, heads, options.d / heads}).transpose(1, 2);
  };
  const Tensor y = scaled_dot_product_attention(split_heads(W_Q), split_heads(W_K),
                                                split_heads(W_V), {.causal = true});
  return last(y.transpose(1, 2).reshape({n, places, options.d}).select(1, places - 1),
              x.select(1, places - 1));
}

Mlp::Mlp(const NetworkOptions& o) : Network(o) {
  Generator g{.seed = o.seed, .stream = 5};
  const double std = 1 / std::sqrt(double(o.d));
  E = normal({o.vocabulary, o.d}, std * o.embed_scale, g);
  W_in = normal({o.length * o.d, o.hidden}, 1 / std::sqrt(double(o.length * o.d)), g);
  W_out = normal({o.hidden, o.classes}, 1 / std::sqrt(double(o.hidden)), g);
  b_in = zero(o.hidden);
  b_out = zero(o.classes);
  add("E", E), add("W_in", W_in), add("b_in", b_in), add("W_out", W_out), add("b_out", b_out);
}

Tensor Mlp::forward(const Tensor& ids) {
  return from_embedded(
      index_select(E, 0, ids.reshape({-1})).reshape({ids.size(0), options.length, options.d}));
}

Tensor Mlp::from_embedded(const Tensor& x) {
  const Tensor h = relu(matmul(x.flatten(1), W_in) + b_in);
  const Tensor logits = matmul(h, W_out) + b_out;
  return options.output_scale == 1 ? logits : logits * options.output_scale;
}

}  // namespace cutaway::grokking
