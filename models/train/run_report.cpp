#include <cutaway/models/train/run_report.h>

#include <fmt/format.h>
#include <algorithm>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/dispatch.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/text.h>
#include <cutaway/datasets/loader.h>
#include <cutaway/models/report/svg.h>
#include <cutaway/models/train/progress.h>

namespace cutaway::train {
namespace {

std::string class_name(const data::Dataset& d, int64_t c) {
  return c >= 0 && c < int64_t(d.classes.size()) ? d.classes[size_t(c)] : std::to_string(c);
}

// Column `value` of the rows of one split against the step.
report::Line curve(const std::vector<MetricRow>& rows, const std::string& split,
                   double MetricRow::*value) {
  report::Line line{split, {}, {}, split == "test"};
  for (const MetricRow& r : rows) {
    if (r.split != split) continue;
    line.x.push_back(double(r.step));
    line.y.push_back(r.*value);
  }
  return line;
}

// The first right and the first wrong predictions of the test set, as pictures.
std::string predictions_plot(const ReportInput& in) {
  const data::Dataset& d = *in.test_set;
  if (d.inputs.dim() != 4 || d.inputs.size(1) != 1) return {};
  const int h = int(d.inputs.size(2)), w = int(d.inputs.size(3));
  std::vector<report::Picture> pictures;
  for (const bool want_right : {true, false}) {
    int taken = 0;
    for (int64_t i = 0; i < d.size() && taken < 8; ++i) {
      const int64_t truth = d.targets.data<int64_t>()[i],
                    guess = in.outcome->test.predicted[size_t(i)];
      if ((truth == guess) != want_right) continue;
      const std::vector<double> v = d.inputs.select(0, i).to_vector();
      report::Picture p{w,
                        h,
                        {},
                        class_name(d, guess),
                        want_right ? "right" : "is " + class_name(d, truth),
                        !want_right};
      for (double x : v) p.pixels.push_back(float(x * d.scale));
      pictures.push_back(std::move(p));
      ++taken;
    }
  }
  return report::picture_grid(pictures, 8, "Test images with predictions; framed: wrong");
}

// The grey values of picture i of a batch, the mean of its channels.
report::Picture picture(const Tensor& batch, int64_t i, const data::Dataset& set,
                        const std::string& caption) {
  const Tensor grey = clamp(mean(batch.select(0, i), 0) * set.std + set.mean, 0.0, 1.0);
  const std::vector<double> v = grey.to_vector();
  return {.width = int(grey.size(1)),
          .height = int(grey.size(0)),
          .pixels = std::vector<float>(v.begin(), v.end()),
          .caption = caption};
}

std::string table_row(const std::string& name, const std::string& value) {
  return fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", report::escape(name),
                     report::escape(value));
}

// Of options that most runs leave as they are.
std::string optional_flags(const TrainConfig& c) {
  std::string command;
  const TrainConfig usual;
  if (c.dtype != usual.dtype) command += " --dtype " + c.dtype;
  if (c.augment != usual.augment) command += " --augment " + c.augment;
  if (!c.resize.empty()) command += " --resize " + c.resize;
  if (c.label_smoothing != 0) command += fmt::format(" --label-smoothing {}", c.label_smoothing);
  if (c.ema != 0) command += fmt::format(" --ema {}", c.ema);
  if (!c.decay_all) command += " --no-norm-decay";
  if (c.accumulate != 1) command += fmt::format(" --accumulate {}", c.accumulate);
  if (!c.init.empty()) command += " --init " + shell_quoted(c.init);
  return command;
}

}  // namespace

std::string confusion_text(const std::vector<std::vector<int64_t>>& counts,
                           const std::vector<std::string>& classes) {
  const auto name = [&](size_t i) { return i < classes.size() ? classes[i] : std::to_string(i); };
  std::string text = fmt::format("{:>12} |", "true \\ said");
  for (size_t j = 0; j < counts.size(); ++j) text += fmt::format("{:>6}", name(j).substr(0, 5));
  text += "\n" + std::string(14 + counts.size() * 6, '-') + "\n";
  for (size_t i = 0; i < counts.size(); ++i) {
    text += fmt::format("{:>12} |", name(i).substr(0, 12));
    for (int64_t c : counts[i]) text += c ? fmt::format("{:>6}", c) : fmt::format("{:>6}", "·");
    text += "\n";
  }
  return text;
}

