#include <cutaway/models/haste/options.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/core/text.h>
#include <cutaway/models/train/json_fields.h>

namespace cutaway::haste {
namespace {

// Every field once: fn(name, member).
template <class O, class Fn>
void each_field(O& o, Fn fn) {
  fn("data", o.data), fn("test", o.test), fn("filter", o.filter), fn("encoder", o.encoder);
  fn("split", o.split), fn("limit", o.limit), fn("samples", o.samples), fn("labels", o.labels);
  fn("vocabulary", o.vocabulary), fn("min_positives", o.min_positives);
  fn("min_words", o.min_words);
  fn("hidden", o.hidden), fn("blocks", o.blocks), fn("heads", o.heads), fn("words", o.words);
  fn("embed_scale", o.embed_scale), fn("features", o.features), fn("dropout", o.dropout);
  fn("head_dropout", o.head_dropout), fn("layer", o.layer), fn("head_ratio", o.head_ratio);
  fn("group", o.group), fn("fan_in", o.fan_in), fn("grouping", o.grouping);
  fn("index_replace", o.index_replace), fn("dtype", o.dtype), fn("bias_init", o.bias_init);
  fn("loss", o.loss), fn("chunk", o.chunk), fn("rewire_mode", o.rewire_mode);
  fn("rewire_score", o.rewire_score), fn("rewire_init", o.rewire_init);
  fn("rewire_interval", o.rewire_interval), fn("rewire_fraction", o.rewire_fraction);
  fn("keep_momentum", o.keep_momentum), fn("aux_weight", o.aux_weight);
  fn("aux_groups", o.aux_groups), fn("epochs", o.epochs), fn("batch", o.batch);
  fn("warmup", o.warmup), fn("patience", o.patience), fn("best_by", o.best_by);
  fn("lr_out", o.lr_out);
  fn("momentum", o.momentum), fn("weight_decay", o.weight_decay), fn("lr_encoder", o.lr_encoder);
  fn("encoder_decay", o.encoder_decay), fn("seed", o.seed), fn("log_every", o.log_every);
  fn("checkpoint_every", o.checkpoint_every), fn("psp_a", o.psp_a), fn("psp_b", o.psp_b);
}

void need(bool holds, const std::string& rule, const std::string& hint = {}) {
  if (!holds) throw ValueError("xmc", rule, hint);
}

void one_of(const char* option, const std::string& value, const std::vector<std::string>& known) {
  need(std::find(known.begin(), known.end(), value) != known.end(),
       fmt::format("{} must be one of {}; got \"{}\"", option, fmt::join(known, ", "), value));
}

void between(const char* option, double value, double low, double high) {
  need(value >= low && value <= high,
       fmt::format("{} must lie between {} and {}; got {}", option, low, high, value));
}

void check_names(const RunOptions& o) {
  one_of("--split", o.split, {"source", "name"});
  one_of("--encoder", o.encoder, {"bag", "transformer"});
  one_of("--features", o.features, {"split", "shared", "proj"});
  one_of("--layer", o.layer, {"haste", "ffi", "dense", "block", "bottleneck"});
  grouping_from(o.grouping);
  one_of("--dtype", o.dtype, {"fp32", "bf16"});
  one_of("--bias-init", o.bias_init, {"prior", "zero"});
  one_of("--loss", o.loss, {"bce", "hinge"});
  one_of("--rewire-mode", o.rewire_mode, {"fraction", "threshold", "none"});
  one_of("--rewire-score", o.rewire_score, {"mean", "max", "grad"});
  one_of("--rewire-init", o.rewire_init, {"zero", "uniform"});
  one_of("--best-by", o.best_by, {"P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5"});
}

void check_layer(const RunOptions& o) {
  need(o.head_ratio >= 0 && o.head_ratio < 1,
       fmt::format("--head-ratio must lie in [0, 1); got {}", o.head_ratio),
       "0.02 to 0.1 of the labels make a head; 0 leaves it out");
  between("--group", double(o.group), 1, 4096);
  const int64_t width = branches_of(o).tail_width;
  if (o.layer == "dense") return;
  need(o.fan_in >= 16 && o.fan_in % 16 == 0,
       fmt::format("--fan-in must be a multiple of 16; got {}", o.fan_in),
       fmt::format("take {}", std::max<int64_t>(16, (o.fan_in + 15) / 16 * 16)));
  need(o.fan_in <= width,
       fmt::format("--fan-in {} is more than the {} features that the tail reads", o.fan_in, width),
       "raise --hidden, or let both branches read all of it: --features shared");
  need(o.layer != "block" || width % o.fan_in == 0,
       fmt::format("blocks of --fan-in {} do not divide the {} features that the tail reads",
                   o.fan_in, width),
       "choose a divisor");
}

void check_rewiring(const RunOptions& o) {
  between("--rewire-fraction", o.rewire_fraction, 0, 1);
  between("--rewire-interval", double(o.rewire_interval), 1, 1e9);
  need(o.rewire_score != "grad" || o.momentum > 0,
       "--rewire-score grad weighs by the running gradient, which needs --momentum above 0",
       "give --momentum 0.9, or take --rewire-score mean");
}

}  // namespace

void save_options(const RunOptions& options, const std::string& path) {
  train::save_fields(
      options, [](auto& o, auto&& visit) { each_field(o, visit); }, path);
}

RunOptions load_options(const std::string& path) {
  return train::load_fields<RunOptions>(
      "xmc", [](auto& o, auto&& visit) { each_field(o, visit); }, path);
}

void check_options(const RunOptions& o) {
  check_names(o);
  between("--hidden", double(o.hidden), 16, 65536);
  need(o.features == "shared" || o.hidden % 2 == 0,
       fmt::format("--features {} halves --hidden, which must be even; got {}", o.features,
                   o.hidden));
  if (o.encoder == "transformer") {
    between("--blocks", double(o.blocks), 1, 64);
    between("--words", double(o.words), 1, 512);
    need(o.heads >= 1 && o.hidden % o.heads == 0,
         fmt::format("--hidden {} is not divisible by {} heads", o.hidden, o.heads));
  }
  check_layer(o);
  check_rewiring(o);
  between("--dropout", o.dropout, 0, 0.95);
  between("--head-dropout", o.head_dropout, 0, 0.95);
  between("--embed-scale", o.embed_scale, 1e-6, 100);
  between("--chunk", double(o.chunk), 1, 1 << 24);
  between("--psp-a", o.psp_a, 0, 4);
  between("--psp-b", o.psp_b, 0, 1000);
  between("--aux", o.aux_weight, 0, 0.95);
  between("--aux-groups", double(o.aux_groups), 0, 1 << 24);
  between("--epochs", double(o.epochs), 1, 1e6);
  between("--batch", double(o.batch), 1, 1 << 20);
  between("--warmup", double(o.warmup), 0, 1e9);
  between("--patience", double(o.patience), 1, 1e9);
  between("--lr-out", o.lr_out, 0, 1e3);
  between("--lr-enc", o.lr_encoder, 0, 10);
  need(o.momentum >= 0 && o.momentum < 1,
       fmt::format("--momentum must lie in [0, 1); got {}", o.momentum));
  between("--wd", o.weight_decay, 0, 1);
  between("--wd-enc", o.encoder_decay, 0, 1);
  between("--log-every", double(o.log_every), 1, 1e9);
  between("--checkpoint-every", double(o.checkpoint_every), 0, 1e9);
}

Branches branches_of(const RunOptions& o) {
  const int64_t h = o.hidden, half = h / 2;
  // With one layer alone nothing is to be kept apart.
  const bool alone = o.layer == "dense" || o.head_ratio == 0;
  if (o.features == "shared" || alone) return {0, h, 0, h};
  return {0, half, half, h - half};
}

SetOptions set_of(const RunOptions& o) {
  return {.name = o.data,
          .test = o.test,
          .filter = o.filter,
          .synth = {.train = o.samples,
                    .test = o.samples / 5,
                    .labels = o.labels,
                    .words = o.vocabulary,
                    .seed = o.seed},
          .debian = {.split = o.split == "name" ? Split::name : Split::source, .limit = o.limit},
          .build = {.min_positives = o.min_positives, .min_words = o.min_words}};
}

GroupingOptions grouping_of(const RunOptions& o) {
  return {.method = grouping_from(o.grouping),
          .group = o.group,
          .head_ratio = o.layer == "dense" ? 0 : o.head_ratio,
          .seed = o.seed};
}

EvaluateOptions metrics_of(const RunOptions& o) { return {.a = o.psp_a, .b = o.psp_b}; }

}  // namespace cutaway::haste
