// grok train | sweep | criterion | inspect: how a network comes to generalise.
#include <fmt/format.h>
#include <cmath>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/models/grokking/run_files.h>
#include <cutaway/models/reproduce/reproduce.h>
#include <cutaway/models/train/progress.h>
#include <cutaway/models/train/run_folder.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

using grokking::RunOptions;
using grokking::RunResult;

// Options of a run: those given on the command line replace those of the preset.
struct GrokArgs {
  Common common;
  std::string preset = "ci";
  RunOptions given;
  std::vector<std::pair<CLI::Option*, std::function<void(RunOptions&)>>> setters;
  int seeds = 5;
  std::string prompts = "none,both", path;
  std::vector<std::string> folders;

  template <class T>
  void add(CLI::App& c, const char* name, T RunOptions::*member, const char* about) {
    CLI::Option* option = nullptr;
    if constexpr (std::is_same_v<T, bool>) {
      option = c.add_flag(name, given.*member, about);
    } else {
      option = c.add_option(name, given.*member, about);
    }
    setters.push_back({option, [this, member](RunOptions& o) { o.*member = given.*member; }});
  }
  RunOptions options() const {
    RunOptions o = grokking::preset(preset, given.task);
    for (const auto& [option, set] : setters) {
      if (option->count()) set(o);
    }
    o.seed = common.seed;
    return o;
  }
};

void add_run_options(CLI::App& c, GrokArgs& a) {
  add_common(c, a.common);
  c.add_option("--preset", a.preset, "ci (small, minutes) or paper")->capture_default_str();
  a.add(c, "--task", &RunOptions::task,
        "add sub sq cube mul affine quad random s5, table:FILE, graph:NAME or graph:FILE, "
        "compare:2d|3d|FILE");
  a.add(c, "--p", &RunOptions::p, "Modulus");
  a.add(c, "--train-frac", &RunOptions::train_fraction, "Share of inputs that train");
  a.add(c, "--wd", &RunOptions::weight_decay, "Decoupled weight decay");
  a.add(c, "--lr", &RunOptions::lr, "Learning rate");
  a.add(c, "--model", &RunOptions::model, "transformer or mlp");
  a.add(c, "--d", &RunOptions::d, "Width");
  a.add(c, "--heads", &RunOptions::heads, "Attention heads");
  a.add(c, "--hidden", &RunOptions::hidden, "Width of the MLP");
  a.add(c, "--lambda", &RunOptions::lambda, "Weight of the prompt");
  a.add(c, "--optim", &RunOptions::optimizer, "adamw or grokfast");
  a.add(c, "--epochs", &RunOptions::epochs, "Limit");
  a.add(c, "--after", &RunOptions::after, "Epochs after test accuracy 100 %");
  a.add(c, "--tuples", &RunOptions::tuples, "Symmetry instances of each law and step");
  a.add(c, "--assoc", &RunOptions::assoc, "Intermediates by rule, or soft: the model's own");
  a.add(c, "--sym-domain", &RunOptions::domain, "Instances from all inputs, or touching train");
  a.add(c, "--unordered", &RunOptions::unordered, "Keep (v,u) on the side of (u,v)");
  a.add(c, "--binary", &RunOptions::binary, "Comparison with answers true and false");
  a.add(c, "--unchecked", &RunOptions::unchecked, "Allow commutativity where it does not hold");
  a.add(c, "--pairs-max", &RunOptions::pairs_max, "Sample pairs of larger graphs");
  a.add(c, "--embed-scale", &RunOptions::embed_scale, "Factor on the initial embedding");
  a.add(c, "--output-scale", &RunOptions::output_scale, "Factor on the logits");
}

std::string epoch_text(int64_t t) { return t < 0 ? "never" : std::to_string(t); }

std::string domain_text(const RunOptions& o) {
  return o.domain == "all" ? "symmetry instances come from all inputs: unlabelled test inputs take "
                             "part, their answers do not"
                           : "symmetry instances hold at least one training input";
}

