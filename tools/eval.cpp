// eval and predict: use what train made.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/datasets/loader.h>
#include <cutaway/models/train/checkpoint.h>
#include <cutaway/models/train/language.h>
#include <cutaway/models/train/run_report.h>
#include <cutaway/models/train/trainer.h>
#include <cutaway/models/zoo/zoo.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

struct UseArgs {
  Common common;
  std::string run, data, split = "test", index = "0..9";
  bool best = false;
  int64_t batch = 256;
};

constexpr const char* kBestHelp = "The weights with the best test result, not the newest";

// The weights of a run: the newest, or those with the best test result.
void load_run_weights(const std::string& run, bool best, nn::Module& model) {
  train::load_weights(best ? run + "/best.safetensors" : run, model);
}

// The model of a run and its data, or other data of the same kind.
struct Loaded {
  std::unique_ptr<nn::Module> model;
  train::RunData data;
  const data::Dataset* split = nullptr;
  zoo::Kind kind;
};

std::unique_ptr<Loaded> load(const UseArgs& a) {
  train::TrainConfig config = train::read_config(a.run);
  auto l = std::make_unique<Loaded>();
  l->kind = zoo::kind_of(config.model);
  l->data = train::open_run_data(config, a.run);
  l->model = zoo::make_model(config.model, train::task_of(config, l->data));
  load_run_weights(a.run, a.best, *l->model);
  if (!a.data.empty()) {
    config.data = a.data;
    l->data = train::open_run_data(config, a.run);
  }
  if (a.split != "train" && a.split != "test") {
    throw ValueError("data", fmt::format("unknown split \"{}\"; need train or test", a.split));
  }
  l->split = a.split == "train" ? &l->data.train : &l->data.test;
  l->model->to(device_from_name(a.common.device));
  l->model->eval();
  return l;
}

int run_eval(const UseArgs& a) {
  apply_common(a.common);
  const auto l = load(a);
  const data::Dataset& d = *l->split;
  const train::Evaluation e = train::evaluate(*l->model, d, a.batch);
  if (l->kind == zoo::Kind::language) {
    const train::LanguageResult r = train::language_result(e.loss, l->data);
    fmt::print("{} {}   {:.4f} nats/char   perplexity {:.3f} per token   {} tokens\n", d.name,
               a.split == "train" ? "train" : "validation", r.nats_per_character, r.perplexity,
               d.targets.numel());
  } else if (l->kind == zoo::Kind::pictures) {
    fmt::print("{} {}   loss {:.4f}   {} examples\n", d.name, a.split, e.loss, d.size());
  } else {
    say(a.common.quiet, train::confusion_text(e.confusion, d.classes));
    fmt::print("{} {}   accuracy {:.2f} %   loss {:.4f}   {} examples\n", d.name, a.split,
               100 * e.accuracy, e.loss, d.size());
  }
  return 0;
}

// "3", "0..9" or "1,4,7..9".
std::vector<int64_t> parse_indices(const std::string& text, int64_t n) {
  std::vector<int64_t> list;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, comma - from);
    const size_t dots = part.find("..");
    const auto number = [&](const std::string& s) {
      if (s.empty() || s.size() > 18 || s.find_first_not_of("0123456789") != std::string::npos) {
        throw ValueError("predict",
                         fmt::format("--index \"{}\" is not a list of numbers and ranges", text),
                         "as in 0,4,7..9");
      }
      return std::stoll(s);
    };
    const int64_t first = number(part.substr(0, dots)),
                  last = dots == std::string::npos ? first : number(part.substr(dots + 2));
    for (int64_t i = first; i <= last; ++i) {
      if (i >= n)
        throw IndexError("predict", fmt::format("there is no example {}; the split has {}", i, n));
      list.push_back(i);
    }
    from = comma + 1;
  }
  return list;
}

// A grey picture in characters, darkest first; every second row is left out, since characters are
// tall.
std::string draw(const data::Dataset& d, int64_t i) {
  static const std::string kShades = " .:-=+*#%@";
  const int64_t h = d.inputs.size(2), w = d.inputs.size(3);
  const std::vector<double> v = d.inputs.select(0, i).to_vector();
  std::string text;
  for (int64_t y = 0; y < h; y += 2) {
    for (int64_t x = 0; x < w; ++x) {
      const double grey = std::clamp(v[size_t(y * w + x)] * d.scale, 0.0, 1.0);
      text += kShades[size_t(grey * 9)];
    }
    text += "\n";
  }
  return text;
}

struct GenerateArgs {
  Common common;
  std::string run, prompt;
  bool best = false;
  train::ContinueOptions options;
};

int run_generate(GenerateArgs& a) {
  apply_common(a.common);
  a.options.seed = a.common.seed;
  const train::TrainConfig config = train::read_config(a.run);
  if (!zoo::is_language_model(config.model)) {
    throw ValueError("generate",
                     fmt::format("{} is a run of {}, which writes no text", a.run, config.model),
                     "cutaway predict shows what it says of examples");
  }
  const data::Tokenizer tokenizer = data::Tokenizer::load(a.run + "/tokenizer.json");
  const auto model =
      zoo::make_model(config.model, train::language_task(config, tokenizer.vocabulary()));
  load_run_weights(a.run, a.best, *model);
  model->to(device_from_name(a.common.device));
  model->eval();
  fmt::print("{}\n", train::continue_text(dynamic_cast<zoo::LanguageModel&>(*model), tokenizer,
                                          a.prompt, a.options));
  return 0;
}

