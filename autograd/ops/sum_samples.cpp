#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/reduce_reference.h>

namespace cutaway {
namespace {

double sum_of(const std::vector<double>& list) {
  double total = 0;
  for (const double v : list) total += v;
  return total;
}

void add(SampleList& list, const char* label, Tensor x, const ReduceAttrs& attrs) {
  Sample& s = list.add(
      label, {std::move(x)},
      [attrs](const Tensors& in) -> Tensors {
        if (attrs.all) return {sum(in[0], {.keepdim = attrs.keepdim})};
        return {sum(in[0], attrs.dims, {.keepdim = attrs.keepdim})};
      },
      [attrs](const Tensors& in) { return reduce_ref(in[0], attrs, sum_of); });
  s.grad = s.grad_grad = in_reach_of_checks(s);
}

}  // namespace

void sum_samples(SampleList& list) {
  add(list, "all of [3,4]", list.randn({3, 4}), over_all(false));
  add(list, "all, kept dims", list.randn({3, 4}), over_all(true));
  add(list, "0-d", list.randn({}), over_all(false));
  add(list, "0-d over dim -1", list.randn({}), over({-1}, false));
  add(list, "size 1", list.randn({1}), over_all(false));
  add(list, "empty", list.randn({0}), over_all(false));
  add(list, "dim of size 0", list.randn({2, 0}), over({1}, false));
  add(list, "no outputs", list.randn({0, 3}), over({1}, false));
  add(list, "no dims", list.randn({2, 3}), over({}, false));
  add(list, "middle dim", list.randn({2, 3, 4}), over({1}, false));
  add(list, "outer dims", list.randn({2, 3, 4}), over({-3, 1}, true));
  add(list, "dims apart", list.randn({2, 3, 2, 3}), over({2, 0}, false));
  add(list, "rows and chunks", list.randn({2, 40000}), over({1}, false));
  add(list, "one long list", list.randn({100003}), over_all(false));
  add(list, "columns", list.randn({3000, 20}), over({0}, false));
  add(list, "middle of three", list.randn({3, 300, 11}), over({1}, false));
  add(list, "integers", list.integers({3, 5}, -9, 9), over({0}, false));
  add(list, "bools", list.bools({40}), over_all(false));
  list.error(
      "dim out of range",
      [] {
        sum(zeros({2, 3}), 2);
      },
      "[sum]");
  list.error(
      "repeated dim",
      [] {
        sum(zeros({2, 3}), {0, -2});
      },
      "[sum] dims must be distinct; got dims [0,-2] for x [2,3], need each at most once");
}

}  // namespace cutaway
