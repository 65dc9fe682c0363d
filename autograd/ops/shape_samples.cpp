#include <cutaway/autograd/ops/sample_tools.h>
#include <cutaway/autograd/ops/shape.h>

namespace cutaway {
namespace {

// A sample whose reference keeps the row-major order.
Sample& add_relabel(SampleList& list, const char* label, Tensor x, const Shape& want,
                    std::function<Tensor(const Tensor&)> op) {
  return list.add(
      label, {std::move(x)}, [op](const Tensors& in) { return Tensors{op(in[0])}; },
      [want](const Tensors& in) { return relabelled(in[0], want); });
}

void add_permute(SampleList& list, const char* label, Tensor x, const Shape& order,
                 std::function<Tensor(const Tensor&)> op) {
  Shape want = x.sizes();
  for (int d = 0; d < order.rank(); ++d) want[d] = x.sizes()[int(order[d])];
  list.add(
      label, {std::move(x)}, [op](const Tensors& in) { return Tensors{op(in[0])}; },
      [want, order](const Tensors& in) {
        return moved(in[0], want, [&](const Shape& i) {
          Shape from = i;
          for (int d = 0; d < order.rank(); ++d) from[int(order[d])] = i[d];
          return from;
        });
      });
}

void add_expand(SampleList& list, const char* label, Tensor x, const Shape& want,
                std::function<Tensor(const Tensor&)> op) {
  list.add(
      label, {std::move(x)}, [op](const Tensors& in) { return Tensors{op(in[0])}; },
      [want](const Tensors& in) {
        const Shape& sizes = in[0].sizes();
        return moved(in[0], want, [&](const Shape& i) {
          Shape from = sizes;
          const int shift = want.rank() - sizes.rank();
          for (int d = 0; d < sizes.rank(); ++d) from[d] = sizes[d] == 1 ? 0 : i[shift + d];
          return from;
        });
      });
}

}  // namespace

void reshape_samples(SampleList& list) {
  const auto to = [](Shape s) { return [s](const Tensor& x) { return reshape(x, s); }; };
  add_relabel(list, "matrix to vector", list.randn({3, 4}), {12}, to({12}));
  add_relabel(list, "found size", list.randn({2, 3, 4}), {4, 6}, to({4, -1}));
  add_relabel(list, "0-d to [1,1]", list.randn({}), {1, 1}, to({1, 1}));
  add_relabel(list, "one element to 0-d", list.randn({1}), {}, to({}));
  add_relabel(list, "empty", list.randn({0, 3}), {3, 0}, to({3, 0}));
  list.error(
      "count",
      [] {
        reshape(zeros({2, 3}), {4});
      },
      "[reshape] the number of elements must stay the same; got [2,3], need [4]");
  list.error(
      "two unknown",
      [] {
        reshape(zeros({2, 3}), {-1, -1});
      },
      "only one size may be -1");
  list.error(
      "ambiguous",
      [] {
        reshape(zeros({0, 3}), {0, -1});
      },
      "-1 is ambiguous");
}

void view_samples(SampleList& list) {
  const auto to = [](Shape s) { return [s](const Tensor& x) { return view(x, s); }; };
  add_relabel(list, "split", list.randn({6, 2}), {2, 3, 2}, to({2, 3, 2}));
  Sample& joined = add_relabel(list, "joined", list.randn({2, 3}), {6}, to({6}));
  joined.strided = false, joined.why = "strided rows have no such view";
  add_relabel(list, "empty", list.randn({0, 2}), {2, 0}, to({2, 0}));
  add_relabel(list, "0-d", list.randn({}), {1}, to({1}));
  list.error(
      "needs a copy",
      [] {
        view(transpose(zeros({2, 3}), 0, 1), {6});
      },
      "[view] would need a copy; got sizes [3,2] with strides [1,3], need [6]");
  list.error(
      "hint",
      [] {
        view(transpose(zeros({2, 3}), 0, 1), {6});
      },
      "hint: use reshape()");
}

void flatten_samples(SampleList& list) {
  add_relabel(list, "all", list.randn({2, 3, 2}), {12}, [](const Tensor& x) { return flatten(x); });
  add_relabel(list, "from 1", list.randn({2, 3, 2}), {2, 6},
              [](const Tensor& x) { return flatten(x, 1); });
  add_relabel(list, "middle", list.randn({2, 3, 2, 2}), {2, 6, 2},
              [](const Tensor& x) { return flatten(x, 1, -2); });
  add_relabel(list, "0-d", list.randn({}), {1}, [](const Tensor& x) { return flatten(x); });
  add_relabel(list, "empty", list.randn({2, 0, 3}), {2, 0},
              [](const Tensor& x) { return flatten(x, 1); });
  list.error(
      "order",
      [] {
        flatten(zeros({2, 3}), 1, 0);
      },
      "[flatten] first dimension must not lie behind the last; got 1 and 0 for x [2,3]");
  list.error(
      "range",
      [] {
        flatten(zeros({2, 3}), 2);
      },
      "dim 2 is out of range");
}

void unflatten_samples(SampleList& list) {
  add_relabel(list, "last", list.randn({2, 6}), {2, 3, 2}, [](const Tensor& x) {
    return unflatten(x, -1, {3, -1});
  });
  add_relabel(list, "first", list.randn({4, 2}), {2, 2, 2}, [](const Tensor& x) {
    return unflatten(x, 0, {2, 2});
  });
  add_relabel(list, "empty", list.randn({2, 0}), {2, 0, 3}, [](const Tensor& x) {
    return unflatten(x, 1, {0, 3});
  });
  list.error(
      "count",
      [] {
        unflatten(zeros({2, 6}), 1, {4, 2});
      },
      "[unflatten] the number of elements must stay the same; got [6], need [4,2]");
}

void permute_samples(SampleList& list) {
  const auto by = [](Shape s) { return [s](const Tensor& x) { return permute(x, s); }; };
  add_permute(list, "three", list.randn({2, 3, 4}), {2, 0, 1}, by({2, 0, -2}));
  add_permute(list, "four", list.randn({2, 1, 3, 2}), {0, 3, 1, 2}, by({0, 3, 1, 2}));
  add_permute(list, "0-d", list.randn({}), {}, by({}));
  add_permute(list, "empty", list.randn({0, 3}), {1, 0}, by({1, 0}));
  list.error(
      "twice",
      [] {
        permute(zeros({2, 3}), {0, 0});
      },
      "[permute] a dimension is named twice; got [0,0] for x [2,3]");
  list.error(
      "missing",
      [] {
        permute(zeros({2, 3}), {0});
      },
      "[permute] every dimension must be named once; got [0] for x [2,3]");
}

void transpose_samples(SampleList& list) {
  add_permute(list, "matrix", list.randn({3, 4}), {1, 0},
              [](const Tensor& x) { return transpose(x, 0, 1); });
  add_permute(list, "outer", list.randn({2, 3, 4}), {2, 1, 0},
              [](const Tensor& x) { return transpose(x, 0, -1); });
  add_permute(list, "t", list.randn({2, 3}), {1, 0}, [](const Tensor& x) { return t(x); });
  add_permute(list, "empty", list.randn({2, 0}), {1, 0},
              [](const Tensor& x) { return transpose(x, 0, 1); });
  add_permute(list, "0-d", list.randn({}), {}, [](const Tensor& x) { return transpose(x, 0, 0); });
  list.error(
      "range",
      [] {
        transpose(zeros({2, 3}), 0, 2);
      },
      "[transpose] dim 2 is out of range");
  list.error(
      "t of three",
      [] {
        t(zeros({2, 3, 4}));
      },
      "[t] needs a matrix; got x [2,3,4]");
}

void movedim_samples(SampleList& list) {
  add_permute(list, "first to last", list.randn({2, 3, 4}), {1, 2, 0},
              [](const Tensor& x) { return movedim(x, 0, -1); });
  add_permute(list, "two", list.randn({2, 3, 4}), {2, 1, 0}, [](const Tensor& x) {
    return movedim(x, Shape{0, 1}, Shape{2, 1});
  });
  add_permute(list, "0-d", list.randn({}), {}, [](const Tensor& x) { return movedim(x, 0, 0); });
  add_permute(list, "empty", list.randn({0, 2}), {1, 0},
              [](const Tensor& x) { return movedim(x, 1, 0); });
  list.error(
      "count",
      [] {
        movedim(zeros({2, 3}), Shape{0, 1}, Shape{0});
      },
      "[movedim] as many places as dimensions; got [0,1] and [0] for x [2,3]");
}

void expand_samples(SampleList& list) {
  const auto to = [](Shape s) { return [s](const Tensor& x) { return expand(x, s); }; };
  add_expand(list, "column", list.randn({3, 1}), {3, 4}, to({3, 4}));
  add_expand(list, "new dimension, kept size", list.randn({1, 3}), {2, 2, 3}, to({2, 2, -1}));
  add_expand(list, "0-d", list.randn({}), {2, 2}, to({2, 2}));
  add_expand(list, "to empty", list.randn({1, 2}), {0, 2}, to({0, 2}));
  list.error(
      "not 1",
      [] {
        expand(zeros({2, 3}), {4, 3});
      },
      "[expand] only sizes of 1 can be repeated, and new dimensions come first; got [2,3], "
      "need [4,3]");
  list.error(
      "fewer",
      [] {
        expand(zeros({2, 3}), {3});
      },
      "[expand] only sizes of 1");
}

void broadcast_to_samples(SampleList& list) {
  const auto to = [](Shape s) { return [s](const Tensor& x) { return broadcast_to(x, s); }; };
  add_expand(list, "row", list.randn({3}), {2, 3}, to({2, 3}));
  add_expand(list, "both", list.randn({2, 1, 2}), {2, 3, 2}, to({2, 3, 2}));
  add_expand(list, "0-d", list.randn({}), {3}, to({3}));
  add_expand(list, "empty", list.randn({0, 1}), {0, 3}, to({0, 3}));
  list.error(
      "sizes", [] { broadcast_to(zeros({2}), {3}); }, "[broadcast_to] only sizes of 1");
}

void squeeze_samples(SampleList& list) {
  add_relabel(list, "all", list.randn({1, 3, 1, 2}), {3, 2},
              [](const Tensor& x) { return squeeze(x); });
  add_relabel(list, "one", list.randn({1, 3, 1}), {1, 3},
              [](const Tensor& x) { return squeeze(x, -1); });
  add_relabel(list, "not 1", list.randn({2, 3}), {2, 3},
              [](const Tensor& x) { return squeeze(x, 0); });
  add_relabel(list, "0-d", list.randn({}), {}, [](const Tensor& x) { return squeeze(x); });
  add_relabel(list, "empty", list.randn({1, 0}), {0}, [](const Tensor& x) { return squeeze(x); });
  list.error(
      "range",
      [] {
        squeeze(zeros({1, 2}), 2);
      },
      "[squeeze] dim 2 is out of range");
}

void unsqueeze_samples(SampleList& list) {
  const auto at = [](int64_t d) { return [d](const Tensor& x) { return unsqueeze(x, d); }; };
  add_relabel(list, "front", list.randn({2, 3}), {1, 2, 3}, at(0));
  add_relabel(list, "back", list.randn({2, 3}), {2, 3, 1}, at(-1));
  add_relabel(list, "middle", list.randn({2, 3}), {2, 1, 3}, at(1));
  add_relabel(list, "0-d", list.randn({}), {1}, at(0));
  add_relabel(list, "empty", list.randn({0}), {0, 1}, at(1));
  list.error(
      "range", [] { unsqueeze(zeros({2}), 3); }, "[unsqueeze] dim 3 is out of range");
  list.error(
      "too many",
      [] {
        unsqueeze(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0);
      },
      "[unsqueeze] at most 8 dimensions; got x [1,1,1,1,1,1,1,1]");
}

}  // namespace cutaway
