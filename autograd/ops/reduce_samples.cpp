#include <cmath>
#include <limits>

#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/reduce_reference.h>

namespace cutaway {
namespace {

using List = std::vector<double>;
// An op under the attributes of a sample.
using ReduceFn = std::function<Tensor(const Tensor&, const ReduceAttrs&)>;

constexpr double kInf = std::numeric_limits<double>::infinity();
const Opts kF64{.dtype = DType::f64};
const double kNan = std::nan("");

Sample& add(SampleList& list, const char* label, Tensor x, const ReduceAttrs& attrs,
            const ReduceFn& op, const ListFn& reference) {
  Sample& s = list.add(
      label, {std::move(x)}, [op, attrs](const Tensors& in) { return Tensors{op(in[0], attrs)}; },
      [reference, attrs](const Tensors& in) { return reduce_ref(in[0], attrs, reference); });
  s.grad = s.grad_grad = in_reach_of_checks(s);
  return s;
}

// The shapes every reduction is tried on; `p` goes into the attributes.
void add_shapes(SampleList& list, const ReduceFn& op, const ListFn& reference, double p = 0) {
  add(list, "all of [3,4]", list.randn({3, 4}), over_all(false, p), op, reference);
  add(list, "0-d", list.randn({}), over_all(false, p), op, reference);
  add(list, "size 1", list.randn({1}), over_all(true, p), op, reference);
  add(list, "no outputs", list.randn({0, 3}), over({1}, false, p), op, reference);
  add(list, "last dim", list.randn({3, 4}), over({-1}, false, p), op, reference);
  add(list, "first dim, kept", list.randn({3, 4}), over({0}, true, p), op, reference);
  add(list, "dims apart", list.randn({2, 3, 2, 2}), over({2, 0}, false, p), op, reference);
  add(list, "middle of three", list.randn({2, 300, 11}), over({1}, false, p), op, reference);
  add(list, "rows", list.randn({5, 517}), over({1}, false, p), op, reference);
  add(list, "long list", list.randn({50021}), over_all(false, p), op, reference);
  add(list, "columns", list.randn({1500, 20}), over({0}, false, p), op, reference);
}
void add_empty(SampleList& list, const ReduceFn& op, const ListFn& reference, double p = 0) {
  add(list, "empty", list.randn({0}), over_all(false, p), op, reference);
  add(list, "dim of size 0", list.randn({2, 0}), over({1}, false, p), op, reference);
}

double mean_of(const List& v) {
  double total = 0;
  for (const double x : v) total += x;
  return total / double(v.size());
}
double var_of(const List& v, double correction) {
  const double mean = mean_of(v);
  double total = 0;
  for (const double x : v) total += (x - mean) * (x - mean);
  return total / std::max(0.0, double(v.size()) - correction);
}

// As add_shapes, without lists of one element, whose unbiased variance is NaN.
void add_moments(SampleList& list, const ReduceFn& op, double (*finish)(double)) {
  const auto reference = [finish](double correction) {
    return [finish, correction](const List& v) { return finish(var_of(v, correction)); };
  };
  add(list, "all of [3,4]", list.randn({3, 4}), over_all(false, 1), op, reference(1));
  add(list, "biased", list.randn({3, 4}), over({-1}, true, 0), op, reference(0));
  add(list, "correction 1.5", list.randn({4, 3}), over({0}, false, 1.5), op, reference(1.5));
  add(list, "dims apart", list.randn({2, 3, 2, 2}), over({2, 0}, false, 1), op, reference(1));
  add(list, "no outputs", list.randn({0, 3}), over({1}, false, 1), op, reference(1));
  add(list, "long list", list.randn({50021}), over_all(false, 1), op, reference(1));
  add(list, "columns", list.randn({1500, 20}), over({0}, false, 1), op, reference(1));
  add(list, "rows", list.randn({5, 517}), over({1}, false, 1), op, reference(1));
  add(list, "one element, unbiased", list.randn({1}), over_all(false, 1), op, reference(1)).grad =
      false;
  add(list, "empty", list.randn({0}), over_all(false, 1), op, reference(1)).grad = false;
}

double norm_of(const List& v, double p) {
  double total = p == -kInf ? kInf : 0;
  for (const double x : v) {
    const double a = std::fabs(x);
    if (p == 0)
      total += a != 0;
    else if (p == kInf)
      total = std::max(total, a);
    else if (p == -kInf)
      total = std::min(total, a);
    else
      total += std::pow(a, p);
  }
  return p == 0 || std::isinf(p) ? total : std::pow(total, 1 / p);
}

}  // namespace

void mean_samples(SampleList& list) {
  const ReduceFn op = [](const Tensor& x, const ReduceAttrs& a) {
    const ReduceOptions o{.keepdim = a.keepdim};
    return a.all ? mean(x, o) : mean(x, a.dims, o);
  };
  add_shapes(list, op, mean_of);
  add_empty(list, op, mean_of);
  list.error(
      "integers", [] { mean(zeros({2}, {.dtype = DType::i64})); }, "[mean] does not accept i64");
}

void prod_samples(SampleList& list) {
  const ReduceFn op = [](const Tensor& x, const ReduceAttrs& a) {
    const ReduceOptions o{.keepdim = a.keepdim};
    return a.all ? prod(x, o) : prod(x, a.dims, o);
  };
  const ListFn product = [](const List& v) {
    double total = 1;
    for (const double x : v) total *= x;
    return total;
  };
  add(list, "all of [3,4]", list.randn({3, 4}), over_all(false), op, product);
  add(list, "0-d", list.randn({}), over_all(false), op, product);
  add(list, "size 1", list.randn({1}), over_all(true), op, product);
  add(list, "one zero", tensor({2, 0, 4}, kF64), over_all(false), op, product);
  add(list, "two zeros", tensor({0, 0, 4}, kF64), over_all(false), op, product);
  add(list, "zeros in rows", tensor({0, 3, 0, 0, 2, 5}, {3, 2}, kF64), over({1}, false), op,
      product);
  add(list, "middle dim", list.randn({2, 3, 2}), over({1}, false), op, product);
  add(list, "dims apart", list.randn({2, 3, 2}), over({2, 0}, true), op, product);
  add(list, "columns", list.uniform({300, 20}, 0.97, 1.03), over({0}, false), op, product);
  add(list, "long list", list.uniform({20011}, 0.999, 1.001), over_all(false), op, product);
  add(list, "integers", list.integers({3, 5}, -9, 9), over({0}, false), op, product);
  add_empty(list, op, product);
}

void var_samples(SampleList& list) {
  add_moments(
      list,
      [](const Tensor& x, const ReduceAttrs& a) {
        const auto o = VarOptions{.correction = a.p, .keepdim = a.keepdim};
        return a.all ? var(x, o) : var(x, a.dims, o);
      },
      [](double v) { return v; });
}
void std_samples(SampleList& list) {
  add_moments(
      list,
      [](const Tensor& x, const ReduceAttrs& a) {
        const auto o = VarOptions{.correction = a.p, .keepdim = a.keepdim};
        return a.all ? cutaway::std(x, o) : cutaway::std(x, a.dims, o);
      },
      [](double v) { return ::sqrt(v); });
}

void logsumexp_samples(SampleList& list) {
  const ReduceFn op = [](const Tensor& x, const ReduceAttrs& a) {
    const ReduceOptions o{.keepdim = a.keepdim};
    return a.all ? logsumexp(x, o) : logsumexp(x, a.dims, o);
  };
  const ListFn reference = [](const List& v) {
    double high = -kInf, total = 0;
    for (const double x : v) high = std::max(high, x);
    if (std::isinf(high)) return high;
    for (const double x : v) total += std::exp(x - high);
    return high + std::log(total);
  };
  add_shapes(list, op, reference);
  add_empty(list, op, reference);
  add(list, "large", tensor({1000, 1001, 999}, kF64), over_all(false), op, reference).grad = false;
  add(list, "infinite", tensor({-kInf, 0, -kInf, -kInf, kInf, 1}, {3, 2}, kF64), over({1}, false),
      op, reference)
      .grad = false;
}

void norm_samples(SampleList& list) {
  const ReduceFn op = [](const Tensor& x, const ReduceAttrs& a) {
    const auto o = NormOptions{.p = a.p, .keepdim = a.keepdim};
    return a.all ? norm(x, o) : norm(x, a.dims, o);
  };
  const auto reference = [](double p) { return [p](const List& v) { return norm_of(v, p); }; };
  add_shapes(list, op, reference(2), 2);
  add_empty(list, op, reference(2), 2);
  for (const double p : {1.5, 0.5, kInf, -kInf}) {
    add(list, "order, one sign", list.uniform({3, 4}, 0.5, 2), over({1}, false, p), op,
        reference(p));
  }
  for (const double p : {1.0, 3.0}) {
    add(list, "order", list.distinct({3, 4}), over({1}, false, p), op, reference(p));
  }
  add(list, "order -1", list.uniform({3, 4}, 0.5, 2), over({0}, true, -1), op, reference(-1));
  add(list, "order 0", tensor({0, 1, 2, 0, 0, -3}, {2, 3}, kF64), over({1}, false, 0), op,
      reference(0))
      .grad = false;
  add(list, "order 3, rows", list.randn({3, 400}), over({1}, false, 3), op, reference(3));
  add(list, "maximum, rows", list.randn({3, 400}), over({1}, false, kInf), op, reference(kInf));
  add(list, "maximum of nothing", list.randn({0}), over_all(false, kInf), op, reference(kInf))
      .grad = false;
  list.error(
      "order NaN", [] { norm(zeros({2}), {.p = kNan}); }, "[norm] p must be a number; got NaN");
  list.error(
      "minimum of nothing", [] { norm(zeros({0}), {.p = -kInf}); },
      "[norm] reduces no elements and has no identity");
}

namespace {
template <class Op>
void add_truth(SampleList& list, Op op, const ListFn& reference) {
  add_shapes(list, op, reference);
  add_empty(list, op, reference);
  add(list, "bools", list.bools({5, 3}), over({1}, false), op, reference);
  add(list, "bools, many", list.bools({3, 999}), over({1}, false), op, reference);
  add(list, "integers", list.integers({4, 9}, 0, 2), over({0}, true), op, reference);
  add(list, "NaN and zeros", tensor({0, kNan, 0, 0, -0.0, 0}, {3, 2}, kF64), over({1}, false), op,
      reference);
}
}  // namespace

void any_samples(SampleList& list) {
  add_truth(
      list,
      [](const Tensor& x, const ReduceAttrs& a) {
        const ReduceOptions o{.keepdim = a.keepdim};
        return a.all ? any(x, o) : any(x, a.dims, o);
      },
      [](const List& v) {
        for (const double x : v) {
          if (x != 0) return 1.0;
        }
        return 0.0;
      });
}
void all_samples(SampleList& list) {
  add_truth(
      list,
      [](const Tensor& x, const ReduceAttrs& a) {
        const ReduceOptions o{.keepdim = a.keepdim};
        return a.all ? all(x, o) : all(x, a.dims, o);
      },
      [](const List& v) {
        for (const double x : v) {
          if (x == 0) return 0.0;
        }
        return 1.0;
      });
}
void count_nonzero_samples(SampleList& list) {
  add_truth(
      list,
      [](const Tensor& x, const ReduceAttrs& a) {
        const ReduceOptions o{.keepdim = a.keepdim};
        return a.all ? count_nonzero(x, o) : count_nonzero(x, a.dims, o);
      },
      [](const List& v) {
        double n = 0;
        for (const double x : v) n += x != 0;
        return n;
      });
}

}  // namespace cutaway
