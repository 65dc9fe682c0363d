#include <cutaway/models/grokking/run_files.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/models/reproduce/reproduce.h>
#include <cutaway/nn/files.h>

namespace cutaway::grokking {
namespace {
namespace fs = std::filesystem;

std::string stages_json(const RunResult& run) {
  const Stages& s = run.stages;
  const auto epoch = [](int64_t t) { return t < 0 ? "null" : std::to_string(t); };
  return fmt::format(
      "{{\n  \"t_mem\": {},\n  \"t_50\": {},\n  \"t_99\": {},\n  \"t_gen\": {},\n  \"t_sym\": {},\n"
      "  \"t_geo\": {},\n  \"epochs\": {},\n  \"steps_per_second\": {:.1f}\n}}\n",
      epoch(s.t_mem), epoch(s.t_50), epoch(s.t_99), epoch(s.t_gen), epoch(s.t_sym), epoch(s.t_geo),
      run.rows.back().epoch, run.steps_per_second);
}

std::vector<std::pair<std::string, std::string>> geometry_pictures(const Task& task,
                                                                   const Tensor& E) {
  std::vector<std::pair<std::string, std::string>> list = {
      {"components-1-2", component_plot(task, E, 0)},
      {"components-3-4", component_plot(task, E, 1)}};
  if (!task.order.empty()) list.push_back({"spectrum", spectrum_plot(task, E)});
  return list;
}

// Instances that violate a law most, by the names of their inputs.
std::string worst_text(const RunOptions& o, const Task& task, Network& net) {
  NoGradGuard off;
  std::string text;
  Generator random{.seed = o.seed, .stream = 43};
  for (Law law : task.laws) {
    const Tuples t = sample(task, law, random, {.count = o.eval_tuples});
    std::vector<int64_t> ids;
    for (int64_t row : t.rows) {
      const int64_t* input = &task.inputs[size_t(row * task.length)];
      ids.insert(ids.end(), input, input + task.length);
    }
    const Tensor scores = net(index_tensor(ids).reshape({int64_t(t.rows.size()), task.length}));
    const auto v =
        violation(law, scores.to(DType::f64).reshape({t.count(), t.width, scores.size(1)}),
                  task.binary)
            .to_vector();
    std::vector<size_t> order(v.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return v[a] > v[b]; });
    text += fmt::format("worst of {} instances of {}:\n", v.size(), law_name(law));
    for (size_t i = 0; i < std::min<size_t>(5, order.size()); ++i) {
      text += fmt::format("  {:.3g}  ", v[order[i]]);
      for (int k = 0; k < t.width; ++k) {
        const auto row = t.rows[order[i] * size_t(t.width) + size_t(k)];
        text += (k ? "   " : "") + task.describe(row);
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace

void save_network(const Network& network, const std::string& folder, const std::string& name) {
  fs::create_directories(folder + "/checkpoints");
  nn::save(network, folder + "/checkpoints/" + name + ".safetensors");
}

void write_run(const RunResult& run, const std::string& folder) {
  fs::create_directories(folder + "/plots");
  save_network(*run.network, folder, "final");
  io::write_file_atomic(folder + "/log.csv", log_text(run.task, run.rows));
  io::write_file_atomic(folder + "/stages.json", stages_json(run));
  auto pictures = geometry_pictures(run.task, run.network->entities());
  pictures.insert(pictures.begin(), {"dimension", dimension_plot(run)});
  if (!run.task.laws.empty()) pictures.insert(pictures.begin(), {"violation", violation_plot(run)});
  pictures.insert(pictures.begin(), {"accuracy", accuracy_plot(run)});
  std::string html = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
                     report::escape(run.task.name) +
                     "</title></head><body style=\"font:16px/1.5 system-ui,sans-serif;"
                     "max-width:62rem;margin:2rem auto;color:#000;background:#fff\">\n";
  html += fmt::format(
      "<h1>Grokking: {}, prompt {}, seed {}</h1>\n<p>Epochs: train 100 % at {}, "
      "test 100 % at {} of {} (−1: never). Symmetry instances: {}. "
      "Options: <code>config.json</code>; numbers: <code>log.csv</code>.</p>\n",
      report::escape(run.task.name), run.options.prompt, run.options.seed, run.stages.t_mem,
      run.stages.t_gen, run.rows.back().epoch,
      run.options.domain == "all" ? "from all inputs, without test answers"
                                  : "with at least one training input");
  for (const auto& [name, svg] : pictures) {
    io::write_file_atomic(folder + "/plots/" + name + ".svg", svg);
    html += "<figure>" + svg + "</figure>\n";
  }
  io::write_file_atomic(folder + "/report.html", html + "</body></html>\n");
}

Inspection inspect(const std::string& path) {
  const bool file = path.ends_with(".safetensors");
  Inspection result{.folder = file ? fs::path(path).parent_path().parent_path().string() : path};
  if (result.folder.empty()) result.folder = ".";
  const RunOptions o = load_options(result.folder + "/config.json");
  const Task task = task_of(o);
  check_options(o, task);
  const auto net = network_of(o, task);
  nn::load(*net, file ? path : path + "/checkpoints/final.safetensors");
  const Tensor E = net->entities();
  const Components c = principal_components(E);
  std::string& text = result.text;
  text =
      fmt::format("{}   prompt {}   seed {}\neffective dimension {}   parameter norm {:.2f}\n",
                  task.name, o.prompt, o.seed, effective_dimension(c.share), parameter_norm(*net));
  if (!task.order.empty()) {
    const auto shares = fourier_shares(E, task.order);
    std::vector<size_t> order(shares.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return shares[a] > shares[b]; });
    text += fmt::format("10 strongest of {} frequencies hold {:.3f}:", shares.size(),
                        strongest(shares));
    for (size_t i = 0; i < std::min<size_t>(5, order.size()); ++i) {
      text += fmt::format("  {} ({:.3f})", order[i] + 1, shares[order[i]]);
    }
    const Circle circle = circle_fit(c, task.order);
    text += fmt::format("\ncomponents 1 and 2: frequency {} holds {:.3f} of their variance\n",
                        circle.frequency, circle.share);
  }
  if (!task.places.empty()) {
    text +=
        fmt::format("true coordinates from 4 components: R² = {:.3f}\n", place_fit(c, task.places));
  }
  text += worst_text(o, task, *net);
  result.pictures = geometry_pictures(task, E);
  return result;
}

void SweepRow::add(const RunResult& run) {
  Seed one{.seed = run.options.seed, .stages = run.stages};
  for (const LogRow& r : run.rows) {
    one.accuracy = std::max(one.accuracy, r.test_accuracy);
    if (r.epoch == run.stages.t_gen) one.violation = r.mean_violation();
  }
  seeds.push_back(one);
  t_gen.push_back(run.solved_at());
  solved += run.stages.t_gen >= 0;
  steps_per_second += (run.steps_per_second - steps_per_second) / double(t_gen.size());
}

std::string sweep_text(const std::vector<SweepRow>& rows) {
  std::string text = fmt::format("{:<12} {:>8} {:>14} {:>20} {:>9} {:>9}\n", "prompt", "solved",
                                 "median t_gen", "range", "speed-up", "steps/s");
  for (const SweepRow& r : rows) {
    const auto [low, high] = std::minmax_element(r.t_gen.begin(), r.t_gen.end());
    text += fmt::format(
        "{:<12} {:>4} of {} {:>13.0f} {:>20} {:>9.2f} {:>9.0f}\n", r.name, r.solved, r.t_gen.size(),
        reproduce::median(r.t_gen), fmt::format("{:.0f} … {:.0f}", *low, *high),
        reproduce::median(rows[0].t_gen) / reproduce::median(r.t_gen), r.steps_per_second);
  }
  for (const SweepRow& r : rows) {
    double low = INFINITY, high = 0;
    for (const SweepRow::Seed& s : r.seeds) {
      if (!std::isfinite(s.violation)) continue;
      low = std::min(low, s.violation);
      high = std::max(high, s.violation);
    }
    if (high > 0) {
      text += fmt::format("{}: mean violation at t_gen {:.2g} … {:.2g}\n", r.name, low, high);
    }
  }
  return text;
}

std::string sweep_csv(const std::vector<SweepRow>& rows) {
  // An epoch of −1: never.
  std::string text =
      "prompt,seed,t_mem,t_sym,t_99,t_gen,t_geo,mean_violation_at_t_gen,best_test_accuracy\n";
  for (const SweepRow& r : rows) {
    for (const SweepRow::Seed& s : r.seeds) {
      const Stages& t = s.stages;
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{}\n", r.name, s.seed, t.t_mem, t.t_sym, t.t_99, t.t_gen,
          t.t_geo, std::isfinite(s.violation) ? fmt::format("{}", s.violation) : "", s.accuracy);
    }
  }
  return text;
}

std::string sweep_plot(const std::vector<SweepRow>& rows, const std::string& task) {
  std::vector<report::Bar> bars;
  for (const SweepRow& r : rows) {
    const double t = reproduce::median(r.t_gen);
    bars.push_back(
        {.label = r.name,
         .detail = fmt::format("{:.0f} ({:.1f} ×)", t, reproduce::median(rows[0].t_gen) / t),
         .value = t,
         .pale = 2 * size_t(r.solved) < r.t_gen.size()});
  }
  return report::bar_chart(bars, {.title = "Epochs to test accuracy 100 %: " + task,
                                  .subtitle = "median over seeds; pale: most seeds never",
                                  .x_label = "epochs"});
}

}  // namespace cutaway::grokking
