#pragma once
#include <string>

#include <cutaway/nn/module.h>

namespace cutaway::nn {

// Writes the state dict of a module (parameters and persistent buffers under PyTorch's names) as
// safetensors, atomically. Raises IoError.
void save(const Module& module, const std::string& path);
struct LoadOptions {
  bool strict = true;  // names must agree exactly
};
// Reads such a file, or one of torch.save (core/io/torch_file.h; its content tells which it is),
// into a module, converting types. Everything is checked before anything is
// written. Raises IoError for a broken file, ValueError for other names, ShapeError for other
// sizes.
void load(Module& module, const std::string& path, LoadOptions options = {});

}  // namespace cutaway::nn
