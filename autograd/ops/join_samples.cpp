#include <algorithm>

#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/sample_tools.h>
#include <cutaway/autograd/ops/shape.h>

namespace cutaway {
namespace {

// Elements of `parts` one after the other along dim, element by element.
Tensors joined(const Tensors& parts, const Shape& sizes, int dim) {
  Ref out(sizes);
  int64_t begin = 0;
  for (const Tensor& t : parts) {
    const Ref part(t);
    size_t k = 0;
    for_each_index(part.sizes, [&](Shape i) {
      i[dim] += begin;
      out.v[size_t(flat_index(sizes, i))] = part.v[k++];
    });
    begin += part.sizes.rank() > dim ? part.sizes[dim] : 0;
  }
  return {out.tensor()};
}

void add_split(SampleList& list, const char* label, const Shape& sizes, int dim,
               std::vector<int64_t> lengths, std::function<Tensors(const Tensor&)> op) {
  list.add(
      label, {list.randn(sizes)}, [op](const Tensors& in) { return op(in[0]); },
      [=](const Tensors& in) {
        Tensors out;
        int64_t begin = 0;
        for (int64_t n : lengths) {
          Shape want = in[0].sizes();
          want[dim] = n;
          out.push_back(moved(in[0], want, [&](Shape i) {
            i[dim] += begin;
            return i;
          })[0]);
          begin += n;
        }
        return out;
      });
}

}  // namespace

void cat_samples(SampleList& list) {
  const auto add = [&](const char* label, Tensors parts, int dim, const Shape& want) {
    return &list.add(
        label, std::move(parts), [dim](const Tensors& in) { return Tensors{cat(in, dim)}; },
        [=](const Tensors& in) { return joined(in, want, dim); });
  };
  add("rows", {list.randn({2, 3}), list.randn({1, 3})}, 0, {3, 3});
  add("columns", {list.randn({2, 1}), list.randn({2, 3}), list.randn({2, 2})}, 1, {2, 6});
  add("middle", {list.randn({2, 1, 2}), list.randn({2, 2, 2})}, 1, {2, 3, 2});
  add("one", {list.randn({3})}, 0, {3});
  add("with an empty one", {list.randn({0, 2}), list.randn({2, 2})}, 0, {2, 2});
  add("old-style empty", {list.randn({0}), list.randn({2, 2})}, 0, {2, 2})->strided = false;
  add("empties", {list.randn({0}), list.randn({0})}, 0, {0});
  add("long", {list.randn({3, 700}), list.randn({3, 500})}, 1, {3, 1200})->grad = false;
  list.error(
      "none", [] { cat({}); }, "[cat] needs at least one tensor; got none");
  list.error(
      "0-d",
      [] {
        cat({zeros({}), zeros({})});
      },
      "[cat] 0-d tensors have no dimension to join; got [], []");
  list.error(
      "sizes",
      [] {
        cat({zeros({2, 3}), zeros({2, 2})}, 0);
      },
      "[cat] sizes must agree outside of dimension 0; got [2,3], [2,2]");
  list.error(
      "dim", [] { cat({zeros({2})}, 1); }, "[cat] dim 1 is out of range");
}

void stack_samples(SampleList& list) {
  const auto add = [&](const char* label, Tensors parts, int dim) {
    list.add(
        label, std::move(parts), [dim](const Tensors& in) { return Tensors{stack(in, dim)}; },
        [dim](const Tensors& in) {
          Shape line = in[0].sizes(), want = line;
          line.insert(dim, 1);
          want.insert(dim, int64_t(in.size()));
          Tensors lines;
          for (const Tensor& t : in) lines.push_back(relabelled(t, line)[0]);
          return joined(lines, want, dim);
        });
  };
  add("front", {list.randn({2, 3}), list.randn({2, 3})}, 0);
  add("middle", {list.randn({2, 3}), list.randn({2, 3}), list.randn({2, 3})}, 1);
  add("back", {list.randn({2}), list.randn({2})}, 1);
  add("0-d", {list.randn({}), list.randn({})}, 0);
  add("empty", {list.randn({0, 2}), list.randn({0, 2})}, 1);
  list.error(
      "sizes",
      [] {
        stack({zeros({2}), zeros({3})});
      },
      "[stack] all sizes must be equal; got [2], [3]");
  list.error(
      "none", [] { stack({}); }, "[stack] needs at least one tensor; got none");
}

void split_samples(SampleList& list) {
  add_split(list, "even", {6, 2}, 0, {2, 2, 2}, [](const Tensor& x) { return split(x, 2); });
  add_split(list, "smaller last", {2, 5}, 1, {2, 2, 1},
            [](const Tensor& x) { return split(x, 2, -1); });
  add_split(list, "given sizes", {6}, 0, {1, 0, 5}, [](const Tensor& x) {
    return split_sizes(x, std::vector<int64_t>{1, 0, 5});
  });
  add_split(list, "empty", {0, 2}, 0, {0}, [](const Tensor& x) { return split(x, 2); });
  add_split(list, "chunk", {5, 2}, 0, {2, 2, 1}, [](const Tensor& x) { return chunk(x, 4); });
  add_split(list, "tensor_split", {5}, 0, {2, 1, 1, 1},
            [](const Tensor& x) { return tensor_split(x, 4); });
  add_split(list, "tensor_split_at", {5}, 0, {1, 3, 1}, [](const Tensor& x) {
    return tensor_split_at(x, std::vector<int64_t>{1, 4});
  });
  list.error(
      "size 0", [] { split(zeros({4}), 0); },
      "[split] pieces must have at least one element; got 0 for x [4]");
  list.error(
      "sum",
      [] {
        split_sizes(zeros({4}), std::vector<int64_t>{1, 2});
      },
      "[split_sizes] sizes must not be negative and add up to 4; got [1,2] for x [4]");
  list.error(
      "chunks", [] { chunk(zeros({4}), 0); }, "[chunk] needs at least one chunk; got 0");
  list.error(
      "sections", [] { tensor_split(zeros({4}), 0); },
      "[tensor_split] needs at least one section; got 0");
  list.error(
      "0-d", [] { split(zeros({}), 1); }, "[split] a 0-d tensor has no dimension to cut");
}

void unbind_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, int dim) {
    return &list.add(
        label, {list.randn(sizes)}, [dim](const Tensors& in) { return unbind(in[0], dim); },
        [dim](const Tensors& in) {
          Tensors out;
          Shape want = in[0].sizes();
          want.erase(dim);
          for (int64_t k = 0; k < in[0].size(dim); ++k) {
            out.push_back(moved(in[0], want, [&](Shape i) {
              i.insert(dim, k);
              return i;
            })[0]);
          }
          return out;
        });
  };
  add("rows", {2, 3}, 0);
  add("columns", {2, 3}, 1);
  add("to 0-d", {3}, 0);
  add("nothing", {0, 2}, 0)->grad = false;  // there is no result
  list.error(
      "dim", [] { unbind(zeros({2}), 1); }, "[unbind] dim 1 is out of range");
}

}  // namespace cutaway
