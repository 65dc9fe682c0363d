#include <cutaway/cuda/emu/graph.h>

#include <map>
#include <mutex>
#include <string>

#include <cutaway/core/error.h>
#include <cutaway/cuda/emu/memory.h>
#include <cutaway/cuda/recorded_draws.h>

namespace cutaway::cuda::emu {
namespace {

std::mutex mutex;
// Blocks of graphs that live, and their owners. Never destroyed: tensors may outlive it.
std::map<void*, GraphMemory*>& owners() {
  static auto* const m = new std::map<void*, GraphMemory*>;
  return *m;
}

thread_local std::vector<std::function<void()>>* recorded = nullptr;
thread_local GraphMemory* recording_memory = nullptr;

}  // namespace

// The blocks of a graph, and those of them that their users have given back.
class GraphMemory {
 public:
  ~GraphMemory() {
    {
      const std::lock_guard lock(mutex);
      for (auto at = owners().begin(); at != owners().end();) {
        at = at->second == this ? owners().erase(at) : std::next(at);
      }
    }
    for (void* block : given_back_) release(block);
  }
  void own(void* block) {
    const std::lock_guard lock(mutex);
    owners()[block] = this;
  }
  void take_back(void* block) { given_back_.push_back(block); }

 private:
  std::vector<void*> given_back_;
};

bool recording() { return recorded != nullptr; }
void record(std::function<void()> node) { recorded->push_back(std::move(node)); }

void refuse_recording(const char* what) {
  if (!recorded) [[likely]]
    return;
  throw DeviceError("graph", std::string(what) + " cannot be part of a recorded step",
                    "keep values on the device until the replay has ended");
}

void note_graph_block(void* block) {
  if (recording_memory) recording_memory->own(block);
}
bool keep_for_graph(void* block) {
  const std::lock_guard lock(mutex);
  const auto at = owners().find(block);
  GraphMemory* owner = at != owners().end() ? at->second : recording_memory;
  if (!owner) return false;
  owner->take_back(block);
  return true;
}

Graph::Graph(const std::function<void()>& step) : memory_(std::make_unique<GraphMemory>()) {
  refuse_recording("another recording");
  step();
  struct Recording {
    Recording(std::vector<std::function<void()>>& nodes, GraphMemory& memory) {
      recorded = &nodes;
      recording_memory = &memory;
    }
    ~Recording() {
      recorded = nullptr;
      recording_memory = nullptr;
    }
  };
  draws_ = std::make_unique<RecordedDraws>(Device{DeviceKind::emu, 0});
  const Recording scope(nodes_, *memory_);
  step();
  draws_->end();
}
Graph::~Graph() = default;

void Graph::replay() {
  draws_->begin_replay();
  for (const auto& node : nodes_) node();
}

}  // namespace cutaway::cuda::emu
