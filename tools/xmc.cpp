// xmc train | eval | predict (and bench | convert | groups in files of their own): extreme
// multi-label classification with group-shared fixed fan-in layers.
#include <fmt/format.h>
#include <unistd.h>
#include <filesystem>
#include <iostream>
#include <optional>

#include <cutaway/core/error.h>
#include <cutaway/core/io/tfevents.h>
#include <cutaway/core/text.h>
#include <cutaway/models/haste/predict.h>
#include <cutaway/models/haste/run_files.h>
#include <cutaway/models/haste/train.h>
#include <cutaway/models/train/progress.h>
#include <cutaway/models/train/run_folder.h>

#include <tools/commands.h>
#include <tools/xmc_commands.h>

namespace cutaway::tools {
namespace {

using haste::RunOptions;

struct XmcArgs {
  Common common;
  RunOptions run;
  std::string resume, checkpoint, data, test, filter, text;
  int64_t topk = 5, stop_after = -1;
};

void add_data_options(CLI::App& c, RunOptions& o) {
  c.add_option("--data", o.data,
               "synth, debian-deps, debian-tags, debian-sample, wordnet, wordnet-sample, a folder "
               "of the Extreme Classification Repository, or a sparse text file")
      ->capture_default_str();
  c.add_option("--test", o.test, "A sparse text file of test samples");
  c.add_option("--filter", o.filter, "Pairs \"row label\" that evaluation ignores");
  c.add_option("--split", o.split, "Debian: what stays on one side, source or name")
      ->capture_default_str();
  c.add_flag_callback(
      "--by-source", [&o] { o.split = "source"; }, "The same as --split source");
  c.add_option("--limit", o.limit, "Debian: at most so many records; 0: all");
  c.add_option("--min-positives", o.min_positives, "Training samples a label needs")
      ->capture_default_str();
  c.add_option("--min-words", o.min_words, "Training texts a word needs")->capture_default_str();
  c.add_option("--samples", o.samples, "synth: training samples")->capture_default_str();
  c.add_option("--labels", o.labels, "synth: labels")->capture_default_str();
  c.add_option("--vocabulary", o.vocabulary, "synth: words")->capture_default_str();
}

void add_model_options(CLI::App& c, RunOptions& o) {
  c.add_option("--encoder", o.encoder, "bag or transformer")->capture_default_str();
  c.add_option("--hidden", o.hidden, "Features H of the encoder")->capture_default_str();
  c.add_option("--blocks", o.blocks, "Layers of the transformer")->capture_default_str();
  c.add_option("--heads", o.heads, "Its attention heads")->capture_default_str();
  c.add_option("--words", o.words, "Words it reads")->capture_default_str();
  c.add_option("--embed-scale", o.embed_scale, "Spread of the embedding at the start");
  c.add_option("--features", o.features, "What head and tail read: split, shared or proj")
      ->capture_default_str();
  c.add_option("--dropout", o.dropout, "Of the tail's features")->capture_default_str();
  c.add_option("--head-dropout", o.head_dropout, "Of the head's features")->capture_default_str();
  c.add_option("--layer", o.layer, "haste, ffi, dense, block or bottleneck")->capture_default_str();
  c.add_option("--head-ratio", o.head_ratio, "Share of the labels in the dense head; 0: none")
      ->capture_default_str();
  c.add_option("--group", o.group, "Labels G that share indices")->capture_default_str();
  c.add_option("--fan-in", o.fan_in, "Features F of a label")->capture_default_str();
  c.add_option("--grouping", o.grouping, "semantic, two-stage, random or freq")
      ->capture_default_str();
  c.add_flag("--idx-replace", o.index_replace, "Draw indices with replacement");
  c.add_option("--dtype", o.dtype, "Weights of head and tail: fp32 or bf16")->capture_default_str();
  c.add_option("--bias-init", o.bias_init, "prior: log odds of the label; or zero")
      ->capture_default_str();
  c.add_option("--loss", o.loss, "bce or hinge (squared)")->capture_default_str();
  c.add_option("--chunk", o.chunk, "Labels whose logits exist at a time")->capture_default_str();
  c.add_option("--aux", o.aux_weight, "Weight of the auxiliary meta-label loss at the start");
  c.add_option("--aux-groups", o.aux_groups, "Meta-labels; 0: one for 16 labels");
}

void add_training_options(CLI::App& c, RunOptions& o) {
  c.add_option("--rewire-mode", o.rewire_mode, "fraction, threshold or none")
      ->capture_default_str();
  c.add_option("--rewire-interval", o.rewire_interval, "Steps between")->capture_default_str();
  c.add_option("--rewire-fraction", o.rewire_fraction, "Share of slots")->capture_default_str();
  c.add_option("--rewire-score", o.rewire_score, "mean, max or grad")->capture_default_str();
  c.add_option("--rewire-init", o.rewire_init, "New weights: zero or uniform")
      ->capture_default_str();
  c.add_flag("--keep-momentum", o.keep_momentum, "Do not reset it at pruned slots");
  c.add_option("--epochs", o.epochs, "Epochs")->capture_default_str();
  c.add_option("--batch", o.batch, "Samples a step")->capture_default_str();
  c.add_option("--warmup", o.warmup, "Steps of linear warm-up")->capture_default_str();
  c.add_option("--patience", o.patience, "Epochs without a better one before it stops")
      ->capture_default_str();
  c.add_option("--best-by", o.best_by, "Measure of the best epoch: P@1, P@3, P@5, PSP@1 ... PSP@5")
      ->capture_default_str();
  c.add_option("--lr-out", o.lr_out, "Rate of head and tail (SGD)")->capture_default_str();
  c.add_option("--lr-enc", o.lr_encoder, "Rate of the encoder (AdamW)")->capture_default_str();
  c.add_option("--momentum", o.momentum, "Of head and tail")->capture_default_str();
  c.add_option("--wd", o.weight_decay, "Weight decay of head and tail")->capture_default_str();
  c.add_option("--wd-enc", o.encoder_decay, "Of the encoder's matrices")->capture_default_str();
  c.add_option("--psp-a", o.psp_a, "Of the propensities in PSP@k; 0.6 for Amazon sets")
      ->capture_default_str();
  c.add_option("--psp-b", o.psp_b, "Of the propensities; 2.6 for Amazon sets")
      ->capture_default_str();
  c.add_option("--log-every", o.log_every, "Steps between loss values")->capture_default_str();
  c.add_option("--checkpoint-every", o.checkpoint_every, "Steps; 0: every epoch")
      ->capture_default_str();
}

void print_set(const haste::Prepared& p, const RunOptions& o, bool quiet) {
  const haste::XmcData& t = p.set.train;
  say(quiet, fmt::format("{}   {} + {} samples   {} features   {} labels ({} seen, {} in the head)",
                         p.set.name, train::grouped(t.rows()), train::grouped(p.set.test.rows()),
                         train::grouped(t.num_features()), train::grouped(t.num_labels()),
                         train::grouped(p.order.seen), train::grouped(p.order.head)));
  say(quiet, fmt::format("{}   group {}   fan-in {}   {} grouping in {:.1f} s   {}   seed {}",
                         o.layer, o.group, o.fan_in, o.grouping, p.seconds, o.dtype, o.seed));
}

// A line that is redrawn in place on a terminal; one every ten seconds elsewhere.
class StepLine {
 public:
  explicit StepLine(bool quiet) : quiet_(quiet) {}
  void update(int64_t epoch, int64_t done, int64_t of, double loss, double rate) {
    if (!line_ || epoch != epoch_) {
      finish();
      epoch_ = epoch;
      line_.emplace(quiet_, fmt::format("epoch {}", epoch), of, done - 1);
    }
    line_->update(done, loss, rate, done == of);
  }
  void finish() {
    if (line_) line_->finish();
    line_.reset();
  }