namespace {

std::string headline(const ReportInput& in) {
  const TrainOutcome& o = *in.outcome;
  if (zoo::kind_of(in.config.model) == zoo::Kind::pictures) {
    return fmt::format("<strong>Test loss {:.4f}</strong> after {} steps.", o.test.loss, o.step);
  }
  if (!o.language) {
    return fmt::format("<strong>Test accuracy {:.2f} %</strong>, loss {:.4f}, after {} steps.",
                       100 * o.test.accuracy, o.test.loss, o.step);
  }
  return fmt::format(
      "<strong>{:.4f} nats per character</strong> of the validation text (the last tenth of each "
      "file), perplexity {:.3f} per token, after {} steps.",
      o.language->nats_per_character, o.language->perplexity, o.step);
}

// What a language model writes: the beginnings, which it was given, are set bold.
std::string samples_html(const TrainOutcome& outcome) {
  if (!outcome.language) return {};
  std::string html = "<h2>Texts</h2>\n<p>Bold: given, from the validation text.</p>\n";
  for (const TextSample& s : outcome.language->samples) {
    html +=
        fmt::format("<pre><b>{}</b>{}</pre>\n", report::escape(s.prompt), report::escape(s.text));
  }
  return html;
}

// Of models that read text.
std::string text_flags(const TrainConfig& c) {
  if (!zoo::reads_text(zoo::kind_of(c.model))) return {};
  std::string text =
      fmt::format(" --tokenizer {} --context {}", shell_quoted(c.tokenizer), c.context);
  const std::pair<const char*, int64_t> sizes[] = {
      {"layers", c.layers}, {"heads", c.heads}, {"width", c.width}};
  for (const auto& [name, value] : sizes) {
    if (value > 0) text += fmt::format(" --{} {}", name, value);
  }
  return c.dropout > 0 ? text + fmt::format(" --dropout {}", c.dropout) : text;
}

}  // namespace

std::string inputs_and_results(zoo::PictureModel& model, const data::Dataset& set) {
  const NoGradGuard no_grad;
  const OwnDraws draws(kTestDraws);
  const bool was_training = model.training();
  model.eval();
  const int64_t count = std::min<int64_t>(set.size(), 8);
  data::Loader loader(set, {.batch = std::max<int64_t>(count, 1)});
  std::vector<report::Picture> grid;
  for (const auto& [x, y] : loader) {
    const Device device = model.parameters().front().value.device();
    const zoo::PictureModel::Shown shown = model.show(x.to(device));
    for (int64_t i = 0; i < count; ++i) grid.push_back(picture(shown.before, i, set, "input"));
    for (int64_t i = 0; i < count; ++i) grid.push_back(picture(shown.after, i, set, "result"));
    break;
  }
  model.train(was_training);
  return report::picture_grid(grid, int(count), "Test pictures and what the model makes of them");
}

namespace {

// Plots of the run, also as files in its folder, one after the other.
std::string plots(const ReportInput& in) {
  const auto& rows = *in.rows;
  std::string all;
  const auto add = [&](const std::string& name, const std::string& svg) {
    if (svg.empty()) return;
    io::write_file_atomic(in.folder + "/plots/" + name + ".svg", svg);
    all += svg;
  };
  const bool pictures = zoo::kind_of(in.config.model) == zoo::Kind::pictures;
  const auto curves = [&](double MetricRow::*value, const report::PlotOptions& options) {
    return report::line_plot({curve(rows, "train", value), curve(rows, "test", value)}, options);
  };
  add("loss", curves(&MetricRow::loss, {.title = "Loss",
                                        .x_label = "step",
                                        .y_label = pictures ? "loss" : "cross-entropy (nats)"}));
  add("pictures", in.pictures);
  if (pictures) return all;
  add("accuracy", curves(&MetricRow::accuracy,
                         {.title = "Accuracy", .x_label = "step", .y_label = "share right"}));
  if (in.outcome->language) return all;
  add("confusion", report::confusion_plot(in.outcome->test.confusion, in.test_set->classes));
  add("predictions", predictions_plot(in));
  return all;
}

}  // namespace

void write_report(const ReportInput& in) {
  const TrainConfig& c = in.config;
  std::string command = fmt::format(
      "cutaway train --model {} --data {} --epochs {} --batch {} --optimizer {} --lr {} "
      "--weight-decay {} --schedule {} --seed {}",
      c.model, shell_quoted(c.data), c.epochs, c.batch, c.optimizer, c.lr, c.weight_decay,
      c.schedule, c.seed);
  if (c.clip > 0) command += fmt::format(" --clip {}", c.clip);
  command += text_flags(c);
  command += optional_flags(c);
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
      report::escape(c.model + " on " + c.data) +
      "</title>\n<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem "
      "auto;padding:0 1rem;color:#000;"
      "background:#fff}table{border-collapse:collapse}td{padding:.2rem 1rem .2rem "
      "0;border-bottom:1px solid #ccc}"
      "code{background:#eee;padding:.1rem "
      ".3rem;overflow-wrap:anywhere}svg{max-width:100%;height:auto}</style></head><body>\n";
  html += fmt::format("<h1>{} on {}</h1>\n<p>{}</p>\n", report::escape(c.model),
                      report::escape(in.train_set->name), headline(in));
  html += samples_html(*in.outcome) + plots(in);
  html += "<h2>What was run</h2>\n<p><code>" + report::escape(command) + "</code></p>\n<table>\n";
  html += table_row("model", fmt::format("{} ({}), {} parameters", c.model, in.model_type,
                                         grouped(in.parameters)));
  html +=
      table_row("data", fmt::format("{}: {} for training, {} for testing", in.train_set->name,
                                    grouped(in.train_set->size()), grouped(in.test_set->size())));
  html += table_row("version", CUTAWAY_VERSION);
  html += table_row("kernels", fmt::format("cpu {}, {} threads", cpu_variant(), num_threads()));
  html += table_row("time of this process", clock_text(in.outcome->seconds));
  html +=
      "</table>\n<p>Numbers: <code>metrics.csv</code>. Weights: "
      "<code>checkpoint/</code>.</p>\n</body></html>\n";
  io::write_file_atomic(in.folder + "/report.html", html);
}

}  // namespace cutaway::train