int run_train(const GrokArgs& a) {
  apply_common(a.common);
  const RunOptions o = a.options();
  const grokking::Task task = grokking::task_of(o);
  grokking::check_options(o, task);
  const auto sides = grokking::split(
      task, {.fraction = o.train_fraction, .seed = o.seed, .unordered = o.unordered});
  std::string name = "grok-" + o.task + "-" + o.prompt;
  for (char& c : name) c = std::isalnum(uint8_t(c)) || c == '-' ? c : '_';
  const std::string path = a.common.out.empty() ? train::next_run_path(name) : a.common.out;
  const train::RunFolder folder = train::RunFolder::create(path);
  save_options(o, folder.file("config.json"));
  say(a.common.quiet,
      fmt::format("{}   {} inputs: {} train, {} test   {} classes   prompt {}   seed {}\n{}",
                  task.name, task.pool.size(), sides.train.size(), sides.test.size(),
                  task.classes.size(), o.prompt, o.seed, domain_text(o)));
  train::InterruptGuard interrupt;
  int64_t next = 10;
  const RunResult run = grokking::train(
      o, {.on_row =
              [&](const grokking::LogRow& r) {
                if (r.epoch < next) return;
                next = r.epoch + std::max<int64_t>(r.epoch / 3, 10);
                say(a.common.quiet,
                    fmt::format("epoch {:>6}   train {:.3f}   test {:.3f}   violation {:.2g}   "
                                "dimension {}",
                                r.epoch, r.train_accuracy, r.test_accuracy, r.mean_violation(),
                                r.effective_dimension));
              },
          .on_checkpoint =
              [&](int64_t epoch, const grokking::Network& net) {
                grokking::save_network(net, folder.path(), fmt::format("epoch-{:06}", epoch));
              },
          .stop = train::InterruptGuard::requested});
  grokking::write_run(run, folder.path());
  const grokking::Stages& s = run.stages;
  fmt::print(
      "train 100 % at {}, test 50 % at {}, 99 % at {}, 100 % at {}; symmetry at {}, "
      "geometry at {}\n{:.0f} steps/s   {}/report.html\n",
      epoch_text(s.t_mem), epoch_text(s.t_50), epoch_text(s.t_99), epoch_text(s.t_gen),
      epoch_text(s.t_sym), epoch_text(s.t_geo), run.steps_per_second, folder.path());
  return 0;
}

// The runs of a sweep: each name is a prompt, or "grokfast" for the optimiser.
std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> all;
  size_t from = 0;
  while (from <= list.size()) {
    const size_t end = std::min(list.find(',', from), list.size());
    if (end > from) all.push_back(list.substr(from, end - from));
    from = end + 1;
  }
  return all;
}

int run_sweep(const GrokArgs& a) {
  apply_common(a.common);
  const auto names = words(a.prompts);
  if (names.empty()) throw ValueError("grok", "--prompts names no prompt");
  std::vector<RunOptions> runs;
  for (const std::string& name : names) {
    RunOptions o = a.options();
    name == "grokfast" ? o.optimizer = name : o.prompt = name;
    for (int i = 0; i < a.seeds; ++i) {
      o.seed = a.common.seed + uint64_t(i);
      if (i == 0) grokking::check_options(o, grokking::task_of(o));
      runs.push_back(o);
    }
  }
  const auto results = grokking::train_all(runs);
  std::vector<grokking::SweepRow> rows;
  for (size_t k = 0; k < names.size(); ++k) {
    grokking::SweepRow row{.name = names[k]};
    for (size_t i = 0; i < size_t(a.seeds); ++i) {
      row.add(results[k * size_t(a.seeds) + i]);
    }
    rows.push_back(row);
  }
  fmt::print("{}", sweep_text(rows));
  const std::string path = a.common.out.empty() ? train::next_run_path("grok-sweep") : a.common.out;
  std::filesystem::create_directories(path);
  io::write_file_atomic(path + "/sweep.csv", sweep_csv(rows));
  io::write_file_atomic(path + "/sweep.svg", sweep_plot(rows, results[0].task.name));
  fmt::print("{}/sweep.svg\n", path);
  return 0;
}

