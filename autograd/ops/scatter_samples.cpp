#include <cmath>
#include <map>

#include <cutaway/autograd/ops/index.h>
#include <cutaway/autograd/ops/sample_tools.h>
#include <cutaway/autograd/ops/shape.h>

namespace cutaway {
namespace {

struct Case {
  const char* label;
  Shape x, index, src;
  int dim;
  bool long_one = false;
};
const Case kCases[] = {
    {"rows", {3, 2}, {4, 2}, {4, 2}, 0},
    {"columns, smaller index", {3, 3}, {2, 4}, {3, 5}, 1},
    {"middle", {2, 3, 2}, {2, 2, 2}, {2, 2, 2}, 1},
    {"vector", {3}, {5}, {5}, 0},
    {"0-d", {}, {}, {}, 0},
    {"empty index", {3, 2}, {0, 2}, {1, 2}, 0},
    {"long", {20, 50}, {20, 90}, {20, 90}, 1, true},
};

// Calls f(flat place in x, flat place in src) for every element of the index, in order.
template <class F>
void for_each_hit(const Tensors& in, const Shape& src_sizes, int dim, F&& f) {
  const Ref index(in[1]);
  size_t k = 0;
  for_each_index(index.sizes, [&](const Shape& i) {
    Shape place = i;
    if (i.rank()) place[dim] = int64_t(index.v[k]);
    ++k;
    f(size_t(flat_index(in[0].sizes(), place)), size_t(flat_index(src_sizes, i)));
  });
}

// All values that meet, place by place.
Tensors reduced(const Tensors& in, int dim, ScatterReduceOptions o) {
  Ref out(in[0]);
  const Ref src(in[2]);
  std::map<size_t, std::vector<double>> met;
  for_each_hit(in, src.sizes, dim, [&](size_t at, size_t k) { met[at].push_back(src.v[k]); });
  for (auto& [at, values] : met) {
    if (o.include_self) values.push_back(out.v[at]);
    double sum = 0, product = 1, most = values[0], least = values[0];
    for (double v : values) {
      sum += v, product *= v;
      most = std::fmax(most, v), least = std::fmin(least, v);
    }
    switch (o.mode) {
      case ScatterMode::sum:
        out.v[at] = sum;
        break;
      case ScatterMode::mean:
        out.v[at] = sum / double(values.size());
        break;
      case ScatterMode::prod:
        out.v[at] = product;
        break;
      case ScatterMode::amax:
        out.v[at] = most;
        break;
      case ScatterMode::amin:
        out.v[at] = least;
        break;
    }
  }
  return {out.tensor()};
}

// x and src hold different values, so that extremes have no ties.
Tensors inputs_of(SampleList& list, const Case& c) {
  const int64_t n = c.x.numel(), m = c.src.numel();
  const Tensor values = list.distinct({n + m});
  return {relabelled(slice(values, 0, 0, n), c.x)[0],
          list.integers(c.index, 0, c.x.rank() ? c.x[c.dim] : 1),
          relabelled(slice(values, 0, n), c.src)[0]};
}

void reduce_samples(SampleList& list, ScatterMode mode) {
  for (const bool self : {true, false}) {
    const ScatterReduceOptions o{.mode = mode, .include_self = self};
    for (const Case& c : kCases) {
      if (mode == ScatterMode::prod && c.long_one) continue;
      Sample& s = list.add(
          std::string(c.label) + (self ? "" : ", without self"), inputs_of(list, c),
          [=](const Tensors& in) { return Tensors{scatter_reduce(in[0], c.dim, in[1], in[2], o)}; },
          [=](const Tensors& in) { return reduced(in, c.dim, o); });
      s.grad = !c.long_one;
    }
  }
}

Tensor index_of(std::initializer_list<double> v) { return tensor(v, {.dtype = DType::i64}); }

}  // namespace

void scatter_samples(SampleList& list) {
  for (const Case& c : kCases) {
    Sample& s = list.add(
        c.label, inputs_of(list, c),
        [c](const Tensors& in) { return Tensors{scatter(in[0], c.dim, in[1], in[2])}; },
        [c](const Tensors& in) {
          Ref out(in[0]);
          const Ref src(in[2]);
          for_each_hit(in, src.sizes, c.dim, [&](size_t at, size_t k) { out.v[at] = src.v[k]; });
          return Tensors{out.tensor()};
        });
    s.grad = !c.long_one;
  }
  list.error(
      "range", [] { scatter(zeros({2}), 0, index_of({2}), ones({1})); },
      "[scatter] index 2 at [0] is out of range for size 2");
  list.error(
      "sizes",
      [] {
        scatter(zeros({2}), 0, index_of({0, 1}), ones({1}));
      },
      "and into x outside of dim 0; got x [2], index [2], src [1]");
  list.error(
      "type", [] { scatter(zeros({2}), 0, index_of({0}), ones({1}, {.dtype = DType::f64})); },
      "[scatter] src and x must have one type; got f64 and f32");
}

void scatter_fill_samples(SampleList& list) {
  for (const Case& c : kCases) {
    Tensors in = inputs_of(list, c);
    in.pop_back();
    Sample& s = list.add(
        c.label, in, [c](const Tensors& in) { return Tensors{scatter(in[0], c.dim, in[1], 1.5)}; },
        [c](const Tensors& in) {
          Ref out(in[0]);
          for_each_hit(in, in[1].sizes(), c.dim, [&](size_t at, size_t) { out.v[at] = 1.5; });
          return Tensors{out.tensor()};
        });
    s.grad = !c.long_one;
  }
  list.error(
      "range", [] { scatter(zeros({2}), 0, index_of({5}), 1.0); },
      "[scatter_fill] index 5 at [0] is out of range for size 2");
}

void scatter_add_samples(SampleList& list) {
  reduce_samples(list, ScatterMode::sum);
  list.error(
      "range", [] { scatter_add(zeros({2}), 0, index_of({-1}), ones({1})); },
      "[scatter_add] index -1 at [0] is out of range for size 2");
}
void scatter_mean_samples(SampleList& list) { reduce_samples(list, ScatterMode::mean); }

void scatter_prod_samples(SampleList& list) {
  reduce_samples(list, ScatterMode::prod);
  list.add(
      "zeros",
      {tensor({2, 0, 3}, {.dtype = DType::f64}), index_of({0, 0, 1, 1, 2, 0}),
       tensor({0, 1.5, 0, 2, -1, 0}, {.dtype = DType::f64})},
      [](const Tensors& in) {
        return Tensors{scatter_reduce(in[0], 0, in[1], in[2], {.mode = ScatterMode::prod})};
      },
      [](const Tensors& in) { return reduced(in, 0, {.mode = ScatterMode::prod}); });
}
void scatter_amax_samples(SampleList& list) { reduce_samples(list, ScatterMode::amax); }
void scatter_amin_samples(SampleList& list) { reduce_samples(list, ScatterMode::amin); }

}  // namespace cutaway
