#pragma once
#include <cutaway/cuda/device/group_labels.h>

// What kernels have in common whose blocks own a group of labels: group_shared.cuh for f32 and
// group_shared_half.cuh for 16-bit types.
namespace cutaway::cuda::CUTAWAY_TARGET {

// Bytes that the forward kernel keeps for a group: its weights and the numbers of its features.
template <class T>
int64_t group_weight_bytes(const GroupSharedShape& s) {
  const int64_t tiles = blocks_for(s.fan_in, kGroupTile);
  return tiles * (s.group * kGroupRow<T> * int64_t(sizeof(T)) + kGroupTile * 4);
}

// All weights of a group as tiles of 64 columns, and the numbers of its features behind them.
template <class T, int G>
DEVICE void stage_group(const GroupSharedForwardArgs& a, int64_t k, int tiles, Shared<T> weights,
                        Shared<int32_t> features) {
  const GroupLabels labels = group_labels<G>(a, k);
  const auto from = group_matrix<T>(a.weight, a.fan_in, a.fan_in);
  for (int c = 0; c < tiles; ++c) {
    stage_rows(weights + c * G * kGroupRow<T>, from, G, c * kGroupTile, labels);
    stage_features(a, k, c * kGroupTile, features + c * kGroupTile);
  }
}

// Where a block leaves its shares of dx: added to rows of features, or as rows of slots.
struct GroupShares {
  float* sums;
  int64_t distance;
  int64_t first;  // group of the first block
  bool parts;
};
DEVICE void put_share(const GroupShares& to, int64_t row, int64_t column, float v) {
  const auto out = global<float>(to.sums);
  if (to.parts) {
    out[row * to.distance + column] = v;
  } else {
    atomic_add(out, row * to.distance + column, v);
  }
}
// The row of the slot j of the block's group, whose feature is given.
DEVICE int64_t row_of_share(const GroupShares& to, int64_t fan_in, int64_t j, int32_t feature) {
  return to.parts ? int64_t(blockIdx.x) * fan_in + j : feature;
}

// The derivative in the features through `launch_shares(groups, shares)`: added atomically, or as
// parts that a second pass adds in order.
template <class T, class F>
void add_group_shares(const GroupSharedInputGradArgs& a, const InputSums<T>& sums,
                      F&& launch_shares) {
  if (a.atomics) {
    return launch_shares(a.groups(), GroupShares{sums.get(), sums.row(), 0, false});
  }
  constexpr int64_t kMostParts = int64_t{1} << 26;  // 256 MB
  for_runs_of_groups(a, a.fan_in * a.batch, kMostParts, [&](int64_t first, int64_t n) {
    const DeviceArray<float> parts(n * a.fan_in * a.batch);
    launch_shares(n, GroupShares{parts.get(), a.batch, first, true});
    add_slots_in_order<T>(a, sums, first, n, parts.get());
  });
}

inline Launch group_launch(const char* name, int64_t groups, unsigned y, unsigned z,
                           int64_t shared = 0) {
  return {.name = name,
          .grid = {unsigned(groups), y, z},
          .block = {unsigned(kGroupThreads)},
          .shared = shared};
}
// Kernels that have a group of this shape; the fan-in of each is what shared memory holds.
template <class T>
bool fits_group(const GroupSharedShape& s) {
  const int64_t rest = kGroupTile * kGroupRow<T> * int64_t(sizeof(T));
  return group_weight_bytes<T>(s) + rest <= dynamic_shared_memory();
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
