#include <cutaway/models/grokking/plots.h>

#include <fmt/format.h>
#include <cmath>

namespace cutaway::grokking {
namespace {

using report::Line;

template <class Fn>
Line curve(const RunResult& run, const std::string& label, Fn value, bool dashed = false) {
  Line l{.label = label, .dashed = dashed};
  for (const LogRow& r : run.rows) {
    l.x.push_back(double(r.epoch));
    l.y.push_back(value(r));
  }
  return l;
}

// (i) memorisation ends at t_mem, (ii) symmetry acquisition at t_gen, (iii) geometry follows.
std::vector<report::Span> stage_spans(const RunResult& run) {
  const Stages& s = run.stages;
  const double first = double(run.rows.front().epoch), last = double(run.rows.back().epoch);
  const double mem = s.t_mem >= 0 ? double(s.t_mem) : last;
  const double gen = s.t_gen >= 0 ? double(s.t_gen) : last;
  return {{"memorisation", first, mem}, {"symmetry", mem, gen}, {"geometry", gen, last}};
}

std::string about(const RunResult& run) {
  return fmt::format("{}, prompt {}, seed {}", run.task.name, run.options.prompt, run.options.seed);
}

}  // namespace

std::string accuracy_plot(const RunResult& run) {
  return report::line_plot(
      {curve(
           run, "train", [](const LogRow& r) { return r.train_accuracy; }, true),
       curve(run, "test", [](const LogRow& r) { return r.test_accuracy; })},
      {.title = "Accuracy: " + about(run),
       .x_label = "epoch (log)",
       .y_label = "share right",
       .log_x = true,
       .height = 320,
       .spans = stage_spans(run)});
}

std::string violation_plot(const RunResult& run) {
  std::vector<Line> lines;
  for (size_t i = 0; i < run.task.laws.size(); ++i) {
    lines.push_back(curve(
        run, law_name(run.task.laws[i]), [i](const LogRow& r) { return r.mean[i]; }, i % 2));
  }
  return report::line_plot(lines, {.title = "Symmetry violation: " + about(run),
                                   .x_label = "epoch (log)",
                                   .y_label = "mean symmetric KL (nats, log)",
                                   .log_x = true,
                                   .log_y = true,
                                   .height = 320,
                                   .spans = stage_spans(run)});
}

std::string dimension_plot(const RunResult& run) {
  return report::line_plot(
      {curve(run, "components", [](const LogRow& r) { return double(r.effective_dimension); })},
      {.title = "Effective dimension of the embedding: " + about(run),
       .x_label = "epoch (log)",
       .y_label = "components above 1 % of variance",
       .log_x = true,
       .height = 320,
       .spans = stage_spans(run)});
}

std::string component_plot(const Task& task, const Tensor& entities, int pair) {
  const Components c = principal_components(entities);
  const size_t first = 2 * size_t(pair);
  Line points{.points = true, .shade = 0}, path{.shade = 5};
  const auto place = [&](int64_t i, Line& line) {
    const auto& row = c.coordinates[size_t(i)];
    line.x.push_back(first < row.size() ? row[first] : 0);
    line.y.push_back(first + 1 < row.size() ? row[first + 1] : 0);
  };
  for (int64_t i = 0; i < task.entities; ++i) {
    place(i, points);
    points.names.push_back(task.tokens[size_t(i)]);
  }
  std::string title = fmt::format("Components {} and {} of the embedding", first + 1, first + 2);
  const auto share = [&](size_t i) { return i < c.share.size() ? 100 * c.share[i] : 0; };
  if (!task.order.empty()) {
    // Steps of the dominant frequency's inverse walk once around the circle.
    const Circle circle = circle_fit(c, task.order, first);
    const auto n = int64_t(task.order.size());
    int64_t step = 1;
    while (step < n && step * circle.frequency % n != 1) ++step;
    if (step == n) step = 1;
    for (int64_t i = 0; i <= n; ++i) place(task.order[size_t(i * step % n)], path);
    title += fmt::format("; frequency {} holds {:.0f} %", circle.frequency, 100 * circle.share);
  }
  return report::line_plot(
      {path, points},
      {.title = title,
       .x_label = fmt::format("component {} ({:.0f} % of variance)", first + 1, share(first)),
       .y_label = fmt::format("component {} ({:.0f} % of variance)", first + 2, share(first + 1)),
       .equal = true,
       .width = 620,
       .height = 520});
}

std::string spectrum_plot(const Task& task, const Tensor& entities) {
  const auto shares = fourier_shares(entities, task.order);
  Line line{.points = true, .shade = 0};
  std::vector<Line> lines;
  for (size_t k = 0; k < shares.size(); ++k) {
    lines.push_back({.x = {double(k + 1), double(k + 1)}, .y = {0, shares[k]}, .shade = 1});
    line.x.push_back(double(k + 1));
    line.y.push_back(shares[k]);
  }
  lines.push_back(line);
  return report::line_plot(
      lines, {.title = fmt::format("Fourier spectrum of the embedding: 10 strongest hold {:.0f} %",
                                   100 * strongest(shares)),
              .x_label = fmt::format("frequency (turns in {} tokens)", task.order.size()),
              .y_label = "share of variance",
              .height = 320});
}

std::string criterion_plot(const std::vector<Checkpoint>& checkpoints, double tau) {
  Line solved{.label = "solved", .points = true, .shade = 0};
  Line open{.label = "not solved", .points = true, .shade = 1};
  for (const Checkpoint& c : checkpoints) {
    Line& l = c.solved ? solved : open;
    l.x.push_back(c.log_max);
    l.y.push_back(c.accuracy);
  }
  const Line threshold{.label = "τ", .x = {tau, tau}, .y = {0, 1.05}, .dashed = true, .shade = 0};
  return report::line_plot({solved, open, threshold},
                           {.title = "Criterion: the largest violation tells solved runs",
                            .x_label = "log10 of the largest symmetric KL (nats)",
                            .y_label = "test accuracy",
                            .legend = true});
}

}  // namespace cutaway::grokking
