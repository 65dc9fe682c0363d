#include <fmt/format.h>
#include <algorithm>
#include <string_view>

#include <cutaway/core/error.h>
#include <cutaway/core/text.h>
#include <cutaway/datasets/transforms.h>
#include <cutaway/models/train/run_folder.h>
#include <cutaway/models/train/run_report.h>
#include <cutaway/models/train/trainer.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

struct TrainArgs {
  Common common;
  train::TrainConfig config;
  std::string resume;
  int64_t stop_after = -1;
  bool no_record = false, no_norm_decay = false;
  int data_threads = 1;
};

// What suits the kind of model, where the user says nothing.
void set_defaults(train::TrainConfig& c, const CLI::App& command) {
  const auto unset = [&](const char* name) { return command.get_option(name)->count() == 0; };
  switch (zoo::kind_of(c.model)) {
    case zoo::Kind::language:
      if (unset("--data")) c.data = "austen";
      if (unset("--epochs")) c.epochs = 6;
      if (unset("--batch")) c.batch = 32;
      if (unset("--lr")) c.lr = c.model == "lstm" ? 4e-3 : 3e-3;
      if (unset("--schedule")) c.schedule = "warmup-cosine";
      if (unset("--clip")) c.clip = 1;
      break;
    case zoo::Kind::text:
      if (unset("--data")) c.data = "austen";
      if (unset("--batch")) c.batch = 64;
      if (unset("--lr")) c.lr = c.init.empty() ? 1e-3 : 1e-4;
      if (unset("--schedule")) c.schedule = "warmup-cosine";
      if (unset("--clip")) c.clip = 1;
      if (unset("--tokenizer")) c.tokenizer = "wordpiece";
      break;
    case zoo::Kind::graph:
      if (unset("--data")) c.data = "miles";
      if (unset("--epochs")) c.epochs = 200;  // of one step each
      if (unset("--lr")) c.lr = 0.01;
      if (unset("--schedule")) c.schedule = "constant";
      break;
    default:
      break;
  }
}

// Options that say something to some kinds of models only.
void refuse_what_does_not_apply(const std::string& model, const CLI::App& command) {
  using zoo::Kind;
  const Kind kind = zoo::kind_of(model);
  const bool text = zoo::reads_text(kind), language = kind == Kind::language;
  const std::pair<const char*, bool> applies[] = {{"--tokenizer", text},
                                                  {"--context", text},
                                                  {"--layers", language},
                                                  {"--heads", language},
                                                  {"--width", language},
                                                  {"--dropout", language},
                                                  {"--augment", !text && kind != Kind::graph},
                                                  {"--resize", !text && kind != Kind::graph},
                                                  {"--label-smoothing", kind != Kind::pictures}};
  for (const auto& [option, used] : applies) {
    if (!used && command.count(option) > 0) {
      throw ValueError("train", fmt::format("{} does not apply to {}", option, model));
    }
  }
}

// Results and texts of a language model.
void print_language(const train::TrainOutcome& outcome, bool quiet) {
  for (const train::TextSample& s : outcome.language->samples) {
    say(quiet, fmt::format("\n--- given ---\n{}\n--- goes on ---\n{}", s.prompt, s.text));
  }
  fmt::print("\nvalidation {:.4f} nats/char   perplexity {:.3f} per token   {} steps in {:.1f} s\n",
             outcome.language->nats_per_character, outcome.language->perplexity, outcome.step,
             outcome.seconds);
}

// "fashion-mnist" → "convnet-fashion-mnist"; paths keep their last part without its ending.
std::string run_stem(const train::TrainConfig& c) {
  std::string data = c.data.substr(c.data.rfind('/') + 1);
  data = data.substr(0, data.find('.'));
  return c.model + "-" + data;
}

// What a run was begun with stands in its folder; giving it again would be ignored silently.
void refuse_with_resume(const CLI::App& command) {
  for (const CLI::Option* o : command.get_options()) {
    const std::string name = o->get_single_name();
    const bool free = name == "resume" || name == "stop-after" || name == "no-record" ||
                      name == "threads" || name == "data-threads" || name == "quiet";
    if (o->count() > 0 && !free) {
      throw ValueError("train", fmt::format("--{} cannot be changed on --resume", name),
                       "leave it out: config.json of the run holds it");
    }
  }
}

std::string augment_help() {
  std::string text = "Changes of training images, such as crop,flip,mixup:0.2; names:";
  for (const auto& [name, about] : data::known_augmentations()) text += "\n" + name + ": " + about;
  return text;
}

