#pragma once
#include <string>

#include <cutaway/nn/module.h>

namespace cutaway::nn {

// Writes the state dict of a module (parameters and persistent buffers under PyTorch's names) as
// safetensors, atomically. Raises IoError.
void save(const Module& module, const std::string& path);
// The tensors of such a file, or of one of torch.save (core/io/torch_file.h; its content tells
// which it is). Raises IoError for a broken file.
NamedTensors load_state(const std::string& path);
struct LoadOptions {
  bool strict = true;  // names must agree exactly
};
// The same into a module, converting types. Everything is checked before anything is written.
// Raises IoError for a broken file, ValueError for other names, ShapeError for other sizes.
void load(Module& module, const std::string& path, LoadOptions options = {});

}  // namespace cutaway::nn
