#include <cutaway/nn/layers/attention.h>

#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/init.h>
#include <cutaway/nn/layers/check.h>
#include <cutaway/nn/layers/position.h>

namespace cutaway::nn {
namespace {

// Which of s keys may t queries look at when they look back only: [t,s].
Tensor lower(int64_t t, int64_t s, Device device) {
  return ge(reshape(arange(0, t), {t, 1}), reshape(arange(0, s), {1, s})).to(device);
}
// Where both masks let look; `may` is boolean.
Tensor joined(const Tensor& mask, const Tensor& may) {
  if (!mask.defined()) return may;
  return mask.is_floating() ? where(may, mask, -INFINITY) : logical_and(mask, may);
}
// A mask for `more` keys behind the others, which all may look at.
Tensor widened(const Tensor& mask, int64_t more) {
  Shape sizes = mask.sizes();
  sizes[sizes.rank() - 1] = more;
  const Opts opts{mask.dtype(), mask.device()};
  return cat({mask, mask.is_floating() ? zeros(sizes, opts) : ones(sizes, opts)}, -1);
}

}  // namespace

MultiheadAttention::MultiheadAttention(const MultiheadAttentionOptions& o)
    : out_proj({.in = o.embed_dim, .out = o.embed_dim, .bias = o.bias}), options_(o) {
  const int64_t e = o.embed_dim;
  require_at_least("MultiheadAttention", "embed_dim", e, 1);
  require_at_least("MultiheadAttention", "num_heads", o.num_heads, 1);
  require_share("MultiheadAttention", "dropout", o.dropout);
  if (e % o.num_heads != 0) {
    throw ValueError(
        "MultiheadAttention",
        fmt::format(".num_heads must divide .embed_dim; got {} and {}", o.num_heads, e));
  }
  if (o.num_kv_heads < 0 || (o.num_kv_heads > 0 && o.num_heads % o.num_kv_heads != 0)) {
    throw ValueError("MultiheadAttention",
                     fmt::format(".num_kv_heads must divide .num_heads; got {} and {}",
                                 o.num_kv_heads, o.num_heads));
  }
  if (o.rotary && e / o.num_heads % 2 != 0) {
    throw ValueError("MultiheadAttention",
                     fmt::format(".rotary needs an even width of heads; got {}", e / o.num_heads));
  }
  const Shape rows = widths();
  const int64_t kdim = o.kdim > 0 ? o.kdim : e, vdim = o.vdim > 0 ? o.vdim : e;
  if (kdim == e && vdim == e) {
    in_proj_weight = init::xavier_uniform_(empty({rows[0] + rows[1] + rows[2], e}));
  } else {
    q_proj_weight = init::xavier_uniform_(empty({e, e}));
    k_proj_weight = init::xavier_uniform_(empty({rows[1], kdim}));
    v_proj_weight = init::xavier_uniform_(empty({rows[2], vdim}));
  }
  if (o.bias) {
    in_proj_bias = zeros({rows[0] + rows[1] + rows[2]});
    init::zeros_(out_proj.bias);
  }
  if (o.add_bias_kv) {
    bias_k = init::xavier_normal_(empty({1, 1, rows[1]}));
    bias_v = init::xavier_normal_(empty({1, 1, rows[2]}));
  }
  add("in_proj_weight", in_proj_weight);
  add("q_proj_weight", q_proj_weight);
  add("k_proj_weight", k_proj_weight);
  add("v_proj_weight", v_proj_weight);
  add("in_proj_bias", in_proj_bias);
  add("bias_k", bias_k);
  add("bias_v", bias_v);
  add("out_proj", out_proj);
}

Shape MultiheadAttention::widths() const {
  const MultiheadAttentionOptions& o = options_;
  const int64_t kv = o.num_kv_heads > 0 ? o.num_kv_heads : o.num_heads;
  return {o.embed_dim, kv * (o.embed_dim / o.num_heads), kv * (o.embed_dim / o.num_heads)};
}

Tensors MultiheadAttention::project(const Tensor& q, const Tensor& k, const Tensor& v) const {
  const Shape rows = widths();
  if (in_proj_weight.defined() && q.is_same(k) && k.is_same(v)) {
    return split_sizes(linear(q, in_proj_weight, in_proj_bias), rows, -1);
  }
  Tensors weights{q_proj_weight, k_proj_weight, v_proj_weight}, biases(3);
  if (in_proj_weight.defined()) weights = split_sizes(in_proj_weight, rows, 0);
  if (in_proj_bias.defined()) biases = split_sizes(in_proj_bias, rows, 0);
  return {linear(q, weights[0], biases[0]), linear(k, weights[1], biases[1]),
          linear(v, weights[2], biases[2])};
}

Tensor MultiheadAttention::heads(const Tensor& x) const {
  const int64_t h = options_.num_heads, width = options_.embed_dim / h, own = x.size(2) / width;
  const Tensor y = permute(reshape(x, {x.size(0), x.size(1), own, width}), {0, 2, 1, 3});
  return own == h ? y : repeat_interleave(y, h / own, 1);
}
Tensor MultiheadAttention::positioned(const Tensor& x) const {
  return options_.rotary ? cutaway::nn::rotary(x, 0, {.base = options_.rotary_base}) : x;
}

// Both masks as one of scaled_dot_product_attention (true may look), or undefined.
Tensor MultiheadAttention::mask(const AttendOptions& o, const Tensor& q, const Tensor& k) const {
  const int64_t n = q.size(0), t = q.size(1), s = k.size(1), h = options_.num_heads;
  Tensor padding, rule = o.attn_mask;
  if (o.key_padding_mask.defined()) {
    if (o.key_padding_mask.sizes() != Shape{n, s}) {
      throw ShapeError("MultiheadAttention",
                       fmt::format("key_padding_mask must be [N,S]; got {}, need {}",
                                   to_string(o.key_padding_mask.sizes()), to_string(Shape{n, s})));
    }
    padding = reshape(o.key_padding_mask, {n, 1, 1, s});
  }
  if (rule.defined()) {
    if (rule.sizes() == Shape{n * h, t, s}) {
      rule = reshape(rule, {n, h, t, s});
    } else if (rule.sizes() != Shape{t, s}) {
      throw ShapeError(
          "MultiheadAttention",
          fmt::format("attn_mask must be [T,S] or [N·heads,T,S]; got {}, need {} or {}",
                      to_string(rule.sizes()), to_string(Shape{t, s}),
                      to_string(Shape{n * h, t, s})));
    }
  }
  const auto added = [&](const Tensor& m) {
    if (m.is_floating()) return m.to(q.dtype());
    return where(m, -INFINITY, zeros({}, {q.dtype(), q.device()}));
  };
  if (!padding.defined() && !rule.defined()) return {};
  if (!padding.defined()) return rule.is_floating() ? rule.to(q.dtype()) : logical_not(rule);
  if (!rule.defined()) return padding.is_floating() ? padding.to(q.dtype()) : logical_not(padding);
  if (!padding.is_floating() && !rule.is_floating()) return logical_not(logical_or(padding, rule));
  return added(padding) + added(rule);
}

// The weights themselves, [N,heads,T,S]; 0 for a query that may look nowhere.
Tensor MultiheadAttention::explicit_weights(const Tensor& q, const Tensor& k, const Tensor& mask,
                                            bool causal) const {
  Tensor scores = matmul(q, k, {.transpose_b = true}) * (1 / std::sqrt(double(q.size(-1))));
  Tensor may;
  if (mask.defined()) {
    may = mask.is_floating() ? gt(mask, -INFINITY) : mask;
    if (mask.is_floating()) scores = scores + mask;
  }
  if (causal) {
    const Tensor below = lower(q.size(-2), k.size(-2), q.device());
    may = may.defined() ? logical_and(may, below) : below;
  }
  if (!may.defined()) return softmax(scores, -1);
  const Tensor some = any(may, -1, {.keepdim = true});
  // Rows without a key are computed as if they had all, and set to 0 afterwards.
  const Tensor seen =
      where(logical_or(may, logical_not(some)), where(some, scores, 0.0), -INFINITY);
  return where(some, softmax(seen, -1), 0.0);
}

AttendResult MultiheadAttention::attend(const Tensor& q, const Tensor& k, const Tensor& v,
                                        const AttendOptions& o) {
  const Tensors p = project(q, k, v);
  const Tensor hq = positioned(heads(p[0]));
  Tensor hk = positioned(heads(p[1])), hv = heads(p[2]), m = mask(o, q, k);
  bool causal = o.is_causal;
  const int64_t batch = q.size(0);
  if (bias_k.defined()) {
    hk = cat({hk, heads(expand(bias_k, {batch, -1, -1}))}, 2);
    hv = cat({hv, heads(expand(bias_v, {batch, -1, -1}))}, 2);
  }
  if (options_.add_zero_attn) {
    Shape one = hk.sizes();
    one[2] = 1;
    const Tensor zero = zeros(one, {hk.dtype(), hk.device()});
    hk = cat({hk, zero}, 2);
    hv = cat({hv, zero}, 2);
  }
  if (const int64_t more = hk.size(2) - k.size(1); more > 0) {
    if (causal) m = joined(m, lower(q.size(1), k.size(1), q.device()));
    causal = false;
    if (m.defined()) m = widened(m, more);
  }
  AttendResult result;
  Tensor y;
  if (o.need_weights || (training() && options_.dropout > 0)) {
    Tensor weights = explicit_weights(hq, hk, m, causal);
    if (training() && options_.dropout > 0) {
      Dropout drop({.p = options_.dropout});
      weights = drop.forward(weights);
    }
    y = matmul(weights, hv);
    if (o.need_weights) result.weights = o.average_attn_weights ? mean(weights, 1) : weights;
  } else {
    y = scaled_dot_product_attention(hq, hk, hv, {.mask = m, .causal = causal});
  }
  y = reshape(permute(y, {0, 2, 1, 3}), {q.size(0), q.size(1), options_.embed_dim});
  result.output = out_proj(y);
  return result;
}

AttendResult MultiheadAttention::operator()(const Tensor& query, const Tensor& key,
                                            const Tensor& value, const AttendOptions& o) {
  Scope scope(*this);
  AttendResult result = run(query, key, value, o);
  scope.done(result.output);
  return result;
}

AttendResult MultiheadAttention::run(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const AttendOptions& o) {
  const int rank = query.dim();
  if ((rank != 2 && rank != 3) || key.dim() != rank || value.dim() != rank ||
      query.size(-1) != options_.embed_dim) {
    throw ShapeError("MultiheadAttention",
                     fmt::format("query, key and value need 2 or 3 dimensions, the query {} "
                                 "features; got {}, {}, {}",
                                 options_.embed_dim, to_string(query.sizes()),
                                 to_string(key.sizes()), to_string(value.sizes())));
  }
  const auto batched = [&](const Tensor& x) {
    if (rank == 2) return unsqueeze(x, 0);
    return options_.batch_first ? x : transpose(x, 0, 1);
  };
  const Tensor q = batched(query);
  const Tensor k = key.is_same(query) ? q : batched(key);
  const Tensor v = value.is_same(key) ? k : batched(value);
  AttendOptions inner = o;
  if (rank == 2 && o.key_padding_mask.defined()) {
    inner.key_padding_mask = unsqueeze(o.key_padding_mask, 0);
  }
  AttendResult result = attend(q, k, v, inner);
  if (rank == 2) {
    result.output = squeeze(result.output, 0);
    if (result.weights.defined()) result.weights = squeeze(result.weights, 0);
  } else if (!options_.batch_first) {
    result.output = transpose(result.output, 0, 1);
  }
  return result;
}

Tensor MultiheadAttention::forward(const Tensor& x) { return run(x, x, x, {}).output; }

}  // namespace cutaway::nn
