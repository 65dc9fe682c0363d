#include <algorithm>

#include <cutaway/autograd/ops/index.h>
#include <cutaway/autograd/ops/sample_tools.h>

namespace cutaway {
namespace {

struct RowCase {
  const char* label;
  Shape x;
  int dim;
  int64_t count;
};
const RowCase kRows[] = {
    {"rows", {3, 2}, 0, 5}, {"columns", {2, 4}, 1, 3}, {"middle", {2, 3, 2}, 1, 4},
    {"vector", {4}, 0, 6},  {"none", {3, 2}, 0, 0},    {"long rows", {4, 700}, 0, 9},
};

template <class F>
void add_rows(SampleList& list, Tensor (*op)(TensorArg, int64_t, TensorArg, TensorArg), F put) {
  for (const RowCase& c : kRows) {
    Shape part = c.x;
    part[c.dim] = c.count;
    Sample& s = list.add(
        c.label, {list.randn(c.x), list.integers({c.count}, 0, c.x[c.dim]), list.randn(part)},
        [=](const Tensors& in) { return Tensors{op(in[0], c.dim, in[1], in[2])}; },
        [=](const Tensors& in) {
          Ref out(in[0]);
          const Ref index(in[1]), src(in[2]);
          size_t k = 0;
          for_each_index(src.sizes, [&](Shape i) {
            i[c.dim] = int64_t(index.v[size_t(i[c.dim])]);
            put(out.v[size_t(flat_index(out.sizes, i))], src.v[k++]);
          });
          return Tensors{out.tensor()};
        });
    s.grad = c.x.numel() < 1000;
  }
}

template <class F>
void add_segments(SampleList& list, Tensor (*op)(TensorArg, TensorArg, int64_t), F finish) {
  const auto add = [&](const char* label, const Shape& sizes, int64_t used, int64_t segments) {
    return &list.add(
        label, {list.distinct(sizes), list.integers({sizes[0]}, 0, used)},
        [=](const Tensors& in) { return Tensors{op(in[0], in[1], segments)}; },
        [=](const Tensors& in) {
          const Ref x(in[0]), ids(in[1]);
          Shape want = x.sizes;
          want[0] = segments;
          Ref out(want);
          const int64_t inner = x.inner(0);
          for (int64_t s = 0; s < segments; ++s) {
            for (int64_t j = 0; j < inner; ++j) {
              std::vector<double> met;
              for (int64_t i = 0; i < x.sizes[0]; ++i) {
                if (int64_t(ids.v[size_t(i)]) == s) met.push_back(x.v[size_t(i * inner + j)]);
              }
              if (!met.empty()) out.v[size_t(s * inner + j)] = finish(met);
            }
          }
          return Tensors{out.tensor()};
        });
  };
  add("rows", {6, 2}, 3, 3);
  add("empty segments", {4, 2}, 2, 5);
  add("vector", {7}, 3, 3);
  add("images", {5, 2, 2}, 3, 4);
  add("no rows", {0, 2}, 1, 2);
  add("no elements", {3, 0}, 2, 2);
  add("long", {90, 30}, 7, 8)->grad = false;
}

double total(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum;
}

Tensor ids_of(std::initializer_list<double> v) { return tensor(v, {.dtype = DType::i64}); }

}  // namespace

void index_add_samples(SampleList& list) {
  add_rows(list, index_add, [](double& y, double x) { y += x; });
  list.error(
      "range", [] { index_add(zeros({2}), 0, ids_of({2}), ones({1})); },
      "[index_add] index 2 at [0] is out of range for size 2");
  list.error(
      "sizes",
      [] {
        index_add(zeros({2, 3}), 0, ids_of({0}), ones({2, 3}));
      },
      "[index_add] needs a vector as index and one slice of src for each entry; got x [2,3], "
      "index [1], src [2,3], need src [1,3]");
}

void index_copy_samples(SampleList& list) {
  add_rows(list, index_copy, [](double& y, double x) { y = x; });
  list.error(
      "range", [] { index_copy(zeros({2}), 0, ids_of({-1}), ones({1})); },
      "[index_copy] index -1 at [0] is out of range for size 2");
}

void segment_sum_samples(SampleList& list) {
  add_segments(list, segment_sum, total);
  list.error(
      "range",
      [] {
        segment_sum(zeros({2, 3}), ids_of({0, 2}), 2);
      },
      "[segment_sum] index 2 at [1] is out of range for size 2");
  list.error(
      "rows",
      [] {
        segment_sum(zeros({2, 3}), ids_of({0}), 2);
      },
      "[segment_sum] needs one id for each row; got x [2,3], ids [1]");
}
void segment_mean_samples(SampleList& list) {
  add_segments(list, segment_mean,
               [](const std::vector<double>& v) { return total(v) / double(v.size()); });
}
void segment_max_samples(SampleList& list) {
  add_segments(list, segment_max,
               [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); });
}
void segment_min_samples(SampleList& list) {
  add_segments(list, segment_min,
               [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); });
}

}  // namespace cutaway
