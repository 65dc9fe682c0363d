#include <cutaway/nn/files.h>

#include <cutaway/core/io/safetensors.h>

namespace cutaway::nn {

void save(const Module& module, const std::string& path) {
  io::TensorFile file;
  for (const Named& n : module.state_dict()) file.tensors.emplace_back(n.name, n.value);
  io::save_safetensors(path, file);
}

void load(Module& module, const std::string& path, LoadOptions options) {
  NamedTensors state;
  for (auto& [name, value] : io::load_safetensors(path).tensors) state.push_back({name, value});
  module.load_state_dict(state, options.strict);
}

}  // namespace cutaway::nn
