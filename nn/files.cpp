#include <cutaway/nn/files.h>

#include <cutaway/core/io/file.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/core/io/torch_file.h>

namespace cutaway::nn {

void save(const Module& module, const std::string& path) {
  io::TensorFile file;
  for (const Named& n : module.state_dict()) file.tensors.emplace_back(n.name, n.value);
  io::save_safetensors(path, file);
}

NamedTensors load_state(const std::string& path) {
  const io::Bytes bytes = io::read_file(path);
  const auto size = int64_t(bytes.size());
  NamedTensors state;
  for (auto& [name, value] : io::is_torch_file(bytes.data(), size)
                                 ? io::parse_torch(path, bytes.data(), size)
                                 : io::parse_safetensors(path, bytes.data(), size).tensors) {
    state.push_back({name, value});
  }
  return state;
}

void load(Module& module, const std::string& path, LoadOptions options) {
  module.load_state_dict(load_state(path), options.strict);
}

}  // namespace cutaway::nn
