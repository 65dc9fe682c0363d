#pragma once
#include <cutaway/core/kernel.h>

namespace cutaway {

// One step of an LSTM (core/math/lstm.h), row-major: gates [rows, 4·width] in the order i, f, g, o,
// all others [rows, width].
struct LstmCellArgs {
  int64_t rows = 0, width = 0;
  const void* from_x = nullptr;  // forward: the gates before their functions are the sum
  const void* from_h = nullptr;
  const void* c = nullptr;  // state before the step
  void* gates = nullptr;    // after their functions; forward writes, backward reads
  void* state = nullptr;    // state after the step; forward writes, backward reads
  void* h = nullptr;        // forward: output
  // Backward: gradients of h and of the state, each the sum of two, of which any may be null.
  const void* h_grad = nullptr;
  const void* h_carried = nullptr;
  const void* state_grad = nullptr;
  const void* state_carried = nullptr;
  void* gates_grad = nullptr;  // of the gates before their functions
  void* c_grad = nullptr;
};

inline void visit_args(ArgumentVisitor& v, LstmCellArgs& a) {
  v.numbers({{"rows", a.rows}, {"width", a.width}});
  v.reads(a.from_x);
  v.reads(a.from_h);
  v.reads(a.c);
  v.reads(a.h_grad);
  v.reads(a.h_carried);
  v.reads(a.state_grad);
  v.reads(a.state_carried);
  if (a.gates_grad) {
    v.reads(a.gates);
    v.reads(a.state);
  } else {
    v.writes(a.gates);
    v.writes(a.state);
  }
  v.writes(a.h);
  v.writes(a.gates_grad);
  v.writes(a.c_grad);
}

namespace kernels {
inline constinit Kernel<LstmCellArgs> lstm_cell{"lstm_cell"};
inline constinit Kernel<LstmCellArgs> lstm_cell_backward{"lstm_cell_backward"};
}  // namespace kernels

}  // namespace cutaway
