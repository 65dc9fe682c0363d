#include <cutaway/cuda/runtime/library.h>

#include <dlfcn.h>

#include <cutaway/core/error.h>

namespace cutaway::cuda::gpu {

Library::Library(const char* name, const char* file) : name_(name), wanted_(file) {
  for (const std::string& candidate :
       {wanted_, std::string(CUTAWAY_CUDA_LIBRARY_DIR) + "/" + file}) {
    handle_ = dlopen(candidate.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!handle_) continue;
    file_ = candidate;
    return;
  }
}

void* Library::find(const char* function) {
  void* f = handle_ ? dlsym(handle_, function) : nullptr;
  if (!f) missing_.push_back(function);
  return f;
}

void Library::require() const {
  if (missing_.empty()) [[likely]]
    return;
  const std::string hint =
      "install " + name_ + " (" + wanted_ + ") and put its folder on LD_LIBRARY_PATH";
  if (!handle_) throw CudaError("cuda", "the library " + name_ + " was not found", hint);
  throw CudaError("cuda", file_ + " has no function " + missing_[0], hint);
}

}  // namespace cutaway::cuda::gpu
