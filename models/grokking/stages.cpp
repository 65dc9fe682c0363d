// The three stages of a run, read from its log.
#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/models/grokking/train.h>

namespace cutaway::grokking {

double LogRow::mean_violation() const {
  double total = 0;
  for (double v : mean) total += v / double(mean.size());
  return mean.empty() ? NAN : total;
}

double LogRow::max_violation() const {
  return max.empty() ? NAN : *std::max_element(max.begin(), max.end());
}

double frozen_tau(const std::vector<Law>& laws) {
  // A round number above the mean violations at t_gen of the calibration seeds 101 … 105 (0.005 to
  // 0.018; x + y, preset ci, plain AdamW); taken over for the other laws (README, "Calibration").
  return laws.empty() ? NAN : 0.05;
}

Stages find_stages(const std::vector<LogRow>& rows, double tau) {
  Stages s;
  const auto first = [](int64_t& t, int64_t epoch, bool reached) {
    if (t < 0 && reached) t = epoch;
  };
  int most = 0;
  for (const LogRow& r : rows) {
    first(s.t_mem, r.epoch, r.train_accuracy == 1);
    first(s.t_50, r.epoch, r.test_accuracy >= 0.5);
    first(s.t_99, r.epoch, r.test_accuracy >= 0.99);
    first(s.t_gen, r.epoch, r.test_accuracy == 1);
    first(s.t_sym, r.epoch, s.t_mem >= 0 && r.mean_violation() < tau);
    most = std::max(most, r.effective_dimension);
    if (2 * r.effective_dimension > most) {
      s.t_geo = -1;
    } else {
      first(s.t_geo, r.epoch, true);
    }
  }
  return s;
}

std::string log_text(const Task& task, const std::vector<LogRow>& rows) {
  std::string text =
      "epoch,train_loss,train_accuracy,test_loss,test_accuracy,effective_dimension,"
      "parameter_norm,fourier_top10";
  for (Law law : task.laws) text += fmt::format(",mean_{0},max_{0}", law_name(law));
  text += "\n";
  for (const LogRow& r : rows) {
    text += fmt::format("{},{},{},{},{},{},{},{}", r.epoch, r.train_loss, r.train_accuracy,
                        r.test_loss, r.test_accuracy, r.effective_dimension, r.norm,
                        std::isnan(r.fourier) ? "" : fmt::format("{}", r.fourier));
    for (size_t i = 0; i < r.mean.size(); ++i) text += fmt::format(",{},{}", r.mean[i], r.max[i]);
    text += "\n";
  }
  return text;
}

std::vector<LogRow> read_log(const std::string& path) {
  const auto lines = read_fields(path, ",");
  std::vector<LogRow> rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    const auto& f = lines[i];
    const auto number = [&](size_t k) {
      double v = NAN;
      if (k < f.size() && !f[k].empty()) {
        const auto [end, error] = std::from_chars(f[k].data(), f[k].data() + f[k].size(), v);
        if (error != std::errc() || end != f[k].data() + f[k].size()) {
          throw IoError("grok", fmt::format("{}: row {}: \"{}\" is not a number", path, i, f[k]));
        }
      }
      return v;
    };
    if (f.size() != lines[0].size() || f.size() < 8) {
      throw IoError("grok", fmt::format("{}: row {} has {} fields", path, i, f.size()));
    }
    LogRow r{.epoch = whole_number(f[0], path),
             .train_loss = number(1),
             .train_accuracy = number(2),
             .test_loss = number(3),
             .test_accuracy = number(4),
             .effective_dimension = int(whole_number(f[5], path)),
             .norm = number(6),
             .fourier = number(7)};
    for (size_t k = 8; k + 1 < f.size(); k += 2) {
      r.mean.push_back(number(k));
      r.max.push_back(number(k + 1));
    }
    rows.push_back(r);
  }
  return rows;
}

}  // namespace cutaway::grokking
