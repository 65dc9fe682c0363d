#include <cutaway/models/bayes_attention/pictures.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/models/report/svg.h>

namespace cutaway::bayes {
namespace {

constexpr double kPi = 3.14159265358979323846;

// {x : (x − c)ᵀ M (x − c) = size²} of a metric [2,2].
report::Line ellipse(const Tensor& metric, double cx, double cy, double size) {
  const linalg::Eigh e = linalg::eigh(metric.to(DType::f64));
  const std::vector<double> w = e.values.to_vector(), v = e.vectors.to_vector();
  report::Line line;
  // It begins and ends at its right, where its label stands.
  const double start = std::atan2(v[1] / std::sqrt(w[1]), v[0] / std::sqrt(w[0]));
  for (int i = 0; i <= 72; ++i) {
    const double a = size * std::cos(start + i * kPi / 36) / std::sqrt(w[0]),
                 b = size * std::sin(start + i * kPi / 36) / std::sqrt(w[1]);
    line.x.push_back(cx + v[0] * a + v[1] * b);
    line.y.push_back(cy + v[2] * a + v[3] * b);
  }
  return line;
}

}  // namespace

std::string atlas_error_plot(const std::vector<AtlasCurve>& curves) {
  std::vector<report::Line> lines;
  for (const AtlasCurve& c : curves) {
    report::Line line{c.family + (c.cells == Cells::arc ? " arc" : " uniform")};
    line.dashed = c.cells == Cells::uniform;
    for (const AtlasError& e : c.errors) {
      line.x.push_back(double(e.heads));
      line.y.push_back(e.sup);
    }
    lines.push_back(line);
  }
  return report::line_plot(lines, {.title = "Error of an atlas of H quadratic heads (d = 1, m = 1)",
                                   .x_label = "heads H",
                                   .y_label = "largest score error, nats",
                                   .log_x = true,
                                   .log_y = true});
}

std::string atlas_plot(const Codebook& c, const Grid& grid) {
  std::vector<report::Line> lines;
  const auto &ex = grid.edges()[0], &ey = grid.edges()[1];
  const auto edge = [&](double x0, double y0, double x1, double y1) {
    report::Line line{"", {x0, x1}, {y0, y1}};
    line.shade = 5;
    lines.push_back(line);
  };
  for (double x : ex) edge(x, ey.front(), x, ey.back());
  for (double y : ey) edge(ex.front(), y, ex.back(), y);
  const Tensor h = c.family.hessian(c.mu);
  const std::vector<double> mu = c.mu.to_vector();
  const double size = 0.25 * (ex.back() - ex.front()) / 4 *
                      std::sqrt(mean(diagonal(h, {.dim1 = 1, .dim2 = 2})).item());
  report::Line keys{"keys"};
  keys.points = true;
  keys.shade = 0;
  for (int64_t k = 0; k < c.keys(); ++k) {
    const double x = mu[size_t(2 * k)], y = mu[size_t(2 * k + 1)];
    lines.push_back(ellipse(h[k], x, y, size));
    lines.back().shade = 1;
    if (k == 0) lines.back().label = "Fisher metric";
    keys.x.push_back(x);
    keys.y.push_back(y);
  }
  lines.push_back(keys);
  const Defect d = metric_defect(c.mu, c.family.link(c.mu));
  if (min(linalg::eigvalsh(d.metric)).item() > 0) {
    lines.push_back(
        ellipse(d.metric, (ex.front() + ex.back()) / 2, (ey.front() + ey.back()) / 2, size));
    lines.back().label = "shared metric";
    lines.back().dashed = true;
    lines.back().shade = 0;
  }
  return report::line_plot(
      lines, {.title = fmt::format("Fisher metrics of {} keys ({}), defect {:.3f}", c.keys(),
                                   c.family.name(), d.value),
              .x_label = "mean μ₁",
              .y_label = "mean μ₂",
              .equal = true,
              .legend = true,
              .width = 650,
              .height = 520});
}

std::string metric_plot(const Tensor& learned, const Tensor& precision) {
  report::Line a = ellipse(learned, 0, 0, 1), b = ellipse(precision, 0, 0, 1);
  a.label = "learned M";
  b.label = "Σ⁻¹";
  b.dashed = true;
  return report::line_plot({a, b}, {.title = "Unit balls of the learned metric and of Σ⁻¹",
                                    .x_label = "T₁ − μ₁",
                                    .y_label = "T₂ − μ₂",
                                    .equal = true,
                                    .legend = true,
                                    .width = 520,
                                    .height = 400});
}

std::string converse_plot(const std::vector<ConverseCurve>& curves) {
  std::vector<report::Line> lines;
  for (const ConverseCurve& c : curves) {
    report::Line line{c.way};
    line.points = true;
    std::vector<ConversePoint> points = c.points;
    std::sort(points.begin(), points.end(),
              [](const auto& a, const auto& b) { return a.excess < b.excess; });
    for (const ConversePoint& p : points) {
      if (p.excess < 1e-7) continue;
      line.x.push_back(p.excess);
      line.y.push_back(p.sin_theta);
    }
    lines.push_back(line);
  }
  report::Line half{"slope 1/2", {1e-6, 1e-1}, {1e-3, std::sqrt(0.1)}};
  half.dashed = true;
  lines.push_back(half);
  return report::line_plot(lines, {.title = "Key subspace against excess loss",
                                   .x_label = "excess log-loss ε, nats",
                                   .y_label = "sin Θ to the true key subspace",
                                   .log_x = true,
                                   .log_y = true,
                                   .legend = true});
}

std::string gap_plot(const std::string& family, const std::vector<GapCurve>& curves) {
  std::vector<report::Line> lines;
  for (const GapCurve& c : curves) lines.push_back({c.name, c.n, c.excess, c.name == "plug-in"});
  return report::line_plot(lines, {.title = "Distance from Bayes in context, " + family,
                                   .x_label = "examples in the prompt",
                                   .y_label = "excess log-loss over the oracle, nats",
                                   .log_x = true,
                                   .log_y = true});
}

}  // namespace cutaway::bayes
