#pragma once
#include <cutaway/cuda/device/group_blocks.h>
#include <cutaway/cuda/device/mma.h>

// Group-shared layers of bf16 and f16 on tensor cores, with sums of f32: blocks of 4 warps that own
// a group of 16, 32 or 64 labels.
//
// Note: a fragment holds pairs of numbers that are neighbours along the inner size. Where that is
// the batch (dweight), tiles lie in shared memory as rows, 16 bytes at a time. Where it is features
// (z) or labels (dx), which are rows apart, two rows are interleaved on their way into shared
// memory: a "tile of pairs" has a word for each pair of rows and each column. The distances put the
// 32 words of every fragment into 32 banks: 36 words between rows, 72 between pairs.
namespace cutaway::cuda::CUTAWAY_TARGET {

inline constexpr int kPairRow = kGroupTile + 8;  // words
inline constexpr int kRowWords = kGroupTile / 2 + 4;

template <class T>
DEVICE void multiply_half(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, BFloat16>) return mma_bf16(d, a, b);
  if constexpr (std::is_same_v<T, Float16>) return mma_f16(d, a, b);
}

// The calling lane: row g of a fragment, columns 2t and 2t + 1.
struct HalfLane {
  int warp, g, t;
};
DEVICE HalfLane half_lane() {
  const int thread = int(threadIdx.x), lane = thread % 32;
  return {thread / 32, lane / 4, lane % 4};
}

// Rows number(0) … of which each two make a row of words. Neighbouring lanes take neighbouring
// pieces; half of them store their second four words first, which keeps banks apart.
template <class T, class Number>
DEVICE void stage_pairs(Shared<uint32_t> to, const GroupMatrix<T>& m, int pairs, int64_t column0,
                        Number&& number) {
  constexpr int kPieces = kGroupTile / 8;
  for (int t = int(threadIdx.x); t < pairs * kPieces; t += kGroupThreads) {
    const int pair = t / kPieces, piece = t % kPieces;
    const int64_t column = column0 + 8 * piece;
    const Vec<T, 8> low = group_piece(m, number(2 * pair), column);
    const Vec<T, 8> high = group_piece(m, number(2 * pair + 1), column);
    Vec<uint32_t, 4> words[2];
    CUTAWAY_UNROLL
    for (int i = 0; i < 8; ++i) words[i / 4][i % 4] = pack16(low[i].bits, high[i].bits);
    const bool turned = piece >= kPieces / 2;
    const int at = pair * kPairRow + 8 * piece;
    store(to, at + (turned ? 4 : 0), turned ? words[1] : words[0]);
    store(to, at + (turned ? 0 : 4), turned ? words[0] : words[1]);
  }
}

// A warp's part of a result of G rows and 64 columns: 16 rows, G columns.
template <int G>
struct HalfPart {
  static constexpr int kRowWarps = G / 16;
  int row0, column0;
};
template <int G>
DEVICE HalfPart<G> half_part() {
  const int warp = half_lane().warp;
  return {warp % (G / 16) * 16, warp / (G / 16) * G};
}

// Leaves sums as numbers of T in a tile of rows.
template <class T, int G>
DEVICE void put_rows(Shared<uint32_t> to, const HalfPart<G>& part, const float (&sum)[G / 8][4]) {
  const HalfLane lane = half_lane();
  for (int j = 0; j < G / 8; ++j) {
    for (int h = 0; h < 2; ++h) {
      to[(part.row0 + lane.g + 8 * h) * kRowWords + part.column0 / 2 + 4 * j + lane.t] =
          pack16(T(sum[j][2 * h]).bits, T(sum[j][2 * h + 1]).bits);
    }
  }
}
// Writes rows of such a tile, 16 bytes at a time.
template <class T>
DEVICE void write_rows(Shared<T> from, void* to, const GroupLabels& labels, int64_t distance,
                       int64_t column0, int64_t columns) {
  const auto out = global<T>(to);
  const bool aligned = aligned_rows<8, T>(to, distance);
  for (int t = int(threadIdx.x); t < labels.count * (kGroupTile / 8); t += kGroupThreads) {
    const int row = t / (kGroupTile / 8), column = t % (kGroupTile / 8) * 8;
    const int64_t left = columns - column0 - column;
    if (left <= 0) continue;
    store_some(out, (labels.first + row) * distance + column0 + column, left, aligned,
               load<8>(from, row * kGroupRow<T> + column));
  }
}

