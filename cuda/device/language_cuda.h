#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include <cutaway/cuda/launch_config.h>
#include <cutaway/cuda/runtime/stream.h>

// The device language for nvcc; cuda/emu/language.h describes each word.

#define KERNEL static __global__ void
#define DEVICE static __device__ __forceinline__
#define DEVICE_HOST static __host__ __device__ __forceinline__
#define SHARED(type, name, count) __shared__ type name[count]
#define DYNAMIC_SHARED(type, name)                                         \
  extern __shared__ __align__(128) unsigned char cutaway_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(cutaway_dynamic_shared)

namespace cutaway::cuda::gpu {

inline constexpr unsigned kAllLanes = 0xffffffffu;

template <class T>
using Global = T*;
template <class T>
using Shared = T*;

template <class T>
__device__ __forceinline__ T* global(std::conditional_t<std::is_const_v<T>, const void*, void*> p) {
  return static_cast<T*>(p);
}
template <class U, class T>
__device__ __forceinline__ U* recast(T* p) {
  return reinterpret_cast<U*>(p);
}

template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
  T v[N];
  __device__ __forceinline__ T& operator[](int i) { return v[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return v[i]; }
};
template <int N, class T>
__device__ __forceinline__ Vec<std::remove_const_t<T>, N> load(T* p, int64_t i) {
  return *reinterpret_cast<const Vec<std::remove_const_t<T>, N>*>(p + i);
}
template <int N, class T>
__device__ __forceinline__ void store(T* p, int64_t i, const Vec<T, N>& value) {
  *reinterpret_cast<Vec<T, N>*>(p + i) = value;
}

namespace detail {
// Atomics of types that CUDA has none for, by compare and exchange.
template <class T, class F>
__device__ __forceinline__ T atomically(T* address, F change) {
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  static_assert(sizeof(T) == sizeof(Word));
  Word* word = reinterpret_cast<Word*>(address);
  Word seen = *word, expected;
  do {
    expected = seen;
    seen = atomicCAS(word, expected,
                     __builtin_bit_cast(Word, change(__builtin_bit_cast(T, expected))));
  } while (seen != expected);
  return __builtin_bit_cast(T, seen);
}
}  // namespace detail
template <class T>
__device__ __forceinline__ T atomic_add(T* p, int64_t i, std::type_identity_t<T> v) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return static_cast<T>(atomicAdd(reinterpret_cast<unsigned long long*>(p + i),
                                    static_cast<unsigned long long>(v)));
  } else {
    return atomicAdd(p + i, v);
  }
}
template <class T>
__device__ __forceinline__ T atomic_max(T* p, int64_t i, std::type_identity_t<T> v) {
  if constexpr (std::is_same_v<T, int32_t>) return atomicMax(p + i, v);
  if constexpr (std::is_same_v<T, int64_t>)
    return atomicMax(reinterpret_cast<long long*>(p + i), static_cast<long long>(v));
  return detail::atomically(p + i, [v](T old) { return old < v ? v : old; });
}
template <class T>
__device__ __forceinline__ T atomic_min(T* p, int64_t i, std::type_identity_t<T> v) {
  if constexpr (std::is_same_v<T, int32_t>) return atomicMin(p + i, v);
  if constexpr (std::is_same_v<T, int64_t>)
    return atomicMin(reinterpret_cast<long long*>(p + i), static_cast<long long>(v));
  return detail::atomically(p + i, [v](T old) { return v < old ? v : old; });
}
template <class T>
__device__ __forceinline__ T atomic_or(T* p, int64_t i, std::type_identity_t<T> v) {
  return atomicOr(p + i, v);
}
template <class T>
__device__ __forceinline__ T atomic_exchange(T* p, int64_t i, std::type_identity_t<T> v) {
  return atomicExch(p + i, v);
}
template <class T>
__device__ __forceinline__ T atomic_cas(T* p, int64_t i, std::type_identity_t<T> expected,
                                        std::type_identity_t<T> desired) {
  return atomicCAS(p + i, expected, desired);
}

template <int N, class T>
__device__ __forceinline__ void copy_async(T* to, int64_t i, const T* from, int64_t k) {
  constexpr int kBytes = N * sizeof(T);
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to + i));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from + k),
               "n"(kBytes)
               : "memory");
}
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Pending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace cutaway::cuda::gpu
