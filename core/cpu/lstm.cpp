#include <cutaway/core/cpu/vector_math.h>
#include <cutaway/core/kernels/lstm.h>
#include <cutaway/core/math/lstm.h>
#include <cutaway/core/parallel.h>

// A step of an LSTM in one pass: gates, state and output together.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// Where element j of a row is: a vector of floats, or one number.
template <class V, class T>
[[gnu::always_inline]] inline V get(const T* p) {
  if constexpr (std::is_same_v<V, T>) {
    return *p;
  } else {
    return load_vector(p);
  }
}
template <class T, class V>
[[gnu::always_inline]] inline void put(T* p, V v) {
  if constexpr (std::is_same_v<V, T>) {
    *p = v;
  } else {
    store_vector(p, v);
  }
}
// a + b of which any may be null.
template <class V, class T>
[[gnu::always_inline]] inline V sum_of(const T* a, const T* b, int64_t i) {
  V sum{};
  if (a) sum += get<V>(a + i);
  if (b) sum += get<V>(b + i);
  return sum;
}

template <class V, class T>
[[gnu::always_inline]] inline void step(const LstmCellArgs& a, int64_t row, int64_t j) {
  const int64_t n = a.width, at = row * n + j, gate = row * 4 * n + j;
  const T *x = static_cast<const T*>(a.from_x) + gate, *h = static_cast<const T*>(a.from_h) + gate;
  const auto before = [&](int64_t k) { return get<V>(x + k * n) + get<V>(h + k * n); };
  const auto gates = math::lstm_gates<V>(before(0), before(1), before(2), before(3));
  const V state = math::lstm_state<V>(gates, get<V>(static_cast<const T*>(a.c) + at));
  T* out = static_cast<T*>(a.gates) + gate;
  put(out, gates.i);
  put(out + n, gates.f);
  put(out + 2 * n, gates.g);
  put(out + 3 * n, gates.o);
  put(static_cast<T*>(a.state) + at, state);
  put(static_cast<T*>(a.h) + at, math::lstm_output<V>(gates, state));
}

template <class V, class T>
[[gnu::always_inline]] inline void step_back(const LstmCellArgs& a, int64_t row, int64_t j) {
  const int64_t n = a.width, at = row * n + j, gate = row * 4 * n + j;
  const T* g = static_cast<const T*>(a.gates) + gate;
  const math::LstmGates<V> gates{get<V>(g), get<V>(g + n), get<V>(g + 2 * n), get<V>(g + 3 * n)};
  const auto d = math::lstm_grads<V>(
      gates, get<V>(static_cast<const T*>(a.c) + at), get<V>(static_cast<const T*>(a.state) + at),
      sum_of<V>(static_cast<const T*>(a.h_grad), static_cast<const T*>(a.h_carried), at),
      sum_of<V>(static_cast<const T*>(a.state_grad), static_cast<const T*>(a.state_carried), at));
  T* out = static_cast<T*>(a.gates_grad) + gate;
  put(out, d.gates.i);
  put(out + n, d.gates.f);
  put(out + 2 * n, d.gates.g);
  put(out + 3 * n, d.gates.o);
  put(static_cast<T*>(a.c_grad) + at, d.c);
}

template <class T, bool kBack>
void cell(const LstmCellArgs& a) {
  if (a.width == 0) return;
  parallel_for(a.rows, 1 + kGrain / (16 * a.width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t j = 0;
      if constexpr (std::is_same_v<T, float>) {
        for (; j + kVectorLanes<float> <= a.width; j += kVectorLanes<float>) {
          kBack ? step_back<Vector<float>, T>(a, r, j) : step<Vector<float>, T>(a, r, j);
        }
      }
      for (; j < a.width; ++j) kBack ? step_back<T, T>(a, r, j) : step<T, T>(a, r, j);
    }
  });
}

template <class T>
void set_cells(DType t) {
  kernels::lstm_cell.set(DeviceKind::cpu, t, &cell<T, false>);
  kernels::lstm_cell_backward.set(DeviceKind::cpu, t, &cell<T, true>);
}

}  // namespace

void register_lstm_kernels() {
  set_cells<double>(DType::f64);
  set_cells<float>(DType::f32);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
