#pragma once
#include <cstdint>

#include <cutaway/core/math/config.h>
#include <cutaway/core/shape.h>
#include <cutaway/cuda/device/language.h>

// From the number of an element to its offsets in several strided operands.
namespace cutaway::cuda::CUTAWAY_TARGET {

// Row-major counter over `size` with S sets of strides. I: uint32_t where all numbers fit (a
// division costs a GPU a quarter then), else uint64_t.
template <class I, int S>
struct Walk {
  int rank = 0;
  I size[kMaxRank] = {};
  I stride[S][kMaxRank] = {};

  // Offsets of element number `linear`.
  CUTAWAY_HD void at(I linear, I (&offset)[S]) const {
    for (int s = 0; s < S; ++s) offset[s] = 0;
    // Unrolled, so that a GPU finds the sizes at fixed places of the arguments.
    CUTAWAY_UNROLL
    for (int d = kMaxRank - 1; d >= 0; --d) {
      if (d >= rank) continue;
      const I q = d ? linear / size[d] : 0, c = linear - q * size[d];
      for (int s = 0; s < S; ++s) offset[s] += c * stride[s][d];
      linear = q;
    }
  }
};

// Dimensions that all operands walk through evenly become one.
template <class I, int S>
Walk<I, S> walk_of(int rank, const int64_t* sizes, const int64_t* const (&strides)[S]) {
  Walk<I, S> w;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    bool joins = w.rank > 0;
    for (int s = 0; s < S && joins; ++s) {
      joins = w.stride[s][w.rank - 1] == static_cast<I>(strides[s][d] * sizes[d]);
    }
    if (!joins) ++w.rank;
    I& size = w.size[w.rank - 1];
    size = joins ? size * static_cast<I>(sizes[d]) : static_cast<I>(sizes[d]);
    for (int s = 0; s < S; ++s) w.stride[s][w.rank - 1] = static_cast<I>(strides[s][d]);
  }
  return w;
}

// The number of places from the first to the last element.
inline int64_t extent(int rank, const int64_t* sizes, const int64_t* strides) {
  int64_t last = 0;
  for (int d = 0; d < rank; ++d) last += (sizes[d] - 1) * strides[d];
  return last + 1;
}
inline bool fits32(int64_t n) { return n < (int64_t{1} << 31); }
inline bool is_aligned(const void* p, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
}

// Number of the calling thread in a grid and block of one dimension.
DEVICE int64_t thread_number() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// A launch of at least n threads that never meet.
inline Launch one_thread_each(const char* name, int64_t n, unsigned threads = 256) {
  return {.name = name,
          .grid = {static_cast<unsigned>(blocks_for(n, threads))},
          .block = {threads},
          .sync = Sync::none};
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
