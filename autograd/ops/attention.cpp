#include <cutaway/autograd/ops/attention.h>

#include <fmt/format.h>
#include <cmath>
#include <limits>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/cast.h>
#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/matmul.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/random.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/attention.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: attention_samples.cpp.
void attention_samples(SampleList&);
void attention_lse_samples(SampleList&);

namespace {

constexpr const char* kName = "scaled_dot_product_attention";

struct AttentionAttrs {
  double scale;
  bool causal;
};

// Sizes of a checked call.
struct AttentionSizes {
  Shape batch;
  int64_t queries, keys, depth, width;
  Shape with(int64_t rows, int64_t columns) const {
    Shape s = batch;
    s.push_back(rows);
    s.push_back(columns);
    return s;
  }
};

[[noreturn, gnu::cold]] void throw_sizes(const char* rule, const Tensor& q, const Tensor& k,
                                         const Tensor& v, const char* need, const char* hint = "") {
  throw ShapeError(kName,
                   fmt::format("{}; got q {}, k {}, v {}; need {}", rule, to_string(q.sizes()),
                               to_string(k.sizes()), to_string(v.sizes()), need),
                   hint);
}

void check_mask(const Tensor& q, const Tensor& mask, const Shape& scores) {
  if (mask.dtype() != DType::boolean && mask.dtype() != q.dtype()) {
    throw DTypeError(kName,
                     fmt::format("mask must be boolean (true: may look) or of the type of q; got "
                                 "mask {}, q {}",
                                 name_of(mask.dtype()), name_of(q.dtype())),
                     "compare, e.g. mask != 0, or convert with to()");
  }
  bool fits = mask.dim() <= scores.rank();
  for (int d = 0; fits && d < mask.dim(); ++d) {
    const int64_t n = mask.sizes()[d];
    fits = n == 1 || n == scores[scores.rank() - mask.dim() + d];
  }
  if (!fits) {
    throw ShapeError(kName,
                     fmt::format("mask must broadcast to the scores [..., T, S]; got mask {}, "
                                 "need {}",
                                 to_string(mask.sizes()), to_string(scores)),
                     "a mask for whole heads needs a dimension: mask.unsqueeze(1)");
  }
}

AttentionSizes check_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                               const Tensor& mask) {
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2) {
    throw_sizes("operands need at least two dimensions", q, k, v,
                "q [...,T,D], k [...,S,D], v [...,S,E]");
  }
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype()) {
    throw DTypeError(kName,
                     fmt::format("operands must have one type; got q {}, k {}, v {}",
                                 name_of(q.dtype()), name_of(k.dtype()), name_of(v.dtype())),
                     "convert with to()");
  }
  AttentionSizes s;
  s.queries = q.size(-2);
  s.depth = q.size(-1);
  s.keys = k.size(-2);
  s.width = v.size(-1);
  if (k.size(-1) != s.depth) {
    throw_sizes("q and k must have the same last size", q, k, v, "q [...,T,D], k [...,S,D]",
                k.size(-2) == s.depth ? "k looks transposed: it is stored as [...,S,D]" : "");
  }
  if (v.size(-2) != s.keys) {
    throw_sizes("k and v must have the same number of rows", q, k, v, "k [...,S,D], v [...,S,E]");
  }
  const Shape batches[] = {q.sizes().slice(0, q.dim() - 2), k.sizes().slice(0, k.dim() - 2),
                           v.sizes().slice(0, v.dim() - 2)};
  s.batch = broadcast(kName, broadcast(kName, batches[0], batches[1]), batches[2]);
  if (mask.defined()) check_mask(q, mask, s.with(s.queries, s.keys));
  return s;
}

// ---- kernel arguments

