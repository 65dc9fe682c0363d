#include <cutaway/autograd/ops/matmul.h>
#include <cutaway/autograd/reference.h>

namespace cutaway {
namespace {

// Element (i, j) of matrix `batch` of x, whose batch dimensions broadcast to `batch_sizes`.
double element(const Ref& x, const Shape& batch_sizes, int64_t batch, bool transposed, int64_t i,
               int64_t j) {
  const int own = x.sizes.rank() - 2;
  int64_t at = 0, step = 1;
  for (int d = batch_sizes.rank() - 1; d >= 0; --d) {
    const int64_t index = batch % batch_sizes[d];
    batch /= batch_sizes[d];
    const int k = d - (batch_sizes.rank() - own);
    if (k < 0) continue;
    if (x.sizes[k] != 1) at += index * step;
    step *= x.sizes[k];
  }
  if (transposed) std::swap(i, j);
  return x.v[size_t((at * x.sizes[own] + i) * x.sizes[own + 1] + j)];
}

// The product by plain loops.
Ref product(const Ref& a, const Ref& b, const MatmulOptions& o) {
  const int ra = a.sizes.rank(), rb = b.sizes.rank();
  const Shape batch = broadcast("reference", a.sizes.slice(0, ra - 2), b.sizes.slice(0, rb - 2));
  const int64_t m = a.sizes[o.transpose_a ? ra - 1 : ra - 2];
  const int64_t k = a.sizes[o.transpose_a ? ra - 2 : ra - 1];
  const int64_t n = b.sizes[o.transpose_b ? rb - 2 : rb - 1];
  Shape sizes = o.sum_batch ? Shape{} : batch;
  sizes.push_back(m);
  sizes.push_back(n);
  Ref y(sizes);
  for (int64_t q = 0; q < batch.numel(); ++q) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum +=
              element(a, batch, q, o.transpose_a, i, p) * element(b, batch, q, o.transpose_b, p, j);
        }
        y.v[size_t(((o.sum_batch ? 0 : q) * m + i) * n + j)] += sum;
      }
    }
  }
  return y;
}

Sample& add_product(SampleList& list, const char* label, Tensor a, Tensor b,
                    MatmulOptions options = {}) {
  return list.add(
      label, {std::move(a), std::move(b)},
      [options](const Tensors& in) { return Tensors{matmul(in[0], in[1], options)}; },
      [options](const Tensors& in) {
        return Tensors{product(Ref(in[0]), Ref(in[1]), options).tensor()};
      });
}

// beta · c + alpha · a b.
Tensors add_reference(const Tensors& in, const AddmmOptions& o) {
  Ref y = product(Ref(in[1]), Ref(in[2]), {});
  const Ref c(in[0]);
  const int shift = y.sizes.rank() - c.sizes.rank();
  for (size_t i = 0; i < y.v.size(); ++i) {
    int64_t rest = int64_t(i), at = 0, step = 1;
    for (int d = y.sizes.rank() - 1; d >= shift; --d) {
      if (c.sizes[d - shift] != 1) at += rest % y.sizes[d] * step;
      step *= c.sizes[d - shift];
      rest /= y.sizes[d];
    }
    y.v[i] = o.alpha * y.v[i] + (o.beta == 0 ? 0 : o.beta * c.v[size_t(at)]);
  }
  return {y.tensor()};
}

void add_sum(SampleList& list, const char* label, Tensors inputs, AddmmOptions options) {
  const bool batched = inputs[1].dim() == 3;
  list.add(
      label, std::move(inputs),
      [options, batched](const Tensors& in) {
        return Tensors{batched ? baddbmm(in[0], in[1], in[2], options)
                               : addmm(in[0], in[1], in[2], options)};
      },
      [options](const Tensors& in) { return add_reference(in, options); });
}

