// Training with two optimisers, rewiring and early stop (section 4 of the method).
#include <cutaway/models/haste/train.h>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <tuple>
#include <utility>

#include <cutaway/core/error.h>
#include <cutaway/models/haste/checkpoint.h>

namespace cutaway::haste {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kOrderStream = 14;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// "P@3" of the metrics, or "PSP@5".
double measure_of(const Metrics& m, const std::string& name) {
  const std::vector<double>& values = name.starts_with("PSP") ? m.psp : m.precision;
  return values[size_t(name.back() - '1')];
}

class Trainer {
 public:
  Trainer(const RunOptions& o, const Prepared& data, const RunHooks& hooks)
      : o_(o), data_(data), hooks_(hooks), model_(o, sizes_of(data)) {
    samples_ = data.set.train.rows();
    per_epoch_ = (samples_ + o.batch - 1) / o.batch;
    steps_ = per_epoch_ * o.epochs;
    at_.batch_rows = o.batch;
    if (hooks.folder.empty()) return;
    std::filesystem::create_directories(hooks.folder);
    if (!std::filesystem::exists(last())) return;
    at_ = load_training(last(), model_, data.order);
    if (at_.batch_rows != o.batch || at_.step != at_.epoch * per_epoch_ + at_.batch) {
      throw ValueError("xmc",
                       fmt::format("{} was made with --batch {} or other data: step {} is not "
                                   "batch {} of epoch {}",
                                   last(), at_.batch_rows, at_.step, at_.batch, at_.epoch));
    }
  }

  RunResult go() {
    result_.options = o_;
    if (hooks_.on_start) hooks_.on_start(at_.epoch);
    while (at_.epoch < o_.epochs && !out_of_patience()) {
      if (!run_epoch()) {
        save();
        finish(false);
        return result_;
      }
    }
    finish(true);
    return result_;
  }

 private:
  std::string last() const { return hooks_.folder + "/last.safetensors"; }
  std::string best() const { return hooks_.folder + "/best.safetensors"; }

  bool out_of_patience() const {
    return at_.best_epoch > 0 && at_.epoch - at_.best_epoch >= o_.patience;
  }
  bool asked_to_stop() const {
    return (hooks_.stop_after >= 0 && result_.steps >= hooks_.stop_after) ||
           (hooks_.stop && hooks_.stop());
  }

  // False when it was asked to stop before the end.
  bool run_epoch() {
    if (asked_to_stop()) return false;
    Generator random{.seed = o_.seed, .stream = kOrderStream, .offset = uint64_t(at_.epoch) << 36};
    const std::vector<int64_t> order = permutation(samples_, random);
    const auto begin = Clock::now();
    const int64_t first = at_.batch;
    for (; at_.batch < per_epoch_;) {
      train_step(order);
      ++at_.batch;
      if (hooks_.on_step) {
        const double done = double((at_.batch - first) * o_.batch);
        hooks_.on_step(at_.epoch + 1, at_.batch, per_epoch_, mean_loss(),
                       done / std::max(seconds_since(begin), 1e-9));
      }
      if (at_.batch == per_epoch_) break;
      if (asked_to_stop()) {
        result_.step_seconds += seconds_since(begin);
        return false;
      }
      if (o_.checkpoint_every > 0 && at_.step % o_.checkpoint_every == 0) save();
    }
    const double seconds = seconds_since(begin);
    result_.step_seconds += seconds;
    end_epoch(seconds);
    return true;
  }

  void train_step(const std::vector<int64_t>& order) {
    const int64_t from = at_.batch * o_.batch, to = std::min(from + o_.batch, samples_);
    const std::vector<int64_t> rows(order.begin() + from, order.begin() + to);
    const double factor = rate_factor(o_, steps_, at_.step);
    const bool want_loss = at_.step % o_.log_every == 0;
    const double loss =
        model_.step(make_batch(data_.set.train.features, rows), take_rows(data_.train_labels, rows),
                    {.lr_out = o_.lr_out * factor,
                     .lr_encoder = o_.lr_encoder * factor,
                     .aux = o_.aux_weight * aux_factor(steps_, at_.step),
                     .step = at_.step,
                     .want_loss = want_loss});
    if (want_loss) {
      at_.loss_sum += loss / double(rows.size());
      ++at_.loss_count;
      if (!std::isfinite(loss)) {
        throw ValueError("xmc", fmt::format("the loss is {} at step {}", loss, at_.step + 1),
                         "lower --lr-out, or give a longer --warmup");
      }
    }
    ++at_.step, ++result_.steps;
    samples_done_ += to - from;
    if (rewires_at(o_, at_.step, at_.epoch)) {
      const double period = std::floor(0.66 * double(o_.epochs)) * double(per_epoch_);
      at_.rewired += model_.rewire_tail(at_.step, double(at_.step) / std::max(period, 1.0));
    }
  }