// x with rows that BLAS can walk: unit stride in a row, rows that do not overlap.
Tensor walkable(const Tensor& x) {
  const int rank = x.dim();
  const int64_t columns = x.sizes()[rank - 1], rows = x.sizes()[rank - 2];
  const bool unit = columns == 1 || x.strides()[rank - 1] == 1;
  const bool apart = rows <= 1 || x.strides()[rank - 2] >= columns;
  return unit && apart ? x : contiguous_raw(x);
}

int64_t row_distance(const Tensor& x) {
  const int64_t columns = std::max<int64_t>(x.sizes().back(), 1);
  return std::max(x.strides()[x.dim() - 2], columns);
}

void batch_strides(int64_t* strides, const Tensor& x, int rank) {
  const int own = std::max(x.dim() - 2, 0);
  for (int d = 0; d < own; ++d) {
    strides[rank - own + d] = x.sizes()[d] == 1 ? 0 : x.strides()[d];
  }
}

void set_mask(AttentionArgs& x, const Tensor& mask, int rank) {
  const int r = mask.dim();
  x.mask_column = r < 1 || mask.sizes()[r - 1] == 1 ? 0 : mask.strides()[r - 1];
  x.mask_row = r < 2 || mask.sizes()[r - 2] == 1 ? 0 : mask.strides()[r - 2];
  if (mask.dtype() == DType::boolean) {
    x.allowed = mask.data<bool>();
  } else {
    x.added = mask.raw();
  }
  batch_strides(x.strides[3], mask, rank);
}

bool has_kernel(DeviceKind kind, DType type) {
  cutaway::detail::initialize_kernels();
  return kernels::attention.table[static_cast<int>(kind)][static_cast<int>(type)] != nullptr;
}

// What the kernels compute in: the type of the operands where there is a kernel for it, otherwise
// f32 in place of 16-bit types.
DType kernel_type(const Tensor& q, const AttentionSizes& s) {
  const DType type = q.dtype();
  if (!is_half(type)) return type;
  if (s.depth > kHalfAttentionColumns || s.width > kHalfAttentionColumns) return DType::f32;
  return has_kernel(q.device().kind, type) ? type : DType::f32;
}

// Operands as the kernels take them: in the kernels' type, rows walkable. They keep the memory
// alive that the arguments point to.
struct Operands {
  Tensor q, k, v, mask;

  Operands(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const Tensor& mask_in,
           DType type)
      : q(prepare(q_in, type)), k(prepare(k_in, type)), v(prepare(v_in, type)), mask(mask_in) {
    if (mask.defined() && is_half(mask.dtype())) mask = cast_raw(mask, DType::f32);
  }
  static Tensor prepare(const Tensor& x, DType type) {
    return x.dtype() == type ? walkable(x) : cast_raw(x, type);
  }

  AttentionArgs args(const AttentionSizes& s, const AttentionAttrs& a) const {
    AttentionArgs x;
    const int rank = s.batch.rank();
    x.batch = s.batch.numel();
    for (int d = 0; d < rank; ++d) x.sizes[d] = s.batch[d];
    x.queries = s.queries;
    x.keys = s.keys;
    x.depth = s.depth;
    x.width = s.width;
    x.q_row = row_distance(q);
    x.k_row = row_distance(k);
    x.v_row = row_distance(v);
    x.scale = a.scale;
    x.causal = a.causal;
    x.q = q.raw();
    x.k = k.raw();
    x.v = v.raw();
    batch_strides(x.strides[0], q, rank);
    batch_strides(x.strides[1], k, rank);
    batch_strides(x.strides[2], v, rank);
    if (mask.defined()) set_mask(x, mask, rank);
    x.rank = collapse_dims(rank, x.sizes, x.strides, 4);
    return x;
  }
};

// y and lse of a checked call, in the type of the kernels.
void attend(const Call& c, const AttentionSizes& s, const Tensor& out, const Tensor& lse) {
  if (out.numel() == 0) return;
  const Tensor& q = c.in(0);
  const DType type = kernel_type(q, s);
  const Tensor y =
      type == q.dtype() ? out : empty(out.sizes(), {.dtype = type, .device = q.device()});
  const Operands operands(q, c.in(1), c.in(2), c.in(3), type);
  AttentionArgs args = operands.args(s, c.attrs<AttentionAttrs>());
  args.o = y.raw();
  args.lse = lse.raw();
  kernels::attention(q.device(), type, args);
  if (type != q.dtype()) copy_elements(out, y);
}

