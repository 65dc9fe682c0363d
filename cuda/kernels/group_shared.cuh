#pragma once
#include <cutaway/core/math/config.h>
#include <cutaway/cuda/device/group_blocks.h>
#include <cutaway/cuda/lib/sparse.h>

// Group-shared layers of f32 and f64. Groups of 16, 32 and 64 labels in f32: a block owns a group,
// brings tiles of its features together in shared memory, and multiplies them with tiles of weights
// or of dz, each thread a part of the result in registers. Other groups, and f64, label by label.
// Products of 16-bit types: group_shared_half.cuh.
namespace cutaway::cuda::CUTAWAY_TARGET {

// Thread (tx, ty) of a block: 16 along columns, 8 along rows.
struct GroupThread {
  int tx, ty;
};
DEVICE GroupThread group_thread() { return {int(threadIdx.x) % 16, int(threadIdx.x) / 16}; }

// z of a group: rows ty + 8i, columns 4tx … 4tx + 3.
template <int G>
KERNEL group_forward(GroupSharedForwardArgs a) {
  constexpr int kRow = kGroupRow<float>, kPer = G / 8;
  DYNAMIC_SHARED(float, weights);
  SHARED(float, x, kGroupTile* kRow);
  const int64_t k = blockIdx.x;
  const int tiles = int(blocks_for(a.fan_in, kGroupTile));
  const Shared<int32_t> features = recast<int32_t>(weights + tiles * G * kRow);
  stage_group<float, G>(a, k, tiles, weights, features);
  const GroupLabels labels = group_labels<G>(a, k);
  const auto from = group_matrix<float>(a.x, a.x_row, a.batch);
  const auto z = global<float>(a.z);
  const bool aligned = aligned_rows<4, float>(a.z, a.z_row);
  const auto [tx, ty] = group_thread();
  for (int64_t b0 = int64_t(blockIdx.y) * kGroupTile; b0 < a.batch; b0 += gridDim.y * kGroupTile) {
    float sum[kPer][4] = {};
    for (int c = 0; c < tiles; ++c) {
      __syncthreads();
      stage_rows(x, from, kGroupTile, b0,
                 [=](int j) { return int64_t(int32_t(features[c * kGroupTile + j])); });
      __syncthreads();
      const int64_t left = a.fan_in - c * kGroupTile;
      const auto w = weights + c * G * kRow;
      for (int j = 0; j < kGroupTile && j < left; j += 4) {
        Vec<float, 4> u[kPer];
        for (int i = 0; i < kPer; ++i) u[i] = load<4>(w, (ty + 8 * i) * kRow + j);
        CUTAWAY_UNROLL
        for (int q = 0; q < 4; ++q) {
          const Vec<float, 4> v = load<4>(x, (j + q) * kRow + 4 * tx);
          for (int i = 0; i < kPer; ++i) {
            for (int e = 0; e < 4; ++e) sum[i][e] = math::detail::madd(u[i][q], v[e], sum[i][e]);
          }
        }
      }
    }
    for (int i = 0; i < kPer; ++i) {
      if (ty + 8 * i >= labels.count) continue;
      const int64_t label = labels.first + ty + 8 * i, b = b0 + 4 * tx;
      float bias = 0;
      if (a.bias) bias = global<const float>(a.bias)[label];
      const Vec<float, 4> out = {
          {sum[i][0] + bias, sum[i][1] + bias, sum[i][2] + bias, sum[i][3] + bias}};
      store_some(z, label * a.z_row + b, a.batch - b, aligned, out);
    }
  }
}

// dweight of a group for 64 features: rows ty + 8i, columns tx + 16j. The lanes of a row sum dz.
template <int G>
KERNEL group_weight_grad(GroupSharedWeightGradArgs a) {
  constexpr int kRow = kGroupRow<float>, kPer = G / 8;
  SHARED(float, dz, G* kRow);
  SHARED(float, x, kGroupTile* kRow);
  SHARED(int32_t, features, kGroupTile);
  const int64_t k = blockIdx.x, j0 = int64_t(blockIdx.y) * kGroupTile;
  stage_features(a, k, j0, features);
  const GroupLabels labels = group_labels<G>(a, k);
  const auto from_x = group_matrix<float>(a.x, a.x_row, a.batch);
  const auto from_z = group_matrix<float>(a.dz, a.z_row, a.batch);
  const auto [tx, ty] = group_thread();
  float sum[kPer][4] = {}, bias[kPer] = {};
  for (int64_t b0 = 0; b0 < a.batch; b0 += kGroupTile) {
    __syncthreads();
    stage_rows(dz, from_z, G, b0, labels);
    stage_rows(x, from_x, kGroupTile, b0, [=](int j) { return int64_t(int32_t(features[j])); });
    __syncthreads();
    for (int b = 0; b < kGroupTile; b += 4) {
      Vec<float, 4> u[kPer];
      for (int i = 0; i < kPer; ++i) u[i] = load<4>(dz, (ty + 8 * i) * kRow + b);
      for (int e = 0; e < 4; ++e) {
        const Vec<float, 4> v = load<4>(x, (tx + 16 * e) * kRow + b);
        for (int i = 0; i < kPer; ++i) {
          for (int q = 0; q < 4; ++q) sum[i][e] = math::detail::madd(u[i][q], v[q], sum[i][e]);
        }
      }
      for (int i = 0; i < kPer; ++i) bias[i] += (u[i][0] + u[i][1]) + (u[i][2] + u[i][3]);
    }
  }
  const auto out = global<float>(a.dweight);
  for (int i = 0; i < kPer; ++i) {
    if (ty + 8 * i >= labels.count) continue;
    const int64_t label = labels.first + ty + 8 * i;
    for (int e = 0; e < 4; ++e) {
      const int64_t j = j0 + tx + 16 * e;
      if (j < a.fan_in) out[label * a.fan_in + j] = sum[i][e];
    }
    if (a.dbias && j0 == 0 && tx == 0) global<float>(a.dbias)[label] = bias[i];
  }
}

// Shares of dx from a group, of 64 features: rows 8ty + i, columns tx + 16e.
template <int G>
KERNEL group_input_grad(GroupSharedInputGradArgs a, GroupShares to) {
  constexpr int kRow = kGroupRow<float>;
  SHARED(float, weights, G* kRow);
  SHARED(float, dz, G* kRow);
  SHARED(int32_t, features, kGroupTile);
  const int64_t k = to.first + blockIdx.x, j0 = int64_t(blockIdx.y) * kGroupTile;
  stage_features(a, k, j0, features);
  const GroupLabels labels = group_labels<G>(a, k);
  stage_rows(weights, group_matrix<float>(a.weight, a.fan_in, a.fan_in), G, j0, labels);
  const auto from = group_matrix<float>(a.dz, a.z_row, a.batch);
  const auto [tx, ty] = group_thread();
  for (int64_t b0 = int64_t(blockIdx.z) * kGroupTile; b0 < a.batch; b0 += gridDim.z * kGroupTile) {
    __syncthreads();
    stage_rows(dz, from, G, b0, labels);
    __syncthreads();
    float sum[8][4] = {};
    for (int l = 0; l < G; ++l) {
      const Vec<float, 4> u[2] = {load<4>(weights, l * kRow + 8 * ty),
                                  load<4>(weights, l * kRow + 8 * ty + 4)};
      float v[4];
      for (int e = 0; e < 4; ++e) v[e] = dz[l * kRow + tx + 16 * e];
      for (int i = 0; i < 8; ++i) {
        for (int e = 0; e < 4; ++e) {
          sum[i][e] = math::detail::madd(u[i / 4][i % 4], v[e], sum[i][e]);
        }
      }
    }
    for (int i = 0; i < 8; ++i) {
      const int32_t feature = features[8 * ty + i];
      if (feature < 0) continue;
      const int64_t row = row_of_share(to, a.fan_in, j0 + 8 * ty + i, feature);
      for (int e = 0; e < 4; ++e) {
        const int64_t b = b0 + tx + 16 * e;
        if (b < a.batch) put_share(to, row, b, sum[i][e]);
      }
    }
  }
}

template <class T>
void group_shared_forward(const GroupSharedForwardArgs& a) {
  if (a.labels * a.batch == 0) return;
  const bool done =
      std::is_same_v<T, float> && fits_group<float>(a) && with_group(a.group, [&](auto group) {
        launch(group_launch("group_forward", a.groups(), batch_blocks(a, a.batch), 1,
                            group_weight_bytes<float>(a)),
               group_forward<group>, a);
      });
  if (!done) forward_by_labels<T>(a);
}
template <class T>
void group_shared_weight_grad(const GroupSharedWeightGradArgs& a) {
  if (a.labels == 0) return;
  const unsigned tiles = unsigned(blocks_for(a.fan_in, kGroupTile));
  const bool done = std::is_same_v<T, float> && tiles > 0 && with_group(a.group, [&](auto group) {
                      launch(group_launch("group_weight_grad", a.groups(), tiles, 1),
                             group_weight_grad<group>, a);
                    });
  if (!done) weight_grad_by_labels<T>(a);
}
template <class T>
void group_shared_input_grad(const GroupSharedInputGradArgs& a) {
  if (a.features * a.batch == 0) return;
  const InputSums<T> sums(a);
  if (a.labels * a.fan_in > 0) {
    bool done = false;
    if constexpr (std::is_same_v<T, float>) {
      done = with_group(a.group, [&](auto group) {
        add_group_shares(a, sums, [&](int64_t groups, const GroupShares& to) {
          launch(group_launch("group_input_grad", groups,
                              unsigned(blocks_for(a.fan_in, kGroupTile)), batch_blocks(a, a.batch)),
                 group_input_grad<group>, a, to);
        });
      });
    }
    if (!done) input_grad_by_labels<T>(a, sums);
  }
  sums.finish();
}

template <class T>
void register_group_shared_type(DType dtype) {
  kernels::group_shared_forward.set(kDevice, dtype, &group_shared_forward<T>);
  kernels::group_shared_weight_grad.set(kDevice, dtype, &group_shared_weight_grad<T>);
  kernels::group_shared_input_grad.set(kDevice, dtype, &group_shared_input_grad<T>);
}
void register_group_shared_kernels() {
  sparse_library(kDevice) = {&spmm, &sddmm};
  register_group_shared_type<double>(DType::f64);
  register_group_shared_type<float>(DType::f32);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
