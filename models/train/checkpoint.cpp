#include <cutaway/models/train/checkpoint.h>

#include <fmt/format.h>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/core/rng.h>
#include <cutaway/models/train/json_fields.h>

namespace cutaway::train {
namespace {
namespace fs = std::filesystem;

io::TensorFile as_file(const nn::NamedTensors& tensors) {
  io::TensorFile file;
  for (const nn::Named& t : tensors) file.tensors.emplace_back(t.name, t.value);
  return file;
}

nn::NamedTensors as_named(const io::TensorFile& file) {
  nn::NamedTensors list;
  for (const auto& [name, value] : file.tensors) list.push_back({name, value});
  return list;
}

// state.json: where the run stood, and the generator.
void read_state(const std::string& path, Progress& p, Generator& g) {
  const nlohmann::json j = read_json_object("checkpoint", path);
  const auto count = [&](const char* name) {
    return json_field<int64_t>("checkpoint", j, name, path);
  };
  const auto bits = [&](const char* name) {
    return json_field<uint64_t>("checkpoint", j, name, path);
  };
  if (count("format") != 1) {
    throw IoError("checkpoint", path + ": was written by a newer version");
  }
  p.step = count("step");
  p.position = {count("epoch"), count("batch")};
  p.loss_sum = json_field<double>("checkpoint", j, "loss_sum", path);
  p.correct = count("correct");
  p.seen = count("seen");
  p.rows = count("rows");
  p.best_accuracy = json_field<double>("checkpoint", j, "best_accuracy", path);
  if (j.contains("best_step")) {  // not in files of earlier versions
    p.best_step = json_field<int64_t>("checkpoint", j, "best_step", path);
    p.best_loss = json_field<double>("checkpoint", j, "best_loss", path);
  }
  g = {bits("rng_seed"), bits("rng_stream"), bits("rng_offset")};
}

// Loads a file of tensors into something by name; what does not fit is an error of that file.
template <class Load>
void load_file(const std::string& path, Load load) {
  const nn::NamedTensors tensors = as_named(io::load_safetensors(path));
  try {
    load(tensors);
  } catch (const Error& e) {
    throw IoError("checkpoint", path + " does not fit: " + e.what());
  }
}

auto into(nn::Module& model) {
  return [&model](const nn::NamedTensors& state) { model.load_state_dict(state); };
}

// Puts averages in the places of weights in a state of a model.
nn::NamedTensors with_averages(nn::NamedTensors state, const std::string& path) {
  std::map<std::string, Tensor> averages;
  for (const auto& [name, value] : io::load_safetensors(path).tensors) averages[name] = value;
  for (nn::Named& n : state) {
    const auto found = averages.find(n.name + ".average");
    if (found != averages.end()) n.value = found->second;
  }
  return state;
}

}  // namespace

void save_checkpoint(const std::string& folder, const nn::Module& model,
                     const std::vector<SavedPart>& parts, const Progress& p) {
  const std::string name = fmt::format("step-{:09}", p.step);
  const fs::path final_folder = fs::path(folder) / name,
                 temporary = fs::path(folder) / (name + ".tmp");
  std::error_code error;
  fs::create_directories(folder, error);
  fs::remove_all(temporary, error);
  if (!fs::create_directories(temporary, error)) {
    throw IoError("checkpoint",
                  fmt::format("cannot create {}: {}", temporary.string(), error.message()));
  }
  try {
    io::save_safetensors((temporary / "model.safetensors").string(), as_file(model.state_dict()));
    for (const SavedPart& part : parts) {
      io::save_safetensors((temporary / (part.name + ".safetensors")).string(),
                           as_file(part.state()));
    }
    const Generator g = default_generator();
    nlohmann::json state = {{"format", 1},
                            {"step", p.step},
                            {"epoch", p.position.epoch},
                            {"batch", p.position.batch},
                            {"loss_sum", p.loss_sum},
                            {"correct", p.correct},
                            {"seen", p.seen},
                            {"rows", p.rows},
                            {"best_accuracy", p.best_accuracy},
                            {"rng_seed", g.seed},
                            {"rng_stream", g.stream},
                            {"rng_offset", g.offset}};
    if (p.best_step >= 0) state.update({{"best_step", p.best_step}, {"best_loss", p.best_loss}});
    io::write_file_atomic((temporary / "state.json").string(), state.dump(2) + "\n");
  } catch (...) {
    fs::remove_all(temporary, error);
    throw;
  }
  io::sync_folder(temporary.string());
  fs::remove_all(final_folder, error);
  fs::rename(temporary, final_folder, error);
  if (error)
    throw IoError("checkpoint",
                  fmt::format("cannot finish {}: {}", final_folder.string(), error.message()));
  io::sync_folder(folder);
  io::write_file_atomic((fs::path(folder) / "latest").string(), name + "\n");
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string other = entry.path().filename().string();
    if (other.starts_with("step-") && other != name) fs::remove_all(entry.path(), error);
  }
}

