#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops/sample_tools.h>
#include <cutaway/autograd/ops/sort.h>

namespace cutaway {
namespace {

// NaN after everything else.
bool before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The first k of every line along dim in order: {values, indices}.
Tensors sorted(const Tensor& x, int dim, int64_t k, bool descending) {
  const Ref in(x);
  const int64_t n = x.dim() ? x.size(dim) : 1;
  Shape want = in.sizes;
  if (x.dim()) want[dim] = k;
  Ref values(want), indices(want);
  const int64_t inner = x.dim() ? in.inner(dim) : 1, outer = x.dim() ? in.outer(dim) : 1;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto value = [&](int64_t j) { return in.v[size_t((o * n + j) * inner + i)]; };
      std::vector<int64_t> order;
      for (int64_t j = 0; j < n; ++j) {
        auto place = order.begin();  // insertion behind all that may not follow
        while (place != order.end() &&
               !(descending ? before(value(*place), value(j)) : before(value(j), value(*place)))) {
          ++place;
        }
        order.insert(place, j);
      }
      for (int64_t j = 0; j < k; ++j) {
        values.v[size_t((o * k + j) * inner + i)] = value(order[size_t(j)]);
        indices.v[size_t((o * k + j) * inner + i)] = double(order[size_t(j)]);
      }
    }
  }
  return {values.tensor(), indices.tensor()};
}

Tensors pair_of(const ValuesIndices& r) { return {r.values, r.indices}; }

struct LineCase {
  const char* label;
  Shape sizes;
  int dim;
  bool down;
};
const LineCase kLines[] = {
    {"last", {3, 5}, 1, false},      {"first, descending", {4, 3}, 0, true},
    {"middle", {2, 4, 2}, 1, false}, {"vector, descending", {7}, 0, true},
    {"0-d", {}, 0, false},           {"one", {1}, 0, true},
    {"empty", {0, 2}, 0, false},     {"long", {2, 1200}, 1, true},
};

}  // namespace

void sort_samples(SampleList& list) {
  for (const LineCase& c : kLines) {
    const auto call = [c](const Tensors& in) {
      return pair_of(sort(in[0], c.dim, {.descending = c.down}));
    };
    const auto reference = [c](const Tensors& in) {
      return sorted(in[0], c.dim, in[0].dim() ? in[0].size(c.dim) : 1, c.down);
    };
    list.add(c.label, {list.distinct(c.sizes)}, call, reference).grad = c.sizes.numel() < 100;
  }
  list.add(
      "ties keep their order", {list.integers({40}, 0, 4)},
      [](const Tensors& in) { return pair_of(sort(in[0])); },
      [](const Tensors& in) { return sorted(in[0], 0, 40, false); });
  list.error(
      "dim", [] { sort(zeros({2}), 1); }, "[sort] dim 1 is out of range");
}

void argsort_samples(SampleList& list) {
  for (const LineCase& c : kLines) {
    list.add(
        c.label, {list.integers(c.sizes, 0, 9)},
        [c](const Tensors& in) { return Tensors{argsort(in[0], c.dim, {.descending = c.down})}; },
        [c](const Tensors& in) {
          const int64_t n = in[0].dim() ? in[0].size(c.dim) : 1;
          return Tensors{sorted(in[0], c.dim, n, c.down)[1]};
        });
  }
}

