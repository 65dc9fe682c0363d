#include <cutaway/cuda/runtime/attention_graph.h>

#include <algorithm>
#include <cstring>
#include <deque>

// Note: the library knows attention by the shape of a graph: products, scaling, masking by indices
// and softmax as single operations, whose order and whose types are those that its flash engines
// look for. Nothing but operands and results lies in memory; the rest is virtual.
namespace cutaway::cuda::gpu {
namespace {

using dnn::Descriptor;
using Sizes = std::vector<int64_t>;

Sizes dense(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

// A graph in the making.
class Builder {
 public:
  explicit Builder(const AttentionKey& key)
      : half_(DType(key.dtype) == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF) {}

  cudnnDataType_t half() const { return half_; }

  // An array that lies in memory.
  const Descriptor& array(int64_t uid, cudnnDataType_t type, const Sizes& sizes,
                          const Sizes& strides) {
    return add(describe(uid, type, sizes, strides));
  }
  // A number that is given with each run.
  const Descriptor& scalar(int64_t uid) {
    Descriptor t = describe(uid, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1});
    t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    return add(std::move(t));
  }
  // What only lives inside.
  const Descriptor& inner(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides) {
    Descriptor t = describe(next_uid_++, type, sizes, strides);
    t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    return add(std::move(t));
  }
  const Descriptor& inner(cudnnDataType_t type, const Sizes& sizes) {
    return inner(type, sizes, dense(sizes));
  }

  const Descriptor& product(const Descriptor& a, const Descriptor& b, const Descriptor& c) {
    Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finalize();
    Descriptor o(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    o.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    o.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    o.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    finish(std::move(o));
    return c;
  }
  struct Pointwise {
    cudnnPointwiseMode_t mode;
    const Descriptor* b = nullptr;
    const Descriptor* choose = nullptr;
    int64_t axis = -1;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  };
  const Descriptor& pointwise(const Pointwise& p, const Descriptor& x, const Descriptor& y) {
    Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p.mode);
    how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, p.compute);
    if (p.axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, p.axis);
    how.finalize();
    Descriptor o(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (p.b) o.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *p.b);
    if (p.choose) o.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *p.choose);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    finish(std::move(o));
    return y;
  }
  const Descriptor& binary(cudnnPointwiseMode_t mode, const Descriptor& a, const Descriptor& b,
                           const Descriptor& y) {
    return pointwise({.mode = mode, .b = &b}, a, y);
  }
  const Descriptor& reduce(cudnnReduceTensorOp_t op, const Descriptor& x, const Descriptor& y) {
    Descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finalize();
    Descriptor o(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    o.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    o.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    finish(std::move(o));
    return y;
  }
  // x read with other sizes and strides.
  const Descriptor& reshape(const Descriptor& x, const Descriptor& y) {
    Descriptor o(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    o.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    finish(std::move(o));
    return y;
  }
  Descriptor graph() const { return dnn::graph_of(operations_); }

 private:
  static Descriptor describe(int64_t uid, cudnnDataType_t type, const Sizes& sizes,
                             const Sizes& strides) {
    Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
    t.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
    t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
    return t;
  }
  const Descriptor& add(Descriptor t) {
    t.finalize();
    tensors_.push_back(std::move(t));
    return tensors_.back();
  }
  void finish(Descriptor operation) {
    operation.finalize();
    operations_.push_back(std::move(operation));
  }

  cudnnDataType_t half_;
  int64_t next_uid_ = 100;
  std::deque<Descriptor> tensors_;  // addresses stay
  std::vector<Descriptor> operations_;
};

// The operands of both passes.
struct Heads {
  Builder& g;
  const AttentionKey& key;
  Sizes scores, row;
  const Descriptor& q;
  const Descriptor& k_turned;  // [batch, heads, depth, keys]
  const Descriptor& scale;

  Heads(Builder& builder, const AttentionKey& x)
      : g(builder),
        key(x),
        scores{x.batch, x.heads, x.queries, x.keys},
        row{x.batch, x.heads, x.queries, 1},
        q(g.array(kQuery, g.half(), with(x.queries, x.depth), {x.q[0], x.q[1], x.q[2], 1})),
        k_turned(g.array(kKey, g.half(), with(x.depth, x.keys), {x.k[0], x.k[1], 1, x.k[2]})),
        scale(g.scalar(kScale)) {}

  Sizes with(int64_t rows, int64_t columns) const { return {key.batch, key.heads, rows, columns}; }
  const Descriptor& inner() const { return g.inner(CUDNN_DATA_FLOAT, scores); }
  const Descriptor& inner_row() const { return g.inner(CUDNN_DATA_FLOAT, row); }
  const Descriptor& dense_half(AttentionUid uid, int64_t rows, int64_t columns) const {
    return g.array(uid, g.half(), with(rows, columns), dense(with(rows, columns)));
  }
  const Descriptor& scaled_scores() const {
    return g.binary(CUDNN_POINTWISE_MUL, g.product(q, k_turned, inner()), scale, inner());
  }
  // −inf in place of the scores of later keys.
  const Descriptor& masked(const Descriptor& s) const {
    if (!key.causal) return s;
    const auto index = [&](int64_t axis) -> const Descriptor& {
      return g.pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = axis}, s,
                         g.inner(CUDNN_DATA_INT32, scores));
    };
    const Descriptor& query = index(2);
    const Descriptor& of_key = index(3);
    const Descriptor& may =
        g.pointwise({.mode = CUDNN_POINTWISE_CMP_GE, .b = &of_key, .compute = CUDNN_DATA_BOOLEAN},
                    query, g.inner(CUDNN_DATA_BOOLEAN, scores));
    const Descriptor& blind = g.scalar(kBlind);
    return g.pointwise({.mode = CUDNN_POINTWISE_BINARY_SELECT, .b = &blind, .choose = &may}, s,
                       inner());
  }
};

