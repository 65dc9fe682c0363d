#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// What lstm_sequence gives, each [T,N,H]: outputs and states of all steps.
struct LstmSequence {
  Tensor h, c;
};
struct LstmOptions {
  bool reverse = false;  // from the last step to the first
};

// One direction of one LSTM layer (Hochreiter & Schmidhuber 1997): gates [T,N,4H] what the input
// gives to the gates i, f, g, o; h, c [N,H] where it starts; weight [4H,H], bias [4H] or undefined:
//   (i, f, g, o)_t = gates_t + h_{t-1} weightᵀ + bias,   c_t = σ(f) c_{t-1} + σ(i) tanh(g),
//   h_t = σ(o) tanh(c_t).
// Raises ShapeError when sizes differ or T is 0, DTypeError when types differ or have 16 bits.
LstmSequence lstm_sequence(TensorArg gates, TensorArg h, TensorArg c, TensorArg weight,
                           TensorArg bias = Tensor(), LstmOptions options = {});

}  // namespace cutaway
