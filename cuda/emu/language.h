#pragma once
#include <cmath>
#include <cstring>
#include <source_location>
#include <type_traits>

#include <cutaway/cuda/emu/block.h>
#include <cutaway/cuda/emu/graph.h>

// The device language on the host: CUDA's own names for what kernels do, run by the emulator.
// language_cuda.h has the same for nvcc. Only kernel files (*.cuh) include it.

#define KERNEL static void
#define DEVICE static inline
#define DEVICE_HOST static inline
#define threadIdx (::cutaway::cuda::emu::coordinates.thread)
#define blockIdx (::cutaway::cuda::emu::coordinates.block)
#define blockDim (::cutaway::cuda::emu::coordinates.block_size)
#define gridDim (::cutaway::cuda::emu::coordinates.grid_size)
// Shared by the block; every thread sees the same array. Not initialised.
#define SHARED(type, name, count) const auto name = ::cutaway::cuda::emu::shared_array<type>(count)
// The dynamic shared memory of the launch.
#define DYNAMIC_SHARED(type, name) \
  const auto name = ::cutaway::cuda::emu::dynamic_shared_array<type>()

namespace cutaway::cuda::emu {

template <class T>
using Global = Pointer<T>;
template <class T>
using Shared = Pointer<T>;

// A pointer of the arguments as one into device memory.
template <class T>
Global<T> global(std::conditional_t<std::is_const_v<T>, const void*, void*> p) {
  return {static_cast<T*>(p), global_region(p, !std::is_const_v<T>)};
}

template <class T>
Shared<T> shared_array(int64_t count,
                       const std::source_location& at = std::source_location::current()) {
  const Region* r = shared_region(count * int64_t(sizeof(T)), alignof(T), at);
  return {reinterpret_cast<T*>(r->begin), r};
}
template <class T>
Shared<T> dynamic_shared_array(const std::source_location& at = std::source_location::current()) {
  const Region* r = dynamic_shared_region(at);
  return {reinterpret_cast<T*>(r->begin), r};
}
// The same memory as elements of another type.
template <class U, class T>
Pointer<U> recast(Pointer<T> p) {
  return {reinterpret_cast<U*>(p.raw()), p.region()};
}

// ---- accesses of several elements at once; the address must be a multiple of their size.
template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
  T v[N];
  T& operator[](int i) { return v[i]; }
  const T& operator[](int i) const { return v[i]; }
};
template <int N, class T>
Vec<std::remove_const_t<T>, N> load(Pointer<T> p, Index i) {
  Vec<std::remove_const_t<T>, N> out;
  const T* from = p.raw() + i.value;
  touch(p.region(), from, sizeof(out), AccessKind::read, i.at);
  std::memcpy(out.v, from, sizeof(out));
  return out;
}
template <int N, class T>
void store(Pointer<T> p, Index i, const Vec<T, N>& value) {
  T* to = p.raw() + i.value;
  touch(p.region(), to, sizeof(value), AccessKind::write, i.at);
  std::memcpy(to, value.v, sizeof(value));
}

// ---- barriers
inline void __syncthreads(const std::source_location& at = std::source_location::current()) {
  join_block(Vote::none, false, at);
}
inline int __syncthreads_count(int predicate,
                               const std::source_location& at = std::source_location::current()) {
  return join_block(Vote::count, predicate != 0, at);
}
inline int __syncthreads_or(int predicate,
                            const std::source_location& at = std::source_location::current()) {
  return join_block(Vote::any, predicate != 0, at);
}
inline int __syncthreads_and(int predicate,
                             const std::source_location& at = std::source_location::current()) {
  return join_block(Vote::all, predicate != 0, at);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

namespace detail {
inline constexpr WarpOperation kSyncwarp{"__syncwarp", [](void* const*, uint32_t) {}, true};
struct Ballot {
  bool predicate;
  uint32_t result;
};
inline constexpr WarpOperation kBallot{
    "__ballot_sync",
    [](void* const* parts, uint32_t) {
      uint32_t bits = 0;
      for (int l = 0; l < 32; ++l) {
        if (parts[l] && static_cast<Ballot*>(parts[l])->predicate) bits |= 1u << l;
      }
      for (int l = 0; l < 32; ++l) {
        if (parts[l]) static_cast<Ballot*>(parts[l])->result = bits;
      }
    },
    false};
struct Shuffle {
  const void* value;  // of the lane
  int source;         // lane to read from
  unsigned char result[16];
  int bytes;
  bool missing;
};
inline constexpr WarpOperation kShuffle{
    "__shfl_sync",
    [](void* const* parts, uint32_t) {
      for (int l = 0; l < 32; ++l) {
        auto* part = static_cast<Shuffle*>(parts[l]);
        if (!part) continue;
        const auto* from = static_cast<const Shuffle*>(parts[part->source]);
        part->missing = from == nullptr;
        if (from) std::memcpy(part->result, from->value, size_t(part->bytes));
      }
    },
    false};
template <class T>
T shuffle(uint32_t mask, const T& value, int source, const std::source_location& at) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
  Shuffle part{&value, source, {}, sizeof(T), false};
  join_warp(kShuffle, mask, &part, at);
  if (part.missing) {
    fail(FaultKind::bad_mask, at,
         "a shuffle reads from lane " + std::to_string(source) + ", which takes no part in it",
         "name that lane in the mask, and let it come here");
  }
  T out;
  std::memcpy(&out, part.result, sizeof(T));
  return out;
}
inline uint32_t ballot(uint32_t mask, bool predicate, const std::source_location& at) {
  Ballot part{predicate, 0};
  join_warp(kBallot, mask, &part, at);
  return part.result;
}
}  // namespace detail

