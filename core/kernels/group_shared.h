#pragma once
#include <cutaway/core/kernel.h>

// Group-shared fixed fan-in layers ("HASTE", Ullah et al., ICML 2026): `group` consecutive labels
// share the indices of their `fan_in` features, and each label has its own weights. With group 1
// every label has indices of its own (fixed fan-in). Group k holds labels k·group … ; the last one
// may be shorter. An index that occurs twice in a group counts twice.
//
// Note: layout. Features and logits lie transposed, the batch side by side: x [features, batch],
// z [labels, batch], rows x_row and z_row elements apart. So a gather copies whole rows. Weights
// are dense [labels, fan_in]. Nothing is checked here: indices lie in [0, features).
namespace cutaway {

struct GroupSharedShape {
  int64_t batch = 0, features = 0, labels = 0, fan_in = 0;
  int64_t group = 1;
  // Contiguous features: group k reads index[k] … index[k] + fan_in − 1, and index is [groups]
  // instead of [groups, fan_in].
  bool block = false;
  // Of weights: the kernel's type; in f32 kernels of the CPU bf16 as well.
  DType weight_type = DType::f32;
  int64_t x_row = 0, z_row = 0;
  const int32_t* index = nullptr;

  int64_t groups() const { return (labels + group - 1) / group; }
};

// z[l, b] = bias[l] + Σ_j weight[l, j] · x[index[l / group, j], b].
struct GroupSharedForwardArgs : GroupSharedShape {
  const void* x = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;  // [labels], or null
  void* z = nullptr;
};

// dweight[l, j] = Σ_b dz[l, b] · x[index[l / group, j], b], in the kernel's type;
// dbias[l] = Σ_b dz[l, b].
struct GroupSharedWeightGradArgs : GroupSharedShape {
  const void* x = nullptr;
  const void* dz = nullptr;
  void* dweight = nullptr;
  void* dbias = nullptr;  // or null
};

// dx[h, b] = Σ weight[l, j] · dz[l, b] over all l, j with index[l / group, j] = h, added to what is
// there with `accumulate`. Without atomics a row is summed in the order of labels.
struct GroupSharedInputGradArgs : GroupSharedShape {
  bool accumulate = false;
  bool atomics = false;  // sums may be added in any order, where that is faster
  const void* weight = nullptr;
  const void* dz = nullptr;
  void* dx = nullptr;
};

inline void visit_args(ArgumentVisitor& v, GroupSharedForwardArgs& a) {
  v.numbers({{"batch", a.batch}, {"labels", a.labels}, {"fan_in", a.fan_in}, {"group", a.group}});
  v.reads(a.index);
  v.reads(a.x);
  v.reads(a.weight);
  v.reads(a.bias);
  v.writes(a.z);
}
inline void visit_args(ArgumentVisitor& v, GroupSharedWeightGradArgs& a) {
  v.numbers({{"batch", a.batch}, {"labels", a.labels}, {"fan_in", a.fan_in}, {"group", a.group}});
  v.reads(a.index);
  v.reads(a.x);
  v.reads(a.dz);
  v.writes(a.dweight);
  v.writes(a.dbias);
}
inline void visit_args(ArgumentVisitor& v, GroupSharedInputGradArgs& a) {
  v.numbers({{"batch", a.batch}, {"labels", a.labels}, {"fan_in", a.fan_in}, {"group", a.group}});
  v.reads(a.index);
  v.reads(a.weight);
  v.reads(a.dz);
  a.accumulate ? v.changes(a.dx) : v.writes(a.dx);
}

namespace kernels {
// 16-bit types multiply and add in f32 and round once.
inline constinit Kernel<GroupSharedForwardArgs> group_shared_forward{"group_shared_forward"};
inline constinit Kernel<GroupSharedWeightGradArgs> group_shared_weight_grad{
    "group_shared_weight_grad"};
inline constinit Kernel<GroupSharedInputGradArgs> group_shared_input_grad{
    "group_shared_input_grad"};
}  // namespace kernels

}  // namespace cutaway
