#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/reduce_reference.h>

namespace cutaway {
namespace {

using List = std::vector<double>;
const Opts kF64{.dtype = DType::f64};
const double kNan = std::nan("");

// Place of the first largest (sign 1) or smallest element, of the first NaN if there is one.
double first_extreme(const List& v, int sign) {
  size_t best = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    if (std::isnan(v[i])) return double(i);
    if (sign * v[i] > sign * v[best]) best = i;
  }
  return double(best);
}
double value_at(const List& v, double place) { return v[size_t(place)]; }

double middle(const List& v, bool skip_nan) {
  List rest;
  for (size_t i = 0; i < v.size(); ++i) {
    if (!std::isnan(v[i]))
      rest.push_back(v[i]);
    else if (!skip_nan)
      return double(i);
  }
  if (rest.empty()) return 0;
  std::sort(rest.begin(), rest.end());
  const double value = rest[(rest.size() - 1) / 2];
  return double(std::find(v.begin(), v.end(), value) - v.begin());
}

using PlaceFn = std::function<double(const List&)>;
using OneFn = std::function<Tensor(const Tensor&, const ReduceAttrs&)>;
using PairFn = std::function<ValuesIndices(const Tensor&, int64_t, ReduceOptions)>;

Sample& add_one(SampleList& list, const char* label, Tensor x, const ReduceAttrs& attrs,
                const OneFn& op, const ListFn& reference) {
  Sample& s = list.add(
      label, {std::move(x)}, [op, attrs](const Tensors& in) { return Tensors{op(in[0], attrs)}; },
      [reference, attrs](const Tensors& in) { return reduce_ref(in[0], attrs, reference); });
  s.grad = s.grad_grad = in_reach_of_checks(s);
  return s;
}

Sample& add_pair(SampleList& list, const char* label, Tensor x, int64_t dim, bool keepdim,
                 const PairFn& op, const PlaceFn& place) {
  Sample& s = list.add(
      label, {std::move(x)},
      [op, dim, keepdim](const Tensors& in) -> Tensors {
        const ValuesIndices r = op(in[0], dim, {.keepdim = keepdim});
        return {r.values, r.indices};
      },
      [place, dim, keepdim](const Tensors& in) -> Tensors {
        const ReduceAttrs attrs = over({dim}, keepdim);
        const auto value = [&](const List& v) { return value_at(v, place(v)); };
        return {reduce_ref(in[0], attrs, value)[0], reduce_ref(in[0], attrs, place)[0]};
      });
  s.grad = s.grad_grad = in_reach_of_checks(s);
  return s;
}

void add_pairs(SampleList& list, const PairFn& op, const PlaceFn& place, const char* nothing) {
  add_pair(list, "last dim", list.distinct({3, 5}), -1, false, op, place);
  add_pair(list, "first dim, kept", list.distinct({3, 5}), 0, true, op, place);
  add_pair(list, "middle dim", list.distinct({2, 3, 4}), 1, false, op, place);
  add_pair(list, "0-d", list.distinct({}), 0, false, op, place);
  add_pair(list, "size 1", list.distinct({1}), 0, false, op, place);
  add_pair(list, "no outputs", list.distinct({0, 3}), 1, false, op, place);
  add_pair(list, "rows", list.randn({4, 1000}), 1, false, op, place).all_dtypes = false;
  add_pair(list, "columns", list.randn({700, 20}), 0, false, op, place).all_dtypes = false;
  add_pair(list, "integers with ties", list.integers({30, 9}, -3, 3), 0, false, op, place);
  add_pair(list, "many ties", list.integers({5, 301}, -2, 2), 1, false, op, place);
  add_pair(list, "bools", list.bools({6, 4}), 1, false, op, place);
  add_pair(list, "NaN", tensor({1, kNan, 5, kNan, 2, 7, 7, 1}, {2, 4}, kF64), 1, false, op, place)
      .grad = false;
  list.error(
      "nothing",
      [op] {
        op(zeros({0, 3}), 0, {});
      },
      nothing);
}

void add_values(SampleList& list, const OneFn& op, int sign, const char* nothing) {
  const ListFn best = [sign](const List& v) { return value_at(v, first_extreme(v, sign)); };
  add_one(list, "all of [3,4]", list.distinct({3, 4}), over_all(false), op, best);
  add_one(list, "0-d", list.distinct({}), over_all(false), op, best);
  add_one(list, "size 1", list.distinct({1}), over_all(true), op, best);
  add_one(list, "no outputs", list.distinct({0, 3}), over({1}, false), op, best);
  add_one(list, "dims apart", list.distinct({2, 3, 4}), over({2, 0}, true), op, best);
  add_one(list, "rows", list.randn({4, 1000}), over({1}, false), op, best);
  add_one(list, "columns", list.randn({700, 20}), over({0}, false), op, best);
  add_one(list, "long list", list.randn({50021}), over_all(false), op, best);
  add_one(list, "integers", list.integers({30, 9}, -300, 300), over({0}, false), op, best);
  add_one(list, "bools", list.bools({6, 4}), over({1}, false), op, best);
  add_one(list, "NaN", tensor({1, kNan, 2, 7}, {2, 2}, kF64), over({1}, false), op, best).grad =
      false;
  list.error(
      "nothing",
      [op] {
        op(zeros({0, 3}), over({0}, false));
      },
      nothing);
}

void add_places(SampleList& list, const OneFn& op, int sign, const char* nothing) {
  const ListFn place = [sign](const List& v) { return first_extreme(v, sign); };
  add_one(list, "flattened", list.distinct({3, 4}), over_all(false), op, place);
  add_one(list, "0-d", list.distinct({}), over_all(false), op, place);
  add_one(list, "last dim, kept", list.distinct({3, 5}), over({-1}, true), op, place);
  add_one(list, "middle dim", list.distinct({2, 3, 4}), over({1}, false), op, place);
  add_one(list, "no outputs", list.distinct({0, 3}), over({1}, false), op, place);
  add_one(list, "long list", list.randn({50021}), over_all(false), op, place).all_dtypes = false;
  add_one(list, "columns", list.randn({700, 20}), over({0}, false), op, place).all_dtypes = false;
  add_one(list, "ties", list.integers({5, 301}, -2, 2), over({1}, false), op, place);
  add_one(list, "NaN", tensor({1, kNan, 5, kNan}, kF64), over_all(false), op, place);
  list.error(
      "nothing", [op] { op(zeros({0}), over_all(false)); }, nothing);
}

OneFn arg_form(Tensor (*whole)(TensorArg), Tensor (*along)(TensorArg, int64_t, ReduceOptions)) {
  return [=](const Tensor& x, const ReduceAttrs& a) {
    return a.all ? whole(x) : along(x, a.dims[0], {.keepdim = a.keepdim});
  };
}

}  // namespace

