// The options of a run: their check, their file, and what they choose.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include <cutaway/core/error.h>
#include <cutaway/models/train/choices.h>
#include <cutaway/models/train/json_fields.h>
#include <cutaway/nn/optim/adaptive.h>
#include <cutaway/nn/optim/muon.h>

namespace cutaway::train {
namespace {

void require(bool good, const std::string& rule) {
  if (!good) throw ValueError("train", rule);
}

template <class Optimizer, class Options>
std::unique_ptr<optim::Optimizer> make(const TrainConfig& c, nn::NamedTensors parameters) {
  Options o{.lr = c.lr, .weight_decay = c.weight_decay};
  if constexpr (std::is_same_v<Optimizer, optim::Sgd>) o.momentum = c.momentum;
  return std::make_unique<Optimizer>(std::move(parameters), o);
}

std::unique_ptr<optim::Optimizer> stepping_optimizer(const TrainConfig& c,
                                                     nn::NamedTensors parameters) {
  using namespace optim;
  using Make = std::unique_ptr<Optimizer> (*)(const TrainConfig&, nn::NamedTensors);
  constexpr std::pair<const char*, Make> known[] = {{"sgd", make<Sgd, SgdOptions>},
                                                    {"adam", make<Adam, AdamOptions>},
                                                    {"adamw", make<AdamW, AdamWOptions>},
                                                    {"rmsprop", make<Rmsprop, RmspropOptions>},
                                                    {"adagrad", make<Adagrad, AdagradOptions>},
                                                    {"lion", make<Lion, LionOptions>},
                                                    {"muon", make<Muon, MuonOptions>}};
  for (const auto& [name, make_one] : known) {
    if (c.optimizer == name) return make_one(c, std::move(parameters));
  }
  throw ValueError("train", fmt::format("unknown optimiser \"{}\"; need sgd, adam, adamw, rmsprop, "
                                        "adagrad, lion, muon or lbfgs",
                                        c.optimizer));
}

}  // namespace

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
  require(c.dtype == "f32" || c.dtype == "bf16" || c.dtype == "f16",
          fmt::format("unknown dtype \"{}\"; need f32, bf16 or f16", c.dtype));
  data::parse_resize(c.resize);
  require(c.label_smoothing >= 0 && c.label_smoothing <= 1,
          fmt::format("label smoothing must be from 0 to 1; got {}", c.label_smoothing));
  require(c.ema >= 0 && c.ema < 1, fmt::format("ema must be from 0 to below 1; got {}", c.ema));
  require(c.accumulate >= 1 && c.accumulate <= c.batch,
          fmt::format("accumulate must be 1 to the batch size; got {}", c.accumulate));
  require(c.optimizer != "lbfgs" || (c.accumulate == 1 && c.clip == 0 && c.dtype == "f32"),
          "lbfgs takes no clip, accumulate or dtype");
  require(c.log_every >= 1, fmt::format("log-every must be ≥ 1; got {}", c.log_every));
}

