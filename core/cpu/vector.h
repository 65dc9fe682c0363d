#pragma once
#include <cstdint>
#include <utility>

// The widest vector of a CPU variant, for kernels whose register blocking plain loops cannot
// express. Arithmetic is that of the compiler's vector type.
namespace cutaway::cpu::CUTAWAY_VARIANT {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

// Elements of T side by side.
template <class T>
inline constexpr int kVectorLanes = kVectorBytes / int(sizeof(T));

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float Type __attribute__((vector_size(kVectorBytes)));
  typedef float Loose __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
  typedef int32_t Mask __attribute__((vector_size(kVectorBytes)));
};
template <>
struct VectorOf<double> {
  typedef double Type __attribute__((vector_size(kVectorBytes)));
  typedef double Loose __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
  typedef int64_t Mask __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
[[gnu::always_inline]] inline Vector<T> load_vector(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::Loose*>(p);
}
template <class T>
[[gnu::always_inline]] inline void store_vector(T* p, Vector<T> v) {
  *reinterpret_cast<typename VectorOf<T>::Loose*>(p) = v;
}

// All bits set in the first `count` lanes.
template <class T>
[[gnu::always_inline]] inline typename VectorOf<T>::Mask first_lanes(int64_t count) {
  typename VectorOf<T>::Mask lane;
  for (int i = 0; i < kVectorLanes<T>; ++i) lane[i] = i;
  return lane < lane - lane + static_cast<decltype(lane[0] + 0)>(count);
}

// One step of a transposition: blocks of S × S elements beside the diagonal change places.
template <int S, class V, int... J>
[[gnu::always_inline]] inline void exchange_blocks(V& x, V& y, std::integer_sequence<int, J...>) {
  constexpr int kL = int(sizeof...(J));
  const V low = __builtin_shufflevector(x, y, ((J & S) ? kL + J - S : J)...);
  const V high = __builtin_shufflevector(x, y, ((J & S) ? kL + J : J + S)...);
  x = low;
  y = high;
}
// Transposes a square of L vectors with L lanes.
template <int S = 1, class V, int L>
[[gnu::always_inline]] inline void transpose_rows(V (&rows)[L]) {
  if constexpr (S < L) {
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) {
      if (!(i & S)) exchange_blocks<S>(rows[i], rows[i + S], std::make_integer_sequence<int, L>{});
    }
    transpose_rows<2 * S>(rows);
  }
}

// to[q·to_row + j] = from[j·from_row + q] for a square of one vector's lanes; j < count, zeros
// behind.
template <class T>
inline void transpose_square(const T* from, int64_t from_row, int count, T* to, int64_t to_row) {
  constexpr int kL = kVectorLanes<T>;
  Vector<T> rows[kL];
#pragma GCC unroll 16
  for (int j = 0; j < kL; ++j) {
    rows[j] = j < count ? load_vector(from + j * from_row) : Vector<T>{};
  }
  transpose_rows(rows);
#pragma GCC unroll 16
  for (int q = 0; q < kL; ++q) store_vector(to + q * to_row, rows[q]);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