int run_criterion(const GrokArgs& a) {
  apply_common(a.common);
  std::vector<grokking::Checkpoint> all;
  for (size_t i = 0; i < a.folders.size(); ++i) {
    const auto rows = grokking::read_log(a.folders[i] + "/log.csv");
    const auto some = grokking::checkpoints_of(rows, i);
    all.insert(all.end(), some.begin(), some.end());
  }
  const grokking::Criterion c = grokking::fit_criterion(all);
  if (std::isnan(c.auc)) {
    throw ValueError("grok", "need checkpoints of both kinds, solved and not, after memorisation");
  }
  fmt::print(
      "{} checkpoints of {} runs\nτ = {:.3f} on log10(max violation): balanced accuracy "
      "{:.3f}, AUC {:.3f}\nleaving one run out ({} runs): AUC {:.3f}, balanced accuracy "
      "{:.3f}\n",
      all.size(), a.folders.size(), c.tau, c.accuracy, c.auc, c.seeds, c.left_out_auc,
      c.left_out_accuracy);
  if (a.folders.size() < 10) fmt::print("fewer than 10 runs: take τ as rough\n");
  const std::string path = a.common.out.empty() ? "." : a.common.out;
  std::filesystem::create_directories(path);
  io::write_file_atomic(path + "/criterion.svg", criterion_plot(all, c.tau));
  fmt::print("{}/criterion.svg\n", path);
  return 0;
}

int run_inspect(const GrokArgs& a) {
  apply_common(a.common);
  const grokking::Inspection found = grokking::inspect(a.path);
  fmt::print("{}", found.text);
  const std::string path = a.common.out.empty() ? found.folder + "/inspect" : a.common.out;
  std::filesystem::create_directories(path);
  for (const auto& [name, svg] : found.pictures) {
    io::write_file_atomic(path + "/" + name + ".svg", svg);
    fmt::print("{}/{}.svg\n", path, name);
  }
  return 0;
}

using Action = int (*)(const GrokArgs&);
std::shared_ptr<GrokArgs> add_action(CLI::App& parent, const char* name, const char* about,
                                     Action action, int& status) {
  auto a = std::make_shared<GrokArgs>();
  CLI::App* c = parent.add_subcommand(name, about);
  c->callback([a, action, &status] { status = guarded([&] { return action(*a); }); });
  return a;
}

}  // namespace

void add_grok(CLI::App& app, int& status) {
  CLI::App* g = app.add_subcommand("grok", "Watch networks memorise, then generalise (grokking)");
  g->footer(
      "Examples:\n"
      "  cutaway grok train --task add --prompt both\n"
      "  cutaway grok sweep --seeds 5 --prompts none,both,nuclear,grokfast\n"
      "  cutaway grok criterion runs/grok-add-none-*\n"
      "  cutaway grok inspect runs/grok-add-both-1");
  g->require_subcommand(1);
  const auto t =
      add_action(*g, "train", "One run: log, stages, checkpoints, pictures", run_train, status);
  add_run_options(*g->get_subcommand("train"), *t);
  t->add(*g->get_subcommand("train"), "--prompt", &RunOptions::prompt,
         "none comm assoc both triangle trans nuclear entropy lipschitz augment");
  const auto s = add_action(*g, "sweep", "Prompts beside each other over seeds", run_sweep, status);
  add_run_options(*g->get_subcommand("sweep"), *s);
  g->get_subcommand("sweep")
      ->add_option("--seeds", s->seeds, "Seeds of each")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  g->get_subcommand("sweep")->add_option("--prompts", s->prompts,
                                         "Prompts, or grokfast, separated by commas");
  const auto c = add_action(*g, "criterion", "Threshold on the violation that tells solved runs",
                            run_criterion, status);
  add_common(*g->get_subcommand("criterion"), c->common);
  g->get_subcommand("criterion")->add_option("runs", c->folders, "Folders of runs")->required();
  const auto i = add_action(*g, "inspect", "Spectrum, circle or lattice, worst violations",
                            run_inspect, status);
  add_common(*g->get_subcommand("inspect"), i->common);
  g->get_subcommand("inspect")
      ->add_option("checkpoint", i->path, "A run folder or one of its checkpoints")
      ->required();
}

}  // namespace cutaway::tools
