#include <cutaway/models/train/trainer.h>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <cutaway/autograd/autocast.h>
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
#include <cutaway/models/train/choices.h>
#include <cutaway/models/train/json_fields.h>
#include <cutaway/models/train/language.h>
#include <cutaway/models/train/progress.h>
#include <cutaway/models/train/run_folder.h>
#include <cutaway/models/train/run_report.h>
#include <cutaway/models/train/start.h>
#include <cutaway/models/zoo/pictures.h>
#include <cutaway/nn/files.h>
#include <cutaway/nn/optim/ema.h>
#include <cutaway/nn/optim/scaler.h>
#include <cutaway/nn/sched/plateau.h>
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

// One training run, from its files to its report.
class Run {
 public:
  Run(const TrainConfig& config, RunFolder folder, bool resume, const TrainSettings& settings)
      : config_(config),
        settings_(settings),
        kind_(zoo::kind_of(config.model)),
        device_(device_from_name(config.device)),
        folder_(std::move(folder)),
        data_(open_run_data(config, folder_.path())),
        step_([this](const Tensors& batch) { return run_batch(batch); },
              {.enabled = settings.record}) {
    manual_seed(config.seed);
    model_ = zoo::make_model(config.model, task_of(config, data_));
    const bool goes_on = resume && !latest_checkpoint(folder_.file("checkpoint")).empty();
    if (!config.init.empty() && !goes_on) taken_ = start_from(*model_, config.init);
    model_->to(device_);
    optimizer_.emplace(config, model_->parameters());
    parts_.push_back(optimizer_->saved());
    add_extras();
    loader_.emplace(train_set_, loader_options());
    require(!__builtin_mul_overflow(config.epochs, loader_->batches_per_epoch(), &total_steps_),
            fmt::format("epochs × batches must fit in 64 bits; got {} × {}", config.epochs,
                        loader_->batches_per_epoch()));
    schedule_ = make_schedule(config, total_steps_);
    if (goes_on) {
      progress_ = load_checkpoint(folder_.file("checkpoint"), *model_, parts_);
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
    outcome.classes = test_set_.classes;
    std::string pictures;
    {
      const auto averaged = averaged_weights();
      outcome.test = evaluate(*model_, test_set_);
      if (auto* language = dynamic_cast<zoo::LanguageModel*>(model_.get())) {
        outcome.language = language_result(outcome.test.loss, data_);
        outcome.language->samples = text_samples(*language, data_);
      }
      if (auto* shown = dynamic_cast<zoo::PictureModel*>(model_.get())) {
        pictures = inputs_and_results(*shown, test_set_);
      }
    }
    save();
    outcome.finished = true;
    outcome.waited = loader_->waited() / std::max(stepping_seconds_, 1e-9);
    outcome.step = progress_.step;
    outcome.seconds = seconds_since(begin_);
    write_report({config_, folder_.path(), model_->type(), model_->num_parameters(), &train_set_,
                  &test_set_, &metrics_->rows(), &outcome, std::move(pictures)});
    return outcome;
  }

 private:
  // What a run has beside model and optimiser.
  void add_extras() {
    if (config_.ema > 0) {
      nn::NamedTensors weights;
      for (const nn::Named& n : model_->state_dict()) {
        if (n.value.is_floating()) weights.push_back(n);
      }
      ema_.emplace(std::move(weights), optim::EmaOptions{.decay = config_.ema, .warmup = true});
      parts_.push_back(saved_part("ema", *ema_));
    }
    if (config_.dtype == "f16") {
      scaler_.emplace();
      parts_.push_back(saved_part("scaler", *scaler_));
    }
    if (config_.schedule == "plateau") {
      plateau_.emplace();
      parts_.push_back(saved_part("plateau", *plateau_));
    }
  }

  data::LoaderOptions loader_options() const {
    const bool classes = kind_ != zoo::Kind::language && kind_ != zoo::Kind::pictures;
    data::LoaderOptions o{.batch = config_.batch,
                          .shuffle = true,
                          .seed = config_.seed,
                          .prefetch = 2 * settings_.data_threads,
                          .threads = settings_.data_threads,
                          .augment = data::parse_augmentation(
                              config_.augment, classes ? task_of(train_set_).classes : 1)};
    if (is_padded_text(train_set_)) {  // texts of like length together
      o.sampler = data::Sampler::bucketed(text_lengths(train_set_.inputs),
                                          {.batch = config_.batch, .seed = config_.seed});
    }
    return o;
  }

  // While alive the weights are their averages, if there are any.
  std::unique_ptr<optim::Ema::Swap> averaged_weights() {
    return ema_ ? std::make_unique<optim::Ema::Swap>(*ema_) : nullptr;
  }

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
    if (taken_) {
      say(fmt::format("init   {} tensors of {}", taken_->tensors, config_.init));
      if (!taken_->fresh.empty()) say(fmt::format("fresh  {}", fmt::join(taken_->fresh, " ")));
    }
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
    stepping_seconds_ += seconds_since(epoch_begin);
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
    Evaluation result;
    {
      const auto averaged = averaged_weights();
      result = evaluate(*model_, test_set_);
      keep_if_best(result);
    }
    if (progress_.seen > 0) log_train_row(epoch, rate);
    if (plateau_) plateau_->step(last_loss_);
    log_row(epoch, "test", result.loss, result.accuracy, 0);
    say("           " + result_text(result));
    progress_.position = {epoch + 1, 0};
    loader_->seek(progress_.position);
  }

