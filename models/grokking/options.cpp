#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/core/text.h>
#include <cutaway/models/grokking/train.h>
#include <cutaway/models/train/json_fields.h>

namespace cutaway::grokking {
namespace {

// Every field once: fn(name, member).
template <class O, class Fn>
void each_field(O& o, Fn fn) {
  fn("task", o.task), fn("p", o.p), fn("train_fraction", o.train_fraction);
  fn("weight_decay", o.weight_decay), fn("lr", o.lr), fn("model", o.model), fn("d", o.d);
  fn("heads", o.heads), fn("hidden", o.hidden), fn("prompt", o.prompt), fn("lambda", o.lambda);
  fn("optimizer", o.optimizer), fn("epochs", o.epochs), fn("after", o.after), fn("seed", o.seed);
  fn("tuples", o.tuples), fn("assoc", o.assoc), fn("domain", o.domain);
  fn("unordered", o.unordered), fn("binary", o.binary), fn("unchecked", o.unchecked);
  fn("pairs_max", o.pairs_max), fn("embed_scale", o.embed_scale);
  fn("output_scale", o.output_scale), fn("eval_tuples", o.eval_tuples);
}

void need(bool holds, const std::string& what) {
  if (!holds) throw ValueError("grok", what);
}

void one_of(const std::string& option, const std::string& value,
            const std::vector<std::string>& known) {
  need(std::find(known.begin(), known.end(), value) != known.end(),
       fmt::format("{} must be one of {}; got \"{}\"", option, fmt::join(known, ", "), value));
}

void check_law(const RunOptions& o, const Task& task, Law law) {
  if (task.has(law)) return;
  std::string why = fmt::format("{} does not belong to task {}", law_name(law), task.name);
  if (law == Law::associativity && !task.offence.empty()) why += ": " + task.offence;
  if (law == Law::commutativity && task.length == 2 && !task.second && task.offence.empty())
    why += ": its laws are others";
  throw ValueError("grok", fmt::format("--prompt {}: {}", o.prompt, why));
}

}  // namespace

RunOptions preset(const std::string& name, const std::string& task) {
  RunOptions o{.task = task};
  const bool graph = task.starts_with("graph:"), compare = task.starts_with("compare:");
  one_of("--preset", name, {"ci", "paper"});
  if (name == "paper") {
    o.p = 113, o.d = 128, o.hidden = 512, o.lr = 1e-3, o.epochs = 100000;
    o.train_fraction = graph ? 0.8 : compare ? 0.2 : 0.3;
    o.weight_decay = graph ? 3 : 1;
  } else if (graph) {
    o.train_fraction = 0.8, o.weight_decay = 3, o.lr = 1e-3;
  } else if (compare) {
    o.train_fraction = 0.2, o.weight_decay = 1, o.lr = 1e-3;
  }
  return o;
}

void save_options(const RunOptions& options, const std::string& path) {
  train::save_fields(
      options, [](auto& o, auto&& visit) { each_field(o, visit); }, path);
}

RunOptions load_options(const std::string& path) {
  return train::load_fields<RunOptions>(
      "grok", [](auto& o, auto&& visit) { each_field(o, visit); }, path);
}

void check_options(const RunOptions& o, const Task& task) {
  one_of("--prompt", o.prompt,
         {"none", "comm", "assoc", "both", "triangle", "trans", "nuclear", "entropy", "lipschitz",
          "augment"});
  one_of("--optim", o.optimizer, {"adamw", "grokfast"});
  one_of("--model", o.model, {"transformer", "mlp"});
  one_of("--assoc", o.assoc, {"rule", "soft"});
  one_of("--sym-domain", o.domain, {"all", "train"});
  need(o.d >= 1 && o.d <= 4096, fmt::format("--d must lie between 1 and 4096; got {}", o.d));
  need(o.heads >= 1 && o.d % o.heads == 0,
       fmt::format("--d {} is not divisible by {} heads", o.d, o.heads));
  need(o.hidden >= 1 && o.hidden <= 65536, "--hidden must lie between 1 and 65536");
  need(o.epochs >= 1 && o.epochs <= 10000000, "--epochs must lie between 1 and 10000000");
  need(o.after >= 0, "--after must not be negative");
  need(o.tuples >= 1 && o.tuples <= 100000, "--tuples must lie between 1 and 100000");
  need(o.lr > 0 && std::isfinite(o.lr), "--lr must be positive");
  need(o.weight_decay >= 0 && std::isfinite(o.weight_decay), "--wd must not be negative");
  need(o.lambda >= 0 && std::isfinite(o.lambda), "--lambda must not be negative");
  need(o.embed_scale > 0 && o.output_scale > 0, "scales must be positive");
  need(o.eval_tuples >= 1, "need at least one evaluation instance");
  if (o.prompt == "comm" || o.prompt == "both") check_law(o, task, Law::commutativity);
  if (o.prompt == "assoc" || o.prompt == "both") check_law(o, task, Law::associativity);
  if (o.prompt == "triangle") check_law(o, task, Law::triangle);
  if (o.prompt == "trans") check_law(o, task, Law::transitivity);
  if (o.prompt == "augment") {
    check_law(o, task, Law::commutativity);
    need(task.name != "sub" || o.unchecked, "--prompt augment: x − y is not y − x");
  }
  const bool assoc = o.prompt == "assoc" || o.prompt == "both";
  need(o.assoc == "rule" || (assoc && task.second),
       "--assoc soft needs an associativity prompt and a task whose inner term is an answer");
}

Task task_of(const RunOptions& o) {
  return make_task({.name = o.task,
                    .p = o.p,
                    .pairs_max = o.pairs_max,
                    .binary = o.binary,
                    .unchecked = o.unchecked,
                    .seed = o.seed});
}

std::unique_ptr<Network> network_of(const RunOptions& o, const Task& task) {
  const NetworkOptions n{.vocabulary = task.vocabulary(),
                         .entities = task.entities,
                         .length = task.length,
                         .classes = int64_t(task.classes.size()),
                         .d = o.d,
                         .heads = o.heads,
                         .hidden = o.hidden,
                         .embed_scale = o.embed_scale,
                         .output_scale = o.output_scale,
                         .seed = o.seed};
  if (o.model == "mlp") return std::make_unique<Mlp>(n);
  return std::make_unique<Transformer>(n);
}

}  // namespace cutaway::grokking
