#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/group_shared.h>
#include <cutaway/autograd/ops/sample_tools.h>

namespace cutaway {
namespace {

struct GroupCase {
  const char* label;
  int64_t batch, features, labels, fan_in, group;
  bool bias = true;
};
const GroupCase kCases[] = {
    {"two groups", 3, 5, 4, 3, 2},
    {"short last group", 2, 4, 5, 2, 3},
    {"indices of its own for each label", 3, 4, 4, 2, 1},
    {"one group", 2, 3, 3, 2, 8, false},
    {"one of each", 1, 1, 1, 1, 1},
    {"no rows", 0, 3, 4, 2, 2},
    {"no labels", 2, 3, 0, 2, 2},
    {"no features of a label", 2, 3, 4, 0, 2},
    {"tiles", 37, 50, 101, 19, 16},
    {"own indices in tiles", 150, 40, 21, 35, 1},
    {"long", 70, 60, 130, 20, 64, false},
};
bool is_small(const GroupCase& c) { return c.batch * c.labels * c.fan_in < 200; }

// Calls f(b, l, j, h) for every product of the formula.
template <class F>
void for_each_product(const Ref& index, int64_t batch, int64_t labels, int64_t group, F&& f) {
  const int64_t fan_in = index.sizes[1];
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t l = 0; l < labels; ++l) {
      for (int64_t j = 0; j < fan_in; ++j) {
        f(b, l, j, int64_t(index.v[size_t(l / group * fan_in + j)]));
      }
    }
  }
}
double& at(Ref& t, int64_t i, int64_t j) { return t.v[size_t(i * t.sizes[1] + j)]; }
double at(const Ref& t, int64_t i, int64_t j) { return t.v[size_t(i * t.sizes[1] + j)]; }

Tensor random_index(SampleList& list, const GroupCase& c) {
  return list.integers({(c.labels + c.group - 1) / c.group, c.fan_in}, 0, c.features);
}
Tensor integers(std::initializer_list<double> v, const Shape& sizes) {
  return tensor(v, sizes, {.dtype = DType::i32});
}

}  // namespace

void group_shared_linear_samples(SampleList& list) {
  for (const GroupCase& c : kCases) {
    Tensors inputs{list.randn({c.batch, c.features}), random_index(list, c),
                   list.randn({c.labels, c.fan_in})};
    if (c.bias) inputs.push_back(list.randn({c.labels}));
    Sample& s = list.add(
        c.label, std::move(inputs),
        [=](const Tensors& in) {
          return Tensors{
              group_shared_linear(in[0], in[1], in[2], in.size() > 3 ? in[3] : Tensor(), c.group)};
        },
        [=](const Tensors& in) {
          const Ref x(in[0]), index(in[1]), w(in[2]);
          Ref y({c.batch, c.labels});
          for (int64_t i = 0; in.size() > 3 && i < c.batch * c.labels; ++i) {
            y.v[size_t(i)] = in[3].to_vector()[size_t(i % c.labels)];
          }
          for_each_product(index, c.batch, c.labels, c.group,
                           [&](int64_t b, int64_t l, int64_t j, int64_t h) {
                             at(y, b, l) += at(w, l, j) * at(x, b, h);
                           });
          return Tensors{y.tensor()};
        });
    s.grad = is_small(c);
  }
  const auto call = [](const Shape& x, const Tensor& index, const Shape& w, const Tensor& bias,
                       int64_t group) {
    return [=] { group_shared_linear(zeros(x), index, zeros(w), bias, group); };
  };
  const Tensor index = integers({0, 1, 2, 0}, {2, 2});
  list.error("range", call({1, 3}, integers({0, 3}, {1, 2}), {2, 2}, {}, 2),
             "[group_shared_linear] index 3 at [0,1] is out of range for size 3");
  list.error("negative", call({1, 3}, integers({0, -1}, {1, 2}), {2, 2}, {}, 2),
             "[group_shared_linear] index -1 at [0,1] is out of range for size 3");
  list.error("group", call({1, 3}, index, {4, 2}, {}, 0),
             "[group_shared_linear] a group needs labels; got group 0, need at least 1");
  list.error("groups", call({1, 3}, index, {5, 2}, {}, 2),
             "[group_shared_linear] sizes do not fit; got [1,3], [2,2], [5,2] with group 2, need x "
             "[B,H], index [⌈L/group⌉,F], weight [L,F], bias [L] or none");
  list.error("bias", call({1, 3}, index, {4, 2}, zeros({3}), 2), "sizes do not fit");
  list.error("rank", call({3}, index, {4, 2}, {}, 2), "sizes do not fit");
  list.error("type of the index", call({1, 3}, zeros({2, 2}), {4, 2}, {}, 2),
             "[group_shared_linear] an index must be i64 or i32; got f32 [2,2]");
  list.error(
      "types",
      [=] {
        group_shared_linear(zeros({1, 3}), index, zeros({4, 2}, {.dtype = DType::f64}), Tensor(),
                            2);
      },
      "[group_shared_linear] src and x must have one type; got f64 and f32");
}