void amax_samples(SampleList& list) {
  add_values(
      list,
      [](const Tensor& x, const ReduceAttrs& a) {
        return a.all ? amax(x, {.keepdim = a.keepdim}) : amax(x, a.dims, {.keepdim = a.keepdim});
      },
      1, "[amax] reduces no elements and has no identity; got x [0,3] over dims [0]");
}
void amin_samples(SampleList& list) {
  add_values(
      list,
      [](const Tensor& x, const ReduceAttrs& a) {
        return a.all ? amin(x, {.keepdim = a.keepdim}) : amin(x, a.dims, {.keepdim = a.keepdim});
      },
      -1, "[amin] reduces no elements and has no identity; got x [0,3] over dims [0]");
}
void max_samples(SampleList& list) {
  add_pairs(
      list, [](const Tensor& x, int64_t dim, ReduceOptions o) { return max(x, dim, o); },
      [](const List& v) { return first_extreme(v, 1); }, "[max] reduces no elements");
}
void min_samples(SampleList& list) {
  add_pairs(
      list, [](const Tensor& x, int64_t dim, ReduceOptions o) { return min(x, dim, o); },
      [](const List& v) { return first_extreme(v, -1); }, "[min] reduces no elements");
}
void argmax_samples(SampleList& list) {
  add_places(list, arg_form(argmax, argmax), 1, "[argmax] reduces no elements");
}
void argmin_samples(SampleList& list) {
  add_places(list, arg_form(argmin, argmin), -1, "[argmin] reduces no elements");
}
void median_samples(SampleList& list) {
  add_pairs(
      list, [](const Tensor& x, int64_t dim, ReduceOptions o) { return median(x, dim, o); },
      [](const List& v) { return middle(v, false); }, "[median] reduces no elements");
  add_one(
      list, "value only", list.distinct({3, 4}), over_all(false),
      [](const Tensor& x, const ReduceAttrs&) { return median(x); },
      [](const List& v) { return value_at(v, middle(v, false)); });
}
void nanmedian_samples(SampleList& list) {
  add_pairs(
      list, [](const Tensor& x, int64_t dim, ReduceOptions o) { return nanmedian(x, dim, o); },
      [](const List& v) { return middle(v, true); }, "[nanmedian] reduces no elements");
  add_one(
      list, "value only", list.distinct({3, 4}), over_all(false),
      [](const Tensor& x, const ReduceAttrs&) { return nanmedian(x); },
      [](const List& v) { return value_at(v, middle(v, true)); });
}

}  // namespace cutaway