AttentionSizes check_call(const Call& c) {
  for (int i = 0; i < 3; ++i) c.require_dtype(i);
  c.require_same_device();
  return check_attention(c.in(0), c.in(1), c.in(2), c.in(3));
}

Shape rows_of(const AttentionSizes& s) {
  Shape rows = s.batch;
  rows.push_back(s.queries);
  return rows;
}

// The type of lse: 16-bit scores are summed in f32.
DType lse_type(DType type) { return is_half(type) ? DType::f32 : type; }

void attention_forward(Call& c) {
  const AttentionSizes s = check_call(c);
  const Tensor& q = c.in(0);
  const Tensor& out = c.out(0, s.with(s.queries, s.width), q.dtype());
  if (c.meta()) return;
  const Tensor lse = empty(rows_of(s), {.dtype = lse_type(q.dtype()), .device = q.device()});
  if (out.numel() > 0) attend(c, s, out, lse);
  c.save(lse);
}

// ---- the same in public ops

// Which key a query may look at, [..., T, S] or what broadcasts to it; undefined: all.
Tensor allowed_keys(const Tensor& mask, bool causal, int64_t queries, int64_t keys, Device device) {
  Tensor allowed;
  if (mask.defined()) {
    allowed = mask.dtype() == DType::boolean
                  ? mask
                  : gt(mask.detach(), -std::numeric_limits<double>::infinity());
  }
  if (!causal) return allowed;
  const Opts opts{.dtype = DType::i64, .device = device};
  const Tensor past = ge(arange(0, queries, 1, opts).unsqueeze(1), arange(0, keys, 1, opts));
  return allowed.defined() ? logical_and(allowed, past) : past;
}

// Softmax of the scores; rows that may look nowhere are 0. The maximum is only a shift: it needs no
// gradient.
Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& mask,
                         const AttentionAttrs& a) {
  Tensor s = matmul(q, k, {.transpose_b = true}) * a.scale;
  const Tensor allowed = allowed_keys(mask, a.causal, q.size(-2), k.size(-2), q.device());
  if (s.numel() == 0) return s;
  if (mask.defined() && mask.dtype() != DType::boolean) {
    s = s + masked_fill(mask, logical_not(gt(mask.detach(), -INFINITY)), 0);
  }
  Tensor hidden;
  if (allowed.defined()) {
    hidden = logical_not(allowed);
    s = masked_fill(s, hidden, -1e30);
  }
  Tensor e = exp(s - amax(s.detach(), -1, {.keepdim = true}));
  if (hidden.defined()) e = masked_fill(e, hidden, 0);
  const Tensor z = sum(e, -1, {.keepdim = true});
  return e / masked_fill(z, eq(z.detach(), 0), 1);
}

// Rules of both records; g_lse [..., T] is the gradient of lse, undefined when there is none.
void attention_rules(Backward& b, const Tensor& g_lse) {
  const auto& a = b.attrs<AttentionAttrs>();
  const Tensor mask = b.input(3);
  const DType type = b.upstream().dtype(), wide = is_half(type) ? DType::f32 : type;
  const auto widened = [&](const Tensor& t) { return t.dtype() == wide ? t : cast(t, wide); };
  const Tensor q = widened(b.input(0)), k = widened(b.input(1)), v = widened(b.input(2));
  const Tensor g = widened(b.upstream());
  const bool number_mask = mask.defined() && mask.dtype() != DType::boolean;
  const Tensor p = attention_weights(q, k, number_mask ? widened(mask) : mask, a);
  const auto set = [&](int i, const Tensor& grad) {
    b.set(i, grad.dtype() == type ? grad : cast(grad, type));
  };
  if (b.needs(2)) set(2, matmul(p, g, {.transpose_a = true}));
  if (!b.needs(0) && !b.needs(1) && !b.needs(3)) return;
  const Tensor dp = matmul(g, v, {.transpose_b = true});
  Tensor mean_dp = sum(dp * p, -1, {.keepdim = true});
  if (g_lse.defined()) mean_dp = mean_dp - g_lse.unsqueeze(-1);
  const Tensor ds = p * (dp - mean_dp);
  if (b.needs(0)) set(0, matmul(ds, k) * a.scale);
  if (b.needs(1)) set(1, matmul(ds, q, {.transpose_a = true}) * a.scale);
  if (b.needs(3)) set(3, ds);
}

