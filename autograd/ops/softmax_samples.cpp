#include <algorithm>
#include <cmath>
#include <limits>

#include <cutaway/autograd/ops/reduce_reference.h>
#include <cutaway/autograd/ops/softmax.h>

namespace cutaway {
namespace {

using List = std::vector<double>;

List log_softmax_of(List v) {
  double high = -std::numeric_limits<double>::infinity(), total = 0;
  for (const double x : v) high = std::max(high, x);
  for (const double x : v) total += std::exp(x - high);
  for (double& x : v) x = x - high - std::log(total);
  return v;
}
List softmax_of(const List& v) {
  List y = log_softmax_of(v);
  for (double& x : y) x = std::exp(x);
  return y;
}

void add(SampleList& list, const char* label, Tensor x, int64_t dim, bool log) {
  Sample& s = list.add(
      label, {std::move(x)},
      [=](const Tensors& in) {
        return Tensors{log ? log_softmax(in[0], dim) : softmax(in[0], dim)};
      },
      [=](const Tensors& in) {
        return row_ref(in[0], dim, log ? RowFn(log_softmax_of) : RowFn(softmax_of));
      });
  s.grad = s.grad_grad = in_reach_of_checks(s);
}

void add_all(SampleList& list, bool log) {
  const double low = -std::numeric_limits<double>::infinity();
  add(list, "rows", list.randn({3, 5}), -1, log);
  add(list, "columns", list.randn({4, 3}), 0, log);
  add(list, "middle", list.randn({2, 3, 4}), 1, log);
  add(list, "0-d", list.randn({}), 0, log);
  add(list, "one", list.randn({1}), 0, log);
  add(list, "empty rows", list.randn({2, 0}), 1, log);
  add(list, "no rows", list.randn({0, 3}), 1, log);
  add(list, "long rows", list.randn({3, 1029}), 1, log);
  add(list, "many rows", list.randn({700, 100}), 1, log);
  add(list, "wide columns", list.randn({33, 300}), 0, log);
  add(list, "large values", list.uniform({4, 6}, -400, 400), 1, log);
  list.samples.back().grad = false;
  add(list, "some -inf", tensor({0, low, 1, low, low, 2}, {2, 3}, {.dtype = DType::f64}), 1, log);
  list.samples.back().grad = false;
}

}  // namespace

void softmax_samples(SampleList& list) {
  add_all(list, false);
  list.error(
      "dim out of range",
      [] {
        softmax(zeros({2, 3}), 2);
      },
      "[softmax]");
  list.error(
      "integers", [] { softmax(zeros({2}, {.dtype = DType::i64}), 0); },
      "[softmax] does not accept i64");
}
void log_softmax_samples(SampleList& list) {
  add_all(list, true);
  list.error(
      "dim out of range",
      [] {
        log_softmax(zeros({2, 3}), -3);
      },
      "[log_softmax]");
}

}  // namespace cutaway
