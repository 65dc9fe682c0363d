#include <algorithm>

#include <cutaway/autograd/ops/sample_tools.h>
#include <cutaway/autograd/ops/shape.h>

namespace cutaway {
namespace {

// Which elements of one dimension a slice takes, in order: the plain meaning of Python's bounds.
std::vector<int64_t> taken(int64_t n, int64_t begin, int64_t end, int64_t step) {
  std::vector<int64_t> out;
  if (begin < 0) begin = std::max<int64_t>(begin + n, 0);
  if (end < 0) end += n;
  for (int64_t i = begin; i < end && i < n; i += step) out.push_back(i);
  return out;
}

struct SliceCase {
  const char* label;
  Shape sizes;
  int dim;
  int64_t begin, end, step;
};

Tensor slice_of(const Tensor& x, const SliceCase& c) {
  return slice(x, c.dim, c.begin, c.end, c.step);
}

Tensors slice_reference(const Tensor& x, const SliceCase& c) {
  const auto from = taken(x.size(c.dim), c.begin, c.end, c.step);
  Shape want = x.sizes();
  want[c.dim] = int64_t(from.size());
  return moved(x, want, [&](Shape i) {
    i[c.dim] = from[size_t(i[c.dim])];
    return i;
  });
}

const SliceCase kSlices[] = {
    {"rows", {4, 3}, 0, 1, 3, 1},
    {"step 2", {2, 5}, 1, 0, kEnd, 2},
    {"step 3 of a middle dimension", {2, 7, 2}, 1, 1, -1, 3},
    {"negative bounds", {5}, 0, -2, kEnd, 1},
    {"beyond both ends", {5}, 0, -100, 100, 1},
    {"empty range", {5, 2}, 0, 3, 1, 1},
    {"begin behind the end", {5}, 0, 10, kEnd, 1},
    {"step beyond the size", {2, 3}, 0, 0, kEnd, 2},
    {"of an empty", {0, 2}, 0, 0, 1, 1},
};

// Sizes and index of a matrix diagonal in the dims (d1, d2).
Tensors diagonal_reference(const Tensor& x, int64_t offset, int d1, int d2) {
  Shape want;
  for (int d = 0; d < x.dim(); ++d) {
    if (d != d1 && d != d2) want.push_back(x.sizes()[d]);
  }
  int64_t n = 0;
  while (n + std::max<int64_t>(-offset, 0) < x.size(d1) &&
         n + std::max<int64_t>(offset, 0) < x.size(d2)) {
    ++n;
  }
  want.push_back(n);
  return moved(x, want, [&](const Shape& i) {
    Shape from = x.sizes();
    int next = 0;
    for (int d = 0; d < x.dim(); ++d) {
      if (d == d1) {
        from[d] = i.back() + std::max<int64_t>(-offset, 0);
      } else if (d == d2) {
        from[d] = i.back() + std::max<int64_t>(offset, 0);
      } else {
        from[d] = i[next++];
      }
    }
    return from;
  });
}

// x with the elements that `view_of` shows replaced, one by one, by those of src.
template <class F>
Tensors replaced(const Tensors& in, F&& view_of) {
  Ref numbers(in[0].sizes());
  for (size_t i = 0; i < numbers.v.size(); ++i) numbers.v[i] = double(i);
  const std::vector<double> places = Ref(view_of(numbers.tensor())).v;
  Ref out(in[0]);
  const Ref src(in[1]);
  for (size_t i = 0; i < places.size(); ++i) out.v[size_t(places[i])] = src.v[i];
  return {out.tensor()};
}

Sample& add_triangle(SampleList& list, const char* label, const Shape& sizes, int64_t diagonal,
                     bool upper) {
  return list.add(
      label, {list.randn(sizes)},
      [=](const Tensors& in) {
        return Tensors{upper ? triu(in[0], diagonal) : tril(in[0], diagonal)};
      },
      [=](const Tensors& in) {
        Ref out(in[0]);
        size_t k = 0;
        for_each_index(out.sizes, [&](const Shape& i) {
          const int64_t row = i[i.rank() - 2], column = i.back();
          if (upper ? column < row + diagonal : column > row + diagonal) out.v[k] = 0;
          ++k;
        });
        return Tensors{out.tensor()};
      });
}

}  // namespace

void slice_samples(SampleList& list) {
  for (const SliceCase& c : kSlices) {
    list.add(
        c.label, {list.randn(c.sizes)},
        [c](const Tensors& in) { return Tensors{slice_of(in[0], c)}; },
        [c](const Tensors& in) { return slice_reference(in[0], c); });
  }
  list.error(
      "negative step", [] { slice(zeros({5}), 0, 4, 0, -1); },
      "[slice] step must be at least 1; got -1 for x [5]");
  list.error(
      "hint", [] { slice(zeros({5}), 0, 4, 0, -1); }, "hint: flip(x, {dim})");
  list.error(
      "dim", [] { slice(zeros({5}), 1, 0, 1); }, "[slice] dim 1 is out of range");
  list.error(
      "0-d", [] { slice(zeros({}), 0, 0, 1); }, "[slice] a 0-d tensor has no dimension");
}

void narrow_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, int dim, int64_t start,
                       int64_t length) {
    list.add(
        label, {list.randn(sizes)},
        [=](const Tensors& in) { return Tensors{narrow(in[0], dim, start, length)}; },
        [=](const Tensors& in) {
          const int64_t first = start < 0 ? start + in[0].size(dim) : start;
          return slice_reference(in[0], {"", {}, dim, first, first + length, 1});
        });
  };
  add("rows", {4, 3}, 0, 1, 2);
  add("from the end", {4, 3}, 1, -2, 2);
  add("nothing", {4, 3}, 0, 4, 0);
  add("of an empty", {0}, 0, 0, 0);
  list.error(
      "too long", [] { narrow(zeros({4}), 0, 2, 3); },
      "[narrow] elements 2 … 4 are not all in dimension 0 of x [4]");
}

