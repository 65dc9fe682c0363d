#pragma once
#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <cutaway/cuda/runtime/library.h>

// What the calls of cuDNN share. Its graph interface: tensors and operations are described, the
// library proposes engines for the whole, and the first that keeps our promises becomes a plan.
namespace cutaway::cuda::gpu::dnn {

// The library, opened by the call.
Library& library();
// Raises CudaError unless the status is good.
void check(cudnnStatus_t status);

// A description in the making, owned.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& o) noexcept : d_(std::exchange(o.d_, nullptr)) {}
  Descriptor(const Descriptor&) = delete;

  void set(cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t what, int64_t v) { set(what, CUDNN_TYPE_INT64, 1, &v); }
  void set(cudnnBackendAttributeName_t what, cudnnDataType_t v) {
    set(what, CUDNN_TYPE_DATA_TYPE, 1, &v);
  }
  void set(cudnnBackendAttributeName_t what, bool v) { set(what, CUDNN_TYPE_BOOLEAN, 1, &v); }
  void set(cudnnBackendAttributeName_t what, const std::vector<int64_t>& v) {
    set(what, CUDNN_TYPE_INT64, int64_t(v.size()), v.data());
  }
  void set(cudnnBackendAttributeName_t what, const Descriptor& d) {
    set(what, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d.d_);
  }
  // How many values there are, of which at most `room` were written.
  int64_t get(cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t room,
              void* values) const;
  void finalize();
  bool try_finalize();
  cudnnBackendDescriptor_t raw() const { return d_; }

 private:
  cudnnBackendDescriptor_t d_ = nullptr;
};

// The operations as one graph.
Descriptor graph_of(const std::vector<Descriptor>& operations);

struct Plan {
  std::unique_ptr<Descriptor> execution;  // null: the library has none
  int64_t workspace = 0;
};
// The first proposal that gives the same bits every time, keeps the precision of f32 when asked to,
// and can be built.
Plan best_plan(const Descriptor& graph, bool keep_f32);

// There is one handle, and it has one stream at a time: held while plans are looked up and run.
std::mutex& mutex();
// Runs a plan on the current stream with these arrays; scalars by value are host pointers.
void execute(const Plan& plan, const std::vector<int64_t>& uids,
             const std::vector<const void*>& pointers);

}  // namespace cutaway::cuda::gpu::dnn
