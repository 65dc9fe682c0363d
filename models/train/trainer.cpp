#include <cutaway/models/train/trainer.h>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/record.h>
#include <cutaway/core/dispatch.h>
#include <cutaway/core/element.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/tfevents.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/record/hook.h>
#include <cutaway/core/rng.h>
#include <cutaway/core/text.h>
#include <cutaway/datasets/loader.h>
#include <cutaway/models/train/checkpoint.h>
#include <cutaway/models/train/json_fields.h>
#include <cutaway/models/train/language.h>
#include <cutaway/models/train/progress.h>
#include <cutaway/models/train/run_folder.h>
#include <cutaway/models/train/run_report.h>
#include <cutaway/models/zoo/zoo.h>
#include <cutaway/nn/optim/adaptive.h>
#include <cutaway/nn/optim/muon.h>
#include <cutaway/nn/optim/optimizer.h>
#include <cutaway/nn/sched/schedule.h>

namespace cutaway::train {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

void require(bool good, const std::string& rule) {
  if (!good) throw ValueError("train", rule);
}

void check_config(const TrainConfig& c) {
  require(c.epochs >= 0 && c.epochs <= kLargestCount,
          fmt::format("epochs must be 0 to 2^53; got {}", c.epochs));
  require(c.batch >= 1 && c.batch <= kLargestCount,
          fmt::format("batch must be 1 to 2^53; got {}", c.batch));
  require(c.lr >= 0 && std::isfinite(c.lr),
          fmt::format("lr must be a finite number ≥ 0; got {}", c.lr));
  require(c.weight_decay >= 0 && std::isfinite(c.weight_decay),
          fmt::format("weight decay must be a finite number ≥ 0; got {}", c.weight_decay));
  require(c.clip >= 0 && std::isfinite(c.clip),
          fmt::format("clip must be a finite number ≥ 0; got {}", c.clip));
  require(c.checkpoint_every >= 1,
          fmt::format("checkpoint-every must be ≥ 1; got {}", c.checkpoint_every));
  require(c.context >= 1 && c.context <= kLargestCount,
          fmt::format("context must be 1 to 2^53; got {}", c.context));
  require(std::min({c.layers, c.heads, c.width}) >= 0 &&
              std::max({c.layers, c.heads, c.width}) <= (1 << 20),
          fmt::format("layers, heads and width must be 0 to 2^20; got {}, {} and {}", c.layers,
                      c.heads, c.width));
  require(c.dropout >= 0 && c.dropout < 1,
          fmt::format("dropout must be at least 0 and below 1; got {}", c.dropout));
  require(c.log_every >= 1, fmt::format("log-every must be ≥ 1; got {}", c.log_every));
}

std::unique_ptr<optim::Optimizer> make_optimizer(const TrainConfig& c,
                                                 nn::NamedTensors parameters) {
  if (c.optimizer == "sgd") {
    return std::make_unique<optim::Sgd>(
        std::move(parameters),
        optim::SgdOptions{.lr = c.lr, .momentum = c.momentum, .weight_decay = c.weight_decay});
  }
  if (c.optimizer == "adam") {
    return std::make_unique<optim::Adam>(
        std::move(parameters), optim::AdamOptions{.lr = c.lr, .weight_decay = c.weight_decay});
  }
  if (c.optimizer == "rmsprop") {
    return std::make_unique<optim::Rmsprop>(
        std::move(parameters), optim::RmspropOptions{.lr = c.lr, .weight_decay = c.weight_decay});
  }
  if (c.optimizer == "adagrad") {
    return std::make_unique<optim::Adagrad>(
        std::move(parameters), optim::AdagradOptions{.lr = c.lr, .weight_decay = c.weight_decay});
  }
  if (c.optimizer == "lion") {
    return std::make_unique<optim::Lion>(
        std::move(parameters), optim::LionOptions{.lr = c.lr, .weight_decay = c.weight_decay});
  }
  if (c.optimizer == "muon") {
    return std::make_unique<optim::Muon>(
        std::move(parameters), optim::MuonOptions{.lr = c.lr, .weight_decay = c.weight_decay});
  }
  require(c.optimizer == "adamw",
          fmt::format("unknown optimiser \"{}\"; need sgd, adam, adamw, rmsprop, adagrad, "
                      "lion or muon",
                      c.optimizer));
  return std::make_unique<optim::AdamW>(
      std::move(parameters), optim::AdamWOptions{.lr = c.lr, .weight_decay = c.weight_decay});
}

sched::Schedule make_schedule(const TrainConfig& c, int64_t steps) {
  const int64_t total = std::max<int64_t>(steps, 1), warm = std::max<int64_t>(total / 20, 1);
  if (c.schedule == "constant") return sched::constant();
  if (c.schedule == "step") return sched::step(std::max<int64_t>(total / 3, 1));
  if (c.schedule == "cosine") return sched::cosine(total);
  require(c.schedule == "warmup-cosine",
          fmt::format("unknown schedule \"{}\"; need constant, step, cosine or warmup-cosine",
                      c.schedule));
  return sched::warmup(warm, 0.05, sched::cosine(std::max<int64_t>(total - warm, 1)));
}

nlohmann::json config_json(const TrainConfig& c) {
  nlohmann::json j = {{"version", CUTAWAY_VERSION},
                      {"model", c.model},
                      {"data", c.data},
                      {"epochs", c.epochs},
                      {"batch", c.batch},
                      {"optimizer", c.optimizer},
                      {"lr", c.lr},
                      {"weight_decay", c.weight_decay},
                      {"momentum", c.momentum},
                      {"schedule", c.schedule},
                      {"clip", c.clip},
                      {"seed", c.seed},
                      {"checkpoint_every", c.checkpoint_every},
                      {"log_every", c.log_every},
                      {"device", c.device}};
  if (zoo::is_language_model(c.model)) {
    j.update({{"tokenizer", c.tokenizer},
              {"context", c.context},
              {"layers", c.layers},
              {"heads", c.heads},
              {"width", c.width},
              {"dropout", c.dropout}});
  }
  return j;
}

// Number of rows whose largest logit is at the target (on the host).
int64_t count_correct(const Tensor& logits, const Tensor& targets) {
  const Tensor best = argmax(logits, -1).to(kCpu);
  const int64_t* a = best.data<int64_t>();
  const int64_t* b = targets.data<int64_t>();
  int64_t n = 0;
  for (int64_t i = 0; i < targets.numel(); ++i) n += a[i] == b[i];
  return n;
}

// One training run, from its files to its report.
class Run {
 public:
  Run(const TrainConfig& config, RunFolder folder, bool resume, const TrainSettings& settings)
      : config_(config),
        settings_(settings),
        device_(device_from_name(config.device)),
        folder_(std::move(folder)),
        data_(open_run_data(config, folder_.path())),
        step_([this](const Tensors& batch) { return run_batch(batch); },
              {.enabled = settings.record}) {
    manual_seed(config.seed);
    model_ = zoo::make_model(config.model, task_of(config, data_));
    model_->to(device_);
    optimizer_ = make_optimizer(config, model_->parameters());
    loader_.emplace(train_set_, data::LoaderOptions{
                                    .batch = config.batch, .shuffle = true, .seed = config.seed});
    require(!__builtin_mul_overflow(config.epochs, loader_->batches_per_epoch(), &total_steps_),
            fmt::format("epochs × batches must fit in 64 bits; got {} × {}", config.epochs,
                        loader_->batches_per_epoch()));
    scheduler_.emplace(*optimizer_, make_schedule(config, total_steps_));
    const bool has_checkpoint = !latest_checkpoint(folder_.file("checkpoint")).empty();
    if (resume && has_checkpoint) {
      progress_ = load_checkpoint(folder_.file("checkpoint"), *model_, *optimizer_);
      const int64_t batches = loader_->batches_per_epoch();
      if (progress_.position.batch > batches) {
        throw IoError("checkpoint", fmt::format("{} stands at batch {} of an epoch, {} has {}",
                                                folder_.file("checkpoint"),
                                                progress_.position.batch, config.data, batches));
      }
      const data::Loader::Position at = progress_.position;
      const bool whole_epochs = at.epoch <= kLargestCount / std::max<int64_t>(batches, 1);
      if (!whole_epochs || progress_.step != at.epoch * batches + at.batch) {
        throw IoError("checkpoint",
                      fmt::format("{} was made with another --batch or other data: step {} is not "
                                  "batch {} of epoch {}",
                                  folder_.file("checkpoint"), progress_.step, at.batch, at.epoch));
      }
      loader_->seek(progress_.position);
      scheduler_->set_counter(progress_.step);
    }
    metrics_.emplace(folder_.file("metrics.csv"), progress_.rows);
    events_.emplace(folder_.path());
  }

