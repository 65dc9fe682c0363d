#pragma once
#include <cutaway/nn/optim/optimizer.h>

// Optimiser steps as differentiable functions, (parameters, gradients, state) → (parameters,
// state), for learning through them (Finn et al. 2017). Gradients that were made with create_graph
// carry derivatives on; nothing is changed in place. Values agree with the in-place optimisers.
namespace cutaway::optim::functional {

// Of one parameter; undefined moments are 0.
struct ParameterState {
  int64_t step = 0;
  Tensor moments[3];  // SGD: momentum buffer. Adam: first, second, largest second moment
};
using State = std::vector<ParameterState>;

struct Stepped {
  Tensors parameters;
  State state;
};

// One step as Sgd takes it. An undefined gradient leaves parameter and state. An empty state is the
// state before the first step. Raises ValueError for options outside their range and when the lists
// have different lengths, ShapeError when a gradient has other sizes than its parameter.
Stepped sgd_step(const Tensors& parameters, const Tensors& gradients, const State& state,
                 const SgdOptions& options);
// One step as Adam takes it, or AdamW when decoupled. Where a second moment is 0 the derivative of
// its root is taken as 0.
Stepped adam_step(const Tensors& parameters, const Tensors& gradients, const State& state,
                  const AdamOptions& options, bool decoupled = false);

}  // namespace cutaway::optim::functional
