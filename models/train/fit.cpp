#include <cutaway/models/train/fit.h>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/datasets/loader.h>
#include <cutaway/models/report/svg.h>
#include <cutaway/models/train/run_folder.h>
#include <cutaway/models/zoo/graph.h>
#include <cutaway/models/zoo/pictures.h>
#include <cutaway/nn/files.h>
#include <cutaway/nn/optim/optimizer.h>
#include <cutaway/nn/sched/schedule.h>

namespace cutaway::train {
namespace {

// The files and the clock of a run.
class Notes {
 public:
  Notes(const TrainConfig& c, const std::string& folder, const std::string& columns, bool quiet)
      : folder_(RunFolder::create(folder)),
        quiet_(quiet),
        rows_(folder_.file("metrics.csv"), columns + "\n", [](std::string_view) { return true; }) {
    const nlohmann::json config = {{"version", CUTAWAY_VERSION},
                                   {"model", c.model},
                                   {"data", c.data},
                                   {"epochs", c.epochs},
                                   {"batch", c.batch},
                                   {"lr", c.lr},
                                   {"weight_decay", c.weight_decay},
                                   {"seed", c.seed}};
    io::write_file_atomic(folder_.file("config.json"), config.dump(2) + "\n");
  }
  void row(const std::string& line) { rows_.add(line + "\n"); }
  void say(const std::string& line) const {
    if (quiet_) return;
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  RunFolder folder_;
  bool quiet_;
  RowFile rows_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

void require_finite(double loss) {
  if (!std::isfinite(loss)) {
    throw ValueError("train", fmt::format("the loss is {}", loss), "lower --lr");
  }
}

double mean_loss(zoo::PictureModel& model, const data::Dataset& set, int64_t batch) {
  NoGradGuard no_grad;
  model.eval();
  double total = 0;
  data::Loader loader(set, {.batch = batch});
  for (const auto& [x, y] : loader) total += model.loss(x).item() * double(x.size(0));
  model.train();
  return total / double(std::max<int64_t>(set.size(), 1));
}

// The grey values of picture i of a batch, the mean of its channels.
report::Picture picture(const Tensor& batch, int64_t i, const data::Dataset& set,
                        const std::string& caption) {
  const Tensor grey = clamp(mean(batch[i], 0) * set.std + set.mean, 0.0, 1.0);
  const std::vector<double> v = grey.to_vector();
  return {.width = int(grey.size(1)),
          .height = int(grey.size(0)),
          .pixels = std::vector<float>(v.begin(), v.end()),
          .caption = caption};
}

void write_pictures(zoo::PictureModel& model, const data::Dataset& set, const std::string& path) {
  NoGradGuard no_grad;
  model.eval();
  const int64_t count = std::min<int64_t>(set.size(), 8);
  data::Loader loader(set, {.batch = count});
  std::vector<report::Picture> grid;
  for (const auto& [x, y] : loader) {
    const zoo::PictureModel::Shown shown = model.show(x);
    for (int64_t i = 0; i < count; ++i) grid.push_back(picture(shown.before, i, set, "input"));
    for (int64_t i = 0; i < count; ++i) grid.push_back(picture(shown.after, i, set, "result"));
    break;
  }
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  io::write_file_atomic(path, report::picture_grid(grid, int(count), "Inputs and results"));
}

FitOutcome fit_pictures(const TrainConfig& c, const std::string& folder, bool quiet) {
  const data::Dataset train_set = data::open(c.data, "train"),
                      test_set = data::open(c.data, "test");
  const std::unique_ptr<nn::Module> made = zoo::make_model(
      c.model, {.input = train_set.inputs.sizes().slice(1, train_set.inputs.dim())});
  auto& model = dynamic_cast<zoo::PictureModel&>(*made);
  optim::AdamW adam(model.parameters(), {.lr = c.lr, .weight_decay = c.weight_decay});
  data::Loader loader(train_set, {.batch = c.batch, .shuffle = true, .seed = c.seed});
  const int64_t total = std::max<int64_t>(c.epochs * loader.batches_per_epoch(), 1);
  sched::Scheduler scheduler(adam, sched::cosine(total));
  Notes notes(c, folder, "step,epoch,train_loss,test_loss", quiet);
  FitOutcome out;
  for (int64_t epoch = 0; epoch < c.epochs; ++epoch) {
    double sum = 0;
    for (const auto& [x, y] : loader) {
      scheduler.set_counter(out.steps);
      const Tensor loss = model.loss(x);
      require_finite(loss.item());
      loss.backward();
      adam.step_and_zero();
      sum += loss.item() * double(x.size(0));
      ++out.steps;
    }
    out.train_loss = sum / double(std::max<int64_t>(train_set.size(), 1));
    out.test_loss = mean_loss(model, test_set, c.batch);
    notes.row(fmt::format("{},{},{:.6g},{:.6g}", out.steps, epoch, out.train_loss, out.test_loss));
    notes.say(fmt::format("epoch {}/{}   loss {:.4f}   test loss {:.4f}   {:.1f} s", epoch + 1,
                          c.epochs, out.train_loss, out.test_loss, notes.seconds()));
  }
  if (c.epochs == 0) out.test_loss = mean_loss(model, test_set, c.batch);
  nn::save(model, notes.file("model.safetensors"));
  write_pictures(model, test_set, notes.file("plots/pictures.svg"));
  out.seconds = notes.seconds();
  return out;
}

// The share of these nodes whose largest logit is at their label.
double accuracy(const Tensor& logits, const Tensor& labels, const std::vector<int64_t>& nodes) {
  if (nodes.empty()) return 0;
  const std::vector<double> guess = argmax(logits, 1).to_vector(), truth = labels.to_vector();
  double right = 0;
  for (const int64_t v : nodes) right += guess[size_t(v)] == truth[size_t(v)];
  return right / double(nodes.size());
}

FitOutcome fit_graph(const TrainConfig& c, const std::string& folder, bool quiet) {
  if (c.data != "miles") {
    throw ValueError("train", fmt::format("{} reads graphs; got the data \"{}\"", c.model, c.data),
                     "--data miles");
  }
  const zoo::NodeTask task = zoo::miles_task();
  const std::unique_ptr<nn::Module> made = zoo::make_model(
      c.model, {.input = {task.features.size(1)}, .classes = int64_t(task.classes.size())});
  auto& model = dynamic_cast<zoo::GraphModel&>(*made);
  optim::AdamW adam(model.parameters(), {.lr = c.lr, .weight_decay = c.weight_decay});
  const Tensor told = index_tensor(task.told), labels = index_select(task.labels, 0, told);
  Notes notes(c, folder, "step,loss,told_accuracy,asked_accuracy", quiet);
  FitOutcome out;
  for (int64_t step = 0; step < c.epochs; ++step) {
    model.train();
    const Tensor logits = model(task.features, task.edges);
    const Tensor loss = cross_entropy(index_select(logits, 0, told), labels);
    require_finite(loss.item());
    loss.backward();
    adam.step_and_zero();
    out.train_loss = loss.item();
    ++out.steps;
    NoGradGuard no_grad;
    model.eval();
    const Tensor seen = model(task.features, task.edges);
    out.told_accuracy = accuracy(seen, task.labels, task.told);
    out.asked_accuracy = accuracy(seen, task.labels, task.asked);
    notes.row(fmt::format("{},{:.6g},{:.6g},{:.6g}", out.steps, out.train_loss, out.told_accuracy,
                          out.asked_accuracy));
  }
  nn::save(model, notes.file("model.safetensors"));
  out.seconds = notes.seconds();
  notes.say(fmt::format("{} nodes, {} told, {} asked", task.edges.nodes, task.told.size(),
                        task.asked.size()));
  return out;
}

}  // namespace

bool has_own_training(const std::string& model) {
  const zoo::Kind kind = zoo::kind_of(model);
  return kind == zoo::Kind::pictures || kind == zoo::Kind::graph;
}

FitOutcome fit(const TrainConfig& c, const std::string& folder, bool quiet) {
  if (c.device != "cpu") {
    throw ValueError("train",
                     fmt::format("{} is trained on the CPU only; got {}", c.model, c.device));
  }
  if (c.epochs < 0 || c.batch < 1) {
    throw ValueError(
        "train", fmt::format("epochs must be ≥ 0 and batch ≥ 1; got {} and {}", c.epochs, c.batch));
  }
  manual_seed(c.seed);
  return zoo::kind_of(c.model) == zoo::Kind::graph ? fit_graph(c, folder, quiet)
                                                   : fit_pictures(c, folder, quiet);
}

}  // namespace cutaway::train
