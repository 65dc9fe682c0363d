#pragma once
#include <cutaway/core/kernels/lstm.h>
#include <cutaway/core/math/lstm.h>
#include <cutaway/cuda/device/walk.h>

// A step of an LSTM in one pass: a thread for each element of the state.
namespace cutaway::cuda::CUTAWAY_TARGET {

// a[i] + b[i] of which any may be null.
template <class T>
DEVICE T sum_of(const void* a, const void* b, int64_t i) {
  T sum = 0;
  if (a) {
    const T v = global<const T>(a)[i];
    sum += v;
  }
  if (b) {
    const T v = global<const T>(b)[i];
    sum += v;
  }
  return sum;
}

template <class T>
KERNEL lstm_step(LstmCellArgs a) {
  const int64_t i = thread_number(), n = a.width;
  if (i >= a.rows * n) return;
  const int64_t gate = i / n * 4 * n + i % n;
  T before[4];
  CUTAWAY_UNROLL
  for (int k = 0; k < 4; ++k) before[k] = sum_of<T>(a.from_x, a.from_h, gate + k * n);
  const math::LstmGates<T> gates = math::lstm_gates<T>(before[0], before[1], before[2], before[3]);
  const T c = global<const T>(a.c)[i], state = math::lstm_state<T>(gates, c);
  const auto out = global<T>(a.gates);
  out[gate] = gates.i;
  out[gate + n] = gates.f;
  out[gate + 2 * n] = gates.g;
  out[gate + 3 * n] = gates.o;
  global<T>(a.state)[i] = state;
  global<T>(a.h)[i] = math::lstm_output<T>(gates, state);
}

template <class T>
KERNEL lstm_step_back(LstmCellArgs a) {
  const int64_t i = thread_number(), n = a.width;
  if (i >= a.rows * n) return;
  const int64_t gate = i / n * 4 * n + i % n;
  const auto g = global<const T>(a.gates);
  const T input = g[gate], forget = g[gate + n], value = g[gate + 2 * n], output = g[gate + 3 * n];
  const T c = global<const T>(a.c)[i], state = global<const T>(a.state)[i];
  const math::LstmGrads<T> d = math::lstm_grads<T>({input, forget, value, output}, c, state,
                                                   sum_of<T>(a.h_grad, a.h_carried, i),
                                                   sum_of<T>(a.state_grad, a.state_carried, i));
  const auto out = global<T>(a.gates_grad);
  out[gate] = d.gates.i;
  out[gate + n] = d.gates.f;
  out[gate + 2 * n] = d.gates.g;
  out[gate + 3 * n] = d.gates.o;
  global<T>(a.c_grad)[i] = d.c;
}

template <class T>
void lstm_cell(const LstmCellArgs& a) {
  const int64_t n = a.rows * a.width;
  if (n > 0) launch(one_thread_each("lstm_cell", n), lstm_step<T>, a);
}
template <class T>
void lstm_cell_backward(const LstmCellArgs& a) {
  const int64_t n = a.rows * a.width;
  if (n > 0) launch(one_thread_each("lstm_cell_backward", n), lstm_step_back<T>, a);
}

void register_lstm_kernels() {
  kernels::lstm_cell.set(kDevice, DType::f64, &lstm_cell<double>);
  kernels::lstm_cell.set(kDevice, DType::f32, &lstm_cell<float>);
  kernels::lstm_cell_backward.set(kDevice, DType::f64, &lstm_cell_backward<double>);
  kernels::lstm_cell_backward.set(kDevice, DType::f32, &lstm_cell_backward<float>);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
