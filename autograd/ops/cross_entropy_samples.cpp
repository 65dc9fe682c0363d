#include <cmath>

#include <cutaway/autograd/ops/loss.h>
#include <cutaway/autograd/ops/sample_tools.h>

namespace cutaway {
namespace {

struct Case {
  int64_t ignore_index = -100;
  double smoothing = 0;
  bool normalized = false;
  Reduction reduction = Reduction::mean;
  Tensor weight;  // f64; not an input, because it is a constant
};

// The loss of one row by its definition.
double row_loss(const Case& o, const std::vector<double>& x, const std::vector<double>& t,
                const std::vector<double>& weight) {
  double high = x[0], total = 0, loss = 0;
  for (double v : x) high = std::max(high, v);
  for (double v : x) total += std::exp(v - high);
  const double lse = o.normalized ? 0 : high + std::log(total);
  for (size_t c = 0; c < x.size(); ++c) {
    const double q = (1 - o.smoothing) * t[c] + o.smoothing / double(x.size());
    if (q * weight[c] != 0) loss += q * weight[c] * (lse - x[c]);
  }
  return loss;
}

Tensors reference(const Case& o, const Tensors& in) {
  const Ref x(in[0]), target(in[1]);
  const int d = x.sizes.rank() == 1 ? 0 : 1;
  const bool soft = in[1].is_floating();
  const int64_t classes = x.sizes[d], inner = x.inner(d);
  std::vector<double> weight(size_t(classes), 1.0);
  if (o.weight.defined()) weight = Ref(o.weight.to(in[0].dtype())).v;
  Shape sizes = x.sizes;
  sizes.erase(d);
  Ref losses(sizes);
  double divisor = 0, total = 0;
  for (int64_t row = 0; row < sizes.numel(); ++row) {
    std::vector<double> scores, t;
    const int64_t first = row / inner * classes * inner + row % inner;
    for (int64_t c = 0; c < classes; ++c) {
      scores.push_back(x.v[size_t(first + c * inner)]);
      t.push_back(soft ? target.v[size_t(first + c * inner)]
                       : double(target.v[size_t(row)] == double(c)));
    }
    if (!soft && target.v[size_t(row)] == double(o.ignore_index)) continue;
    losses.v[size_t(row)] = row_loss(o, scores, t, weight);
    total += losses.v[size_t(row)];
    divisor += soft ? 1 : weight[size_t(target.v[size_t(row)])];
  }
  if (o.reduction == Reduction::none) return {losses.tensor()};
  return {scalar_tensor(o.reduction == Reduction::mean ? total / divisor : total,
                        {.dtype = DType::f64})};
}

Sample& add(SampleList& list, const char* label, Tensors inputs, const Case& o) {
  return list.add(
      label, std::move(inputs),
      [o](const Tensors& in) -> Tensors {
        const Tensor weight =
            o.weight.defined() ? o.weight.to(in[0].device()).to(in[0].dtype()) : Tensor();
        if (o.normalized) {
          return {nll_loss(
              in[0], in[1],
              {.weight = weight, .ignore_index = o.ignore_index, .reduction = o.reduction})};
        }
        return {cross_entropy(in[0], in[1],
                              {.weight = weight,
                               .ignore_index = o.ignore_index,
                               .label_smoothing = o.smoothing,
                               .reduction = o.reduction})};
      },
      [o](const Tensors& in) { return reference(o, in); });
}

Tensor classes(std::initializer_list<int64_t> list) {
  return index_tensor(std::span(list.begin(), list.size()));
}

void add_errors(SampleList& list, const char* op, Tensor (*call)(const Tensor&, const Tensor&)) {
  const std::string tag = std::string("[") + op + "] ";
  list.error(
      "class out of range",
      [=] {
        call(zeros({2, 3}), classes({0, 3}));
      },
      tag + "class indices must lie in [0,3) or be ignore_index = -100; got 3 in row 1");
  list.error(
      "no classes", [=] { call(zeros({}), classes({0})); },
      tag + "logits need a dimension of classes; got []");
  list.error(
      "other rows",
      [=] {
        call(zeros({2, 3}), classes({0, 1, 2}));
      },
      tag +
          "sizes of target and logits do not fit; got logits [2,3], target [3]; need "
          "target [2]");
  list.error(
      "integer logits",
      [=] {
        call(classes({1, 2}), classes({0}));
      },
      tag + "does not accept i64");
  list.error(
      "bool target",
      [=] {
        call(zeros({2, 3}), zeros({2}, {.dtype = DType::boolean}));
      },
      tag + "the target must hold class indices");
}

}  // namespace

void cross_entropy_samples(SampleList& list) {
  const Reduction none = Reduction::none, sum = Reduction::sum;
  add(list, "rows", {list.randn({4, 5}), classes({0, 4, 2, 2})}, {});
  add(list, "one row", {list.randn({5}), scalar_tensor(3, {.dtype = DType::i64})}, {});
  add(list, "one class", {list.randn({2, 1}), classes({0, 0})}, {});
  add(list, "no rows, sum", {list.randn({0, 3}), list.integers({0}, 0, 3)}, {.reduction = sum});
  add(list, "none", {list.randn({3, 4}), classes({1, 0, 3})}, {.reduction = none});
  add(list, "positions", {list.randn({2, 3, 4}), list.integers({2, 4}, 0, 3)}, {.reduction = sum});
  add(list, "pictures, none", {list.randn({2, 3, 2, 2}), list.integers({2, 2, 2}, 0, 3)},
      {.reduction = none});
  add(list, "ignored", {list.randn({3, 4}), classes({1, -100, 3})}, {});
  add(list, "ignored class", {list.randn({3, 4}), classes({1, 2, 3})}, {.ignore_index = 2});
  add(list, "smoothing", {list.randn({3, 4}), classes({1, 0, 3})}, {.smoothing = 0.3});
  const Tensor weight = list.uniform({4}, 0.5, 2);
  add(list, "weight", {list.randn({3, 4}), classes({1, 0, 3})}, {.weight = weight});
  add(list, "weight, smoothing, ignored", {list.randn({3, 4, 2}), list.integers({3, 2}, 0, 4)},
      {.ignore_index = 1, .smoothing = 0.2, .weight = weight});
  add(list, "weight, probabilities", {list.randn({3, 4}), list.uniform({3, 4}, 0, 0.5)},
      {.weight = weight});
  add(list, "probabilities", {list.randn({3, 4}), list.uniform({3, 4}, 0, 0.5)}, {});
  add(list, "probabilities, smoothing, none",
      {list.randn({2, 3, 2}), list.uniform({2, 3, 2}, 0, 0.5)},
      {.smoothing = 0.1, .reduction = none});
  add(list, "many classes", {list.randn({3, 1003}), list.integers({3}, 0, 1003)}, {}).grad = false;
  add(list, "many rows", {list.randn({3001, 7}), list.integers({3001}, 0, 7)}, {}).grad = false;
  add(list, "many positions", {list.randn({3, 5, 301}), list.integers({3, 301}, 0, 5)},
      {.reduction = none})
      .grad = false;
  add_errors(list, "cross_entropy",
             [](const Tensor& x, const Tensor& t) { return cross_entropy(x, t); });
  list.error(
      "smoothing",
      [] {
        cross_entropy(zeros({1, 3}), classes({0}), {.label_smoothing = 2});
      },
      "[cross_entropy] label_smoothing must lie in [0, 1]; got 2");
  list.error(
      "weight",
      [] {
        cross_entropy(zeros({1, 3}), classes({0}), {.weight = ones({2})});
      },
      "[cross_entropy] weight has one entry a class; got weight [2], logits [1,3]; need "
      "weight [3]");
}

void nll_loss_samples(SampleList& list) {
  const Reduction none = Reduction::none;
  add(list, "rows", {list.randn({4, 5}), classes({0, 4, 2, 2})}, {.normalized = true});
  add(list, "one row", {list.randn({5}), scalar_tensor(3, {.dtype = DType::i64})},
      {.normalized = true});
  add(list, "empty, none", {list.randn({0, 3}), list.integers({0}, 0, 3)},
      {.normalized = true, .reduction = none});
  add(list, "ignored", {list.randn({3, 4}), classes({1, -100, 3})}, {.normalized = true});
  add(list, "weight", {list.randn({3, 4}), classes({1, 0, 3})},
      {.normalized = true, .weight = list.uniform({4}, 0.5, 2)});
  add(list, "positions, none", {list.randn({2, 3, 4}), list.integers({2, 4}, 0, 3)},
      {.normalized = true, .reduction = none});
  add(list, "many rows", {list.randn({2001, 5}), list.integers({2001}, 0, 5)},
      {.normalized = true, .reduction = Reduction::sum})
      .grad = false;
  add_errors(list, "nll_loss", [](const Tensor& x, const Tensor& t) { return nll_loss(x, t); });
}

}  // namespace cutaway