void select_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, int dim, int64_t index) {
    Shape want = sizes;
    want.erase(dim);
    list.add(
        label, {list.randn(sizes)},
        [=](const Tensors& in) { return Tensors{select(in[0], dim, index)}; },
        [=](const Tensors& in) {
          return moved(in[0], want, [&](Shape i) {
            i.insert(dim, index < 0 ? index + in[0].size(dim) : index);
            return i;
          });
        });
  };
  add("row", {3, 4}, 0, 1);
  add("column from the end", {3, 4}, 1, -1);
  add("middle", {2, 3, 2}, 1, 2);
  add("to 0-d", {3}, 0, 0);
  add("empty rest", {2, 0}, 0, 1);
  list.error(
      "range",
      [] {
        select(zeros({2, 3}), 1, 3);
      },
      "[select] index 3 is out of range for dimension 1 of x [2,3]; need -3 … 2");
  list.error(
      "0-d", [] { select(zeros({}), 0, 0); }, "[select] a 0-d tensor has no dimension");
}

void diagonal_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, int64_t offset, int d1, int d2) {
    list.add(
        label, {list.randn(sizes)},
        [=](const Tensors& in) {
          return Tensors{diagonal(in[0], {.offset = offset, .dim1 = d1, .dim2 = d2})};
        },
        [=](const Tensors& in) { return diagonal_reference(in[0], offset, d1, d2); });
  };
  add("square", {3, 3}, 0, 0, 1);
  add("above", {3, 5}, 1, 0, 1);
  add("below, batch", {2, 3, 3}, -1, 1, 2);
  add("outer pair", {3, 2, 4}, 0, 2, 0);
  add("outside", {2, 2}, 5, 0, 1);
  add("empty", {0, 3}, 0, 0, 1);
  list.error(
      "vector", [] { diagonal(zeros({3})); }, "[diagonal] needs at least 2 dimensions; got x [3]");
  list.error(
      "same",
      [] {
        diagonal(zeros({3, 3}), {.dim1 = 1, .dim2 = -1});
      },
      "[diagonal] dim1 and dim2 must differ; got 1 and -1 for x [3,3]");
}

void slice_scatter_samples(SampleList& list) {
  for (const SliceCase& c : kSlices) {
    Shape part = c.sizes;
    part[c.dim] = int64_t(taken(c.sizes[c.dim], c.begin, c.end, c.step).size());
    list.add(
        c.label, {list.randn(c.sizes), list.randn(part)},
        [c](const Tensors& in) {
          return Tensors{slice_scatter(in[0], in[1], c.dim, c.begin, c.end, c.step)};
        },
        [c](const Tensors& in) {
          return replaced(in, [&](const Tensor& x) { return slice_reference(x, c)[0]; });
        });
  }
  list.error(
      "sizes",
      [] {
        slice_scatter(zeros({4, 2}), zeros({3, 2}), 0, 0, 2);
      },
      "[slice_scatter] src must have the sizes of the replaced part; got [3,2] for x [4,2], "
      "need [2,2]");
  list.error(
      "type", [] { slice_scatter(zeros({2}), zeros({1}, {.dtype = DType::i64}), 0, 0, 1); },
      "[slice_scatter] src and x must have one type; got i64 and f32");
}