void attention_backward(Backward& b) { attention_rules(b, {}); }

void attention_fast_backward(Backward& b) {
  if (b.needs(3)) return attention_backward(b);  // the gradient of a mask is as large as the scores
  const Tensor q = b.input(0), k = b.input(1), v = b.input(2), mask = b.input(3);
  const AttentionSizes s = check_attention(q, k, v, mask);
  const DType type = kernel_type(q, s);
  const Operands operands(q, k, v, mask, type);
  const Opts opts{.dtype = type, .device = q.device()};
  const Tensor grads[] = {empty(s.with(s.queries, s.depth), opts),
                          empty(s.with(s.keys, s.depth), opts),
                          empty(s.with(s.keys, s.width), opts)};
  if (!q.is_meta()) {
    const Tensor o = cast_raw(b.output(), type), g = cast_raw(b.upstream(), type);
    AttentionArgs args = operands.args(s, b.attrs<AttentionAttrs>());
    args.o = o.raw();
    args.lse = b.extra(0).raw();
    args.upstream = g.raw();
    args.dq = grads[0].raw();
    args.dk = grads[1].raw();
    args.dv = grads[2].raw();
    kernels::attention_backward(q.device(), type, args);
  }
  for (int i = 0; i < 3; ++i) {
    if (b.needs(i)) b.set(i, cast_raw(grads[i], q.dtype()));
  }
}

// softmax(scale · q kᵀ + mask) v in ONNX, with all weights in memory; a row that is hidden wholly
// is 0.
void onnx_attention(OnnxCall& c) {
  const auto& a = c.attrs<AttentionAttrs>();
  const int rank = c.in(1).dim();
  Shape order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  std::swap(order[rank - 1], order[rank - 2]);
  const std::string keys = c.node("Transpose", {c.name(1)}, {{"perm", order}});
  const std::string q = c.node("Mul", {c.name(0), c.number(a.scale)});
  std::string scores = c.node("MatMul", {q, keys});
  const std::string low = c.number(-INFINITY);
  if (c.has(3) && c.in(3).dtype() == DType::boolean) {
    scores = c.node("Where", {c.name(3), scores, low});
  } else if (c.has(3)) {
    scores = c.node("Add", {scores, c.name(3)});
  }
  if (a.causal) {
    const int64_t rows = c.in(0).size(-2), columns = c.in(1).size(-2);
    const Tensor seen = tril(ones({rows, columns}, {.dtype = DType::u8})).to(DType::boolean);
    scores = c.node("Where", {c.constant(seen), scores, low});
  }
  std::string weights = c.node("Softmax", {scores}, {{"axis", -1}});
  if (c.has(3)) weights = c.node("Where", {c.node("IsNaN", {weights}), c.number(0), weights});
  c.result(c.node("MatMul", {weights, c.name(2)}));
}

