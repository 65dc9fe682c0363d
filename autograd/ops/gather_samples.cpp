#include <cutaway/autograd/ops/index.h>
#include <cutaway/autograd/ops/sample_tools.h>
#include <cutaway/autograd/ops/shape.h>

namespace cutaway {
namespace {

// y[i] = x[i, but index[i] along dim]; places beside dim that x repeats (size 1) are read at 0.
Tensors gathered(const Tensor& x, const Tensor& index, const Shape& sizes, int dim) {
  const Ref at(index);
  return moved(x, sizes, [&](const Shape& i) {
    Shape place = i, from = i;
    for (int d = 0; d < i.rank(); ++d) {
      if (at.sizes[d] == 1) place[d] = 0;
      if (x.sizes()[d] == 1) from[d] = 0;
    }
    if (i.rank()) from[dim] = int64_t(at.v[size_t(flat_index(at.sizes, place))]);
    return from;
  });
}

Tensors selected(const Tensor& x, const Tensor& index, int dim) {
  const Ref at(index);
  Shape want = x.sizes();
  want[dim] = index.numel();
  return moved(x, want, [&](Shape i) {
    i[dim] = int64_t(at.v[size_t(i[dim])]);
    return i;
  });
}

}  // namespace

void gather_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, const Shape& index, int dim) {
    const int64_t n = sizes.rank() ? sizes[dim] : 1;
    return &list.add(
        label, {list.randn(sizes), list.integers(index, 0, n)},
        [dim](const Tensors& in) { return Tensors{gather(in[0], dim, in[1])}; },
        [dim](const Tensors& in) { return gathered(in[0], in[1], in[1].sizes(), dim); });
  };
  add("rows", {3, 4}, {5, 4}, 0);
  add("columns, fewer rows", {3, 4}, {2, 6}, 1);
  add("middle", {2, 3, 2}, {2, 4, 2}, 1);
  add("vector, repeated", {3}, {7}, 0);
  add("0-d", {}, {}, 0);
  add("empty index", {3, 2}, {0, 2}, 0);
  add("long", {40, 50}, {40, 60}, 1)->grad = false;
  list.add(
      "broadcast: take_along_dim", {list.randn({3, 1}), list.integers({1, 4}, 0, 3)},
      [](const Tensors& in) { return Tensors{take_along_dim(in[0], in[1], 0)}; },
      [](const Tensors& in) {
        return gathered(in[0], in[1], {1, 4}, 0);
      });
  list.error(
      "range",
      [] {
        gather(zeros({2, 3}), 1, tensor({0, 3}, {1, 2}, {.dtype = DType::i64}));
      },
      "[gather] index 3 at [0,1] is out of range for size 3");
  list.error(
      "negative", [] { gather(zeros({3}), 0, tensor({-1}, {.dtype = DType::i64})); },
      "[gather] index -1 at [0] is out of range for size 3");
  list.error(
      "type", [] { gather(zeros({3}), 0, zeros({1})); },
      "[gather] an index must be i64 or i32; got f32 [1]");
  list.error(
      "rank",
      [] {
        gather(zeros({3, 2}), 0, zeros({1}, {.dtype = DType::i64}));
      },
      "[gather] index must have as many dimensions as x");
}

void index_select_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, int64_t count, int dim) {
    return &list.add(
        label, {list.randn(sizes), list.integers({count}, 0, sizes[dim])},
        [dim](const Tensors& in) { return Tensors{index_select(in[0], dim, in[1])}; },
        [dim](const Tensors& in) { return selected(in[0], in[1], dim); });
  };
  add("rows", {4, 3}, 6, 0);
  add("columns", {2, 3}, 2, 1);
  add("middle", {2, 3, 2}, 5, 1);
  add("vector", {5}, 3, 0);
  add("none", {2, 3}, 0, 0);
  add("long", {50, 40}, 80, 0)->grad = false;
  list.error(
      "range",
      [] {
        index_select(zeros({2, 3}), 0, tensor({0, 2}, {.dtype = DType::i32}));
      },
      "[index_select] index 2 at [1] is out of range for size 2; got index [2], need 0 … 1");
  list.error(
      "matrix",
      [] {
        index_select(zeros({2}), 0, zeros({1, 1}, {.dtype = DType::i64}));
      },
      "[index_select] needs x with a dimension and a vector as index; got x [2], index [1,1]");
}

