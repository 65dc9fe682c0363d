#include <algorithm>
#include <cmath>
#include <limits>

#include <cutaway/autograd/ops/reduce_reference.h>
#include <cutaway/autograd/ops/scan.h>

namespace cutaway {
namespace {

using List = std::vector<double>;
const Opts kF64{.dtype = DType::f64};
using ScanFn = std::function<Tensor(const Tensor&, int64_t, ScanOptions)>;
using StepFn = double (*)(double, double);

List run_list(List v, double start, StepFn step, ScanOptions o) {
  if (o.reverse) std::reverse(v.begin(), v.end());
  double acc = start;
  for (double& x : v) {
    const double next = step(acc, x);
    x = o.exclusive ? acc : next;
    acc = next;
  }
  if (o.reverse) std::reverse(v.begin(), v.end());
  return v;
}

Sample& add(SampleList& list, const char* label, Tensor x, int64_t dim, ScanOptions o,
            const ScanFn& op, double start, StepFn step) {
  Sample& s = list.add(
      label, {std::move(x)}, [=](const Tensors& in) { return Tensors{op(in[0], dim, o)}; },
      [=](const Tensors& in) {
        return row_ref(in[0], dim, [=](const List& v) { return run_list(v, start, step, o); });
      });
  s.grad = s.grad_grad = in_reach_of_checks(s);
  return s;
}

void add_shapes(SampleList& list, const ScanFn& op, double start, StepFn step) {
  add(list, "vector", list.randn({5}), 0, {}, op, start, step);
  add(list, "last dim", list.randn({3, 4}), -1, {}, op, start, step);
  add(list, "first dim", list.randn({3, 4}), 0, {}, op, start, step);
  add(list, "middle dim", list.randn({2, 3, 2}), 1, {}, op, start, step);
  add(list, "0-d", list.randn({}), 0, {}, op, start, step);
  add(list, "size 1", list.randn({1}), 0, {}, op, start, step);
  add(list, "empty", list.randn({0}), 0, {}, op, start, step);
  add(list, "no lists", list.randn({0, 3}), 1, {}, op, start, step);
  add(list, "side by side", list.uniform({40, 300}, -1, 1), 0, {}, op, start, step).loosen = 4;
  list.samples.back().why = "values of many sizes in one result";
}

void add_ways(SampleList& list, const ScanFn& op, double start, StepFn step) {
  add(list, "reverse", list.randn({2, 4}), 1, {.reverse = true}, op, start, step);
  add(list, "exclusive", list.randn({2, 4}), 1, {.exclusive = true}, op, start, step);
  add(list, "reverse, exclusive", list.randn({3, 4}), 0, {.reverse = true, .exclusive = true}, op,
      start, step);
  add(list, "integers", list.integers({3, 4}, -5, 5), 1, {}, op, start, step);
}

// The last place of the largest (sign 1) or smallest element so far.
List running_place(const List& v, int sign) {
  List places;
  size_t best = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    const bool held = !std::isnan(v[best]);
    if (std::isnan(v[i]) || (held && sign * v[i] >= sign * v[best])) best = i;
    places.push_back(double(best));
  }
  return places;
}

void add_extreme(SampleList& list, const char* label, Tensor x, int64_t dim, int sign) {
  Sample& s = list.add(
      label, {std::move(x)},
      [=](const Tensors& in) -> Tensors {
        const ValuesIndices r = sign > 0 ? cummax(in[0], dim) : cummin(in[0], dim);
        return {r.values, r.indices};
      },
      [=](const Tensors& in) -> Tensors {
        const auto place = [=](const List& v) { return running_place(v, sign); };
        const auto value = [=](const List& v) {
          List out = place(v);
          for (double& p : out) p = v[size_t(p)];
          return out;
        };
        return {row_ref(in[0], dim, value)[0], row_ref(in[0], dim, place)[0]};
      });
  s.grad = s.grad_grad = in_reach_of_checks(s);
}

void add_extremes(SampleList& list, int sign) {
  add_extreme(list, "vector", list.distinct({6}), 0, sign);
  add_extreme(list, "first dim", list.distinct({4, 3}), 0, sign);
  add_extreme(list, "middle dim", list.distinct({2, 3, 2}), 1, sign);
  add_extreme(list, "0-d", list.distinct({}), 0, sign);
  add_extreme(list, "empty", list.distinct({0, 2}), 0, sign);
  add_extreme(list, "ties", list.integers({40, 20}, -4, 4), 0, sign);
}

// t_i = b_i + a_i t_{i−1} on two lists.
List recurrence(const List& a, const List& b, LinearScanOptions o) {
  List t(b.size());
  const int64_t n = int64_t(b.size());
  double before = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = o.reverse ? n - 1 - k : k;
    const int64_t from = o.shifted ? (o.reverse ? i + 1 : i - 1) : i;
    t[size_t(i)] = b[size_t(i)] + (k > 0 ? a[size_t(from)] * before : 0);
    before = t[size_t(i)];
  }
  return t;
}

