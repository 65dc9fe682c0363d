#pragma once
#include <cutaway/cuda/device/group_tiles.h>
#include <cutaway/cuda/device/scratch.h>
#include <cutaway/cuda/device/segments.h>

// Group-shared layers label by label, for any group (with group 1: fixed fan-in, every label has
// features of its own): a warp for each label, its lanes along the batch, so that rows of features
// are read whole. Sums stay in registers. And what all derivatives in the features share.
namespace cutaway::cuda::CUTAWAY_TARGET {

inline constexpr int kLabelWarps = kGroupThreads / 32;

// Neighbours of the batch that a lane takes at once.
template <class T>
inline constexpr int kLabelWidth = sizeof(T) == 8 ? 2 : 4;

DEVICE int64_t label_of_warp() { return int64_t(blockIdx.x) * kLabelWarps + int(threadIdx.x) / 32; }
DEVICE int32_t feature_of(const GroupSharedShape& s, int64_t k, int64_t j) {
  const auto index = global<const int32_t>(s.index);
  if (s.block) {
    const int32_t begin = index[k];
    return begin + int32_t(j);
  }
  return index[k * s.fan_in + j];
}

// 32 features of a label, one a lane, with their weights; zeros beyond the fan-in.
template <class T>
struct LabelSlots {
  int32_t feature;
  ComputeOf<T> weight;
  int count;
};
template <class T>
DEVICE LabelSlots<T> label_slots(const GroupSharedShape& s, const void* weight, int64_t label,
                                 int64_t j0) {
  const int lane = int(threadIdx.x) % 32;
  const int64_t left = s.fan_in - j0;
  LabelSlots<T> slots{0, 0, left < 32 ? int(left) : 32};
  if (lane >= slots.count) return slots;
  slots.feature = feature_of(s, label / s.group, j0 + lane);
  if (weight) {
    const T w = global<const T>(weight)[label * s.fan_in + j0 + lane];
    slots.weight = compute(w);
  }
  return slots;
}

template <class T>
KERNEL labels_forward(GroupSharedForwardArgs a) {
  using A = ComputeOf<T>;
  constexpr int V = kLabelWidth<T>;
  const int64_t label = label_of_warp();
  if (label >= a.labels) return;
  const auto x = global<const T>(a.x);
  const bool aligned = aligned_rows<V, T>(a.x, a.x_row);
  A start = 0;
  if (a.bias) {
    const T b = global<const T>(a.bias)[label];
    start = compute(b);
  }
  for (int64_t b0 = 0; b0 < a.batch; b0 += 32 * V) {
    const int64_t b = b0 + int(threadIdx.x) % 32 * V;
    A sum[V];
    for (int i = 0; i < V; ++i) sum[i] = start;
    for (int64_t j0 = 0; j0 < a.fan_in; j0 += 32) {
      const LabelSlots<T> slots = label_slots<T>(a, a.weight, label, j0);
      for (int j = 0; j < slots.count; ++j) {
        const int64_t row = __shfl_sync(kAllLanes, slots.feature, j);
        const A w = __shfl_sync(kAllLanes, slots.weight, j);
        const Vec<T, V> v = load_some<V>(x, row * a.x_row + b, a.batch - b, aligned);
        for (int i = 0; i < V; ++i) sum[i] += w * compute(v[i]);
      }
    }
    Vec<T, V> out;
    for (int i = 0; i < V; ++i) out[i] = T(sum[i]);
    store_some(global<T>(a.z), label * a.z_row + b, a.batch - b, aligned_rows<V, T>(a.z, a.z_row),
               out);
  }
}

// 32 values of each lane to their sums over the lanes, the i-th of which lane i gets: each step
// halves the values of a lane and doubles the lanes they come from.
template <int Width, class A>
DEVICE A sum_of_lanes(A (&part)[32]) {
  const bool upper = (int(threadIdx.x) & Width) != 0;
  CUTAWAY_UNROLL
  for (int i = 0; i < Width; ++i) {
    const A give = upper ? part[i] : part[i + Width];
    const A keep = upper ? part[i + Width] : part[i];
    part[i] = keep + __shfl_xor_sync(kAllLanes, give, Width);
  }
  if constexpr (Width > 1) return sum_of_lanes<Width / 2>(part);
  return part[0];
}

template <class T>
KERNEL labels_weight_grad(GroupSharedWeightGradArgs a) {
  using A = ComputeOf<T>;
  constexpr int V = kLabelWidth<T>;
  const int lane = int(threadIdx.x) % 32;
  const int64_t label = label_of_warp();
  if (label >= a.labels) return;
  const auto x = global<const T>(a.x), dz = global<const T>(a.dz);
  const bool aligned_x = aligned_rows<V, T>(a.x, a.x_row);
  const bool aligned_z = aligned_rows<V, T>(a.dz, a.z_row);
  A bias = 0;
  for (int64_t j0 = 0; j0 == 0 || j0 < a.fan_in; j0 += 32) {
    const LabelSlots<T> slots = label_slots<T>(a, nullptr, label, j0);
    A part[32] = {};
    for (int64_t b0 = 0; b0 < a.batch; b0 += 32 * V) {
      const int64_t b = b0 + lane * V;
      const Vec<T, V> g = load_some<V>(dz, label * a.z_row + b, a.batch - b, aligned_z);
      if (j0 == 0) {
        for (int i = 0; i < V; ++i) bias += compute(g[i]);
      }
      CUTAWAY_UNROLL
      for (int j = 0; j < 32; ++j) {
        if (j >= slots.count) continue;
        const int64_t row = __shfl_sync(kAllLanes, slots.feature, j);
        const Vec<T, V> v = load_some<V>(x, row * a.x_row + b, a.batch - b, aligned_x);
        for (int i = 0; i < V; ++i) part[j] += compute(g[i]) * compute(v[i]);
      }
    }
    const A sum = sum_of_lanes<16>(part);
    if (lane < slots.count) global<T>(a.dweight)[label * a.fan_in + j0 + lane] = T(sum);
  }
  if (!a.dbias) return;
  for (int step = 16; step > 0; step /= 2) bias += __shfl_xor_sync(kAllLanes, bias, step);
  if (lane == 0) global<T>(a.dbias)[label] = T(bias);
}

// ---- the derivative in the features

// Adds every label's share to its rows, in any order.
template <class T>
KERNEL labels_add_atomically(GroupSharedInputGradArgs a, ComputeOf<T>* sums, int64_t row_distance) {
  using A = ComputeOf<T>;
  constexpr int V = 4;  // columns of a lane, 32 apart
  const int64_t label = label_of_warp();
  if (label >= a.labels) return;
  const auto dz = global<const T>(a.dz);
  const auto out = global<A>(sums);
  for (int64_t b0 = 0; b0 < a.batch; b0 += 32 * V) {
    const int64_t b = b0 + int(threadIdx.x) % 32;
    A g[V] = {};
    for (int i = 0; i < V; ++i) {
      if (b + 32 * i >= a.batch) continue;
      const T v = dz[label * a.z_row + b + 32 * i];
      g[i] = compute(v);
    }
    for (int64_t j0 = 0; j0 < a.fan_in; j0 += 32) {
      const LabelSlots<T> slots = label_slots<T>(a, a.weight, label, j0);
      for (int j = 0; j < slots.count; ++j) {
        const int64_t row = __shfl_sync(kAllLanes, slots.feature, j);
        const A w = __shfl_sync(kAllLanes, slots.weight, j);
        for (int i = 0; i < V; ++i) {
          if (b + 32 * i < a.batch) atomic_add(out, row * row_distance + b + 32 * i, w * g[i]);
        }
      }
    }
  }
}

// The features of groups [first, first + n), in the order of slots.
KERNEL group_slot_keys(GroupSharedShape s, int64_t first, int64_t n, uint32_t* keys) {
  const int64_t i = thread_number();
  if (i >= n * s.fan_in) return;
  global<uint32_t>(keys)[i] = uint32_t(feature_of(s, first + i / s.fan_in, i % s.fan_in));
}
// Slots of some groups by feature, and in order within a feature.
class SlotsByFeature {
 public:
  SlotsByFeature(const GroupSharedShape& s, int64_t first, int64_t n)
      : keys_(n * s.fan_in), sorted_(filled(s, first, n), n * s.fan_in, uint64_t(s.features)) {}
  const uint32_t* keys() const { return sorted_.keys(); }
  const uint32_t* order() const { return sorted_.order(); }

