#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <cutaway/cuda/step_graph.h>

namespace cutaway::cuda {
class RecordedDraws;
}

// A step recorded as a list of launches, copies and library calls. As on hardware nothing runs
// while it is recorded, so a replay shows what a recorded step got wrong: numbers that were read
// too early, and numbers that should have changed since.
namespace cutaway::cuda::emu {

class GraphMemory;

// True while the calling thread records.
bool recording();
// Adds what is to be done at each replay, in this order.
void record(std::function<void()> node);
// Raises DeviceError while the calling thread records: `what` cannot be part of a graph.
void refuse_recording(const char* what);
// Blocks that a graph uses stay until it ends; says whether it took this one.
bool keep_for_graph(void* block);
// Notes a block that was allocated while the calling thread records.
void note_graph_block(void* block);

class Graph final : public StepGraph {
 public:
  // Runs `step` once as usual, then records a second run, which executes nothing. Raises
  // DeviceError when the step reads values on the host.
  explicit Graph(const std::function<void()>& step);
  ~Graph() override;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void replay() override;
  int64_t nodes() const override { return int64_t(nodes_.size()); }

 private:
  std::vector<std::function<void()>> nodes_;
  std::unique_ptr<GraphMemory> memory_;
  std::unique_ptr<RecordedDraws> draws_;
};

}  // namespace cutaway::cuda::emu
