#pragma once
#include <functional>
#include <string>

#include <cutaway/core/tensor.h>

namespace cutaway {

// One op of a backward pass as it ran: gradients that came in, gradients that went out.
struct BackwardStep {
  std::string op;       // "matmul"; "leaf" where a gradient is added to .grad
  std::string formula;  // of the derivative, as the op's record has it
  std::string module;   // "net.fc1 (Linear)", empty outside of modules
  std::string site;     // "main.cpp:12", where the op was called
  Tensors upstream;     // gradients of the op's results, undefined where there is none
  Tensors gradients;    // gradients of its operands, undefined where none is wanted
};
// A few lines: op, formula, place, and of each gradient its sizes and root mean square; small ones
// are printed whole.
std::string to_string(const BackwardStep& step);

// Walks through the backward pass of a one-element result: runs it as loss.backward() does and
// calls `look` after every op, before the next one runs. What `look` throws ends the pass. Raises
// AutogradError as backward() does.
void step_backward(const Tensor& loss, const std::function<void(const BackwardStep&)>& look);

}  // namespace cutaway