 private:
  uint32_t* filled(const GroupSharedShape& s, int64_t first, int64_t n) {
    launch(one_thread_each("group_slot_keys", n * s.fan_in), group_slot_keys, s, first, n,
           keys_.get());
    return keys_.get();
  }
  DeviceArray<uint32_t> keys_;
  Sorted<uint32_t> sorted_;
};

// The first of n sorted keys that is not below `key`.
DEVICE int64_t first_of(const Global<const uint32_t>& keys, int64_t n, uint32_t key) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const uint32_t there = keys[middle];
    if (there < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A thread for each element of dx adds what its slots give, in order: shares that lie there, rows
// of [slots, batch], or without them products of the labels' weights.
template <class T, bool Parts>
KERNEL sum_slots(GroupSharedInputGradArgs a, int64_t group0, int64_t n, const uint32_t* keys,
                 const uint32_t* order, const ComputeOf<T>* parts, ComputeOf<T>* sums,
                 int64_t row_distance) {
  using A = ComputeOf<T>;
  const int64_t i = thread_number();
  if (i >= a.features * a.batch) return;
  const int64_t feature = i / a.batch, b = i % a.batch;
  const auto sorted = global<const uint32_t>(keys), slots = global<const uint32_t>(order);
  const auto out = global<A>(sums);
  A sum = out[feature * row_distance + b];
  for (int64_t at = first_of(sorted, n, uint32_t(feature)); at < n; ++at) {
    const uint32_t key = sorted[at];
    if (key != uint32_t(feature)) break;
    const int64_t slot = uint32_t(slots[at]);
    if constexpr (Parts) {
      const A v = global<const A>(parts)[slot * a.batch + b];
      sum += v;
    } else {
      const int64_t k = group0 + slot / a.fan_in, j = slot % a.fan_in;
      for (int64_t l = k * a.group; l < (k + 1) * a.group && l < a.labels; ++l) {
        const T w = global<const T>(a.weight)[l * a.fan_in + j];
        const T g = global<const T>(a.dz)[l * a.z_row + b];
        sum += compute(w) * compute(g);
      }
    }
  }
  out[feature * row_distance + b] = sum;
}

template <class A>
KERNEL clear_rows(A* rows, int64_t count, int64_t columns, int64_t distance) {
  const int64_t i = thread_number();
  if (i < count * columns) global<A>(rows)[i / columns * distance + i % columns] = A(0);
}
template <class T>
KERNEL store_sums(GroupSharedInputGradArgs a, const ComputeOf<T>* sums) {
  const int64_t i = thread_number();
  if (i >= a.features * a.batch) return;
  const auto dx = global<T>(a.dx);
  const int64_t at = i / a.batch * a.x_row + i % a.batch;
  ComputeOf<T> sum = global<const ComputeOf<T>>(sums)[i];
  if (a.accumulate) {
    const T old = dx[at];
    sum += compute(old);
  }
  dx[at] = T(sum);
}

// Where shares of dx are added: dx itself, or f32 beside a dx of 16 bits, which is rounded once.
template <class T>
class InputSums {
  using A = ComputeOf<T>;

 public:
  explicit InputSums(const GroupSharedInputGradArgs& a)
      : a_(a), beside_(kIsHalf<T> ? a.features * a.batch : 0) {
    if (kIsHalf<T> || !a.accumulate) {
      launch(one_thread_each("clear_rows", a.features * a.batch), clear_rows<A>, get(), a.features,
             a.batch, row());
    }
  }
  A* get() const {
    if constexpr (kIsHalf<T>) return beside_.get();
    if constexpr (!kIsHalf<T>) return static_cast<A*>(a_.dx);
  }
  int64_t row() const { return kIsHalf<T> ? a_.batch : a_.x_row; }
  void finish() const {
    if constexpr (kIsHalf<T>) {
      launch(one_thread_each("store_sums", a_.features * a_.batch), store_sums<T>, a_, get());
    }
  }

 private:
  const GroupSharedInputGradArgs& a_;
  DeviceArray<A> beside_;
};

// Calls f(first group, groups) for runs of groups with at most `most` units of memory.
template <class F>
void for_runs_of_groups(const GroupSharedShape& s, int64_t units_of_group, int64_t most, F&& f) {
  const int64_t n = units_of_group < most ? most / units_of_group : 1;
  for (int64_t k = 0; k < s.groups(); k += n) f(k, n < s.groups() - k ? n : s.groups() - k);
}

template <class T>
void add_slots_in_order(const GroupSharedInputGradArgs& a, const InputSums<T>& sums, int64_t first,
                        int64_t n, const ComputeOf<T>* parts) {
  const SlotsByFeature slots(a, first, n);
  launch(one_thread_each("group_sum_slots", a.features * a.batch),
         parts ? sum_slots<T, true> : sum_slots<T, false>, a, first, n * a.fan_in, slots.keys(),
         slots.order(), parts, sums.get(), sums.row());
}

// ---- launches

inline Launch one_warp_each_label(const char* name, int64_t labels) {
  return {.name = name,
          .grid = {unsigned(blocks_for(labels, kLabelWarps))},
          .block = {unsigned(kGroupThreads)}};
}
template <class T>
void forward_by_labels(const GroupSharedForwardArgs& a) {
  launch(one_warp_each_label("labels_forward", a.labels), labels_forward<T>, a);
}
template <class T>
void weight_grad_by_labels(const GroupSharedWeightGradArgs& a) {
  launch(one_warp_each_label("labels_weight_grad", a.labels), labels_weight_grad<T>, a);
}
template <class T>
void input_grad_by_labels(const GroupSharedInputGradArgs& a, const InputSums<T>& sums) {
  if (a.atomics) {
    return launch(one_warp_each_label("labels_input_grad", a.labels), labels_add_atomically<T>, a,
                  sums.get(), sums.row());
  }
  constexpr int64_t kMostSlots = int64_t{1} << 26;
  for_runs_of_groups(a, a.fan_in, kMostSlots, [&](int64_t first, int64_t n) {
    add_slots_in_order<T>(a, sums, first, n, nullptr);
  });
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
