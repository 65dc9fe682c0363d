#include <cutaway/cuda/runtime/graph.h>

#include <memory>

#include <cutaway/cuda/recorded_draws.h>
#include <cutaway/cuda/runtime/error.h>
#include <cutaway/cuda/runtime/memory.h>
#include <cutaway/cuda/runtime/stream.h>

namespace cutaway::cuda::gpu {
namespace {

cudaStream_t stream() { return static_cast<cudaStream_t>(current_stream()); }

// Ends a capture that an exception left open.
class Capture {
 public:
  Capture() { check("graph", cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed)); }
  ~Capture() {
    if (ended_) return;
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream(), &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  cudaGraph_t end() {
    ended_ = true;
    cudaGraph_t graph = nullptr;
    check("graph", cudaStreamEndCapture(stream(), &graph));
    return graph;
  }

 private:
  bool ended_ = false;
};

}  // namespace

Graph::Graph(const std::function<void()>& step) {
  step();
  check("graph", cudaStreamSynchronize(stream()));
  draws_ = std::make_unique<RecordedDraws>(Device{DeviceKind::cuda, 0});
  auto memory = std::make_unique<CaptureMemory>();
  cudaGraph_t graph = nullptr;
  {
    const CaptureScope scope(*memory);
    Capture capture;
    step();
    draws_->end();
    graph = capture.end();
  }
  graph_ = graph;
  memory_ = memory.release();
  cudaGraphExec_t executable = nullptr;
  cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  size_t nodes = 0;
  if (status == cudaSuccess) status = cudaGraphGetNodes(graph, nullptr, &nodes);
  executable_ = executable;
  nodes_ = int64_t(nodes);
  if (status == cudaSuccess) return;
  if (executable) cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  delete memory_;
  throw_cuda("graph", status);
}

Graph::~Graph() {
  cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_));  // after its last replay
  cudaGraphDestroy(static_cast<cudaGraph_t>(graph_));
  cudaDeviceSynchronize();
  delete memory_;
}

void Graph::replay() {
  draws_->begin_replay();
  check("graph", cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), stream()));
}

}  // namespace cutaway::cuda::gpu

namespace cutaway::cuda {

std::unique_ptr<StepGraph> record_step_on_gpu(const std::function<void()>& step) {
  return std::make_unique<gpu::Graph>(step);
}

}  // namespace cutaway::cuda
