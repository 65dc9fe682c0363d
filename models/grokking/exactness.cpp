#include <cutaway/models/grokking/exactness.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/gradcheck.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/models/grokking/geometry.h>
#include <cutaway/models/grokking/symmetry.h>

namespace cutaway::grokking {
namespace {

using Complex = std::complex<double>;

// Places of the elements on a helix with frequencies 1, 2, 3: h(x)_q = e^{2πi q φ(x) / n}.
std::vector<Complex> helix(int64_t angle, int64_t n) {
  std::vector<Complex> h;
  for (int q = 1; q <= 3; ++q) {
    h.push_back(std::polar(1.0, 2 * std::numbers::pi * double(q * angle % n) / double(n)));
  }
  return h;
}

// Logits of the pair (x, y): how near h(x) h(y) (or h(x) / h(y)) comes to h(c) for each answer c.
std::vector<double> helix_logits(const std::vector<Complex>& x, const std::vector<Complex>& y,
                                 bool divide, int64_t n) {
  std::vector<double> logits;
  for (int64_t c = 0; c < n; ++c) {
    const auto h = helix(c, n);
    double near = 0;
    for (size_t q = 0; q < h.size(); ++q) {
      near += std::real(x[q] * (divide ? std::conj(y[q]) : y[q]) * std::conj(h[q]));
    }
    logits.push_back(4 * near);
  }
  return logits;
}

double helix_violation_of(const Task& task, const std::vector<int64_t>& order, bool divide) {
  const auto n = int64_t(order.size());
  std::vector<int64_t> angle(size_t(task.entities), -1);
  for (int64_t i = 0; i < n; ++i) angle[size_t(order[size_t(i)])] = i;
  std::vector<std::vector<double>> logits(size_t(task.rows()));
  for (int64_t row = 0; row < task.rows(); ++row) {
    const int64_t a = angle[size_t(task.inputs[size_t(2 * row)])];
    const int64_t b = angle[size_t(task.inputs[size_t(2 * row + 1)])];
    if (a >= 0 && b >= 0) logits[size_t(row)] = helix_logits(helix(a, n), helix(b, n), divide, n);
  }
  double worst = 0;
  for (Law law : task.laws) {
    std::vector<double> u, v;
    for (int64_t i = 0; i < task.entities * task.entities * task.entities; ++i) {
      const int64_t m = task.entities, xyz[4] = {i / m / m, i / m % m, i % m, 0};
      int64_t rows[6];
      if (law == Law::commutativity && xyz[2]) continue;
      if (!task.instance(law, xyz, rows)) continue;
      const auto &first = logits[size_t(rows[0])], &second = logits[size_t(rows[1])];
      if (first.empty() || second.empty()) continue;
      u.insert(u.end(), first.begin(), first.end());
      v.insert(v.end(), second.begin(), second.end());
    }
    const auto as_tensor = [n](const std::vector<double>& list) {
      return tensor(list, {.dtype = DType::f64}).reshape({-1, n});
    };
    worst = std::max(worst, amax(abs(symmetric_kl(as_tensor(u), as_tensor(v)))).item());
  }
  return worst;
}

}  // namespace

double worst_gradient_error() {
  Generator random{.seed = 7, .stream = 1};
  const auto input = [&](const Shape& sizes) {
    Tensor t = randn(sizes, {.dtype = DType::f64}, &random);
    t.set_requires_grad();
    return t;
  };
  double worst = 0;
  const auto check = [&](const GradcheckFn& fn, const Tensors& inputs) {
    const GradcheckReport report = gradcheck(fn, inputs);
    worst = std::max(worst, report.ok ? report.worst : INFINITY);
  };
  check([](const Tensors& t) { return Tensors{symmetric_kl(t[0], t[1])}; },
        {input({4, 7}), input({4, 7})});
  check([](const Tensors& t) { return Tensors{triangle_violation(t[0], t[1], t[2])}; },
        {input({4, 6}), input({4, 6}), input({4, 6})});
  check([](const Tensors& t) { return Tensors{transitivity_violation(t[0], t[1], t[2])}; },
        {input({9}), input({9}), input({9})});
  check(
      [](const Tensors& t) {
        return Tensors{soft_associativity(t[0], {0, 1, 2, 3, 1, 0}, {6, 4}, 4)};
      },
      {input({16, 4})});
  check([](const Tensors& t) { return Tensors{nuclear_prior(t[0])}; }, {input({5, 3})});
  check([](const Tensors& t) { return Tensors{entropy_prior(t[0])}; }, {input({5, 3})});
  return worst;
}

double helix_violation(int64_t p) {
  NoGradGuard off;
  double worst = 0;
  for (const char* name : {"add", "sub", "mul"}) {
    const Task task = make_task({.name = name, .p = p});
    worst = std::max(worst, helix_violation_of(task, task.order, task.name == "sub"));
  }
  return worst;
}

int64_t unequal_answers(int64_t p) {
  int64_t unequal = 0;
  for (const char* name : {"add", "sub", "sq", "cube", "mul", "affine"}) {
    const Task task = make_task({.name = name, .p = p});
    for (Law law : task.laws) {
      for (int64_t i = 0; i < p * p * p; ++i) {
        const int64_t xyz[4] = {i / p / p, i / p % p, i % p, 0};
        int64_t rows[6];
        task.instance(law, xyz, rows);
        unequal += task.answers[size_t(rows[0])] != task.answers[size_t(rows[1])];
      }
    }
  }
  return unequal;
}

}  // namespace cutaway::grokking