  TrainOutcome go() {
    announce();
    InterruptGuard interrupt;
    const int64_t stop_at =
        settings_.stop_after >= 0 ? progress_.step + settings_.stop_after : INT64_MAX;
    TrainOutcome outcome;
    while (progress_.position.epoch < config_.epochs) {
      if (!run_epoch(stop_at)) {
        save();
        say(fmt::format("saved at step {}.  Go on with:  cutaway train --resume {}", progress_.step,
                        shell_quoted(folder_.path())));
        outcome.step = progress_.step;
        outcome.seconds = seconds_since(begin_);
        return outcome;
      }
    }
    outcome.test = evaluate(*model_, test_set_);
    if (auto* language = dynamic_cast<zoo::LanguageModel*>(model_.get())) {
      outcome.language = language_result(outcome.test.loss, data_);
      outcome.language->samples = text_samples(*language, data_);
    }
    save();
    outcome.finished = true;
    outcome.step = progress_.step;
    outcome.seconds = seconds_since(begin_);
    write_report({config_, folder_.path(), model_->type(), model_->num_parameters(), &train_set_,
                  &test_set_, &metrics_->rows(), &outcome});
    return outcome;
  }

 private:
  static constexpr int64_t kExplainAfter = 4;  // steps, by which one is replayed if any can be

