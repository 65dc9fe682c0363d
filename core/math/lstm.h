#pragma once
#include <type_traits>

#include <cutaway/core/math/exponential.h>

// One element of an LSTM cell: gates i, f, o = σ(…), g = tanh(…), c' = f c + i g, h' = o tanh(c').
// V is float, double, or a vector of floats.

namespace cutaway::math {

template <class V>
CUTAWAY_HD V gate_sigmoid(V x) {
  if constexpr (std::is_same_v<V, double>) {
    return sigmoid(x);
  } else {
    return lanes::sigmoid(x);
  }
}
template <class V>
CUTAWAY_HD V gate_tanh(V x) {
  if constexpr (std::is_same_v<V, double>) {
    return tanh(x);
  } else {
    return lanes::tanh(x);
  }
}

// The gates after their functions.
template <class V>
struct LstmGates {
  V i, f, g, o;
};
// From what stands before the functions.
template <class V>
CUTAWAY_HD LstmGates<V> lstm_gates(V i, V f, V g, V o) {
  return {gate_sigmoid(i), gate_sigmoid(f), gate_tanh(g), gate_sigmoid(o)};
}
template <class V>
CUTAWAY_HD V lstm_state(const LstmGates<V>& a, V c) {
  return a.f * c + a.i * a.g;
}
template <class V>
CUTAWAY_HD V lstm_output(const LstmGates<V>& a, V state) {
  return a.o * gate_tanh(state);
}

// Gradients of what stands before the gates' functions, and of c; h_grad and state_grad are those
// of h' and of c'.
template <class V>
struct LstmGrads {
  LstmGates<V> gates;
  V c;
};
template <class V>
CUTAWAY_HD LstmGrads<V> lstm_grads(const LstmGates<V>& a, V c, V state, V h_grad, V state_grad) {
  const V t = gate_tanh(state);
  const V d = state_grad + h_grad * a.o * (1 - t * t);
  return {{d * a.g * a.i * (1 - a.i), d * c * a.f * (1 - a.f), d * a.i * (1 - a.g * a.g),
           h_grad * t * a.o * (1 - a.o)},
          d * a.f};
}

}  // namespace cutaway::math