std::string config_text(const TrainConfig& c) {
  nlohmann::json fields = {{"version", CUTAWAY_VERSION},
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
                           {"device", c.device},
                           {"dtype", c.dtype},
                           {"augment", c.augment},
                           {"label_smoothing", c.label_smoothing},
                           {"ema", c.ema},
                           {"decay_all", int64_t(c.decay_all)},
                           {"accumulate", c.accumulate}};
  if (zoo::reads_text(zoo::kind_of(c.model))) {
    fields.update({{"tokenizer", c.tokenizer},
                   {"context", c.context},
                   {"layers", c.layers},
                   {"heads", c.heads},
                   {"width", c.width},
                   {"dropout", c.dropout}});
  }
  if (!c.resize.empty()) fields["resize"] = c.resize;
  if (!c.init.empty()) fields["init"] = c.init;
  return fields.dump(2) + "\n";
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
  // Not in files of earlier versions.
  if (j.contains("device")) c.device = text("device");
  if (j.contains("dtype")) c.dtype = text("dtype");
  if (j.contains("augment")) c.augment = text("augment");
  if (j.contains("resize")) c.resize = text("resize");
  if (j.contains("label_smoothing")) c.label_smoothing = number("label_smoothing");
  if (j.contains("ema")) c.ema = number("ema");
  if (j.contains("decay_all")) c.decay_all = count("decay_all") != 0;
  if (j.contains("accumulate")) c.accumulate = count("accumulate");
  if (j.contains("init")) c.init = text("init");
  if (zoo::reads_text(zoo::kind_of(c.model))) {
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

ChosenOptimizer::ChosenOptimizer(const TrainConfig& c, nn::NamedTensors parameters) {
  if (c.optimizer == "lbfgs") {
    lbfgs_ = std::make_unique<optim::Lbfgs>(std::move(parameters),
                                            optim::LbfgsOptions{.lr = c.lr, .strong_wolfe = true});
    return;
  }
  // Norms and biases: what has one dimension. They take no decay unless asked for.
  optim::ParamGroup small{.names = {}, .weight_decay = 0};
  for (const nn::Named& p : parameters) {
    if (p.value.dim() <= 1) small.names.push_back(p.name);
  }
  stepping_ = stepping_optimizer(c, std::move(parameters));
  if (!c.decay_all && c.weight_decay > 0 && !small.names.empty()) stepping_->set_groups({small});
}

double ChosenOptimizer::lr() const { return lbfgs_ ? lbfgs_->lr() : stepping_->lr(); }
void ChosenOptimizer::set_lr(double lr) { lbfgs_ ? lbfgs_->set_lr(lr) : stepping_->set_lr(lr); }

SavedPart ChosenOptimizer::saved() const {
  if (lbfgs_) return saved_part("optim", *lbfgs_);
  return saved_part("optim", *stepping_);
}

sched::Schedule make_schedule(const TrainConfig& c, int64_t steps) {
  const int64_t total = std::max<int64_t>(steps, 1), warm = std::max<int64_t>(total / 20, 1);
  const int64_t third = std::max<int64_t>(total / 3, 1), fifth = std::max<int64_t>(total / 5, 1);
  const int64_t rest = std::max<int64_t>(total - warm, 1);
  using Make = std::function<sched::Schedule()>;
  const std::pair<const char*, Make> known[] = {
      {"constant", [] { return sched::constant(); }},
      {"plateau", [] { return sched::constant(); }},
      {"step", [&] { return sched::step(third); }},
      {"multi-step",
       [&] {
         return sched::multi_step({total / 2, total - total / 4});
       }},
      {"exponential", [&] { return sched::exponential(std::pow(0.01, 1.0 / double(total))); }},
      {"cosine", [&] { return sched::cosine(total); }},
      {"cosine-restarts", [&] { return sched::cosine_restarts(third); }},
      {"linear", [&] { return sched::linear(total, 1, 0); }},
      {"polynomial", [&] { return sched::polynomial(total, 2); }},
      {"warmup-cosine", [&] { return sched::warmup(warm, 0.05, sched::cosine(rest)); }},
      {"one-cycle", [&] { return sched::one_cycle(std::max<int64_t>(total, 10)); }},
      {"inverse-sqrt", [&] { return sched::inverse_sqrt(warm); }},
      {"cyclic", [&] { return sched::cyclic(std::max<int64_t>(total / 6, 1), 0, 0.1); }},
      {"warmup-stable-decay",
       [&] {
         const int64_t stable = std::max<int64_t>(total - warm - fifth, 0);
         return sched::warmup_stable_decay(warm, stable, fifth);
       }},
  };
  std::string names;
  for (const auto& [name, make] : known) {
    if (c.schedule == name) return make();
    names += std::string(" ") + name;
  }
  throw ValueError("train",
                   fmt::format("unknown schedule \"{}\"; known are:{}", c.schedule, names));
}

}  // namespace cutaway::train
