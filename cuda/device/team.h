#pragma once
#include <cstring>

#include <cutaway/cuda/device/numbers.h>

// Threads that work on one line together: some lanes of a warp, or some warps of a block.
namespace cutaway::cuda::CUTAWAY_TARGET {

// The value of another lane, of any type whose size is below 8 or a multiple of 8 bytes. F is
// given a word and returns the same word of the other lane.
template <class T, class F>
DEVICE T exchange(T v, F&& other) {
  if constexpr (sizeof(T) < 8) {
    unsigned word = 0;
    memcpy(&word, &v, sizeof(T));
    word = other(word);
    memcpy(&v, &word, sizeof(T));
  } else {
    static_assert(sizeof(T) % 8 == 0);
    unsigned long long words[sizeof(T) / 8];
    memcpy(words, &v, sizeof(T));
    CUTAWAY_UNROLL
    for (unsigned i = 0; i < sizeof(T) / 8; ++i) words[i] = other(words[i]);
    memcpy(&v, words, sizeof(T));
  }
  return v;
}
template <class T>
DEVICE T shuffle_xor(T v, int lanes) {
  return exchange(v, [lanes](auto word) { return __shfl_xor_sync(kAllLanes, word, lanes); });
}
template <class T>
DEVICE T shuffle_up(T v, int delta) {
  return exchange(v, [delta](auto word) { return __shfl_up_sync(kAllLanes, word, delta); });
}
template <class T>
DEVICE T shuffle_from(T v, int lane) {
  return exchange(v, [lane](auto word) { return __shfl_sync(kAllLanes, word, lane); });
}

// Note: teams. The threads of a block (all along x) are cut into teams of `width` threads, a power
// of two. Teams of up to 32 meet by shuffles; larger ones also through shared memory and barriers
// of the block, so there all teams must come to team_reduce() equally often.
struct Team {
  int width;
  int lane;   // in the team
  int index;  // of the team in the block
};
DEVICE Team this_team(int width) {
  const int t = static_cast<int>(threadIdx.x);
  return {width, t & (width - 1), t / width};
}

// The values of all threads of the team merged in a fixed tree; every thread gets the result. T is
// 16 bytes at most.
template <class T, class F>
DEVICE T team_reduce(const Team& team, T v, F merge) {
  for (int step = (team.width < 32 ? team.width : 32) / 2; step > 0; step /= 2) {
    v = merge(v, shuffle_xor(v, step));
  }
  if (team.width <= 32) return v;
  SHARED(unsigned long long, words, 64);
  const auto parts = recast<T>(words);
  const int t = static_cast<int>(threadIdx.x), warps = team.width / 32;
  __syncthreads();  // the parts of an earlier call have been read
  if (t % 32 == 0) parts[t / 32] = v;
  __syncthreads();
  v = parts[team.index * warps + (t & (warps - 1))];
  for (int step = warps / 2; step > 0; step /= 2) v = merge(v, shuffle_xor(v, step));
  return v;
}

// The values of the threads (x, 0), (x, 1), … of a block with 256 threads, merged in this order;
// all of them get the result.
template <class T, class F>
DEVICE T column_reduce(T v, F merge) {
  SHARED(unsigned long long, words, 512);
  const auto parts = recast<T>(words);
  const int width = static_cast<int>(blockDim.x), x = static_cast<int>(threadIdx.x);
  __syncthreads();
  parts[static_cast<int>(threadIdx.y) * width + x] = v;
  __syncthreads();
  v = parts[x];
  for (int y = 1; y < static_cast<int>(blockDim.y); ++y) {
    const T part = parts[y * width + x];
    v = merge(v, part);
  }
  return v;
}

// The smallest power of two that is not below n, at most `most`.
inline int power_of_two_from(int64_t n, int most) {
  int p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
