#include <cutaway/autograd/ops/pointwise_samples.h>

#include <cmath>

#include <cutaway/autograd/reference.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

const std::initializer_list<Shape> kShapes = {{}, {0, 3}, {1}, {17}, {2, 3, 4}};

struct Pair {
  Shape a, b;
};
const std::initializer_list<Pair> kPairs = {{{}, {}},     {{3}, {}},        {{0, 3}, {3}},
                                            {{17}, {17}}, {{2, 3, 4}, {4}}, {{2, 1, 4}, {3, 1}}};
const std::initializer_list<Pair> kLargePairs = {
    {{5000}, {5000}}, {{5, 1000}, {1000}}, {{70, 80}, {70, 1}}, {{900, 5}, {5}}};

std::string label(const Shape& a) { return to_string(a); }
std::string label(const Pair& p) { return to_string(p.a) + " " + to_string(p.b); }

OpFn call_of(Unary op) {
  return [op](const Tensors& in) { return Tensors{op(in[0])}; };
}
OpFn call_of(Binary op) {
  return [op](const Tensors& in) { return Tensors{op(in[0], in[1])}; };
}
OpFn reference_of(UnaryReference f) {
  return [f](const Tensors& in) {
    return Tensors{map_reference(in, [f](const double* x) { return f(x[0]); })};
  };
}
OpFn reference_of(BinaryReference f) {
  return [f](const Tensors& in) {
    return Tensors{map_reference(in, [f](const double* x) { return f(x[0], x[1]); })};
  };
}

}  // namespace

Tensor domain_values(SampleList& list, const Shape& sizes, const Domain& domain) {
  Tensor t = list.uniform(sizes, domain.lo, domain.hi);
  double* x = t.data<double>();
  for (int64_t i = 0; i < t.numel(); ++i) {
    for (double kink : domain.kinks) {
      if (std::fabs(x[i] - kink) < 0.05) x[i] = kink + (x[i] < kink ? -0.06 : 0.06);
    }
  }
  return t;
}

Tensor map_reference(const Tensors& in, const std::function<double(const double*)>& f,
                     DType result) {
  Shape sizes = in[0].sizes();
  for (const Tensor& t : in) sizes = broadcast("reference", sizes, t.sizes());
  std::vector<Ref> operands;
  for (const Tensor& t : in) operands.emplace_back(t);
  Ref out(sizes);
  std::vector<double> x(in.size());
  for (int64_t i = 0; i < sizes.numel(); ++i) {
    for (size_t k = 0; k < in.size(); ++k) {
      // Index of the operand's element: dimensions of size 1 do not move.
      const Shape& own = operands[k].sizes;
      int64_t rest = i, at = 0, step = 1;
      for (int d = sizes.rank() - 1, e = own.rank() - 1; d >= 0; --d, --e) {
        const int64_t index = rest % sizes[d];
        rest /= sizes[d];
        if (e < 0) continue;
        if (own[e] != 1) at += index * step;
        step *= own[e];
      }
      x[k] = operands[k].v[size_t(at)];
    }
    out.v[size_t(i)] = f(x.data());
  }
  return cast_raw(out.tensor(), result);
}

void unary_samples(SampleList& list, Unary op, UnaryReference f, const Domain& domain) {
  for (const Shape& s : kShapes) {
    list.add(label(s), {domain_values(list, s, domain)}, call_of(op), reference_of(f));
  }
  list.add("5000", {domain_values(list, {5000}, domain)}, call_of(op), reference_of(f)).grad =
      false;
}

void binary_samples(SampleList& list, Binary op, BinaryReference f, const Domain& a,
                    const Domain& b) {
  for (const Pair& p : kPairs) {
    list.add(label(p), {domain_values(list, p.a, a), domain_values(list, p.b, b)}, call_of(op),
             reference_of(f));
  }
  for (const Pair& p : kLargePairs) {
    list.add(label(p), {domain_values(list, p.a, a), domain_values(list, p.b, b)}, call_of(op),
             reference_of(f))
        .grad = false;
  }
}

void integer_samples(SampleList& list, Unary op, UnaryReference f, int64_t lo, int64_t hi) {
  list.add("integers", {list.integers({3, 40}, lo, hi)}, call_of(op), reference_of(f));
}

void integer_samples(SampleList& list, Binary op, BinaryReference f, int64_t lo, int64_t hi,
                     int64_t second_lo) {
  for (const Pair& p : {Pair{{70}, {70}}, Pair{{3, 4}, {4}}}) {
    list.add("integers " + label(p),
             {list.integers(p.a, lo, hi), list.integers(p.b, second_lo, hi)}, call_of(op),
             reference_of(f));
  }
}

void broadcast_error(SampleList& list, Binary op, const char* name) {
  list.error(
      "sizes do not fit",
      [op] {
        op(zeros({2, 3}), zeros({2}));
      },
      "[" + std::string(name) +
          "] sizes must be equal or 1, aligned at the last dimension; got [2,3] and [2]");
}

}  // namespace cutaway
