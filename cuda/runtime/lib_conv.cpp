#include <cutaway/cuda/lib/conv.h>

#include <cudnn.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <cutaway/core/error.h>
#include <cutaway/cuda/runtime/library.h>
#include <cutaway/cuda/runtime/memory.h>
#include <cutaway/cuda/runtime/stream.h>

// Note: the graph interface of cuDNN 9. A convolution is a graph of one operation; the library
// proposes engines for it, best first, and the first that keeps our promises (the same bits every
// time, f32 not cut down to tf32) and can be built becomes the plan for these sizes.
namespace cutaway::cuda::gpu {
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

void check_dnn(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  throw CudaError("conv", std::string("cuDNN reports ") + functions().cudnnGetErrorString(status));
}

cudnnHandle_t handle() {
  static const cudnnHandle_t h = [] {
    cudnnHandle_t created = nullptr;
    check_dnn(functions().cudnnCreate(&created));
    return created;
  }();
  return h;
}

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check_dnn(functions().cudnnBackendCreateDescriptor(type, &d_));
  }
  ~Descriptor() {
    if (d_) functions().cudnnBackendDestroyDescriptor(d_);
  }
  Descriptor(Descriptor&& o) noexcept : d_(std::exchange(o.d_, nullptr)) {}
  Descriptor(const Descriptor&) = delete;

  void set(cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t count,
           const void* values) {
    check_dnn(functions().cudnnBackendSetAttribute(d_, what, type, count, values));
  }
  void set(cudnnBackendAttributeName_t what, int64_t v) { set(what, CUDNN_TYPE_INT64, 1, &v); }
  void set(cudnnBackendAttributeName_t what, const std::vector<int64_t>& v) {
    set(what, CUDNN_TYPE_INT64, int64_t(v.size()), v.data());
  }
  void set(cudnnBackendAttributeName_t what, const Descriptor& d) {
    set(what, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d.d_);
  }
  // How many values there are, of which at most `room` were written.
  int64_t get(cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t room,
              void* values) const {
    int64_t count = 0;
    check_dnn(functions().cudnnBackendGetAttribute(d_, what, type, room, &count, values));
    return count;
  }
  void finalize() { check_dnn(functions().cudnnBackendFinalize(d_)); }
  bool try_finalize() { return functions().cudnnBackendFinalize(d_) == CUDNN_STATUS_SUCCESS; }
  cudnnBackendDescriptor_t raw() const { return d_; }

 private:
  cudnnBackendDescriptor_t d_ = nullptr;
};

enum Uid : int64_t { kX = 1, kW = 2, kY = 3 };

// Sizes of a plan; compared as bytes, so without gaps.
struct Key {
  int64_t pass, dtype, alignment;
  int64_t n, c, k, groups;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
  bool operator<(const Key& o) const { return std::memcmp(this, &o, sizeof(Key)) < 0; }
};

// Two spatial dimensions unless the first of three is used.
int first_dimension(const Key& k) {
  return k.in[0] == 1 && k.out[0] == 1 && k.kernel[0] == 1 && k.pad[0] == 0 ? 1 : 0;
}
std::vector<int64_t> spatial(const Key& k, const int64_t (&v)[3]) {
  return {v + first_dimension(k), v + 3};
}

cudnnDataType_t data_type(const Key& k) {
  return DType(k.dtype) == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

Descriptor tensor(const Key& key, Uid uid, int64_t first, int64_t second,
                  const int64_t (&sizes)[3]) {
  std::vector<int64_t> dims{first, second};
  for (int64_t s : spatial(key, sizes)) dims.push_back(s);
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * dims[d];
  Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const cudnnDataType_t type = data_type(key);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t(uid));
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, key.alignment);
  t.finalize();
  return t;
}

Descriptor convolution(const Key& key) {
  Descriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t type = data_type(key);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(key, key.dilation));
  c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial(key, key.stride));
  c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial(key, key.pad));
  c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial(key, key.pad));
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t(3 - first_dimension(key)));
  c.finalize();
  return c;
}

