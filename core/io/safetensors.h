#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::io {

// Tensors with names and free text, as a safetensors file holds them (huggingface/safetensors,
// README "Format").
struct TensorFile {
  std::vector<std::pair<std::string, Tensor>> tensors;  // in order of their data
  std::map<std::string, std::string> metadata;

  // The tensor of this name; raises IoError listing the names when there is none.
  const Tensor& at(const std::string& name) const;
};

// Reads all tensors. Lengths, offsets and shapes are treated as hostile: IoError names the tensor
// and the rule, and nothing larger than the file is ever allocated. Types F64 F32 BF16 F16 I64 I32
// U8 I8 BOOL.
TensorFile load_safetensors(const std::string& path);
TensorFile parse_safetensors(const std::string& name, const uint8_t* data, int64_t bytes);
// Writes atomically. Raises IoError for a duplicate name.
void save_safetensors(const std::string& path, const TensorFile& file);

}  // namespace cutaway::io