void topk_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, int64_t k, int dim, bool largest) {
    return &list.add(
        label, {list.distinct(sizes)},
        [=](const Tensors& in) { return pair_of(topk(in[0], k, dim, {.largest = largest})); },
        [=](const Tensors& in) { return sorted(in[0], dim, k, largest); });
  };
  add("two largest", {3, 5}, 2, 1, true);
  add("two smallest", {5, 2}, 2, 0, false);
  add("middle", {2, 4, 2}, 3, 1, true);
  add("none", {2, 3}, 0, 1, true);
  add("all", {4}, 4, 0, true);
  add("0-d", {}, 1, 0, true);
  add("few of many", {2, 900}, 5, 1, true)->grad = false;
  add("many of many", {2, 900}, 500, 1, false)->grad = false;
  list.add(
      "kthvalue", {list.distinct({3, 4})},
      [](const Tensors& in) { return pair_of(kthvalue(in[0], 2, 1)); },
      [](const Tensors& in) {
        Tensors out;
        for (const Tensor& t : sorted(in[0], 1, 4, false)) {
          out.push_back(moved(t, {3}, [](const Shape& i) { return Shape{i[0], 1}; })[0]);
        }
        return out;
      });
  list.error(
      "k",
      [] {
        topk(zeros({2, 3}), 4);
      },
      "[topk] k must lie in 0 … 3, the size of dimension 1; got k 4 for x [2,3]");
  list.error(
      "negative",
      [] {
        topk(zeros({2, 3}), -1);
      },
      "[topk] k must not be negative; got k -1");
  list.error(
      "kth", [] { kthvalue(zeros({3}), 0); }, "[kthvalue] k counts from 1; got 0 for x [3]");
}

void unique_samples(SampleList& list) {
  const auto add = [&](const char* label, Tensor x) {
    list.add(
        label, {std::move(x)},
        [](const Tensors& in) {
          const UniqueResult r = unique(in[0]);
          return Tensors{r.values, r.inverse, r.counts};
        },
        [](const Tensors& in) {
          const Ref x(in[0]);
          std::vector<double> values;
          for (double v : x.v) {
            if (std::find(values.begin(), values.end(), v) == values.end()) values.push_back(v);
          }
          std::sort(values.begin(), values.end());
          Ref inverse(x.sizes), counts({int64_t(values.size())}), kept({int64_t(values.size())});
          for (size_t i = 0; i < x.v.size(); ++i) {
            const auto at = std::find(values.begin(), values.end(), x.v[i]) - values.begin();
            inverse.v[i] = double(at);
            ++counts.v[size_t(at)];
          }
          kept.v = values;
          return Tensors{kept.tensor(), inverse.tensor(), counts.tensor()};
        });
  };
  add("integers", list.integers({20}, -3, 4));
  add("matrix of numbers", list.distinct({3, 2}));
  add("0-d", list.randn({}));
  add("empty", list.randn({0, 2}));
  add("long", list.integers({2000}, 0, 30));
  list.error(
      "meta", [] { unique(zeros({2}, {.device = kMeta})); },
      "[unique] the size of the result depends on values");
}

void searchsorted_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& rows, const Shape& values, bool right) {
    list.add(
        label,
        {sorted(list.integers(rows, 0, 9), rows.rank() - 1, rows.back(), false)[0],
         list.integers(values, -1, 10)},
        [=](const Tensors& in) { return Tensors{searchsorted(in[0], in[1], {.right = right})}; },
        [=](const Tensors& in) {
          const Ref row(in[0]), v(in[1]);
          Ref out(v.sizes);
          const size_t n = size_t(row.sizes.back());
          const size_t m = v.sizes.rank() ? size_t(v.sizes.back()) : 1;
          for (size_t i = 0; i < v.v.size(); ++i) {
            const size_t first = row.sizes.rank() == 1 ? 0 : i / m * n;
            for (size_t j = first; j < first + n; ++j) {
              if (row.v[j] < v.v[i] || (right && row.v[j] == v.v[i])) ++out.v[i];
            }
          }
          return Tensors{out.tensor()};
        });
  };
  add("left", {8}, {5}, false);
  add("right", {8}, {2, 3}, true);
  add("rows", {2, 6}, {2, 4}, false);
  add("one value", {5}, {}, true);
  add("none", {5}, {0}, true);
  add("into nothing", {0}, {3}, false);
  list.error(
      "sizes",
      [] {
        searchsorted(zeros({2, 3}), zeros({3, 1}));
      },
      "[searchsorted] needs a vector, or rows with the leading sizes of values; got sorted "
      "[2,3], values [3,1]");
}

}  // namespace cutaway