std::string latest_checkpoint(const std::string& folder) {
  std::error_code ignored;
  const fs::path pointer = fs::path(folder) / "latest";
  if (fs::is_regular_file(pointer, ignored)) {
    const io::Bytes bytes = io::read_file(pointer.string());
    std::string name(bytes.begin(), bytes.end());
    while (!name.empty() && (name.back() == '\n' || name.back() == '\r')) name.pop_back();
    const bool plain = name.starts_with("step-") && name.find('/') == std::string::npos;
    if (plain && fs::is_regular_file(fs::path(folder) / name / "state.json", ignored)) {
      return (fs::path(folder) / name).string();
    }
  }
  // The pointer is written last: without it the newest renamed generation is complete all the same.
  std::string best;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool complete = name.starts_with("step-") && !name.ends_with(".tmp") &&
                          fs::is_regular_file(entry.path() / "state.json", ignored);
    if (complete && entry.path().string() > best) best = entry.path().string();
  }
  return best;
}

void save_checkpoint(const std::string& folder, const nn::Module& model,
                     const optim::Optimizer& optimizer, const Progress& progress) {
  const SavedPart part{"optim", [&] { return optimizer.state_dict(); }, nullptr};
  save_checkpoint(folder, model, {part}, progress);
}

Progress load_checkpoint(const std::string& folder, nn::Module& model,
                         const std::vector<SavedPart>& parts) {
  const std::string path = latest_checkpoint(folder);
  if (path.empty()) throw IoError("checkpoint", "there is no complete checkpoint in " + folder);
  Progress p;
  Generator g;
  read_state(path + "/state.json", p, g);
  std::vector<nn::NamedTensors> before;
  try {
    for (const SavedPart& part : parts) {
      nn::NamedTensors state = part.state();
      for (nn::Named& n : state) n.value = n.value.detach().clone();
      load_file(path + "/" + part.name + ".safetensors", part.load);
      before.push_back(std::move(state));
    }
    load_file(path + "/model.safetensors", into(model));
  } catch (...) {
    for (size_t i = 0; i < before.size(); ++i) parts[i].load(before[i]);
    throw;
  }
  default_generator() = g;
  return p;
}

Progress load_checkpoint(const std::string& folder, nn::Module& model,
                         optim::Optimizer& optimizer) {
  return load_checkpoint(folder, model, {saved_part("optim", optimizer)});
}

void load_weights(const std::string& path, nn::Module& model) {
  std::error_code ignored;
  std::string file = path;
  if (fs::is_directory(path, ignored)) {
    for (const std::string& folder : {path + "/checkpoint", path}) {
      const std::string latest = latest_checkpoint(folder);
      if (!latest.empty()) {
        file = latest + "/model.safetensors";
        break;
      }
    }
    if (file == path) throw IoError("checkpoint", "there is no complete checkpoint in " + path);
  }
  const std::string averages = fs::path(file).parent_path() / "ema.safetensors";
  load_file(file, [&](const nn::NamedTensors& state) {
    const bool averaged = file != path && fs::is_regular_file(averages, ignored);
    model.load_state_dict(averaged ? with_averages(state, averages) : state);
  });
}

}  // namespace cutaway::train
