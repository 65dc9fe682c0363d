#pragma once
#include <functional>

#include <cutaway/core/tensor.h>

namespace cutaway {

using TensorFn = std::function<Tensor(const Tensor&)>;

// Matrix of first derivatives of y = f(x): [y sizes…, x sizes…]. One backward pass for each element
// of y. With create_graph the result can be differentiated again.
Tensor jacobian(const TensorFn& f, const Tensor& x, bool create_graph = false);
// Second derivatives of a one-element f: [x sizes…, x sizes…].
Tensor hessian(const TensorFn& f, const Tensor& x);
// Hessian of a one-element f times v, without forming it; v has the sizes of x. Two backward
// passes.
Tensor hvp(const TensorFn& f, const Tensor& x, const Tensor& v);
// Jacobian of f times v (forward derivative along v), by differentiating the backward pass with
// respect to its upstream gradient. Sizes of f(x).
Tensor jvp(const TensorFn& f, const Tensor& x, const Tensor& v);
// Upstream gradient u times the Jacobian; sizes of x.
Tensor vjp(const TensorFn& f, const Tensor& x, const Tensor& u);

}  // namespace cutaway
