#pragma once
#include <initializer_list>
#include <string>
#include <vector>

namespace cutaway::cuda::gpu {

// A shared library of the CUDA toolkit, opened when it is first needed: programs that do not use
// the GPU neither need nor load it (cuBLASLt alone is half a gigabyte).
class Library {
 public:
  // `file` as the linker would look for it, then in the toolkit's folder of the build.
  Library(const char* name, const char* file);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // The address of a function; null, and noted, when it is missing.
  void* find(const char* function);
  // Raises CudaError, saying how to get the library, unless all functions were found.
  void require() const;

  bool complete() const { return missing_.empty(); }
  const std::string& name() const { return name_; }
  const std::string& file() const { return file_; }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  std::string name_, wanted_, file_;
  void* handle_ = nullptr;
  std::vector<std::string> missing_;
};

// One function: declared in a struct of functions behind its library, called like it.
template <class F>
class Function;
template <class R, class... P>
class Function<R (*)(P...)> {
 public:
  Function(Library& library, const char* name)
      : function_(reinterpret_cast<R (*)(P...)>(library.find(name))) {}
  R operator()(P... args) const { return function_(args...); }

 private:
  R (*function_)(P...);
};
#define CUTAWAY_TEXT_OF(x) #x
// "libfoo.so.13" from "libfoo.so." and the number in the headers.
#define CUTAWAY_LIBRARY_FILE(stem, major) stem CUTAWAY_TEXT_OF(major)
#define CUTAWAY_LIBRARY_FUNCTION(name) \
  Function<decltype(&::name)> name { library, #name }

// Those that the build knows; opened by the call.
Library& gemm_library();
Library& conv_library();
Library& sparse_library();

}  // namespace cutaway::cuda::gpu
