#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/rng.h>
#include <cutaway/models/train/checkpoint.h>
#include <cutaway/models/train/trainer.h>
#include <cutaway/nn/layers/linear.h>
#include <tests/fuzz/formats.h>

namespace cutaway::fuzz {
namespace {
namespace fs = std::filesystem;

constexpr const char* kFiles[] = {"state.json", "config.json", "model.safetensors",
                                  "optim.safetensors", "latest"};

struct Trained {
  nn::Linear model{{.in = 2, .out = 1}};
  optim::AdamW optimizer{model.parameters(), {}};
};

// A run folder of its own for this process, removed at the end.
class Run {
 public:
  Run() : folder_(fs::temp_directory_path() / ("cutaway_fuzz_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    Trained t;
    train::Progress p;
    p.step = 7;
    p.position = {0, 7};
    train::save_checkpoint((folder_ / "checkpoint").string(), t.model, t.optimizer, p);
    put("config.json",
        R"({"model":"mlp","data":"digits","epochs":2,"batch":32,"optimizer":"adamw","lr":0.002,)"
        R"("weight_decay":0.01,"momentum":0.9,"schedule":"cosine","clip":0,"seed":1,)"
        R"("checkpoint_every":200,"log_every":50})");
    for (const char* name : kFiles) {
      const io::Bytes bytes = io::read_file(path_of(name).string());
      good_.emplace_back(name, std::string(bytes.begin(), bytes.end()));
    }
  }
  ~Run() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string folder() const { return folder_.string(); }
  fs::path path_of(const std::string& name) const {
    if (name == "config.json") return folder_ / name;
    if (name == "latest") return folder_ / "checkpoint" / name;
    return folder_ / "checkpoint" / "step-000000007" / name;
  }
  void put(const std::string& name, const std::string& content) const {
    fs::remove(path_of(name));  // a new file: replacing the content of one would wait for the disk
    std::ofstream out(path_of(name), std::ios::binary);
    out << content;
  }
  void repair(const std::string& name) const {
    for (const auto& [n, content] : good_) {
      if (n == name) put(name, content);
    }
  }

 private:
  fs::path folder_;
  std::vector<std::pair<std::string, std::string>> good_;
};

// Weights, moments and the generator, to see that a refusal changed none of them.
std::string state_of(const Trained& t) {
  std::string all;
  for (const auto& list : {t.model.state_dict(), t.optimizer.state_dict()}) {
    for (const nn::Named& n : list) {
      all += n.name + "=";
      for (double v : n.value.to_vector()) all += std::to_string(v) + ";";
    }
  }
  const Generator g = default_generator();
  return all + std::to_string(g.seed) + "/" + std::to_string(g.offset);
}

}  // namespace

bool accepts_checkpoint(Input in, std::string* message) {
  static const Run run;
  const auto line = std::find(in.begin(), in.end(), uint8_t('\n'));
  const std::string name(in.begin(), line);
  if (line == in.end() || std::find(std::begin(kFiles), std::end(kFiles), name) == std::end(kFiles))
    return true;  // no input of this format
  run.put(name, std::string(line + 1, in.end()));
  struct Repair {
    const std::string& name;
    ~Repair() { run.repair(name); }
  } repair{name};
  static Trained trained;
  const std::string before = state_of(trained);
  try {
    train::load_checkpoint(run.folder() + "/checkpoint", trained.model, trained.optimizer);
    train::read_config(run.folder());
    return true;
  } catch (const Error& e) {
    if (message) *message = e.what();
    const std::string text = e.what();
    if (text.find(run.path_of(name).string()) == std::string::npos)
      throw std::logic_error("the message does not name the file: " + text);
    if (name != "config.json" && state_of(trained) != before)
      throw std::logic_error("a refused checkpoint changed something: " + text);
    return false;
  }
}

}  // namespace cutaway::fuzz