void embedding_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& table, const Shape& ids) {
    Shape want = ids;
    want.push_back(table[1]);
    list.add(
        label, {list.randn(table), list.integers(ids, 0, table[0])},
        [](const Tensors& in) { return Tensors{embedding(in[0], in[1])}; },
        [want](const Tensors& in) {
          return relabelled(selected(in[0], relabelled(in[1], {in[1].numel()})[0], 0)[0], want);
        });
  };
  add("vector", {4, 3}, {6});
  add("batch", {5, 2}, {2, 3});
  add("one id", {3, 2}, {});
  add("no ids", {3, 2}, {0});
  for (BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
    const char* names[] = {"bag: sum", "bag: mean", "bag: max"};
    list.add(
        names[int(mode)], {list.distinct({5, 2}), list.integers({3, 4}, 0, 5)},
        [mode](const Tensors& in) { return Tensors{embedding_bag(in[0], in[1], {.mode = mode})}; },
        [mode](const Tensors& in) {
          const Ref table(in[0]), ids(in[1]);
          Ref out({3, 2});
          for (size_t k = 0; k < 6; ++k) {
            for (size_t l = 0; l < 4; ++l) {
              const double v = table.v[size_t(ids.v[k / 2 * 4 + l]) * 2 + k % 2];
              out.v[k] = mode != BagMode::max ? out.v[k] + v : l ? std::max(out.v[k], v) : v;
            }
            if (mode == BagMode::mean) out.v[k] /= 4;
          }
          return Tensors{out.tensor()};
        });
  }
  list.error(
      "range",
      [] {
        embedding(zeros({2, 3}), tensor({2}, {.dtype = DType::i64}));
      },
      "[embedding] index 2 at [0] is out of range for size 2");
  list.error(
      "table", [] { embedding(zeros({2}), zeros({1}, {.dtype = DType::i64})); },
      "[embedding] needs a table [V,D]");
  list.error(
      "bag",
      [] {
        embedding_bag(zeros({2, 3}), zeros({2}, {.dtype = DType::i64}));
      },
      "[embedding_bag] needs ids [B,L], or ids [K] with offsets; got [2]");
}

void one_hot_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& ids, int64_t classes, int64_t given) {
    Shape want = ids;
    want.push_back(classes);
    list.add(
        label, {list.integers(ids, 0, classes)},
        [given](const Tensors& in) { return Tensors{one_hot(in[0], given)}; },
        [want](const Tensors& in) {
          const Ref x(in[0]);
          Ref out(want);
          for (size_t i = 0; i < x.v.size(); ++i)
            out.v[i * size_t(want.back()) + size_t(x.v[i])] = 1;
          return Tensors{out.tensor()};
        });
  };
  add("vector", {5}, 4, 4);
  add("matrix", {2, 3}, 3, 3);
  add("0-d", {}, 3, 3);
  add("found", {3}, 1, -1);
  add("empty", {0}, 2, 2);
  list.error(
      "range",
      [] {
        one_hot(tensor({0, 3}, {.dtype = DType::i64}), 3);
      },
      "[one_hot] index 3 at [1] is out of range for size 3");
}

void bincount_samples(SampleList& list) {
  const auto add = [&](const char* label, int64_t n, int64_t most, int64_t least) {
    list.add(
        label, {list.integers({n}, 0, most)},
        [least](const Tensors& in) { return Tensors{bincount(in[0], least)}; },
        [least](const Tensors& in) {
          const Ref x(in[0]);
          double top = double(least);
          for (double v : x.v) top = std::max(top, v + 1);
          Ref out({int64_t(top)});
          for (double v : x.v) ++out.v[size_t(v)];
          return Tensors{out.tensor()};
        });
  };
  add("some", 9, 4, 0);
  add("least size", 3, 2, 6);
  add("empty", 0, 1, 2);
  add("long", 3000, 40, 0);
  list.error(
      "negative", [] { bincount(tensor({-1}, {.dtype = DType::i64})); },
      "[bincount] index -1 at [0] is out of range");
  list.error(
      "float", [] { bincount(zeros({2})); }, "[bincount] needs a vector of integers; got f32");
}

}  // namespace cutaway
