#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::io {

// Reads a NumPy .npy file (versions 1 to 3, C or Fortran order, either byte order, optionally
// gzipped). Types f8 f4 f2 i8 i4 i1 u1 b1; i2, u2 and u4 are widened. Raises IoError naming the
// file and the rule; objects are never unpickled.
Tensor load_npy(const std::string& path);
Tensor parse_npy(const std::string& name, const uint8_t* data, int64_t bytes);
// The bytes of a .npy file: version 1, C order. bf16 is stored as f4.
std::vector<uint8_t> format_npy(const Tensor& tensor);
// Writes version 1, C order, atomically. bf16 is stored as f4.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace cutaway::io