void add_linear(SampleList& list, const char* label, const Shape& sizes, int64_t dim,
                LinearScanOptions o) {
  Sample& s = list.add(
      label, {list.uniform(sizes, -1, 1), list.randn(sizes)},
      [=](const Tensors& in) { return Tensors{linear_scan(in[0], in[1], dim, o)}; },
      [=](const Tensors& in) {
        // Lists of a in the order in which those of b are visited.
        std::vector<List> factors;
        row_ref(in[0], dim, [&](const List& v) {
          factors.push_back(v);
          return v;
        });
        size_t k = 0;
        return row_ref(in[1], dim, [&](const List& v) { return recurrence(factors[k++], v, o); });
      });
  s.grad = s.grad_grad = in_reach_of_checks(s);
}

}  // namespace

void cumsum_samples(SampleList& list) {
  const ScanFn op = [](const Tensor& x, int64_t d, ScanOptions o) { return cumsum(x, d, o); };
  const StepFn step = [](double a, double x) { return a + x; };
  add_shapes(list, op, 0, step);
  add_ways(list, op, 0, step);
  add(list, "bools", list.bools({3, 4}), 1, {}, op, 0, step);
  list.error(
      "dim out of range",
      [] {
        cumsum(zeros({2, 3}), 2);
      },
      "[cumsum]");
}

void cumprod_samples(SampleList& list) {
  const ScanFn op = [](const Tensor& x, int64_t d, ScanOptions o) { return cumprod(x, d, o); };
  const StepFn step = [](double a, double x) { return a * x; };
  add_shapes(list, op, 1, step);
  add_ways(list, op, 1, step);
  add(list, "zeros", tensor({3, 0, 5, 0, 2}, kF64), 0, {}, op, 1, step);
  add(list, "zeros, exclusive", tensor({3, 0, 5, 0, 2}, kF64), 0, {.exclusive = true}, op, 1, step);
  list.error(
      "dim out of range",
      [] {
        cumprod(zeros({2, 3}), -3);
      },
      "[cumprod]");
}

void logcumsumexp_samples(SampleList& list) {
  const double low = -std::numeric_limits<double>::infinity();
  const ScanFn op = [](const Tensor& x, int64_t d, ScanOptions) { return logcumsumexp(x, d); };
  const StepFn step = [](double a, double x) {
    const double high = std::max(a, x);
    return std::isinf(high) ? high : high + std::log(std::exp(a - high) + std::exp(x - high));
  };
  add_shapes(list, op, low, step);
  add(list, "infinite", tensor({low, 0, low, 2}, kF64), 0, {}, op, low, step).grad = false;
  list.error(
      "integers", [] { logcumsumexp(zeros({2}, {.dtype = DType::i64}), 0); },
      "[logcumsumexp] does not accept i64");
}

void cummax_samples(SampleList& list) { add_extremes(list, 1); }
void cummin_samples(SampleList& list) { add_extremes(list, -1); }

void linear_scan_samples(SampleList& list) {
  add_linear(list, "vector", {6}, 0, {});
  add_linear(list, "reverse", {2, 5}, 1, {.reverse = true});
  add_linear(list, "shifted", {4, 3}, 0, {.shifted = true});
  add_linear(list, "reverse, shifted", {2, 3, 2}, 1, {.reverse = true, .shifted = true});
  add_linear(list, "0-d", {}, 0, {});
  add_linear(list, "size 1", {1}, 0, {.shifted = true});
  add_linear(list, "empty", {0, 3}, 0, {});
  add_linear(list, "side by side", {30, 280}, 0, {});
  list.error(
      "sizes", [] { linear_scan(zeros({2}), zeros({3}), 0); },
      "[linear_scan] a and b must have equal sizes; got a [2], b [3]");
}

}  // namespace cutaway
