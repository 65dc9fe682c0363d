#pragma once
#include <functional>
#include <memory>

#include <cutaway/cuda/step_graph.h>

namespace cutaway::cuda {
class RecordedDraws;
}

namespace cutaway::cuda::gpu {

class CaptureMemory;

// True while the calling thread records a graph: then nothing can be read from the device.
bool recording();

// A step (forward, backward, optimiser) recorded once as a CUDA graph and replayed as one launch:
// no op call, no allocation, no launch cost per kernel. The step must work on the same tensors each
// time: copy new values into the same inputs before a replay, and read the same outputs after it.
// It must not read values on the host; results of a replay have the bits of an ordinary run.
class Graph final : public StepGraph {
 public:
  // Runs `step` once as usual (so that libraries make their plans), then records a second run,
  // which executes nothing. Raises CudaError when the step does what cannot be recorded.
  explicit Graph(const std::function<void()>& step);
  ~Graph() override;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  // Runs the recorded step on the current stream.
  void replay() override;
  // Kernels, copies and the like that were recorded.
  int64_t nodes() const override { return nodes_; }

 private:
  void* graph_ = nullptr;       // a cudaGraph_t
  void* executable_ = nullptr;  // a cudaGraphExec_t
  int64_t nodes_ = 0;
  CaptureMemory* memory_ = nullptr;
  std::unique_ptr<RecordedDraws> draws_;
};

}  // namespace cutaway::cuda::gpu
