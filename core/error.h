#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace cutaway {

// Root of all exceptions of the library. The text follows one grammar:
//   [op] rule; got …, need …
//     at  module path            (when inside a module)
//     in  file:line of the call  (when known)
//     hint: what to do next      (when there is one)
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text);
  Error(const char* op, std::string_view rule, std::string_view hint = {});
};
struct ShapeError : Error { using Error::Error; };
struct DTypeError : Error { using Error::Error; };
struct DeviceError : Error { using Error::Error; };
struct IndexError : Error { using Error::Error; };
struct ValueError : Error { using Error::Error; };  // an argument outside its range
struct AutogradError : Error { using Error::Error; };
struct IoError : Error { using Error::Error; };
struct MemoryError : Error { using Error::Error; };
struct CudaError : Error { using Error::Error; };

}  // namespace cutaway