// Example i as the loader gives it, [1,…].
Tensor example(const data::Dataset& d, int64_t i) {
  const Tensor x = d.inputs.slice(0, i, i + 1);
  return x.dtype() == DType::i64 ? x.contiguous() : (x.to(DType::f32) * d.scale - d.mean) / d.std;
}

// What a person sees of example i.
std::string shown(const Loaded& l, int64_t i) {
  const data::Dataset& d = *l.split;
  if (l.data.graph) {
    return l.data.graph->nodes[size_t(d.inputs.select(0, i).item<int64_t>())] + "\n";
  }
  if (l.data.tokenizer) {
    const Tensor row = d.inputs.select(0, i).contiguous();
    const int64_t* id = row.data<int64_t>();
    return l.data.tokenizer->decode({id, id + row.numel()}) + "\n";
  }
  return d.inputs.dim() == 4 && d.inputs.size(1) == 1 ? draw(d, i) : std::string();
}

int run_predict(const UseArgs& a) {
  apply_common(a.common);
  const train::TrainConfig config = train::read_config(a.run);
  if (zoo::is_language_model(config.model)) {
    throw ValueError("predict", a.run + " is a run of a language model",
                     "cutaway generate --run " + a.run);
  }
  if (zoo::kind_of(config.model) == zoo::Kind::pictures) {
    throw ValueError(
        "predict", fmt::format("{} learns from pictures alone and tells no classes", config.model),
        "see " + a.run + "/plots/pictures.svg");
  }
  const auto l = load(a);
  const data::Dataset& d = *l->split;
  const auto name = [&](int64_t c) {
    return c < int64_t(d.classes.size()) ? d.classes[size_t(c)] : std::to_string(c);
  };
  const Device device = device_from_name(a.common.device);
  NoGradGuard no_grad;
  for (int64_t i : parse_indices(a.index, d.size())) {
    const std::vector<double> p = softmax((*l->model)(example(d, i).to(device)), 1).to_vector();
    std::vector<int64_t> order(p.size());
    for (size_t k = 0; k < p.size(); ++k) order[k] = int64_t(k);
    std::sort(order.begin(), order.end(),
              [&](int64_t u, int64_t v) { return p[size_t(u)] > p[size_t(v)]; });
    const int64_t truth = int64_t(d.targets.select(0, i).item());
    if (!a.common.quiet) fmt::print("{}", shown(*l, i));
    fmt::print("{:>6}  {} {:.1f} %", i, name(order[0]), 100 * p[size_t(order[0])]);
    for (size_t k = 1; k < std::min<size_t>(3, order.size()); ++k) {
      fmt::print(", {} {:.1f} %", name(order[k]), 100 * p[size_t(order[k])]);
    }
    fmt::print("   {}\n", order[0] == truth ? "right" : "wrong: " + name(truth));
  }
  return 0;
}

void add_use_options(CLI::App& c, UseArgs& a) {
  add_common(c, a.common);
  c.add_option("--run", a.run, "Folder of a training run")->required();
  c.add_option("--data", a.data, "Data set; default: that of the run");
  c.add_option("--split", a.split, "train or test")->capture_default_str();
  c.add_flag("--best", a.best, kBestHelp);
}

}  // namespace

void add_eval(CLI::App& app, int& status) {
  auto a = std::make_shared<UseArgs>();
  CLI::App* c = app.add_subcommand("eval", "Evaluate the newest checkpoint of a run");
  c->footer("Example:\n  cutaway eval --run runs/fashion-mnist");
  add_use_options(*c, *a);
  c->add_option("--batch", a->batch, "Examples at a time")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->callback([a, &status] { status = run_eval(*a); });
}

void add_generate(CLI::App& app, int& status) {
  auto a = std::make_shared<GenerateArgs>();
  CLI::App* c = app.add_subcommand("generate", "Let a trained language model write text");
  c->footer(
      "Examples:\n"
      "  cutaway generate --run runs/gpt-austen-1 --prompt 'Anne was'\n"
      "  cutaway generate --run runs/gpt-austen-1 --length 500 --temperature 1 --seed 3");
  add_common(*c, a->common);
  c->add_option("--run", a->run, "Folder of a training run")->required();
  c->add_flag("--best", a->best, kBestHelp);
  c->add_option("--prompt", a->prompt, "What the text begins with");
  c->add_option("--length", a->options.length, "Tokens to add")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  c->add_option("--temperature", a->options.temperature,
                "Above 1 bolder, below 1 safer; 0 takes the likeliest token")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  c->add_option("--top-k", a->options.top_k, "Draw among this many; 0: among all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  c->callback([a, &status] { status = run_generate(*a); });
}

void add_predict(CLI::App& app, int& status) {
  auto a = std::make_shared<UseArgs>();
  CLI::App* c = app.add_subcommand("predict", "Predict single examples and show them");
  c->footer("Example:\n  cutaway predict --run runs/fashion-mnist --index 0..4");
  add_use_options(*c, *a);
  c->add_option("--index", a->index, "Examples, as in 0,4,7..9")->capture_default_str();
  c->callback([a, &status] { status = run_predict(*a); });
}

}  // namespace cutaway::tools
