#pragma once
#include <functional>
#include <optional>
#include <vector>

#include <cutaway/autograd/meta.h>
#include <cutaway/core/context.h>
#include <cutaway/core/tensor.h>

namespace cutaway {

struct GradOptions {
  bool create_graph = false;         // record the backward pass itself
  std::optional<bool> retain_graph;  // default: create_graph
  bool allow_unused = false;         // undefined result instead of an error for unused inputs
};

// Gradients of outputs with respect to inputs; touches no .grad. `upstreams` may be empty for
// one-element outputs. Raises AutogradError for outputs without history, inputs that need no grad,
// unused inputs.
Tensors grad(const Tensors& outputs, const Tensors& inputs, const GradOptions& options = {},
             const Tensors& upstreams = {});
inline Tensors grad(const Tensor& output, const Tensors& inputs, const GradOptions& options = {}) {
  return grad(Tensors{output}, inputs, options);
}
// Accumulates into .grad of all leaves that took part.
void backward(const Tensors& outputs, const Tensors& upstreams = {},
              const GradOptions& options = {});

// No recording while alive; restores the former mode.
class NoGradGuard {
 public:
  NoGradGuard() : before_(context().grad_enabled) { context().grad_enabled = false; }
  ~NoGradGuard() { context().grad_enabled = before_; }
  NoGradGuard(const NoGradGuard&) = delete;

 private:
  bool before_;
};
class GradModeGuard {
 public:
  explicit GradModeGuard(bool on) : before_(context().grad_enabled) { context().grad_enabled = on; }
  ~GradModeGuard() { context().grad_enabled = before_; }
  GradModeGuard(const GradModeGuard&) = delete;

 private:
  bool before_;
};
// With `on` = false, kernels may take another order of additions in every run where that is faster:
// sums at indices on a GPU (scatter_add, index_add, segment_sum, gradients of embedding and gather)
// by atomics instead of by sorting. On by default; the CPU gives the same bits either way.
class DeterminismGuard {
 public:
  explicit DeterminismGuard(bool on) : before_(context().deterministic) {
    context().deterministic = on;
  }
  ~DeterminismGuard() { context().deterministic = before_; }
  DeterminismGuard(const DeterminismGuard&) = delete;

 private:
  bool before_;
};
// Looks for NaN and Inf after every forward and backward op and raises AutogradError with op,
// module path, forward call site and statistics of the inputs. Slow; for finding faults.
class AnomalyGuard {
 public:
  AnomalyGuard() : before_(context().anomaly) { context().anomaly = true; }
  ~AnomalyGuard() { context().anomaly = before_; }
  AnomalyGuard(const AnomalyGuard&) = delete;

 private:
  bool before_;
};

}  // namespace cutaway
