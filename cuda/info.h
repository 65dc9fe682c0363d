#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cutaway::cuda {

// A GPU that the CUDA part of this build can use.
struct DeviceInfo {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int64_t memory = 0;        // bytes
  int processors = 0;
};
// Empty without a GPU, a driver, or the CUDA part.
std::vector<DeviceInfo> devices();

// A library of the toolkit that is opened when it is first needed.
struct LibraryInfo {
  std::string name, file;            // file: what was opened, empty when there is none
  std::vector<std::string> missing;  // functions it should have and has not
};
// Opens them all; empty without the CUDA part.
std::vector<LibraryInfo> libraries();

}  // namespace cutaway::cuda