  double mean_loss() const {
    return at_.loss_count > 0 ? at_.loss_sum / double(at_.loss_count) : NAN;
  }

  Metrics measure() {
    return evaluate(model_, data_.set.test, data_.set.filter, data_.order, data_.frequency,
                    samples_, {.chunk = o_.chunk, .batch = o_.batch}, metrics_of(o_));
  }

  void end_epoch(double seconds) {
    const Metrics m = measure();
    EpochRow row{.epoch = at_.epoch + 1,
                 .step = at_.step,
                 .loss = mean_loss(),
                 .p = m.precision,
                 .psp = m.psp,
                 .rewired = at_.rewired,
                 .seconds = seconds};
    ++at_.epoch;
    at_.batch = at_.loss_count = at_.rewired = 0;
    at_.loss_sum = 0;
    // P@5 decides between equals.
    const std::pair reached{measure_of(m, o_.best_by), m.precision[4]};
    if (reached > std::pair{at_.best, at_.best_p5}) {
      std::tie(at_.best, at_.best_p5) = reached;
      at_.best_epoch = at_.epoch;
      result_.best = m;
      measured_best_ = true;
      if (!hooks_.folder.empty()) {
        save_weights(best(), model_, data_.order,
                     {.words = data_.set.train.num_features(),
                      .samples = samples_,
                      .epoch = at_.epoch,
                      .frequency = data_.frequency});
      }
    }
    if (hooks_.on_row) hooks_.on_row(row);
    result_.rows.push_back(std::move(row));
    save();
  }

  void save() {
    if (!hooks_.folder.empty()) save_training(last(), model_, data_.order, at_);
  }

  void finish(bool finished) {
    result_.finished = finished;
    result_.best_epoch = at_.best_epoch;
    result_.memory = model_.memory();
    for (const auto& [name, bytes] : result_.memory) {
      if (name.starts_with("tail.")) result_.tail_bytes += bytes;
    }
    result_.samples_per_second = double(samples_done_) / std::max(result_.step_seconds, 1e-9);
    if (!finished || measured_best_ || at_.best_epoch == 0) return;
    // The best epoch was one of an earlier process.
    model_.load(load_weights(best()).tensors, false);
    result_.best = measure();
  }

  const RunOptions& o_;
  const Prepared& data_;
  const RunHooks& hooks_;
  Model model_;
  Progress at_;
  RunResult result_;
  int64_t samples_ = 0, per_epoch_ = 0, steps_ = 0, samples_done_ = 0;
  bool measured_best_ = false;
};

}  // namespace

Prepared prepare(const RunOptions& options, XmcSet set) {
  check_options(options);
  const auto begin = Clock::now();
  if (set.train.rows() == 0 || set.test.rows() == 0) {
    throw ValueError("xmc",
                     fmt::format("the {} set of {} is empty",
                                 set.train.rows() == 0 ? "training" : "test", set.name),
                     "give samples in --data and --test");
  }
  Prepared p{.set = std::move(set)};
  p.order = order_labels(p.set.train, grouping_of(options));
  p.frequency = label_frequencies(p.set.train.labels);
  p.train_labels = reorder_labels(p.set.train.labels, p.order);
  p.seconds = seconds_since(begin);
  return p;
}

ModelSizes sizes_of(const Prepared& p) {
  ModelSizes sizes{.words = p.set.train.num_features(),
                   .labels = p.set.train.num_labels(),
                   .head = p.order.head};
  // A label never seen counts as half a sample.
  for (int32_t label : p.order.label) {
    sizes.prior.push_back(std::max(0.5, double(p.frequency[size_t(label)])) /
                          double(p.set.train.rows()));
  }
  return sizes;
}

double rate_factor(const RunOptions& o, int64_t steps, int64_t step) {
  const int64_t warm = std::min(o.warmup, steps / 2);
  if (step < warm) return double(step + 1) / double(warm + 1);
  const double t = double(step - warm) / double(std::max<int64_t>(steps - warm, 1));
  return (1 + std::cos(std::numbers::pi * std::min(t, 1.0))) / 2;
}

double aux_factor(int64_t steps, int64_t step) {
  const double t = double(step) / std::max(0.4 * double(steps), 1.0);
  return t >= 1 ? 0 : (1 + std::cos(std::numbers::pi * t)) / 2;
}

RunResult train(const RunOptions& options, const Prepared& prepared, const RunHooks& hooks) {
  check_options(options);
  return Trainer(options, prepared, hooks).go();
}

}  // namespace cutaway::haste