void select_scatter_samples(SampleList& list) {
  list.add(
      "row", {list.randn({3, 2}), list.randn({2})},
      [](const Tensors& in) { return Tensors{select_scatter(in[0], in[1], 0, -1)}; },
      [](const Tensors& in) {
        Ref out(in[0]);
        const Ref src(in[1]);
        for (size_t j = 0; j < 2; ++j) out.v[2 * 2 + j] = src.v[j];
        return Tensors{out.tensor()};
      });
  list.add(
      "one element", {list.randn({3}), list.randn({})},
      [](const Tensors& in) { return Tensors{select_scatter(in[0], in[1], 0, 1)}; },
      [](const Tensors& in) {
        Ref out(in[0]);
        out.v[1] = Ref(in[1]).v[0];
        return Tensors{out.tensor()};
      });
  list.error(
      "range", [] { select_scatter(zeros({3}), zeros({}), 0, 3); },
      "[select_scatter] index 3 is out of range for dimension 0 of x [3]");
}

void diagonal_scatter_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, const Shape& part, int64_t offset,
                       int d1, int d2) {
    list.add(
        label, {list.randn(sizes), list.randn(part)},
        [=](const Tensors& in) {
          return Tensors{
              diagonal_scatter(in[0], in[1], {.offset = offset, .dim1 = d1, .dim2 = d2})};
        },
        [=](const Tensors& in) {
          return replaced(
              in, [&](const Tensor& x) { return diagonal_reference(x, offset, d1, d2)[0]; });
        });
  };
  add("square", {3, 3}, {3}, 0, 0, 1);
  add("below, batch", {2, 3, 3}, {2, 2}, -1, 1, 2);
  add("outside", {2, 2}, {0}, 4, 0, 1);
  list.error(
      "sizes",
      [] {
        diagonal_scatter(zeros({3, 3}), zeros({2}));
      },
      "[diagonal_scatter] src must have the sizes of the replaced part; got [2] for x [3,3], "
      "need [3]");
}

void diag_embed_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, int64_t offset) {
    list.add(
        label, {list.randn(sizes)},
        [=](const Tensors& in) {
          return Tensors{diag_embed(in[0], {.offset = offset, .dim1 = -2, .dim2 = -1})};
        },
        [=](const Tensors& in) {
          Shape wide = sizes;
          wide[wide.rank() - 1] += std::abs(offset);
          wide.push_back(wide.back());
          const int last = wide.rank() - 1;
          return replaced({Ref(wide).tensor(), in[0]}, [&](const Tensor& x) {
            return diagonal_reference(x, offset, last - 1, last)[0];
          });
        });
  };
  add("vector", {3}, 0);
  add("above, batch", {2, 2}, 1);
  add("below", {2}, -2);
  add("empty", {0}, 0);
  list.add(
      "diag of a vector", {list.randn({2})}, [](const Tensors& in) { return Tensors{diag(in[0])}; },
      [](const Tensors& in) {
        Ref out({2, 2});
        out.v[0] = Ref(in[0]).v[0], out.v[3] = Ref(in[0]).v[1];
        return Tensors{out.tensor()};
      });
  list.error(
      "0-d", [] { diag_embed(zeros({})); }, "[diag_embed] needs 1 to 7 dimensions; got x []");
  list.error(
      "diag",
      [] {
        diag(zeros({2, 2, 2}));
      },
      "[diag] needs a vector or a matrix; got x [2,2,2]");
}

void tril_samples(SampleList& list) {
  add_triangle(list, "square", {3, 3}, 0, false);
  add_triangle(list, "wide, above", {2, 5}, 1, false);
  add_triangle(list, "batch, below", {2, 4, 3}, -2, false);
  add_triangle(list, "all of it", {2, 2}, 9, false);
  add_triangle(list, "empty", {0, 3}, 0, false);
  add_triangle(list, "long rows", {3, 700}, 300, false).grad = false;
  list.error(
      "vector", [] { tril(zeros({3})); }, "[tril] needs matrices [...,n,m]; got x [3]");
}

void triu_samples(SampleList& list) {
  add_triangle(list, "square", {3, 3}, 0, true);
  add_triangle(list, "tall, below", {5, 2}, -1, true);
  add_triangle(list, "batch, above", {2, 3, 4}, 2, true);
  add_triangle(list, "nothing", {2, 2}, 9, true);
  add_triangle(list, "empty", {3, 0}, 0, true);
  list.error(
      "0-d", [] { triu(zeros({})); }, "[triu] needs matrices [...,n,m]; got x []");
}

}  // namespace cutaway