// ---- operations of a warp
inline constexpr unsigned kAllLanes = 0xffffffffu;

inline void __syncwarp(unsigned mask = kAllLanes,
                       const std::source_location& at = std::source_location::current()) {
  int part = 0;
  join_warp(detail::kSyncwarp, mask, &part, at);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              const std::source_location& at = std::source_location::current()) {
  const int base = lane_index() / width * width;
  return detail::shuffle(mask, value, base + (source % width + width) % width, at);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  const std::source_location& at = std::source_location::current()) {
  const int lane = lane_index(), source = lane ^ lanes;
  return detail::shuffle(mask, value, source / width > lane / width ? lane : source, at);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int delta, int width = 32,
                 const std::source_location& at = std::source_location::current()) {
  const int lane = lane_index();
  return detail::shuffle(mask, value, lane % width >= delta ? lane - delta : lane, at);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int delta, int width = 32,
                   const std::source_location& at = std::source_location::current()) {
  const int lane = lane_index();
  return detail::shuffle(mask, value, lane % width + delta < width ? lane + delta : lane, at);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              const std::source_location& at = std::source_location::current()) {
  return detail::ballot(mask, predicate != 0, at);
}
inline int __any_sync(unsigned mask, int predicate,
                      const std::source_location& at = std::source_location::current()) {
  return detail::ballot(mask, predicate != 0, at) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      const std::source_location& at = std::source_location::current()) {
  return detail::ballot(mask, predicate == 0, at) == 0;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }

// ---- atomics; each returns the old value.
namespace detail {
template <class T, class F>
T atomically(const Pointer<T>& p, const Index& i, F&& change) {
  T* address = p.raw() + i.value;
  touch(p.region(), address, sizeof(T), AccessKind::atomic, i.at);
  T old;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  for (;;) {
    T next = change(old);
    if (__atomic_compare_exchange(address, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return old;
  }
}
}  // namespace detail
template <class T>
T atomic_add(Pointer<T> p, Index i, std::type_identity_t<T> v) {
  return detail::atomically(p, i, [&](T old) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return T(U(U(old) + U(v)));  // wraps
    } else {
      return T(old + v);
    }
  });
}
template <class T>
T atomic_max(Pointer<T> p, Index i, std::type_identity_t<T> v) {
  return detail::atomically(p, i, [&](T old) { return old < v ? v : old; });
}
template <class T>
T atomic_min(Pointer<T> p, Index i, std::type_identity_t<T> v) {
  return detail::atomically(p, i, [&](T old) { return v < old ? v : old; });
}
template <class T>
T atomic_or(Pointer<T> p, Index i, std::type_identity_t<T> v) {
  return detail::atomically(p, i, [&](T old) { return T(old | v); });
}
template <class T>
T atomic_exchange(Pointer<T> p, Index i, std::type_identity_t<T> v) {
  return detail::atomically(p, i, [&](T) { return v; });
}
template <class T>
T atomic_cas(Pointer<T> p, Index i, std::type_identity_t<T> expected,
             std::type_identity_t<T> desired) {
  return detail::atomically(p, i, [&](T old) { return old == expected ? desired : old; });
}

// ---- asynchronous copies of N elements (4, 8 or 16 bytes) from global to shared memory. The data
// are there after a wait, and for other threads after a barrier behind it.
template <int N, class T>
void copy_async(Shared<T> to, Index i, Global<const T> from, Index k) {
  static_assert(N * sizeof(T) == 4 || N * sizeof(T) == 8 || N * sizeof(T) == 16);
  start_copy(to.region(), to.raw() + i.value, from.region(), from.raw() + k.value, N * sizeof(T),
             i.at);
}
inline void copy_async_commit() { commit_copies(); }
template <int Pending>
void copy_async_wait() {
  wait_copies(Pending);
}

// ---- arithmetic that nvcc has as functions
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
using std::max;
using std::min;

}  // namespace cutaway::cuda::emu