int run_train(TrainArgs& a, const CLI::App& command) {
  if (!a.resume.empty()) refuse_with_resume(command);
  apply_common(a.common);
  a.config.seed = a.common.seed;
  a.config.device = a.common.device;
  set_defaults(a.config, command);
  a.config.decay_all = !a.no_norm_decay;
  const bool resume = !a.resume.empty();
  if (!resume) refuse_what_does_not_apply(a.config.model, command);
  const std::string folder = resume                 ? a.resume
                             : a.common.out.empty() ? train::next_run_path(run_stem(a.config))
                                                    : a.common.out;
  const train::TrainOutcome outcome = train::train(a.config, folder, resume,
                                                   {.quiet = a.common.quiet,
                                                    .stop_after = a.stop_after,
                                                    .record = !a.no_record,
                                                    .data_threads = a.data_threads});
  if (!outcome.finished) return 130;
  const train::TrainConfig config = train::read_config(folder);
  const std::string of_run = " --run " + shell_quoted(folder);
  std::string next;
  if (outcome.language) {
    print_language(outcome, a.common.quiet);
    next = "cutaway generate" + of_run + " --prompt 'Anne'      goes on with a text";
  } else if (zoo::kind_of(config.model) == zoo::Kind::pictures) {
    fmt::print("test loss {:.4f}   {} steps in {:.1f} s, {:.1f} % waiting for data\n",
               outcome.test.loss, outcome.step, outcome.seconds, 100 * outcome.waited);
    next = "cutaway eval" + of_run + "      tests it again";
  } else {
    say(a.common.quiet, "\n" + train::confusion_text(outcome.test.confusion, outcome.classes));
    fmt::print(
        "test accuracy {:.2f} %   loss {:.4f}   {} steps in {:.1f} s, {:.1f} % waiting for data\n",
        100 * outcome.test.accuracy, outcome.test.loss, outcome.step, outcome.seconds,
        100 * outcome.waited);
    next = "cutaway predict" + of_run + " --index 0..9      shows single test examples";
  }
  fmt::print("report  {}/report.html   pictures  {}/plots/\n", folder, folder);
  say(a.common.quiet, "\nNext:  " + next);
  return 0;
}

// Of models that read text.
void add_text_options(CLI::App& c, train::TrainConfig& k) {
  c.add_option("--tokenizer", k.tokenizer,
               "Of text: char, byte, wordpiece (made from the training texts), or a tokenizer file "
               "(cutaway tokenizer)")
      ->capture_default_str();
  c.add_option("--context", k.context,
               "Of text: tokens in a row; longer texts with classes are cut")
      ->capture_default_str();
  c.add_option("--layers", k.layers, "Of language models; 0: as the model is named");
  c.add_option("--heads", k.heads, "Of gpt; 0: as the model is named");
  c.add_option("--width", k.width, "Of language models; 0: as the model is named");
  c.add_option("--dropout", k.dropout, "Of language models")->capture_default_str();
}

}  // namespace

void add_train(CLI::App& app, int& status) {
  auto a = std::make_shared<TrainArgs>();
  CLI::App* c = app.add_subcommand("train", "Train a model of the zoo on a data set");
  c->footer(
      "Example:\n  cutaway train --model convnet --data fashion-mnist --epochs 4\n"
      "  cutaway train --model gpt --data austen        text: the last tenth validates\n"
      "  cutaway train --model bert-tiny                classes of texts; unet: pictures, gcn: a "
      "graph\n"
      "Data sets and models: cutaway list. Ctrl-C saves; --resume goes on to the same bits.");
  add_common(*c, a->common);
  train::TrainConfig& k = a->config;
  c->add_option("--model", k.model, "Model of the zoo")->capture_default_str();
  c->add_option("--data", k.data,
                "Data set, file or folder; cutaway list tells what there is for each kind of model")
      ->capture_default_str();
  c->add_option("--epochs", k.epochs, "Passes over the training data; 0 evaluates and reports")
      ->capture_default_str();
  c->add_option("--batch", k.batch, "Examples a step")->capture_default_str();
  c->add_option("--optimizer", k.optimizer,
                "sgd, adam, adamw, rmsprop, adagrad, lion, muon or lbfgs")
      ->capture_default_str();
  c->add_option("--lr", k.lr, "Peak learning rate")->capture_default_str();
  c->add_option("--weight-decay", k.weight_decay, "Weight decay")->capture_default_str();
  c->add_option("--momentum", k.momentum, "Momentum of sgd")->capture_default_str();
  c->add_option("--schedule", k.schedule,
                "constant, plateau (of the training loss), step, multi-step, exponential, cosine, "
                "cosine-restarts, linear, polynomial, warmup-cosine, one-cycle, inverse-sqrt, "
                "cyclic or warmup-stable-decay")
      ->capture_default_str();
  c->add_option("--clip", k.clip, "Largest total gradient norm; 0: no clipping")
      ->capture_default_str();
  c->add_option("--dtype", k.dtype, "f32; bf16 or f16: mixed precision")->capture_default_str();
  c->add_option("--augment", k.augment, augment_help());
  c->add_option("--resize", k.resize,
                "Of folders of pictures: HEIGHTxWIDTH, or one number, that all are brought to");
  c->add_option("--label-smoothing", k.label_smoothing, "Share of the target given to all classes")
      ->capture_default_str();
  c->add_option("--ema", k.ema, "Decay of an average of the weights, tested and kept; 0: none")
      ->capture_default_str();
  c->add_flag("--no-norm-decay", a->no_norm_decay, "No weight decay for norms and biases");
  c->add_option("--accumulate", k.accumulate, "Parts in which a batch goes through the model")
      ->capture_default_str();
  c->add_option("--data-threads", a->data_threads, "Threads that prepare batches")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  c->add_option("--checkpoint-every", k.checkpoint_every, "Steps between checkpoints")
      ->capture_default_str();
  c->add_option("--log-every", k.log_every, "Steps between rows of metrics.csv")
      ->capture_default_str();
  add_text_options(*c, k);
  c->add_option("--init", k.init,
                "Weights to start from, by name: .safetensors, or what torch.save wrote");
  c->add_option("--stop-after", a->stop_after, "Save and stop after this many steps");
  c->add_flag("--no-record", a->no_record, "Run each step eagerly instead of replaying it");
  c->add_option("--resume", a->resume, "Go on with the run in this folder");
  c->callback([a, c, &status] { status = run_train(*a, *c); });
}

}  // namespace cutaway::tools
