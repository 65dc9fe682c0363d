#pragma once
#include <cstdint>
#include <vector>

#include <cutaway/core/rng.h>
#include <cutaway/core/tensor.h>
#include <cutaway/models/haste/options.h>

namespace cutaway::haste {

// What rewiring works on: a layer's index sets and what hangs on them. A group's slot j is column j
// of all its rows; group 1 is the per-label layer.
struct Slots {
  Tensor index;     // [K,F], i32, K = ⌈L/group⌉
  Tensor weight;    // [L,F], f32 or bf16
  Tensor momentum;  // [L,F], f32; undefined without
  int64_t group = 1;
  int64_t features = 0;  // indices lie in [0, features)
};
enum class SlotScore : uint8_t { mean, max, grad };
struct RewireOptions {
  double fraction = 0.25;  // of all slots; not used when threshold ≥ 0
  double threshold = -1;   // prunes what scores less
  SlotScore score = SlotScore::mean;
  bool uniform_init = false;   // new weights from U(−1/√F, 1/√F); else 0
  bool keep_momentum = false;  // of pruned slots, as the authors' code does
  bool replace = false;        // new indices may already be in the group
};

// Score of every slot [K·F]: mean (max) over the rows of its group of |W|, or mean of |W · m| with
// the momentum m, a running gradient. Raises ValueError for grad without momentum.
std::vector<float> slot_scores(const Slots& slots, SlotScore score);

// One step of dynamic sparse training (section 3, rewiring): the ⌊fraction·K·F⌋ slots of smallest
// score – equal scores by place – get another index, and weight 0 in all rows of the group. The new
// index is not among those the group keeps while there are such features. Returns the slots that
// changed, ascending. Depends on `random` alone, not on threads.
std::vector<int64_t> rewire(const Slots& slots, const RewireOptions& options, Generator random);

// τ(t), from 0.01 to 1e-4 by a half cosine over the rewiring period; `progress` in [0, 1].
double rewire_threshold(double progress);
// Whether step `step` (counted from 1) of epoch `epoch` rewires: a multiple of the interval before
// epoch ⌊0.66 E⌋.
bool rewires_at(const RunOptions& options, int64_t step, int64_t epoch);

}  // namespace cutaway::haste