// s = scale q kᵀ, masked; o = softmax(s) v, lse = max + log Σ exp(s − max).
void forward(const Heads& h) {
  Builder& g = h.g;
  const AttentionKey& x = h.key;
  const Descriptor& v =
      g.array(kValue, g.half(), h.with(x.keys, x.width), {x.v[0], x.v[1], x.v[2], 1});
  const Descriptor& s = h.masked(h.scaled_scores());
  const Descriptor& most = g.reduce(CUDNN_REDUCE_TENSOR_MAX, s, h.inner_row());
  const Descriptor& shifted = g.binary(CUDNN_POINTWISE_SUB, s, most, h.inner());
  const Descriptor& e = g.pointwise({.mode = CUDNN_POINTWISE_EXP}, shifted, h.inner());
  const Descriptor& sum = g.reduce(CUDNN_REDUCE_TENSOR_ADD, e, h.inner_row());
  const Descriptor& log = g.pointwise({.mode = CUDNN_POINTWISE_LOG}, sum, h.inner_row());
  g.binary(CUDNN_POINTWISE_ADD, most, log, g.array(kLse, CUDNN_DATA_FLOAT, h.row, dense(h.row)));
  const Descriptor& p = g.binary(CUDNN_POINTWISE_DIV, e, sum, g.inner(g.half(), h.scores));
  g.product(p, v, h.dense_half(kOutput, x.queries, x.width));
}