  void say(const std::string& line) {
    if (settings_.quiet) return;
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  void announce() {
    const std::string place =
        device_ == kCpu ? fmt::format("cpu {}", cpu_variant()) : cutaway::to_string(device_);
    say(fmt::format("{}   {} parameters   {} {} + {}   {} × {} threads   seed {}", config_.model,
                    grouped(model_->num_parameters()), train_set_.name, grouped(train_set_.size()),
                    grouped(test_set_.size()), place, num_threads(), config_.seed));
    if (progress_.step > 0) say(fmt::format("going on from step {}", progress_.step));
  }

  // False when asked to stop before the end of the epoch.
  bool run_epoch(int64_t stop_at) {
    const int64_t epoch = loader_->position().epoch, per_epoch = loader_->batches_per_epoch();
    ProgressLine line(settings_.quiet, fmt::format("epoch {}/{}", epoch + 1, config_.epochs),
                      per_epoch, loader_->position().batch);
    model_->train();
    const auto epoch_begin = Clock::now();
    int64_t epoch_examples = 0;
    bool stopped = InterruptGuard::requested() || progress_.step >= stop_at;
    if (!stopped) {
      for (const auto& [x, y] : *loader_) {
        train_step(x, y);
        epoch_examples += x.size(0);
        progress_.position = loader_->position();
        line.update(progress_.position.batch, mean_loss(), rate(epoch_examples, epoch_begin));
        if (progress_.step % config_.log_every == 0) {
          log_train_row(epoch, rate(epoch_examples, epoch_begin));
        }
        if (progress_.step % config_.checkpoint_every == 0) save();
        stopped = InterruptGuard::requested() || progress_.step >= stop_at;
        if (stopped && progress_.position.batch < per_epoch) break;
      }
    }
    line.update(progress_.position.batch, mean_loss(), rate(epoch_examples, epoch_begin), true);
    line.finish();
    if (progress_.position.batch < per_epoch && stopped) return false;
    end_epoch(epoch, rate(epoch_examples, epoch_begin));
    return !(stopped && progress_.position.epoch < config_.epochs);
  }

  static double rate(int64_t examples, Clock::time_point begin) {
    return double(examples) / std::max(seconds_since(begin), 1e-9);
  }

  // Since the last row; right after a row, that of the row.
  double mean_loss() const {
    return progress_.seen > 0 ? progress_.loss_sum / double(progress_.seen) : last_loss_;
  }

  void end_epoch(int64_t epoch, double rate) {
    const Evaluation test = evaluate(*model_, test_set_);
    if (progress_.seen > 0) log_train_row(epoch, rate);
    log_row(epoch, "test", test.loss, test.accuracy, 0);
    if (data_.tokenizer) {
      const LanguageResult r = language_result(test.loss, data_);
      say(fmt::format("           validation   {:.4f} nats/char   perplexity {:.3f} per token",
                      r.nats_per_character, r.perplexity));
    } else {
      say(fmt::format("           test   loss {:.4f}   accuracy {:.2f} %", test.loss,
                      100 * test.accuracy));
    }
    progress_.best_accuracy = std::max(progress_.best_accuracy, test.accuracy);
    progress_.position = {epoch + 1, 0};
    loader_->seek(progress_.position);
  }

  // The mean over the steps since the last row: a curve without jumps where epochs meet.
  void log_train_row(int64_t epoch, double rate) {
    last_loss_ = mean_loss();
    log_row(epoch, "train", last_loss_, double(progress_.correct) / double(progress_.seen), rate);
    progress_.loss_sum = 0;
    progress_.correct = progress_.seen = 0;
  }

  void require_finite(double loss) const {
    if (std::isfinite(loss)) return;
    throw ValueError("train", fmt::format("the loss is {} at step {}", loss, progress_.step),
                     "lower --lr, or give --clip 1");
  }

  // What is recorded: a batch → its loss and logits.
  Tensors run_batch(const Tensors& batch) {
    Tensor logits = (*model_)(batch[0]);
    if (data_.tokenizer) logits = reshape(logits, {batch[1].numel(), logits.size(-1)});
    const Tensor loss = cross_entropy(logits, reshape(batch[1], {batch[1].numel()}));
    if (device_ == kCpu) {
      recording::each_time("require_finite", {&loss}, [this](const void* const* value) {
        require_finite(element_as_double(value[0], DType::f32, 0));
      });
    } else {
      require_finite(loss.item());
    }
    loss.backward();
    if (config_.clip > 0) optim::clip_grad_norm(optimizer_->parameters(), config_.clip, 2, true);
    optimizer_->step_and_zero();
    return {loss, logits};
  }

  void train_step(const Tensor& x, const Tensor& y) {
    scheduler_->set_counter(progress_.step);
    const Tensors out = step_({x.to(device_), y.to(device_)});
    if (settings_.record && ++steps_here_ == kExplainAfter && step_.stats().replayed == 0) {
      say(fmt::format("steps run eagerly: {}", step_.why_eager()));
    }
    progress_.loss_sum += out[0].item() * double(y.numel());
    progress_.correct += count_correct(out[1], y);
    progress_.seen += y.numel();
    ++progress_.step;
  }

  void log_row(int64_t epoch, const char* split, double loss, double accuracy, double rate) {
    metrics_->add({progress_.step, epoch, split, loss, accuracy, optimizer_->lr(), rate,
                   seconds_since(begin_)});
    events_->scalar(fmt::format("loss/{}", split), progress_.step, loss);
    events_->scalar(fmt::format("accuracy/{}", split), progress_.step, accuracy);
    if (split[1] == 'r') events_->scalar("lr", progress_.step, optimizer_->lr());
  }

  void save() {
    progress_.rows = int64_t(metrics_->rows().size());
    save_checkpoint(folder_.file("checkpoint"), *model_, *optimizer_, progress_);
  }

  TrainConfig config_;
  TrainSettings settings_;
  Device device_;
  RunFolder folder_;
  RunData data_;
  data::Dataset &train_set_ = data_.train, &test_set_ = data_.test;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::optional<data::Loader> loader_;
  std::optional<sched::Scheduler> scheduler_;
  std::optional<MetricsFile> metrics_;
  std::optional<io::EventWriter> events_;
  RecordedStep step_;
  int64_t steps_here_ = 0;  // of this process
  int64_t total_steps_ = 0;
  Progress progress_;
  double last_loss_ = 0;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

zoo::Task task_of(const data::Dataset& d) {
  if (d.vocabulary > 0) {
    return {d.inputs.sizes().slice(1, d.inputs.dim()), 0, d.vocabulary};
  }
  if (d.targets.dtype() != DType::i64) {
    throw ValueError("train", fmt::format("{} has no class numbers as targets; got {}", d.name,
                                          name_of(d.targets.dtype())));
  }
  constexpr int64_t kMostClasses = 10000;
  int64_t most = -1;
  const int64_t* y = d.targets.data<int64_t>();
  for (int64_t i = 0; i < d.targets.numel(); ++i) {
    if (y[i] < 0 || y[i] >= kMostClasses) {
      throw ValueError("train", fmt::format("{}: example {} has the class number {}; need 0 to {}",
                                            d.name, i, y[i], kMostClasses - 1));
    }
    most = std::max(most, y[i]);
  }
  return {d.inputs.sizes().slice(1, d.inputs.dim()),
          std::max<int64_t>(most + 1, int64_t(d.classes.size()))};
}

namespace {

// Mean loss and accuracy per token.
Evaluation evaluate_tokens(nn::Module& model, const data::Dataset& dataset, Device device) {
  constexpr int64_t kMostLogits = 1 << 22;  // at a time
  const int64_t row = dataset.inputs.size(1) * dataset.vocabulary;
  data::Loader loader(dataset, {.batch = std::clamp<int64_t>(kMostLogits / row, 1, 256)});
  double loss_sum = 0;
  int64_t correct = 0;
  for (const auto& [x, y] : loader) {
    const Tensor logits = reshape(model(x.to(device)), {y.numel(), dataset.vocabulary});
    loss_sum +=
        cross_entropy(logits, reshape(y, {y.numel()}).to(device)).item() * double(y.numel());
    correct += count_correct(logits, y);
  }
  const double n = double(dataset.targets.numel());
  return {.loss = loss_sum / n, .accuracy = double(correct) / n, .confusion = {}, .predicted = {}};
}

}  // namespace

Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, int64_t batch) {
  NoGradGuard no_grad;
  const bool was_training = model.training();
  model.eval();
  const nn::NamedTensors parameters = model.parameters();
  const Device device = parameters.empty() ? kCpu : parameters.front().value.device();
  Evaluation e;
  if (dataset.vocabulary > 0) {
    e = evaluate_tokens(model, dataset, device);
    model.train(was_training);
    return e;
  }
  const int64_t classes = task_of(dataset).classes;
  e.confusion.assign(size_t(classes), std::vector<int64_t>(size_t(classes), 0));
  data::Loader loader(dataset, {.batch = batch});
  double loss_sum = 0;
  int64_t correct = 0;
  for (const auto& [x, y] : loader) {
    const Tensor logits = model(x.to(device));
    loss_sum += cross_entropy(logits, y.to(device)).item() * double(x.size(0));
    const Tensor best = argmax(logits, 1).to(kCpu);
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t truth = y.data<int64_t>()[i], guess = best.data<int64_t>()[i];
      if (guess < classes) ++e.confusion[size_t(truth)][size_t(guess)];
      e.predicted.push_back(guess);
      correct += truth == guess;
    }
  }
  const double n = double(std::max<int64_t>(dataset.size(), 1));
  e.loss = loss_sum / n;
  e.accuracy = double(correct) / n;
  model.train(was_training);
  return e;
}

TrainConfig read_config(const std::string& folder) {
  const std::string path = folder + "/config.json";
  const nlohmann::json j = read_json_object("config", path);
  const auto text = [&](const char* name) {
    return json_field<std::string>("config", j, name, path);
  };
  const auto count = [&](const char* name) { return json_field<int64_t>("config", j, name, path); };
  const auto number = [&](const char* name) { return json_field<double>("config", j, name, path); };
  TrainConfig c;
  c.model = text("model");
  c.data = text("data");
  c.epochs = count("epochs");
  c.batch = count("batch");
  c.optimizer = text("optimizer");
  c.lr = number("lr");
  c.weight_decay = number("weight_decay");
  c.momentum = number("momentum");
  c.schedule = text("schedule");
  c.clip = number("clip");
  c.seed = json_field<uint64_t>("config", j, "seed", path);
  c.checkpoint_every = count("checkpoint_every");
  c.log_every = count("log_every");
  if (j.contains("device")) c.device = text("device");  // not in files of the first version
  if (zoo::is_language_model(c.model)) {
    c.tokenizer = text("tokenizer");
    c.context = count("context");
    c.layers = count("layers");
    c.heads = count("heads");
    c.width = count("width");
    c.dropout = number("dropout");
  }
  try {
    check_config(c);
  } catch (const ValueError& e) {
    throw IoError("config", path + ": " + e.what());
  }
  return c;
}

TrainOutcome train(const TrainConfig& config, const std::string& folder, bool resume,
                   const TrainSettings& settings) {
  if (resume) {
    RunFolder run_folder = RunFolder::reopen(folder);
    return Run(read_config(folder), std::move(run_folder), true, settings).go();
  }
  check_config(config);
  TrainConfig c = config;
  std::error_code ignored;
  // A path is stored absolute, so that resuming works from any folder.
  for (std::string* path : {&c.data, &c.tokenizer}) {
    if (std::filesystem::exists(*path, ignored)) *path = std::filesystem::absolute(*path).string();
  }
  std::optional<data::Tokenizer> tokenizer;
  {  // fail before a folder is made
    const RunData run_data = open_run_data(c);
    const auto model = zoo::make_model(c.model, task_of(c, run_data));
    make_optimizer(c, model->parameters());
    make_schedule(c, 1);
    tokenizer = run_data.tokenizer;
  }
  RunFolder run_folder = RunFolder::create(folder);
  if (tokenizer) tokenizer->save(run_folder.file("tokenizer.json"));
  io::write_file_atomic(run_folder.file("config.json"), config_json(c).dump(2) + "\n");
  return Run(c, std::move(run_folder), false, settings).go();
}

}  // namespace cutaway::train