const OpRecord kAttention{
    .name = kName,
    .signature = "scaled_dot_product_attention(q, k, v, {mask, causal, scale, dropout}) → y",
    .meaning = "Weighted mean of the rows of v, by the softmax of how well keys fit a query.",
    .formula = "y = softmax(scale · q kᵀ + mask) v",
    .shapes = "q [..., T, D]   k [..., S, D]   v [..., S, E]   mask [..., T, S]   y [..., T, E]",
    .dtypes = kFloating,
    .compute = Compute::low,
    .save_inputs = 0b1111,
    .save_outputs = 0b1,
    .forward = attention_forward,
    .backward_text =
        "p = softmax(…),  dv = pᵀ g,  ds = p ∘ (g vᵀ − Σ_j p ∘ g vᵀ),  "
        "dq = scale · ds k,  dk = scale · dsᵀ q,  dmask = ds",
    .backward = attention_backward,
    .fast_backward = attention_fast_backward,
    .samples = attention_samples,
    .onnx = onnx_attention,
};

void attention_lse_forward(Call& c) {
  const AttentionSizes s = check_call(c);
  const Tensor& q = c.in(0);
  if (s.width == 0 || s.keys == 0) {
    throw_sizes("lse needs a key and a column of v", q, c.in(1), c.in(2), "S ≥ 1 and E ≥ 1");
  }
  const Tensor& out = c.out(0, s.with(s.queries, s.width), q.dtype());
  const Tensor& lse = c.out(1, rows_of(s), lse_type(q.dtype()));
  if (!c.meta()) attend(c, s, out, lse);
}

void attention_lse_backward(Backward& b) { attention_rules(b, b.upstream(1)); }

const OpRecord kAttentionLse{
    .name = "attention_with_lse",
    .signature = "attention_with_lse(q, k, v, {mask, causal, scale}) → y, lse",
    .meaning = "Attention and the logarithm of the normaliser of each query, to join heads.",
    .formula = "s = scale · q kᵀ + mask,  lse = log Σ_j exp(s_j),  y = exp(s − lse) v",
    .shapes =
        "q [..., T, D]   k [..., S, D]   v [..., S, E]   mask [..., T, S]   "
        "y [..., T, E]   lse [..., T]",
    .dtypes = kFloating,
    .compute = Compute::low,
    .outputs = 2,
    .save_inputs = 0b1111,
    .forward = attention_lse_forward,
    .backward_text = "as scaled_dot_product_attention, with ds = p ∘ (g vᵀ − Σ_j p ∘ g vᵀ + g_lse)",
    .backward = attention_lse_backward,
    .samples = attention_lse_samples,
};

AttentionAttrs attributes(const Tensor& q, const AttentionOptions& options) {
  const double depth = q.dim() > 0 ? double(q.sizes().back()) : 1;
  return {.scale = options.scale.value_or(depth > 0 ? 1 / std::sqrt(depth) : 1),
          .causal = options.causal};
}

}  // namespace

Tensor attention_composite(TensorArg q, TensorArg k, TensorArg v, const AttentionOptions& options) {
  CallScope scope(q.site);
  check_attention(*q, *k, *v, options.mask);
  const Tensor weights = attention_weights(*q, *k, options.mask, attributes(*q, options));
  return matmul(options.dropout == 0 ? weights : dropout(weights, options.dropout), v);
}

Tensor scaled_dot_product_attention(TensorArg q, TensorArg k, TensorArg v,
                                    const AttentionOptions& options) {
  if (options.dropout != 0) return attention_composite(q, k, v, options);
  return run(kAttention, {q, k, v, options.mask}, attributes(*q, options));
}

AttentionResult attention_with_lse(TensorArg q, TensorArg k, TensorArg v,
                                   const AttentionOptions& options) {
  if (options.dropout != 0) {
    throw ValueError("attention_with_lse", "weights cannot be dropped, lse would not be theirs");
  }
  const Tensors both =
      run_many(kAttentionLse, {*q, *k, *v, options.mask}, attributes(*q, options), q.site);
  return {both[0], both[1]};
}

void register_attention_ops(std::vector<const OpRecord*>& list) {
  list.push_back(&kAttention);
  list.push_back(&kAttentionLse);
}

}  // namespace cutaway