 private:
  bool quiet_;
  int64_t epoch_ = 0;
  std::optional<train::ProgressLine> line_;
};

std::string percent(const std::vector<double>& v) {
  return fmt::format("{:.2f} {:.2f} {:.2f}", 100 * v[0], 100 * v[2], 100 * v[4]);
}

int run_train(XmcArgs a) {
  apply_common(a.common);
  const bool resume = !a.resume.empty();
  if (resume) {
    a.run = haste::load_options(a.resume + "/config.json");
  } else {
    a.run.seed = a.common.seed;
  }
  haste::check_options(a.run);
  haste::Prepared prepared = haste::prepare(a.run, haste::open_set(haste::set_of(a.run)));
  const std::string path = resume                 ? a.resume
                           : a.common.out.empty() ? train::next_run_path("xmc-" + a.run.layer)
                                                  : a.common.out;
  const train::RunFolder folder =
      resume ? train::RunFolder::reopen(path) : train::RunFolder::create(path);
  if (!resume) {
    haste::save_options(a.run, folder.file("config.json"));
    haste::save_vectorizer(prepared.set.vectorizer, folder.file("vectorizer.tsv"));
    haste::save_names(haste::label_names(prepared.set.train), folder.file("labels.txt"));
  }
  print_set(prepared, a.run, a.common.quiet);
  std::optional<haste::MetricsCsv> metrics;
  io::EventWriter events(folder.path());
  StepLine line(a.common.quiet);
  train::InterruptGuard interrupt;
  const haste::RunResult result = haste::train(
      a.run, prepared,
      {.on_start = [&](int64_t epochs) { metrics.emplace(folder.file("metrics.csv"), epochs); },
       .on_row =
           [&](const haste::EpochRow& r) {
             line.finish();
             metrics->add(r);
             events.scalar("loss", r.step, r.loss);
             events.scalar("P@1", r.step, r.p[0]);
             events.scalar("P@5", r.step, r.p[4]);
             events.scalar("PSP@5", r.step, r.psp[4]);
             say(a.common.quiet,
                 fmt::format("epoch {:>3}   loss {:.4f}   P@1,3,5 {}   PSP@1,3,5 {}   rewired {}   "
                             "{:.1f} s",
                             r.epoch, r.loss, percent(r.p), percent(r.psp), r.rewired, r.seconds));
           },
       .on_step = [&](int64_t epoch, int64_t done, int64_t of, double loss,
                      double rate) { line.update(epoch, done, of, loss, rate); },
       .stop = train::InterruptGuard::requested,
       .stop_after = a.stop_after,
       .folder = folder.file("checkpoint")});
  line.finish();
  if (!result.finished) {
    fmt::print("saved.  Go on with:  cutaway xmc train --resume {}\n", shell_quoted(folder.path()));
    return 0;
  }
  haste::write_report(folder.path(), result, prepared, metrics->rows());
  fmt::print("best epoch {}\n{}\n{}{:.0f} samples/s   {}/report.html\n", result.best_epoch,
             haste::metrics_text(result.best), haste::memory_text(result.memory),
             result.samples_per_second, folder.path());
  return 0;
}

int run_eval(const XmcArgs& a) {
  apply_common(a.common);
  RunOptions o = haste::load_options(a.checkpoint + "/config.json");
  if (!a.data.empty()) o.data = a.data;
  if (!a.test.empty()) o.test = a.test;
  if (!a.filter.empty()) o.filter = a.filter;
  haste::check_options(o);
  const haste::Weights weights = haste::load_weights(a.checkpoint + "/checkpoint/best.safetensors");
  const haste::XmcSet set = haste::open_set(haste::set_of(o));
  if (set.test.rows() == 0) throw ValueError("xmc", "the test set of " + set.name + " is empty");
  haste::check_fits(weights, set);
  const auto model = haste::model_of(o, weights);
  const haste::Metrics m =
      haste::evaluate(*model, set.test, set.filter, weights.order, weights.info.frequency,
                      weights.info.samples, {.chunk = o.chunk}, haste::metrics_of(o));
  fmt::print("{}   epoch {}\n{}", set.name, weights.info.epoch, haste::metrics_text(m));
  return 0;
}

void answer(haste::Predictor& predictor, const std::string& text, int64_t k) {
  const auto known = predictor.known_words(text);
  if (known.empty()) {
    fmt::print("no word of this is known to the model\n");
    return;
  }
  for (const auto& one : predictor.predict(text, k)) {
    fmt::print("  {:6.2f} %  {}\n", 100 * one.probability, one.label);
  }
  fmt::print("  words read: {}\n", fmt::join(known, " "));
  std::fflush(stdout);
}

int run_predict(const XmcArgs& a) {
  apply_common(a.common);
  haste::Predictor predictor(a.checkpoint);
  const int64_t k = std::min(a.topk, predictor.labels());
  if (!a.text.empty()) {
    answer(predictor, a.text, k);
    return 0;
  }
  const bool terminal = ::isatty(0) && !a.common.quiet;
  if (terminal) {
    fmt::print("{} labels, {} words, epoch {}. Type a description; an empty line ends.\n",
               predictor.labels(), predictor.words(), predictor.epoch());
  }
  for (std::string line;;) {
    if (terminal) fmt::print("> ");
    std::fflush(stdout);
    if (!std::getline(std::cin, line) || (terminal && line.empty())) return 0;
    if (!line.empty()) answer(predictor, line, k);
  }
}

}  // namespace

void add_xmc_options(CLI::App& command, haste::RunOptions& o) {
  add_data_options(command, o);
  add_model_options(command, o);
  add_training_options(command, o);
}

void add_xmc(CLI::App& app, int& status) {
  auto a = std::make_shared<XmcArgs>();
  CLI::App* c = app.add_subcommand("xmc", "Classify among very many labels (HASTE)");
  c->footer(
      "Examples:\n"
      "  cutaway xmc train --data debian-deps --out runs/deps\n"
      "  cutaway xmc predict --run runs/deps --topk 5\n"
      "  cutaway xmc bench --labels 65536 --fan-in 64 --group 32 --batch 128");
  c->require_subcommand(1);
  const auto command = [&](const char* name, const char* about, int (*action)(const XmcArgs&)) {
    CLI::App* s = c->add_subcommand(name, about);
    add_common(*s, a->common);
    s->callback([a, action, &status] { status = guarded([&] { return action(*a); }); });
    return s;
  };
  CLI::App* t =
      command("train", "Train, with a run folder", [](const XmcArgs& x) { return run_train(x); });
  add_xmc_options(*t, a->run);
  t->add_option("--resume", a->resume, "Go on with the run in this folder, with its options");
  t->add_option("--stop-after", a->stop_after, "Save and stop after so many steps");
  CLI::App* e = command("eval", "P@k and PSP@k of a run's best weights", run_eval);
  e->add_option("--run", a->checkpoint, "Folder of the run")->required();
  e->add_option("--data", a->data, "Other data than the run's");
  e->add_option("--test", a->test, "A file of test samples");
  e->add_option("--filter", a->filter, "Pairs \"row label\" to ignore");
  CLI::App* p = command("predict", "Labels of raw text, typed or given", run_predict);
  p->add_option("--run", a->checkpoint, "Folder of the run")->required();
  p->add_option("--topk", a->topk, "How many")->capture_default_str()->check(CLI::Range(1, 1000));
  p->add_option("--text", a->text, "Answer this and end");
  add_xmc_convert(*c, status);
  add_xmc_groups(*c, status);
  add_xmc_bench(*c, status);
  add_xmc_compare(*c, status);
}

}  // namespace cutaway::tools