void group_shared_input_grad_samples(SampleList& list) {
  for (const GroupCase& c : kCases) {
    Sample& s = list.add(
        c.label,
        {list.randn({c.batch, c.labels}), random_index(list, c), list.randn({c.labels, c.fan_in})},
        [=](const Tensors& in) {
          return Tensors{group_shared_input_grad(in[0], in[1], in[2], c.features, c.group)};
        },
        [=](const Tensors& in) {
          const Ref g(in[0]), index(in[1]), w(in[2]);
          Ref y({c.batch, c.features});
          for_each_product(index, c.batch, c.labels, c.group,
                           [&](int64_t b, int64_t l, int64_t j, int64_t h) {
                             at(y, b, h) += at(w, l, j) * at(g, b, l);
                           });
          return Tensors{y.tensor()};
        });
    s.grad = is_small(c);
  }
  list.error(
      "range",
      [] {
        group_shared_input_grad(zeros({1, 2}), integers({0, 3}, {1, 2}), zeros({2, 2}), 3, 2);
      },
      "[group_shared_input_grad] index 3 at [0,1] is out of range for size 3");
  list.error(
      "labels",
      [] {
        group_shared_input_grad(zeros({1, 3}), integers({0, 1}, {1, 2}), zeros({2, 2}), 3, 2);
      },
      "[group_shared_input_grad] sizes do not fit");
}

void group_shared_weight_grad_samples(SampleList& list) {
  for (const GroupCase& c : kCases) {
    Sample& s = list.add(
        c.label,
        {list.randn({c.batch, c.labels}), random_index(list, c), list.randn({c.batch, c.features})},
        [=](const Tensors& in) {
          return Tensors{group_shared_weight_grad(in[0], in[1], in[2], c.group)};
        },
        [=](const Tensors& in) {
          const Ref g(in[0]), index(in[1]), x(in[2]);
          Ref y({c.labels, c.fan_in});
          for_each_product(index, c.batch, c.labels, c.group,
                           [&](int64_t b, int64_t l, int64_t j, int64_t h) {
                             at(y, l, j) += at(g, b, l) * at(x, b, h);
                           });
          return Tensors{y.tensor()};
        });
    s.grad = is_small(c);
  }
  list.error(
      "range",
      [] {
        group_shared_weight_grad(zeros({1, 2}), integers({0, 3}, {1, 2}), zeros({1, 3}), 2);
      },
      "[group_shared_weight_grad] index 3 at [0,1] is out of range for size 3");
  list.error(
      "rows",
      [] {
        group_shared_weight_grad(zeros({2, 2}), integers({0, 1}, {1, 2}), zeros({1, 3}), 2);
      },
      "[group_shared_weight_grad] sizes do not fit");
}

}  // namespace cutaway
