#pragma once
#include <cstdint>

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

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
