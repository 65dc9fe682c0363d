#pragma once
#include <cutaway/core/kernels/group_shared.h>
#include <cutaway/cuda/device/limits.h>
#include <cutaway/cuda/device/numbers.h>
#include <cutaway/cuda/device/walk.h>

// What the kernels of group-shared layers have in common (cuda/kernels/group_shared*.cuh): blocks
// of 128 threads that own one group of 16, 32 or 64 labels and walk over tiles of 64 columns of the
// batch, or of 64 features.
namespace cutaway::cuda::CUTAWAY_TARGET {

inline constexpr int kGroupThreads = 128, kGroupTile = 64;
// Row distance of a tile in shared memory: 16 bytes more than its columns, so that neighbouring
// rows begin four banks apart.
template <class T>
inline constexpr int kGroupRow = kGroupTile + kWide<T>;

// N neighbours at p[at] of which `left` exist, zeros beyond. `aligned` says that whole ones may be
// read at once.
template <int N, class T>
DEVICE Vec<T, N> load_some(const Global<const T>& p, int64_t at, int64_t left, bool aligned) {
  if (aligned && left >= N) return load<N>(p, at);
  Vec<T, N> v;
  CUTAWAY_UNROLL
  for (int i = 0; i < N; ++i) {
    T element = T(0.0f);
    if (i < left) element = p[at + i];
    v[i] = element;
  }
  return v;
}
template <int N, class T>
DEVICE void store_some(const Global<T>& p, int64_t at, int64_t left, bool aligned,
                       const Vec<T, N>& v) {
  if (aligned && left >= N) return store(p, at, v);
  CUTAWAY_UNROLL
  for (int i = 0; i < N; ++i) {
    if (i < left) p[at + i] = v[i];
  }
}

// True if N elements can be read at once from every row.
template <int N, class T>
DEVICE_HOST bool aligned_rows(const void* p, int64_t distance) {
  return reinterpret_cast<uintptr_t>(p) % (N * sizeof(T)) == 0 && distance % N == 0;
}

// A row-major matrix of which a tile is read; rows that are not there have a negative number.
template <class T>
struct GroupMatrix {
  Global<const T> p;
  int64_t distance, columns;
  bool aligned;  // 16 bytes can be read at once
};
template <class T>
DEVICE GroupMatrix<T> group_matrix(const void* p, int64_t distance, int64_t columns) {
  return {global<const T>(p), distance, columns, aligned_rows<kWide<T>, T>(p, distance)};
}
template <class T>
DEVICE Vec<T, kWide<T>> group_piece(const GroupMatrix<T>& m, int64_t row, int64_t column) {
  const int64_t left = row < 0 ? 0 : m.columns - column;
  return load_some<kWide<T>>(m.p, row * m.distance + column, left, m.aligned);
}

// Rows number(0) … number(count − 1) from column0 on: a tile of [count][kGroupRow].
template <class T, class Number>
DEVICE void stage_rows(Shared<T> to, const GroupMatrix<T>& m, int count, int64_t column0,
                       Number&& number) {
  constexpr int kPieces = kGroupTile / kWide<T>;
  for (int t = int(threadIdx.x); t < count * kPieces; t += kGroupThreads) {
    const int row = t / kPieces, column = t % kPieces * kWide<T>;
    store(to, row * kGroupRow<T> + column, group_piece(m, number(row), column0 + column));
  }
}

// Numbers of the features of group k from j0 on, 64 of them; −1 beyond the fan-in.
DEVICE void stage_features(const GroupSharedShape& s, int64_t k, int64_t j0, Shared<int32_t> to) {
  const int t = 4 * int(threadIdx.x);
  if (t >= kGroupTile) return;
  const auto index = global<const int32_t>(s.index);
  const int64_t left = s.fan_in - j0 - t;
  Vec<int32_t, 4> v = {};
  if (s.block) {
    const int32_t begin = index[k];
    for (int i = 0; i < 4; ++i) v[i] = begin + int32_t(j0) + t + i;
  } else {
    v = load_some<4>(index, k * s.fan_in + j0 + t, left,
                     aligned_rows<4, int32_t>(s.index, s.fan_in));
  }
  for (int i = 0; i < 4; ++i) v[i] = i < left ? v[i] : -1;
  store(to, t, v);
}

// The labels of a group.
struct GroupLabels {
  int64_t first;
  int count;
  // Of the i-th label, negative when there is none.
  CUTAWAY_HD int64_t operator()(int i) const { return i < count ? first + i : -1; }
};
template <int G>
DEVICE GroupLabels group_labels(const GroupSharedShape& s, int64_t k) {
  const int64_t left = s.labels - k * G;
  return {k * G, left < G ? int(left) : G};
}

// Blocks that share the batch of one group where there are few groups.
inline unsigned batch_blocks(const GroupSharedShape& s, int64_t columns) {
  constexpr int64_t kBlocks = 1024;  // fill every GPU
  const int64_t tiles = blocks_for(columns, kGroupTile), wanted = blocks_for(kBlocks, s.groups());
  return unsigned(tiles < wanted ? tiles : wanted);
}

// Calls f(constant of the group) when kernels are made for it.
template <class F>
bool with_group(int64_t group, F&& f) {
  if (group == 16) f(std::integral_constant<int, 16>());
  if (group == 32) f(std::integral_constant<int, 32>());
  if (group == 64) f(std::integral_constant<int, 64>());
  return group == 16 || group == 32 || group == 64;
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