void matmul_errors(SampleList& list) {
  list.error(
      "inner",
      [] {
        matmul(zeros({2, 3}), zeros({4, 5}));
      },
      "[matmul] inner sizes must agree; got a [2,3], b [4,5]; need b [3,n]");
  list.error(
      "transposed",
      [] {
        matmul(zeros({32, 784}), zeros({256, 784}));
      },
      "hint: b looks transposed: linear(x, w) takes w as [out,in], or use b.t()");
  list.error(
      "inner of batch",
      [] {
        matmul(zeros({2, 2, 3}), zeros({2, 4, 5}));
      },
      "need b […,3,n]");
  list.error(
      "flagged",
      [] {
        matmul(zeros({2, 3}), zeros({3, 5}), {.transpose_b = true});
      },
      "need b [n,3]");
  list.error(
      "batch",
      [] {
        matmul(zeros({2, 3, 4}), zeros({3, 4, 5}));
      },
      "[matmul] batch sizes must be equal or 1; got a [2,3,4], b [3,4,5]");
  list.error(
      "types",
      [] {
        matmul(zeros({2, 3}), zeros({3, 2}, {.dtype = DType::f64}));
      },
      "[matmul] operands must have one type; got a f32 [2,3], b f64 [3,2]");
  list.error(
      "0-d",
      [] {
        matmul(zeros({}), zeros({3, 2}));
      },
      "need at least one dimension");
  list.error(
      "bool",
      [] {
        const Tensor x = zeros({2, 2}, {.dtype = DType::boolean});
        matmul(x, x);
      },
      "[matmul] does not accept bool");
}

// Wrong ranks, in the functions that ask for one.
void rank_errors(SampleList& list) {
  list.error(
      "mm rank",
      [] {
        mm(zeros({2, 3, 4}), zeros({4, 2}));
      },
      "[mm] a and b must be matrices; got a [2,3,4], b [4,2]");
  list.error(
      "bmm rank",
      [] {
        bmm(zeros({3, 4}), zeros({4, 2}));
      },
      "[bmm] a and b must have three dimensions; got a [3,4], b [4,2]");
  list.error(
      "mv rank",
      [] {
        mv(zeros({3, 4}), zeros({4, 2}));
      },
      "[mv] a must be a matrix and b a vector; got a [3,4], b [4,2]");
  list.error(
      "dot rank",
      [] {
        dot(zeros({3, 4}), zeros({4}));
      },
      "[dot] a and b must be vectors");
  list.error(
      "outer rank",
      [] {
        outer(zeros({3, 4}), zeros({4}));
      },
      "[outer] a and b must be vectors");
}

// Sizes 0, operands large enough for blocks and panels, integers, vectors.
void matmul_edges(SampleList& list) {
  add_product(list, "inner 0", list.randn({2, 0}), list.randn({0, 3}));
  add_product(list, "no rows", list.randn({0, 2}), list.randn({2, 3}));
  add_product(list, "no batch", list.randn({0, 2, 2}), list.randn({0, 2, 3}));
  add_product(list, "sum over no batch", list.randn({0, 2, 2}), list.randn({0, 2, 3}),
              {.sum_batch = true});
  Sample& large = add_product(list, "blocks", list.randn({150, 70}), list.randn({70, 530}));
  large.grad = false;
  Sample& panels = add_product(list, "panels", list.randn({3, 2100}), list.randn({2100, 2}));
  panels.grad = false;
  panels.loosen = 4;
  panels.why = "2100 summands cancel";
  for (const DType dtype : {DType::i64, DType::i32, DType::u8, DType::i8}) {
    add_product(list, name_of(dtype), list.integers({3, 4}, 0, 5).to(dtype),
                list.integers({4, 2}, 0, 5).to(dtype));
  }
  list.add(
      "vectors", {list.randn({3}), list.randn({3})},
      [](const Tensors& in) {
        return Tensors{matmul(in[0], in[1]), outer(in[0], in[1])};
      },
      [](const Tensors& in) {
        const Ref a(in[0]), b(in[1]);
        Ref inner{Shape{}}, outer{Shape{3, 3}};
        for (size_t i = 0; i < 3; ++i) {
          inner.v[0] += a.v[i] * b.v[i];
          for (size_t j = 0; j < 3; ++j) outer.v[3 * i + j] = a.v[i] * b.v[j];
        }
        return Tensors{inner.tensor(), outer.tensor()};
      });
}

}  // namespace

