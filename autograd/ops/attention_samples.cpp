#include <cmath>
#include <limits>

#include <cutaway/autograd/ops/attention.h>
#include <cutaway/autograd/reference.h>

namespace cutaway {
namespace {

// Value of x, which broadcasts to `sizes`, at a row-major position of `sizes`.
double broadcast_at(const Ref& x, const Shape& sizes, int64_t position) {
  int64_t at = 0, step = 1;
  for (int d = x.sizes.rank() - 1, e = sizes.rank() - 1; e >= 0; --d, --e) {
    const int64_t index = position % sizes[e];
    position /= sizes[e];
    if (d < 0) continue;
    if (x.sizes[d] != 1) at += index * step;
    step *= x.sizes[d];
  }
  return x.v[size_t(at)];
}

struct Plain {
  bool causal = false;
  double scale = 0;  // 0: 1/√D
};

// Position of row `row` of matrix `index` of `batch` in x [..., rows, columns].
int64_t row_of(const Ref& x, const Shape& batch, int64_t index, int64_t row) {
  const int own = x.sizes.rank() - 2;
  int64_t at = 0, step = 1;
  for (int d = batch.rank() - 1; d >= 0; --d) {
    const int64_t i = index % batch[d];
    index /= batch[d];
    const int e = d - (batch.rank() - own);
    if (e < 0) continue;
    if (x.sizes[e] != 1) at += i * step;
    step *= x.sizes[e];
  }
  return (at * x.sizes[own] + row) * x.sizes[own + 1];
}

// One query after the other, its scores in a list.
Tensors plain_attention(const Tensors& in, const Plain& options) {
  const Ref q(in[0]), k(in[1]), v(in[2]);
  const int rank = q.sizes.rank();
  const Shape batch =
      broadcast("reference", q.sizes.slice(0, rank - 2), k.sizes.slice(0, k.sizes.rank() - 2));
  const int64_t queries = q.sizes[rank - 2], depth = q.sizes[rank - 1];
  const int64_t keys = k.sizes[k.sizes.rank() - 2], width = v.sizes.back();
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(double(depth));
  Shape out = batch, scores = batch;
  for (int64_t n : {queries, width}) out.push_back(n);
  for (int64_t n : {queries, keys}) scores.push_back(n);
  Ref y(out);
  Ref lse(out.slice(0, out.rank() - 1));
  for (double& x : lse.v) x = -std::numeric_limits<double>::infinity();
  for (int64_t n = 0; n < batch.numel(); ++n) {
    for (int64_t i = 0; i < queries; ++i) {
      std::vector<double> s;
      double most = -std::numeric_limits<double>::infinity(), total = 0;
      for (int64_t j = 0; j < keys; ++j) {
        double sum = 0;
        for (int64_t d = 0; d < depth; ++d) {
          sum += q.v[size_t(row_of(q, batch, n, i) + d)] * k.v[size_t(row_of(k, batch, n, j) + d)];
        }
        sum *= scale;
        bool may = !options.causal || j <= i;
        if (in.size() > 3) {
          const double m = broadcast_at(Ref(in[3]), scores, (n * queries + i) * keys + j);
          if (in[3].dtype() == DType::boolean)
            may = may && m != 0;
          else
            sum += m;
        }
        s.push_back(may ? sum : -std::numeric_limits<double>::infinity());
        most = std::max(most, s.back());
      }
      if (!(most > -std::numeric_limits<double>::infinity())) continue;
      for (double& x : s) total += x = std::exp(x - most);
      lse.v[size_t(n * queries + i)] = most + std::log(total);
      for (int64_t j = 0; j < keys; ++j) {
        for (int64_t e = 0; e < width; ++e) {
          y.v[size_t((n * queries + i) * width + e)] +=
              s[size_t(j)] / total * v.v[size_t(row_of(v, batch, n, j) + e)];
        }
      }
    }
  }
  return {y.tensor(), lse.tensor()};
}

Sample& add_attention(SampleList& list, const char* label, Tensors inputs, const Plain& o = {}) {
  const auto call = [o](const Tensors& in) {
    AttentionOptions options{.causal = o.causal};
    if (o.scale != 0) options.scale = o.scale;
    if (in.size() > 3) options.mask = in[3];
    return Tensors{scaled_dot_product_attention(in[0], in[1], in[2], options)};
  };
  return list.add(label, std::move(inputs), call,
                  [o](const Tensors& in) { return Tensors{plain_attention(in, o)[0]}; });
}

Sample& add_lse(SampleList& list, const char* label, Tensors inputs, const Plain& o = {}) {
  const auto call = [o](const Tensors& in) {
    AttentionOptions options{.causal = o.causal};
    if (o.scale != 0) options.scale = o.scale;
    if (in.size() > 3) options.mask = in[3];
    const AttentionResult r = attention_with_lse(in[0], in[1], in[2], options);
    return Tensors{r.output, r.lse};
  };
  return list.add(label, std::move(inputs), call,
                  [o](const Tensors& in) { return plain_attention(in, o); });
}

void attention_errors(SampleList& list) {
  const auto attend = [](const Shape& q, const Shape& k, const Shape& v, Tensor mask = {}) {
    return [=] { scaled_dot_product_attention(zeros(q), zeros(k), zeros(v), {.mask = mask}); };
  };
  list.error("rank", attend({3}, {2, 3}, {2, 3}),
             "[scaled_dot_product_attention] operands need at least two dimensions; got q [3]");
  list.error("depth", attend({2, 3}, {2, 4}, {2, 4}),
             "q and k must have the same last size; got q [2,3], k [2,4], v [2,4]");
  list.error("turned", attend({2, 3}, {3, 5}, {5, 4}), "hint: k looks transposed");
  list.error("rows", attend({2, 3}, {2, 3}, {3, 4}), "k and v must have the same number of rows");
  list.error("batch", attend({2, 2, 3}, {3, 2, 3}, {3, 2, 3}), "sizes must be equal or 1");
  list.error("mask", attend({2, 3}, {4, 3}, {4, 3}, ones({4, 2}, {.dtype = DType::boolean})),
             "mask must broadcast to the scores [..., T, S]; got mask [4,2], need [2,4]");
  list.error("mask type", attend({2, 3}, {4, 3}, {4, 3}, ones({2, 4}, {.dtype = DType::i64})),
             "mask must be boolean (true: may look) or of the type of q; got mask i64, q f32");
}

}  // namespace

void attention_samples(SampleList& list) {
  const auto qkv = [&](const Shape& q, const Shape& k, const Shape& v) {
    return Tensors{list.randn(q), list.randn(k), list.randn(v)};
  };
  const auto with = [](Tensors inputs, Tensor mask) {
    inputs.push_back(std::move(mask));
    return inputs;
  };
  add_attention(list, "matrices", qkv({3, 2}, {4, 2}, {4, 3}));
  add_attention(list, "heads", qkv({2, 2, 2, 2}, {2, 2, 3, 2}, {2, 2, 3, 1}));
  add_attention(list, "causal", qkv({2, 3, 2}, {2, 3, 2}, {2, 3, 2}), {.causal = true});
  add_attention(list, "causal, more keys", qkv({2, 2}, {4, 2}, {4, 2}), {.causal = true});
  add_attention(list, "causal, fewer keys", qkv({4, 2}, {2, 2}, {2, 2}), {.causal = true});
  add_attention(list, "scale", qkv({2, 2}, {2, 2}, {2, 2}), {.scale = 2});
  add_attention(list, "shared keys", qkv({2, 2, 2}, {2, 2}, {2, 2}));
  add_attention(list, "boolean mask",
                with(qkv({2, 3, 2}, {2, 3, 2}, {2, 3, 2}), list.bools({2, 1, 3})));
  add_attention(
      list, "row that may look nowhere",
      with(qkv({2, 2}, {2, 2}, {2, 2}), tensor({1, 0, 0, 0}, {2, 2}, {.dtype = DType::boolean})));
  add_attention(list, "causal and mask",
                with(qkv({3, 2}, {3, 2}, {3, 2}), tensor({0, 1, 1}, {.dtype = DType::boolean})),
                {.causal = true});
  add_attention(list, "added mask", with(qkv({2, 2, 2}, {2, 3, 2}, {2, 3, 2}), list.randn({2, 3})));
  add_attention(list, "one query, one key", qkv({1, 1}, {1, 1}, {1, 1}));
  add_attention(list, "no keys", qkv({2, 2}, {0, 2}, {0, 2}));
  add_attention(list, "no queries", qkv({0, 2}, {2, 2}, {2, 2}));
  add_attention(list, "no batch", qkv({0, 2, 2}, {0, 2, 2}, {0, 2, 2}));
  const double inf = std::numeric_limits<double>::infinity();
  Sample& hidden =
      add_attention(list, "added -inf",
                    with(qkv({2, 2}, {2, 2}, {2, 2}),
                         tensor({0, -inf, -inf, -inf}, {2, 2}, {.dtype = DType::f64})));
  hidden.grad = false;  // differences of -inf; see tests/ops/attention_test.cpp
  Sample& tiles = add_attention(list, "tiles", qkv({2, 70, 8}, {2, 300, 8}, {2, 300, 4}));
  tiles.grad = false;
  Sample& triangle =
      add_attention(list, "causal tiles", qkv({150, 4}, {150, 4}, {150, 4}), {.causal = true});
  triangle.grad = false;
  attention_errors(list);
}

void attention_lse_samples(SampleList& list) {
  const auto qkv = [&](const Shape& q, const Shape& k, const Shape& v) {
    return Tensors{list.randn(q), list.randn(k), list.randn(v)};
  };
  add_lse(list, "matrices", qkv({3, 2}, {4, 2}, {4, 3}));
  add_lse(list, "heads, causal", qkv({2, 2, 3, 2}, {2, 2, 3, 2}, {2, 2, 3, 1}), {.causal = true});
  add_lse(list, "scale", qkv({2, 2}, {2, 2}, {2, 2}), {.scale = 2});
  Tensors biased = qkv({2, 2, 2}, {3, 2}, {3, 2});
  biased.push_back(list.randn({1, 3}));
  add_lse(list, "key bias", biased);
  add_lse(list, "one query, one key", qkv({1, 1}, {1, 1}, {1, 1}));
  add_lse(list, "no queries", qkv({0, 2}, {2, 2}, {2, 2}));
  Sample& tiles = add_lse(list, "tiles", qkv({2, 70, 8}, {2, 300, 8}, {2, 300, 4}));
  tiles.grad = false;
  list.error(
      "no keys",
      [] {
        attention_with_lse(zeros({2, 2}), zeros({0, 2}), zeros({0, 2}));
      },
      "lse needs a key and a column of v; got q [2,2], k [0,2], v [0,2]");
}

}  // namespace cutaway
