#include <cutaway/models/haste/run_files.h>

#include <fmt/format.h>
#include <charconv>
#include <filesystem>

#include <cutaway/core/dispatch.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/text.h>
#include <cutaway/models/haste/pictures.h>
#include <cutaway/models/report/svg.h>

namespace cutaway::haste {
namespace {

constexpr const char* kHeader =
    "epoch,step,loss,p1,p2,p3,p4,p5,psp1,psp2,psp3,psp4,psp5,rewired,seconds\n";

std::string format_row(const EpochRow& r) {
  std::string line = fmt::format("{},{},{}", r.epoch, r.step, r.loss);
  for (double v : r.p) line += fmt::format(",{}", v);
  for (double v : r.psp) line += fmt::format(",{}", v);
  return line + fmt::format(",{},{:.3f}\n", r.rewired, r.seconds);
}

// One line; false for anything that is not a whole row.
bool parse_row(std::string_view line, EpochRow& r) {
  std::vector<double> cells;
  while (true) {
    const size_t comma = std::min(line.find(','), line.size());
    double value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + comma, value);
    if (error != std::errc() || end != line.data() + comma) return false;
    cells.push_back(value);
    if (comma == line.size()) break;
    line.remove_prefix(comma + 1);
  }
  if (cells.size() != 15) return false;
  r = {.epoch = int64_t(cells[0]), .step = int64_t(cells[1]), .loss = cells[2]};
  r.p.assign(cells.begin() + 3, cells.begin() + 8);
  r.psp.assign(cells.begin() + 8, cells.begin() + 13);
  r.rewired = int64_t(cells[13]);
  r.seconds = cells[14];
  return true;
}

std::string shares(const std::vector<double>& values) {
  std::string text;
  for (double v : values) text += fmt::format("  {:6.2f}", 100 * v);
  return text;
}

std::string band_text(const std::vector<BandMetrics>& bands, const char* title) {
  std::string text = fmt::format("{:<12} {:>9} {:>9}     P@1     P@3     P@5 (among its labels)\n",
                                 title, "labels", "samples");
  for (const BandMetrics& b : bands) {
    text +=
        fmt::format("{:<12} {:>9} {:>9}  {:6.2f}  {:6.2f}  {:6.2f}\n", b.name, b.labels, b.samples,
                    100 * b.precision[0], 100 * b.precision[2], 100 * b.precision[4]);
  }
  return text;
}

std::string table_row(const std::string& name, const std::string& value) {
  return fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", report::escape(name),
                     report::escape(value));
}

constexpr const char* kStyle =
    "font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;color:#000;"
    "background:#fff";

}  // namespace

MetricsCsv::MetricsCsv(const std::string& path, int64_t keep)
    : file_(path, kHeader, [&](std::string_view line) {
        EpochRow row;
        if (!parse_row(line, row) || row.epoch > keep) return false;
        rows_.push_back(row);
        return true;
      }) {}

void MetricsCsv::add(const EpochRow& row) {
  rows_.push_back(row);
  file_.add(format_row(row));
}

std::string metrics_text(const Metrics& m) {
  return fmt::format(
             "{:<12}     @1      @2      @3      @4      @5   ({} samples)\nP   {:<7}{}\n"
             "PSP {:<7}{}\n\n",
             "", m.samples, "", shares(m.precision), "", shares(m.psp)) +
         band_text(m.bands, "band") + "\n" + band_text(m.deciles, "decile");
}

std::string memory_text(const std::vector<std::pair<std::string, int64_t>>& memory) {
  std::string text;
  int64_t total = 0;
  for (const auto& [name, bytes] : memory) {
    text += fmt::format("{:<40} {:>14} bytes\n", name, bytes);
    total += bytes;
  }
  return text + fmt::format("{:<40} {:>14} bytes = {}\n", "together", total, bytes_text(total));
}

void write_report(const std::string& folder, const RunResult& result, const Prepared& prepared,
                  const std::vector<EpochRow>& rows) {
  std::filesystem::create_directories(folder + "/plots");
  const RunOptions& o = result.options;
  const XmcData& train = prepared.set.train;
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title></head>"
      "<body style=\"{1}\">\n<h1>{0}: {2} layer, seed {3}</h1>\n<table>\n",
      report::escape(prepared.set.name), kStyle, o.layer, o.seed);
  html += table_row("samples",
                    fmt::format("{} train, {} test", train.rows(), prepared.set.test.rows()));
  html +=
      table_row("labels", fmt::format("{}, {} in the head, {} seen in training", train.num_labels(),
                                      prepared.order.head, prepared.order.seen));
  html +=
      table_row("layer", fmt::format("{}, group {}, fan-in {}, {} groups, {}, {} features", o.layer,
                                     o.group, o.fan_in, o.grouping, o.dtype, o.features));
  html += table_row("best epoch", fmt::format("{} of {}", result.best_epoch, rows.size()));
  html += table_row("P@1, 3, 5", shares({result.best.precision[0], result.best.precision[2],
                                         result.best.precision[4]}));
  html += table_row("PSP@1, 3, 5",
                    shares({result.best.psp[0], result.best.psp[2], result.best.psp[4]}));
  html += table_row("training", fmt::format("{:.0f} samples/s", result.samples_per_second));
  html += table_row("tail", bytes_text(result.tail_bytes));
  html +=
      "</table>\n<p>Options: <code>config.json</code>; numbers: <code>metrics.csv</code>.</p>\n";
  const std::vector<std::pair<const char*, std::string>> pictures = {
      {"precision", precision_plot(rows)},
      {"loss", loss_plot(rows)},
      {"deciles", decile_plot(result.best)},
      {"rewired", rewired_plot(rows)},
      {"memory", memory_plot(result.memory)}};
  for (const auto& [name, svg] : pictures) {
    io::write_file_atomic(fmt::format("{}/plots/{}.svg", folder, name), svg);
    html += "<figure>" + svg + "</figure>\n";
  }
  html += "<pre>" + report::escape(metrics_text(result.best) + "\n" + memory_text(result.memory)) +
          "</pre>\n";
  html += fmt::format("<p>cutaway {}, cpu {}, {} threads</p>\n</body></html>\n", CUTAWAY_VERSION,
                      cpu_variant(), num_threads());
  io::write_file_atomic(folder + "/report.html", html);
}

void save_names(const std::vector<std::string>& names, const std::string& path) {
  std::string text;
  for (std::string name : names) {
    for (char& c : name) c = c == '\n' || c == '\r' ? ' ' : c;
    text += name + "\n";
  }
  io::write_file_atomic(path, text);
}

std::vector<std::string> load_names(const std::string& path) {
  const io::Bytes bytes = io::read_file(path);
  const std::string text(bytes.begin(), bytes.end());
  std::vector<std::string> names;
  size_t from = 0;
  for (size_t end; (end = text.find('\n', from)) != std::string::npos; from = end + 1) {
    names.push_back(text.substr(from, end - from));
  }
  return names;
}

}  // namespace cutaway::haste