void matmul_samples(SampleList& list) {
  add_product(list, "matrices", list.randn({3, 4}), list.randn({4, 2}));
  add_product(list, "a transposed", list.randn({4, 3}), list.randn({4, 2}), {.transpose_a = true});
  add_product(list, "b transposed", list.randn({3, 4}), list.randn({2, 4}), {.transpose_b = true});
  add_product(list, "both transposed", list.randn({4, 3}), list.randn({2, 4}),
              {.transpose_a = true, .transpose_b = true});
  add_product(list, "one element", list.randn({1, 1}), list.randn({1, 1}));
  add_product(list, "batch", list.randn({2, 2, 3}), list.randn({2, 3, 2}));
  add_product(list, "batch transposed", list.randn({2, 3, 2}), list.randn({2, 2, 3}),
              {.transpose_a = true, .transpose_b = true});
  add_product(list, "broadcast batch", list.randn({2, 1, 2, 3}), list.randn({3, 3, 2}));
  add_product(list, "batch times matrix", list.randn({2, 3, 2}), list.randn({2, 3}));
  add_product(list, "batch of rows times matrix", list.randn({3, 1, 2}), list.randn({2, 3}));
  add_product(list, "matrix times batch", list.randn({3, 2}), list.randn({2, 2, 3}));
  add_product(list, "sum over the batch", list.randn({3, 2, 2}), list.randn({3, 2, 2}),
              {.sum_batch = true});
  add_product(list, "sum, a transposed", list.randn({3, 2, 2}), list.randn({3, 2, 3}),
              {.transpose_a = true, .sum_batch = true});
  add_product(list, "sum, one matrix", list.randn({3, 2, 2}), list.randn({2, 3}),
              {.sum_batch = true});
  add_product(list, "sum, inner 1", list.randn({3, 2, 1}), list.randn({3, 1, 2}),
              {.sum_batch = true});
  matmul_edges(list);
  matmul_errors(list);
  rank_errors(list);
}

void addmm_samples(SampleList& list) {
  const auto inputs = [&](const Shape& c) {
    return Tensors{list.randn(c), list.randn({2, 3}), list.randn({3, 4})};
  };
  add_sum(list, "plain", inputs({2, 4}), {});
  add_sum(list, "row", inputs({4}), {.beta = 0.5, .alpha = 2});
  add_sum(list, "number", inputs({}), {.beta = -1});
  add_sum(list, "beta 0", inputs({2, 1}), {.beta = 0});
  add_sum(list, "alpha 0", inputs({2, 4}), {.alpha = 0});
  add_sum(list, "inner 0", {list.randn({2, 2}), list.randn({2, 0}), list.randn({0, 2})},
          {.beta = 2});
  list.error(
      "rank",
      [] {
        addmm(zeros({2}), zeros({1, 2, 3}), zeros({3, 2}));
      },
      "[addmm] a and b must be matrices; got a [1,2,3], b [3,2]");
  list.error(
      "inner",
      [] {
        addmm(zeros({2}), zeros({2, 3}), zeros({2, 2}));
      },
      "[addmm] inner sizes must agree");
  list.error(
      "c",
      [] {
        addmm(zeros({5, 2, 2}), zeros({2, 3}), zeros({3, 2}));
      },
      "[addmm] c must broadcast to the product; got c [5,2,2], need [2,2]");
}

void baddbmm_samples(SampleList& list) {
  const auto inputs = [&](const Shape& c) {
    return Tensors{list.randn(c), list.randn({2, 2, 3}), list.randn({2, 3, 2})};
  };
  add_sum(list, "plain", inputs({2, 2, 2}), {});
  add_sum(list, "one matrix", inputs({2, 2}), {.beta = 0.5, .alpha = 2});
  add_sum(list, "beta 0", inputs({2, 1, 1}), {.beta = 0});
  list.error(
      "rank",
      [] {
        baddbmm(zeros({2}), zeros({2, 3}), zeros({3, 2}));
      },
      "[baddbmm] a and b must have three dimensions; got a [2,3], b [3,2]");
}

}  // namespace cutaway
