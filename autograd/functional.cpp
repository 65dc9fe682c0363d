#include <cutaway/autograd/functional.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

Tensor leaf_of(const Tensor& x) { return x.detach().clone().set_requires_grad(); }

void require_sizes(const char* op, const char* what, const Tensor& got, const Tensor& need) {
  if (got.sizes() != need.sizes()) {
    throw ShapeError(op, std::string(what) + " must have the sizes of its partner; got " +
                             to_string(got.sizes()) + ", need " + to_string(need.sizes()));
  }
}

// Gradient of y with respect to x, zeros where y does not depend on x.
Tensor gradient_or_zeros(const Tensor& y, const Tensor& x, const Tensor& upstream,
                         bool create_graph, bool retain_graph) {
  if (!y.requires_grad()) return zeros_like(x);
  Tensor g = grad(
      {y}, {x}, {.create_graph = create_graph, .retain_graph = retain_graph, .allow_unused = true},
      {upstream})[0];
  return g.defined() ? g : zeros_like(x);
}

Shape joined(const Shape& a, const Shape& b) {
  Shape s = a;
  for (int64_t n : b) s.push_back(n);
  return s;
}

Tensor jacobian_at(const Tensor& y, const Tensor& x, bool create_graph) {
  const int64_t n = y.numel();
  Tensors rows;
  for (int64_t i = 0; i < n; ++i) {
    Tensor unit = zeros_like(y);
    make_view(unit, Layout{{1}, {1}, i}).fill_(1);
    rows.push_back(gradient_or_zeros(y, x, unit, create_graph, true).reshape({-1}));
  }
  const Shape sizes = joined(y.sizes(), x.sizes());
  if (rows.empty()) return zeros(sizes, {.dtype = x.dtype(), .device = x.device()});
  return stack(rows, 0).reshape(sizes);
}

}  // namespace

Tensor jacobian(const TensorFn& f, const Tensor& x, bool create_graph) {
  GradModeGuard on(true);
  const Tensor leaf = create_graph && x.requires_grad() ? x : leaf_of(x);
  return jacobian_at(f(leaf), leaf, create_graph);
}

Tensor hessian(const TensorFn& f, const Tensor& x) {
  GradModeGuard on(true);
  const Tensor leaf = leaf_of(x);
  const Tensor y = f(leaf);
  if (y.numel() != 1) {
    throw ShapeError("hessian", "needs a function with one result; got " + to_string(y.sizes()));
  }
  return jacobian_at(gradient_or_zeros(y, leaf, ones_like(y), true, true), leaf, false);
}

Tensor hvp(const TensorFn& f, const Tensor& x, const Tensor& v) {
  require_sizes("hvp", "v", v, x);
  GradModeGuard on(true);
  const Tensor leaf = leaf_of(x);
  const Tensor y = f(leaf);
  if (y.numel() != 1) {
    throw ShapeError("hvp", "needs a function with one result; got " + to_string(y.sizes()));
  }
  const Tensor g = gradient_or_zeros(y, leaf, ones_like(y), true, true);
  return gradient_or_zeros(g, leaf, v, false, false);
}

Tensor vjp(const TensorFn& f, const Tensor& x, const Tensor& u) {
  GradModeGuard on(true);
  const Tensor leaf = leaf_of(x);
  const Tensor y = f(leaf);
  require_sizes("vjp", "u", u, y);
  return gradient_or_zeros(y, leaf, u, false, false);
}

Tensor jvp(const TensorFn& f, const Tensor& x, const Tensor& v) {
  require_sizes("jvp", "v", v, x);
  GradModeGuard on(true);
  const Tensor leaf = leaf_of(x);
  const Tensor y = f(leaf);
  // g(u) = u·J is linear in u; its derivative with respect to u along v is J·v.
  const Tensor u = zeros_like(y).set_requires_grad();
  const Tensor g = gradient_or_zeros(y, leaf, u, true, true);
  return gradient_or_zeros(g, u, v, false, false);
}

}  // namespace cutaway
