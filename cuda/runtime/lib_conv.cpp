#include <cutaway/cuda/lib/conv.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <cutaway/core/error.h>
#include <cutaway/cuda/runtime/dnn.h>

// Note: a convolution is a graph of one operation; its plan is kept for these sizes. Promises of a
// plan: the same bits every time, f32 not cut down to tf32.
namespace cutaway::cuda::gpu {
namespace {

using dnn::Descriptor;
using dnn::Plan;

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
  std::vector<Descriptor> operations;
  operations.push_back(std::move(operation));
  return dnn::graph_of(operations);
}

Plan make_plan(const Key& key) {
  if (!dnn::library().complete()) return {};
  try {
    return dnn::best_plan(graph_of(key), data_type(key) == CUDNN_DATA_FLOAT);
  } catch (const CudaError&) {
    return {};  // a graph that the library cannot even describe has no plan
  }
}

int64_t alignment_of(std::initializer_list<const void*> pointers) {
  uint64_t bits = 16;
  for (const void* p : pointers) bits |= reinterpret_cast<uintptr_t>(p);
  return int64_t(bits & (~bits + 1));
}

}  // namespace

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
  static auto* const plans = new std::map<Key, Plan>;
  const std::lock_guard lock(dnn::mutex());
  const auto at = plans->find(key);
  const Plan& plan = at != plans->end() ? at->second : (*plans)[key] = make_plan(key);
  if (!plan.execution) return false;
  dnn::execute(plan, {kX, kW, kY}, {x, w, y});
  return true;
}

}  // namespace cutaway::cuda::gpu
