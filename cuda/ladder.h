#pragma once
#include <vector>

#include <cutaway/core/device.h>
#include <cutaway/core/kernels/attention.h>
#include <cutaway/core/kernels/index.h>
#include <cutaway/core/kernels/matmul.h>
#include <cutaway/core/kernels/rows.h>

// Kernel ladders: the same result computed by several kernels, from the plainest to the one in
// use, each with the idea that makes it faster than the one before. For reading, and for `cutaway
// bench kernels`, which runs and checks all of them.
namespace cutaway::cuda {

template <class Args>
struct LadderStep {
  const char* name;
  const char* idea;  // two lines at most
  void (*run)(const Args&);
};
template <class Args>
using Ladder = std::vector<LadderStep<Args>>;

// Every ladder compares its steps with the first one, which is the slow and clear reference.
struct Ladders {
  Ladder<SoftmaxArgs> softmax;      // y = softmax(x) along contiguous rows, f32
  Ladder<RowNormArgs> layer_norm;   // forward, f32
  Ladder<MatmulArgs> gemm;          // C = A·B row-major, f32
  Ladder<AttentionArgs> attention;  // forward, f32
  Ladder<ReduceRowsArgs> scatter;   // sums of rows by index, f32
};

// Those of a device, emu or cuda; empty when the device is not there.
const Ladders& ladders(DeviceKind kind);
// Where the kernel families of a device put theirs when they are registered.
Ladders& ladders_to_fill(DeviceKind kind);

}  // namespace cutaway::cuda
