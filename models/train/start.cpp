#include <cutaway/models/train/start.h>

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include <cutaway/core/error.h>
#include <cutaway/models/zoo/bert.h>
#include <cutaway/models/zoo/gpt.h>
#include <cutaway/nn/files.h>

namespace cutaway::train {
namespace {

// Under the names of this model.
nn::NamedTensors translated(const nn::Module& model, const nn::NamedTensors& file) {
  if (dynamic_cast<const zoo::Gpt*>(&model)) return zoo::gpt2_state(file);
  if (!dynamic_cast<const zoo::BertClassifier*>(&model)) return file;
  nn::NamedTensors state;
  for (const nn::Named& n : zoo::bert_state(file)) state.push_back({"bert." + n.name, n.value});
  for (const nn::Named& n : file) {
    if (n.name.starts_with("classifier.")) state.push_back(n);
  }
  return state;
}

std::string layer_of(const std::string& name) { return name.substr(0, name.rfind('.')); }

}  // namespace

Taken start_from(nn::Module& model, const std::string& path) {
  std::map<std::string, Tensor> file;
  for (const nn::Named& n : translated(model, nn::load_state(path))) file[n.name] = n.value;
  Taken taken;
  nn::NamedTensors state;
  const nn::NamedTensors own = model.state_dict();
  for (const nn::Named& n : own) {
    const auto found = file.find(n.name);
    const bool there = found != file.end();
    const bool last = layer_of(n.name) == layer_of(own.back().name);
    if (!there || (last && found->second.sizes() != n.value.sizes())) {
      taken.fresh.push_back(n.name);
    } else if (found->second.sizes() != n.value.sizes()) {
      throw ShapeError("train",
                       fmt::format("{}: {} has the sizes {}; need {}", path, n.name,
                                   to_string(found->second.sizes()), to_string(n.value.sizes())),
                       "the file is of another model, or made for another tokenizer");
    } else {
      state.push_back({n.name, found->second});
    }
  }
  taken.tensors = int64_t(state.size());
  if (state.empty()) {
    throw ValueError(
        "train", fmt::format("{} has no tensor with a name of this model; it has {}, "
                             "the model {}",
                             path, file.empty() ? "none" : file.begin()->first, own.front().name));
  }
  model.load_state_dict(state, false);
  return taken;
}

}  // namespace cutaway::train
