#pragma once
#include <cutaway/core/cpu/gemm.h>
#include <cutaway/core/cpu/vector.h>

#include <utility>

// Products of a few rows, as of attention over a few steps: a call of gemm costs more than they do.
namespace cutaway::cpu::CUTAWAY_VARIANT {

// The sum of all lanes, halves upon halves.
template <class V, int... I>
[[gnu::always_inline]] inline auto halved(V v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, I...) + __builtin_shufflevector(v, v, (I + sizeof...(I))...);
}
template <class V>
[[gnu::always_inline]] inline auto sum_of_lanes(V v) {
  constexpr int kL = int(sizeof(V) / sizeof(v[0]));
  if constexpr (kL == 2) {
    return v[0] + v[1];
  } else {
    return sum_of_lanes(halved(v, std::make_integer_sequence<int, kL / 2>{}));
  }
}

template <class T>
T small_dot(const T* a, const T* b, int64_t n) {
  constexpr int64_t kStep = kVectorLanes<T>;
  Vector<T> sum{};
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) sum += load_vector(a + i) * load_vector(b + i);
  T total = sum_of_lanes(sum);
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

// C = alpha · A · B + beta · C without a bias, as gemm, for up to kSmallSide rows and columns, or
// rows and terms. Rows of A and columns of B, or else rows of B, lie together.
inline constexpr int64_t kSmallSide = 8;
template <class T>
bool try_small_product(const Product<T>& p) {
  if (p.bias || p.m > kSmallSide || p.k < 1) return false;
  const T alpha = T(p.alpha), beta = T(p.beta);
  if (p.n <= kSmallSide && p.a.column == 1 && p.b.row == 1) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        T& c = p.c[i * p.c_row + j];
        const T dot = alpha * small_dot(p.a.data + i * p.a.row, p.b.data + j * p.b.column, p.k);
        c = beta == 0 ? dot : dot + beta * c;
      }
    }
    return true;
  }
  if (p.k > kSmallSide || p.b.column != 1) return false;
  const auto columns = [&](int64_t j, auto load, auto store) {
    for (int64_t i = 0; i < p.m; ++i) {
      const T* a = p.a.data + i * p.a.row;
      auto sum = a[0] * load(p.b.data + j);
      for (int64_t q = 1; q < p.k; ++q) {
        sum += a[q * p.a.column] * load(p.b.data + q * p.b.row + j);
      }
      T* c = p.c + i * p.c_row + j;
      sum *= alpha;
      store(c, beta == 0 ? sum : sum + beta * load(c));
    }
  };
  int64_t j = 0;
  for (; j + kVectorLanes<T> <= p.n; j += kVectorLanes<T>) {
    columns(
        j, [](const T* from) { return load_vector(from); },
        [](T* to, Vector<T> v) { store_vector(to, v); });
  }
  for (; j < p.n; ++j) {
    columns(
        j, [](const T* from) { return *from; }, [](T* to, T v) { *to = v; });
  }
  return true;
}

template <class T>
void multiply(const Product<T>& p) {
  if (!try_small_product(p)) gemm(p);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