template <class T, int G>
KERNEL group_forward_half(GroupSharedForwardArgs a) {
  DYNAMIC_SHARED(T, weights);
  SHARED(uint32_t, pairs, kGroupTile / 2 * kPairRow);  // of features; then the result
  const int64_t k = blockIdx.x;
  const int tiles = int(blocks_for(a.fan_in, kGroupTile));
  const Shared<int32_t> features = recast<int32_t>(weights + tiles * G * kGroupRow<T>);
  stage_group<T, G>(a, k, tiles, weights, features);
  const GroupLabels labels = group_labels<G>(a, k);
  const auto from = group_matrix<T>(a.x, a.x_row, a.batch);
  const auto words = recast<uint32_t>(weights + 0);
  const HalfLane lane = half_lane();
  const HalfPart<G> part = half_part<G>();
  float bias[2] = {};
  for (int h = 0; h < 2; ++h) {
    const int row = part.row0 + lane.g + 8 * h;
    if (!a.bias || row >= labels.count) continue;
    const T b = global<const T>(a.bias)[labels.first + row];
    bias[h] = float(b);
  }
  for (int64_t b0 = int64_t(blockIdx.y) * kGroupTile; b0 < a.batch; b0 += gridDim.y * kGroupTile) {
    float sum[G / 8][4];
    for (int j = 0; j < G / 8; ++j) {
      for (int e = 0; e < 4; ++e) sum[j][e] = bias[e / 2];
    }
    for (int c = 0; c < tiles; ++c) {
      __syncthreads();
      stage_pairs(pairs, from, kGroupTile / 2, b0,
                  [=](int j) { return int64_t(int32_t(features[c * kGroupTile + j])); });
      __syncthreads();
      const int64_t left = a.fan_in - c * kGroupTile;
      const auto w = words + c * G * kRowWords;
      for (int s = 0; s < kGroupTile / 16 && 16 * s < left; ++s) {
        uint32_t u[4];
        for (int r = 0; r < 4; ++r) {
          u[r] = w[(part.row0 + lane.g + 8 * (r % 2)) * kRowWords + 8 * s + lane.t + 4 * (r / 2)];
        }
        for (int j = 0; j < G / 8; ++j) {
          const int at = (8 * s + lane.t) * kPairRow + part.column0 + 8 * j + lane.g;
          const uint32_t v[2] = {pairs[at], pairs[at + 4 * kPairRow]};
          multiply_half<T>(sum[j], u, v);
        }
      }
    }
    __syncthreads();
    put_rows<T, G>(pairs, part, sum);
    __syncthreads();
    write_rows<T>(recast<T>(pairs), a.z, labels, a.z_row, b0, a.batch);
  }
}

// dweight of a group for 64 features.
template <class T, int G>
KERNEL group_weight_grad_half(GroupSharedWeightGradArgs a) {
  SHARED(uint32_t, dz, G * kRowWords);
  SHARED(uint32_t, x, kGroupTile * kRowWords);  // then the result
  SHARED(int32_t, features, kGroupTile);
  const int64_t k = blockIdx.x, j0 = int64_t(blockIdx.y) * kGroupTile;
  stage_features(a, k, j0, features);
  const GroupLabels labels = group_labels<G>(a, k);
  const auto from_x = group_matrix<T>(a.x, a.x_row, a.batch);
  const auto from_z = group_matrix<T>(a.dz, a.z_row, a.batch);
  const HalfLane lane = half_lane();
  const HalfPart<G> part = half_part<G>();
  float sum[G / 8][4] = {}, bias[2] = {};
  for (int64_t b0 = 0; b0 < a.batch; b0 += kGroupTile) {
    __syncthreads();
    stage_rows(recast<T>(dz), from_z, G, b0, labels);
    stage_rows(recast<T>(x), from_x, kGroupTile, b0,
               [=](int j) { return int64_t(int32_t(features[j])); });
    __syncthreads();
    const int64_t left = a.batch - b0;
    for (int s = 0; s < kGroupTile / 16 && 16 * s < left; ++s) {
      uint32_t u[4];
      for (int r = 0; r < 4; ++r) {
        u[r] = dz[(part.row0 + lane.g + 8 * (r % 2)) * kRowWords + 8 * s + lane.t + 4 * (r / 2)];
        bias[r % 2] +=
            float(T::from_bits(uint16_t(u[r]))) + float(T::from_bits(uint16_t(u[r] >> 16)));
      }
      for (int j = 0; j < G / 8; ++j) {
        const int column = part.column0 + 8 * j;
        if (j0 + column >= a.fan_in) break;
        const int at = (column + lane.g) * kRowWords + 8 * s + lane.t;
        const uint32_t v[2] = {x[at], x[at + 4]};
        multiply_half<T>(sum[j], u, v);
      }
    }
  }
  __syncthreads();
  put_rows<T, G>(x, part, sum);
  __syncthreads();
  write_rows<T>(recast<T>(x), a.dweight, labels, a.fan_in, j0, a.fan_in);
  if (!a.dbias || j0 > 0 || part.column0 > 0) return;
  for (int h = 0; h < 2; ++h) {
    bias[h] += __shfl_xor_sync(kAllLanes, bias[h], 1);
    bias[h] += __shfl_xor_sync(kAllLanes, bias[h], 2);
    const int row = part.row0 + lane.g + 8 * h;
    if (lane.t == 0 && row < labels.count) {
      global<T>(a.dbias)[labels.first + row] = T(bias[h]);
    }
  }
}