// Names of one pass in the library.
struct PassNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};
constexpr PassNames kPasses[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

Descriptor graph_of(const Key& key) {
  const PassNames& names = kPasses[key.pass];
  Descriptor operation(names.type);
  operation.set(names.x, tensor(key, kX, key.n, key.c, key.in));
  operation.set(names.w, tensor(key, kW, key.k, key.c / key.groups, key.kernel));
  operation.set(names.y, tensor(key, kY, key.n, key.k, key.out));
  operation.set(names.convolution, convolution(key));
  const double one = 1, zero = 0;
  const float one_f = 1, zero_f = 0;
  if (data_type(key) == CUDNN_DATA_DOUBLE) {
    operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1, &one);
    operation.set(names.beta, CUDNN_TYPE_DOUBLE, 1, &zero);
  } else {
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one_f);
    operation.set(names.beta, CUDNN_TYPE_FLOAT, 1, &zero_f);
  }
  operation.finalize();
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  const cudnnHandle_t h = handle();
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize();
  return graph;
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

struct Plan {
  std::unique_ptr<Descriptor> execution;  // null: the library has none
  int64_t workspace = 0;
};

constexpr int64_t kMostWorkspace = int64_t{1} << 30;

Plan make_plan(const Key& key) {
  Plan plan;
  if (!functions().library.complete()) return plan;
  try {
    const cudnnHandle_t h = handle();
    const Descriptor graph = graph_of(key);
    for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      for (const Descriptor& config : proposals(graph, mode)) {
        if (!acceptable(config, data_type(key) == CUDNN_DATA_FLOAT)) continue;
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
  } catch (const CudaError&) {
    // A graph that the library cannot even describe has no plan.
  }
  return plan;
}

int64_t alignment_of(std::initializer_list<const void*> pointers) {
  uint64_t bits = 16;
  for (const void* p : pointers) bits |= reinterpret_cast<uintptr_t>(p);
  return int64_t(bits & (~bits + 1));
}

}  // namespace

Library& conv_library() { return functions().library; }

bool convolve(ConvPass pass, DType dtype, const ConvArgs& a) {
  const void* x = pass == ConvPass::input_grad ? a.result : a.x;
  const void* w = pass == ConvPass::weight_grad ? a.result : a.w;
  const void* y = pass == ConvPass::forward ? a.result : a.g;
  Key key{int64_t(pass),
          int64_t(dtype),
          alignment_of({x, w, y}),
          a.n,
          a.c,
          a.k,
          a.groups,
          {},
          {},
          {},
          {},
          {},
          {}};
  for (int d = 0; d < 3; ++d) {
    key.in[d] = a.in[d];
    key.out[d] = a.out[d];
    key.kernel[d] = a.kernel[d];
    key.stride[d] = a.stride[d];
    key.pad[d] = a.pad[d];
    key.dilation[d] = a.dilation[d];
  }
  static std::mutex mutex;  // one handle, one stream at a time
  static auto* const plans = new std::map<Key, Plan>;
  std::lock_guard lock(mutex);
  const auto at = plans->find(key);
  const Plan& plan = at != plans->end() ? at->second : (*plans)[key] = make_plan(key);
  if (!plan.execution) return false;
  check_dnn(functions().cudnnSetStream(handle(), static_cast<cudaStream_t>(current_stream())));
  void* workspace = allocate(plan.workspace);
  const int64_t uids[] = {kX, kW, kY};
  const void* pointers[] = {x, w, y};
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  try {
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, uids);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    pack.finalize();
    status = functions().cudnnBackendExecute(handle(), plan.execution->raw(), pack.raw());
  } catch (...) {
    release(workspace);
    throw;
  }
  release(workspace);
  check_dnn(status);
  return true;
}

}  // namespace cutaway::cuda::gpu