  std::string result_text(const Evaluation& result) const {
    if (kind_ == zoo::Kind::pictures) return fmt::format("test   loss {:.4f}", result.loss);
    if (kind_ == zoo::Kind::language) {
      const LanguageResult r = language_result(result.loss, data_);
      return fmt::format("validation   {:.4f} nats/char   perplexity {:.3f} per token",
                         r.nats_per_character, r.perplexity);
    }
    return fmt::format("test   loss {:.4f}   accuracy {:.2f} %", result.loss,
                       100 * result.accuracy);
  }

  // A killed run that goes on from an earlier checkpoint comes here again with the same weights.
  void keep_if_best(const Evaluation& result) {
    if (!std::isfinite(result.loss)) return;
    const bool better = kind_ == zoo::Kind::pictures ? result.loss < progress_.best_loss
                                                     : result.accuracy > progress_.best_accuracy;
    if (progress_.best_step >= 0 && !better) return;
    progress_.best_step = progress_.step;
    progress_.best_loss = result.loss;
    if (kind_ != zoo::Kind::pictures) progress_.best_accuracy = result.accuracy;
    nn::save(*model_, folder_.file("best.safetensors"));
  }

  // The mean over the steps since the last row: a curve without jumps where epochs meet.
  void log_train_row(int64_t epoch, double rate) {
    last_loss_ = mean_loss();
    const double share = kind_ == zoo::Kind::pictures
                             ? std::nan("")
                             : double(progress_.correct) / double(progress_.seen);
    log_row(epoch, "train", last_loss_, share, rate);
    progress_.loss_sum = 0;
    progress_.correct = progress_.seen = 0;
  }

  void require_finite(double loss) const {
    if (std::isfinite(loss)) return;
    throw ValueError("train", fmt::format("the loss is {} at step {}", loss, progress_.step),
                     "lower --lr, or give --clip 1");
  }