// A warp's 16 rows of shares, from fragments by way of shared memory: lanes along the batch.
DEVICE void put_shares(const GroupSharedInputGradArgs& a, const GroupShares& to, Shared<float> room,
                       Shared<int32_t> features, int64_t j0, int64_t b0, const float (&sum)[8][4]) {
  const HalfLane lane = half_lane();
  const int row0 = 16 * lane.warp;
  for (int j = 0; j < 8; ++j) {
    for (int h = 0; h < 2; ++h) {
      const Vec<float, 2> v = {{sum[j][2 * h], sum[j][2 * h + 1]}};
      store(room, (row0 + lane.g + 8 * h) * kPairRow + 8 * j + 2 * lane.t, v);
    }
  }
  __syncwarp();
  for (int r = row0; r < row0 + 16; ++r) {
    const int32_t feature = features[r];
    if (feature < 0) break;
    const int64_t row = row_of_share(to, a.fan_in, j0 + r, feature);
    for (int c = int(threadIdx.x) % 32; c < kGroupTile; c += 32) {
      const float v = room[r * kPairRow + c];
      if (b0 + c < a.batch) put_share(to, row, b0 + c, v);
    }
  }
  __syncwarp();
}

// Shares of dx from a group, of 64 features: each warp 16 of them.
template <class T, int G>
KERNEL group_input_grad_half(GroupSharedInputGradArgs a, GroupShares to) {
  SHARED(uint32_t, weights, G / 2 * kPairRow);
  SHARED(uint32_t, dz, G / 2 * kPairRow);
  SHARED(float, room, kGroupTile* kPairRow);
  SHARED(int32_t, features, kGroupTile);
  const int64_t k = to.first + blockIdx.x, j0 = int64_t(blockIdx.y) * kGroupTile;
  stage_features(a, k, j0, features);
  const GroupLabels labels = group_labels<G>(a, k);
  stage_pairs(weights, group_matrix<T>(a.weight, a.fan_in, a.fan_in), G / 2, j0, labels);
  const auto from = group_matrix<T>(a.dz, a.z_row, a.batch);
  const HalfLane lane = half_lane();
  const int row0 = 16 * lane.warp;
  for (int64_t b0 = int64_t(blockIdx.z) * kGroupTile; b0 < a.batch; b0 += gridDim.z * kGroupTile) {
    __syncthreads();
    stage_pairs(dz, from, G / 2, b0, labels);
    __syncthreads();
    if (j0 + row0 >= a.fan_in) continue;
    float sum[8][4] = {};
    for (int s = 0; s < G / 16; ++s) {
      uint32_t u[4];
      for (int r = 0; r < 4; ++r) {
        u[r] = weights[(8 * s + lane.t + 4 * (r / 2)) * kPairRow + row0 + lane.g + 8 * (r % 2)];
      }
      for (int j = 0; j < 8; ++j) {
        const int at = (8 * s + lane.t) * kPairRow + 8 * j + lane.g;
        const uint32_t v[2] = {dz[at], dz[at + 4 * kPairRow]};
        multiply_half<T>(sum[j], u, v);
      }
    }
    put_shares(a, to, room, features, j0, b0, sum);
  }
}

template <class T>
void group_shared_forward_half(const GroupSharedForwardArgs& a) {
  if (a.labels * a.batch == 0) return;
  const bool done = fits_group<T>(a) && with_group(a.group, [&](auto group) {
                      launch(group_launch("group_forward_half", a.groups(),
                                          batch_blocks(a, a.batch), 1, group_weight_bytes<T>(a)),
                             group_forward_half<T, group>, a);
                    });
  if (!done) forward_by_labels<T>(a);
}
template <class T>
void group_shared_weight_grad_half(const GroupSharedWeightGradArgs& a) {
  if (a.labels == 0) return;
  const unsigned tiles = unsigned(blocks_for(a.fan_in, kGroupTile));
  const bool done = tiles > 0 && with_group(a.group, [&](auto group) {
                      launch(group_launch("group_weight_grad_half", a.groups(), tiles, 1),
                             group_weight_grad_half<T, group>, a);
                    });
  if (!done) weight_grad_by_labels<T>(a);
}
template <class T>
void group_shared_input_grad_half(const GroupSharedInputGradArgs& a) {
  if (a.features * a.batch == 0) return;
  const InputSums<T> sums(a);
  if (a.labels * a.fan_in > 0) {
    const bool done = with_group(a.group, [&](auto group) {
      add_group_shares(a, sums, [&](int64_t groups, const GroupShares& to) {
        launch(group_launch("group_input_grad_half", groups,
                            unsigned(blocks_for(a.fan_in, kGroupTile)), batch_blocks(a, a.batch)),
               group_input_grad_half<T, group>, a, to);
      });
    });
    if (!done) input_grad_by_labels<T>(a, sums);
  }
  sums.finish();
}

template <class T>
void register_group_shared_half_type(DType dtype) {
  kernels::group_shared_forward.set(kDevice, dtype, &group_shared_forward_half<T>);
  kernels::group_shared_weight_grad.set(kDevice, dtype, &group_shared_weight_grad_half<T>);
  kernels::group_shared_input_grad.set(kDevice, dtype, &group_shared_input_grad_half<T>);
}
void register_group_shared_half_kernels() {
  register_group_shared_half_type<BFloat16>(DType::bf16);
  register_group_shared_half_type<Float16>(DType::f16);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