// p = exp(s − lse); dv = pᵀ g; ds = scale p ∘ (g vᵀ − dots), dots = Σ_e g o; dk = dsᵀ q; dq = ds k.
void backward(const Heads& h) {
  Builder& g = h.g;
  const AttentionKey& x = h.key;
  const Descriptor& v_turned =
      g.array(kValue, g.half(), h.with(x.width, x.keys), {x.v[0], x.v[1], 1, x.v[2]});
  const Descriptor& o = h.dense_half(kOutput, x.queries, x.width);
  const Descriptor& up = h.dense_half(kUpstream, x.queries, x.width);
  const Descriptor& lse = g.array(kLse, CUDNN_DATA_FLOAT, h.row, dense(h.row));
  const Sizes turned{x.batch, x.heads, x.keys, x.queries};
  Sizes turned_strides = dense(h.scores);
  std::swap(turned_strides[2], turned_strides[3]);
  const auto turn = [&](const Descriptor& w) -> const Descriptor& {
    return g.reshape(w, g.inner(g.half(), turned, turned_strides));
  };

  const Descriptor& both =
      g.binary(CUDNN_POINTWISE_MUL, up, o, g.inner(CUDNN_DATA_FLOAT, h.with(x.queries, x.width)));
  const Descriptor& sums = g.reduce(CUDNN_REDUCE_TENSOR_ADD, both, h.inner_row());
  const Descriptor& dots = g.binary(CUDNN_POINTWISE_MUL, sums, g.scalar(kOne),
                                    g.array(kDots, CUDNN_DATA_FLOAT, h.row, dense(h.row)));

  const Descriptor& s = g.binary(CUDNN_POINTWISE_SUB, h.scaled_scores(), lse, h.inner());
  const Descriptor& p = g.pointwise({.mode = CUDNN_POINTWISE_EXP}, h.masked(s), h.inner());
  g.product(turn(p), up, h.dense_half(kValueGrad, x.keys, x.width));

  const Descriptor& dp = g.product(up, v_turned, h.inner());
  const Descriptor& centred = g.binary(CUDNN_POINTWISE_SUB, dp, dots, h.inner());
  const Descriptor& unscaled = g.binary(CUDNN_POINTWISE_MUL, centred, p, h.inner());
  const Descriptor& ds =
      g.binary(CUDNN_POINTWISE_MUL, unscaled, h.scale, g.inner(g.half(), h.scores));
  g.product(turn(ds), h.q, h.dense_half(kKeyGrad, x.keys, x.depth));
  const Descriptor& k = g.reshape(
      h.k_turned, g.inner(g.half(), h.with(x.keys, x.depth), {x.k[0], x.k[1], x.k[2], 1}));
  g.product(ds, k, h.dense_half(kQueryGrad, x.queries, x.depth));
}

}  // namespace

AttentionKey::AttentionKey(AttentionPass which, DType type, const AttentionArgs& a)
    : pass(int64_t(which)),
      dtype(int64_t(type)),
      causal(a.causal),
      batch(a.rank == 2 ? a.sizes[0] : 1),
      heads(a.rank > 0 ? a.sizes[a.rank - 1] : 1),
      queries(a.queries),
      keys(a.keys),
      depth(a.depth),
      width(a.width) {
  int64_t* const to[] = {q, k, v};
  const int64_t rows[] = {a.q_row, a.k_row, a.v_row};
  const int64_t lengths[] = {a.queries, a.keys, a.keys};
  for (int i = 0; i < 3; ++i) {
    const int64_t whole = rows[i] * lengths[i];
    // Distances over dimensions of one are free: take those of dense operands.
    const int64_t of_head = heads > 1 ? a.strides[i][a.rank - 1] : whole;
    to[i][1] = of_head;
    to[i][0] = batch > 1 ? a.strides[i][0] : std::max(of_head * heads, whole);
    to[i][2] = rows[i];
  }
}
bool AttentionKey::operator<(const AttentionKey& o) const {
  return std::memcmp(this, &o, sizeof(AttentionKey)) < 0;
}

dnn::Plan attention_plan(const AttentionKey& key) {
  Builder builder(key);
  const Heads heads(builder, key);
  AttentionPass(key.pass) == AttentionPass::forward ? forward(heads) : backward(heads);
  return dnn::best_plan(builder.graph(), false);
}

}  // namespace cutaway::cuda::gpu