  // Loss and logits under autocast; of models of pictures the loss alone.
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) {
    const DType low = config_.dtype == "bf16"  ? DType::bf16
                      : config_.dtype == "f16" ? DType::f16
                                               : DType::f32;
    const AutocastGuard autocast(low);
    if (kind_ == zoo::Kind::pictures) {
      return {dynamic_cast<zoo::PictureModel&>(*model_).loss(x), Tensor()};
    }
    Tensor logits = (*model_)(x);
    const bool tokens = kind_ == zoo::Kind::language;
    if (tokens) logits = reshape(logits, {y.numel(), logits.size(-1)});
    const Tensor target = tokens ? reshape(y, {y.numel()}) : y;
    return {cross_entropy(logits, target, {.label_smoothing = config_.label_smoothing}), logits};
  }

  // Gradients of a batch, which goes through the model in parts; its loss and logits.
  std::pair<Tensor, Tensor> gradients(const Tensor& x, const Tensor& y) {
    const auto backward = [&](const Tensor& loss) {
      scaler_ ? scaler_->scale(loss).backward() : loss.backward();
    };
    const int64_t n = x.size(0), parts = std::min(config_.accumulate, n);
    if (parts == 1) {
      auto [loss, logits] = forward(x, y);
      require_finite_on(loss);
      backward(loss);
      return {loss, logits};
    }
    Tensor total;
    Tensors all;
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t begin = n * i / parts, count = n * (i + 1) / parts - begin;
      auto [mean, logits] = forward(narrow(x, 0, begin, count), narrow(y, 0, begin, count));
      const Tensor loss = mean * (double(count) / double(n));
      backward(loss);
      total = total.defined() ? total + loss.detach() : loss.detach();
      if (logits.defined()) all.push_back(logits.detach());
    }
    require_finite_on(total);
    return {total, all.empty() ? Tensor() : cat(all, 0)};
  }

  void require_finite_on(const Tensor& loss) {
    if (device_ == kCpu) {
      recording::each_time("require_finite", {&loss}, [this](const void* const* value) {
        require_finite(element_as_double(value[0], DType::f32, 0));
      });
    } else {
      require_finite(loss.item());
    }
  }

  // A batch → its loss and, where there are any, logits.
  static Tensors results(const Tensor& loss, const Tensor& logits) {
    return logits.defined() ? Tensors{loss, logits} : Tensors{loss};
  }

  // What is recorded.
  Tensors run_batch(const Tensors& batch) {
    const auto [loss, logits] = gradients(batch[0], batch[1]);
    optim::Optimizer& optimizer = *optimizer_->stepping();
    // A gradient that overflowed in f16 leaves the step out instead of being an error.
    const bool good = !scaler_ || scaler_->unscale(optimizer);
    if (config_.clip > 0 && good) {
      optim::clip_grad_norm(optimizer.parameters(), config_.clip, 2, true);
    }
    if (scaler_) {
      scaler_->step(optimizer);
      optimizer.zero_grad();
    } else {
      optimizer.step_and_zero();
    }
    return results(loss, logits);
  }

  // A step of L-BFGS: the loss is asked for several times; that of the first is returned.
  Tensors run_lbfgs(const Tensors& batch) {
    Tensors first;
    optimizer_->lbfgs()->step([&] {
      for (const nn::Named& p : model_->parameters()) Tensor(p.value).zero_grad();
      const auto [loss, logits] = gradients(batch[0], batch[1]);
      if (first.empty()) {
        first = results(loss.detach().clone(), logits.defined() ? logits.detach() : logits);
      }
      return loss;
    });
    return first;
  }

  void train_step(const Tensor& x, const Tensor& y) {
    const double lowered = plateau_ ? plateau_->factor() : 1;
    optimizer_->set_lr(config_.lr * schedule_(progress_.step) * lowered);
    const Tensor shown = is_padded_text(train_set_) ? without_padding(x) : x;
    const Tensors batch = {shown.to(device_), y.to(device_)};
    const Tensors out = optimizer_->lbfgs() ? run_lbfgs(batch) : step_(batch);
    const bool recordable = settings_.record && !optimizer_->lbfgs();
    if (recordable && ++steps_here_ == kExplainAfter && step_.stats().replayed == 0) {
      say(fmt::format("steps run eagerly: {}", step_.why_eager()));
    }
    if (ema_) ema_->update();
    const int64_t told = kind_ == zoo::Kind::language ? y.numel() : y.size(0);
    progress_.loss_sum += out[0].item() * double(told);
    if (out.size() > 1) progress_.correct += count_correct(out[1], y);
    progress_.seen += told;
    ++progress_.step;
  }

  void log_row(int64_t epoch, const char* split, double loss, double accuracy, double rate) {
    metrics_->add({progress_.step, epoch, split, loss, accuracy, optimizer_->lr(), rate,
                   seconds_since(begin_)});
    events_->scalar(fmt::format("loss/{}", split), progress_.step, loss);
    if (kind_ != zoo::Kind::pictures) {
      events_->scalar(fmt::format("accuracy/{}", split), progress_.step, accuracy);
    }
    if (split[1] == 'r') events_->scalar("lr", progress_.step, optimizer_->lr());
  }

  void save() {
    progress_.rows = int64_t(metrics_->rows().size());
    save_checkpoint(folder_.file("checkpoint"), *model_, parts_, progress_);
  }

  TrainConfig config_;
  TrainSettings settings_;
  zoo::Kind kind_;
  Device device_;
  RunFolder folder_;
  RunData data_;
  data::Dataset &train_set_ = data_.train, &test_set_ = data_.test;
  std::unique_ptr<nn::Module> model_;
  std::optional<Taken> taken_;  // from config.init, by this process
  std::optional<ChosenOptimizer> optimizer_;
  std::optional<optim::Ema> ema_;
  std::optional<optim::GradScaler> scaler_;  // f16
  std::optional<sched::Plateau> plateau_;
  std::vector<SavedPart> parts_;  // of checkpoints
  std::optional<data::Loader> loader_;
  sched::Schedule schedule_ = sched::constant();
  std::optional<MetricsFile> metrics_;
  std::optional<io::EventWriter> events_;
  RecordedStep step_;
  int64_t steps_here_ = 0;  // of this process
  int64_t total_steps_ = 0;
  Progress progress_;
  double last_loss_ = 0;
  double stepping_seconds_ = 0;  // of this process, without tests and checkpoints at their ends
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

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
  for (std::string* path : {&c.data, &c.tokenizer, &c.init}) {
    if (std::filesystem::exists(*path, ignored)) *path = std::filesystem::absolute(*path).string();
  }
  std::optional<data::Tokenizer> tokenizer;
  {  // fail before a folder is made
    const RunData run_data = open_run_data(c);
    const zoo::Task task = task_of(c, run_data);
    const auto model = zoo::make_model(c.model, task);
    if (!c.init.empty()) start_from(*model, c.init);
    require(run_data.train.inputs.dtype() != DType::i64 || c.augment.empty(),
            fmt::format("augment changes images; {} has none", run_data.train.name));
    require(zoo::kind_of(c.model) != zoo::Kind::pictures || c.label_smoothing == 0,
            "label smoothing is for classes; " + c.model + " learns from pictures alone");
    data::parse_augmentation(c.augment, std::max<int64_t>(task.classes, 1));
    const ChosenOptimizer optimizer(c, model->parameters());
    make_schedule(c, 1);
    tokenizer = run_data.tokenizer;
  }
  RunFolder run_folder = RunFolder::create(folder);
  if (tokenizer) tokenizer->save(run_folder.file("tokenizer.json"));
  io::write_file_atomic(run_folder.file("config.json"), config_text(c));
  return Run(c, std::move(run_folder), false, settings).go();
}

}  // namespace cutaway::train
