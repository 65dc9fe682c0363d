#include <cutaway/cuda/runtime/dnn.h>

#include <string>

#include <cutaway/core/error.h>
#include <cutaway/cuda/runtime/memory.h>
#include <cutaway/cuda/runtime/stream.h>

namespace cutaway::cuda::gpu {
namespace dnn {
namespace {

struct Functions {
  Library library{"cuDNN", CUTAWAY_LIBRARY_FILE("libcudnn.so.", CUDNN_MAJOR)};
  CUTAWAY_LIBRARY_FUNCTION(cudnnCreate);
  CUTAWAY_LIBRARY_FUNCTION(cudnnSetStream);
  CUTAWAY_LIBRARY_FUNCTION(cudnnGetErrorString);
  CUTAWAY_LIBRARY_FUNCTION(cudnnBackendCreateDescriptor);
  CUTAWAY_LIBRARY_FUNCTION(cudnnBackendDestroyDescriptor);
  CUTAWAY_LIBRARY_FUNCTION(cudnnBackendSetAttribute);
  CUTAWAY_LIBRARY_FUNCTION(cudnnBackendGetAttribute);
  CUTAWAY_LIBRARY_FUNCTION(cudnnBackendFinalize);
  CUTAWAY_LIBRARY_FUNCTION(cudnnBackendExecute);
};
Functions& functions() {
  static Functions* const f = new Functions;
  return *f;
}

cudnnHandle_t handle() {
  static const cudnnHandle_t h = [] {
    cudnnHandle_t created = nullptr;
    check(functions().cudnnCreate(&created));
    return created;
  }();
  return h;
}

// Whether an engine gives the same bits every time and keeps the type's precision.
bool acceptable(const Descriptor& config, bool is_f32) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  const int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
  for (int64_t i = 0; i < count; ++i) {
    switch (notes[i]) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return false;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        if (is_f32) return false;
        break;
      default:
        break;
    }
  }
  return true;
}

std::vector<Descriptor> proposals(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  std::vector<Descriptor> configs;
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (!heuristic.try_finalize()) return configs;
  const int64_t count =
      heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().raw());
  }
  const int64_t got = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                    count, raw.data());
  while (int64_t(configs.size()) > got) configs.pop_back();
  return configs;
}

constexpr int64_t kMostWorkspace = int64_t{1} << 30;

}  // namespace

Library& library() { return functions().library; }

void check(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  throw CudaError("cudnn",
                  std::string("the library reports ") + functions().cudnnGetErrorString(status));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(functions().cudnnBackendCreateDescriptor(type, &d_));
}
Descriptor::~Descriptor() {
  if (d_) functions().cudnnBackendDestroyDescriptor(d_);
}
void Descriptor::set(cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type,
                     int64_t count, const void* values) {
  check(functions().cudnnBackendSetAttribute(d_, what, type, count, values));
}
int64_t Descriptor::get(cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type,
                        int64_t room, void* values) const {
  int64_t count = 0;
  check(functions().cudnnBackendGetAttribute(d_, what, type, room, &count, values));
  return count;
}
void Descriptor::finalize() { check(functions().cudnnBackendFinalize(d_)); }
bool Descriptor::try_finalize() {
  return functions().cudnnBackendFinalize(d_) == CUDNN_STATUS_SUCCESS;
}

Descriptor graph_of(const std::vector<Descriptor>& operations) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& d : operations) raw.push_back(d.raw());
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  const cudnnHandle_t h = handle();
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, int64_t(raw.size()),
            raw.data());
  graph.finalize();
  return graph;
}

Plan best_plan(const Descriptor& graph, bool keep_f32) {
  Plan plan;
  const cudnnHandle_t h = handle();
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : proposals(graph, mode)) {
      if (!acceptable(config, keep_f32)) continue;
      auto execution = std::make_unique<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      execution->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
      execution->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      if (!execution->try_finalize()) continue;
      execution->get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                     &plan.workspace);
      if (plan.workspace > kMostWorkspace) continue;
      plan.execution = std::move(execution);
      return plan;
    }
  }
  return plan;
}

std::mutex& mutex() {
  static std::mutex m;
  return m;
}

void execute(const Plan& plan, const std::vector<int64_t>& uids,
             const std::vector<const void*>& pointers) {
  check(functions().cudnnSetStream(handle(), static_cast<cudaStream_t>(current_stream())));
  const auto count = int64_t(uids.size());
  void* workspace = allocate(plan.workspace);
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  try {
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    pack.finalize();
    status = functions().cudnnBackendExecute(handle(), plan.execution->raw(), pack.raw());
  } catch (...) {
    release(workspace);
    throw;
  }
  release(workspace);
  check(status);
}

}  // namespace dnn

Library& conv_library() { return dnn::library(); }

}  // namespace cutaway::cuda::gpu
