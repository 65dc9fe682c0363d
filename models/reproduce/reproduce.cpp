#include <cutaway/models/reproduce/reproduce.h>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include <cutaway/core/io/file.h>
#include <cutaway/core/text.h>

namespace cutaway::reproduce {
namespace {

Statement compared(const Measured& m, const char* sign, bool holds) {
  return {.id = m.id,
          .text = m.text,
          .status = holds ? Status::pass : Status::fail,
          .measured = m.measured.empty() ? fmt::format("{:.3g}", m.value) : m.measured,
          .value = m.value,
          .bound = fmt::format("{} {:.3g}", sign, m.bound),
          .seeds = m.seeds,
          .note = m.note};
}

}  // namespace

const char* status_text(Status s) {
  return s == Status::pass ? "PASS" : s == Status::fail ? "FAIL" : "SKIP";
}

Statement at_least(const Measured& m) { return compared(m, "≥", m.value >= m.bound); }
Statement at_most(const Measured& m) { return compared(m, "≤", m.value <= m.bound); }

std::string mean_spread(const std::vector<double>& values) {
  double mean = 0, square = 0;
  for (double v : values) mean += v / double(values.size());
  for (double v : values) square += (v - mean) * (v - mean);
  if (values.size() < 2) return values.empty() ? "none" : fmt::format("{:.3g}", mean);
  return fmt::format("{:.3g} ± {:.2g}", mean, std::sqrt(square / double(values.size() - 1)));
}

double median(std::vector<double> values) {
  if (values.empty()) return NAN;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::vector<uint64_t> Run::seeds(int n) const {
  std::vector<uint64_t> list;
  for (int i = 0; i < n; ++i) list.push_back(options_.seed + uint64_t(i));
  return list;
}

void Run::add(Statement s) {
  if (options_.on_statement) options_.on_statement(s);
  statements_.push_back(std::move(s));
}

void Run::skip(const std::string& id, const std::string& text, const std::string& reason) {
  add({.id = id, .text = text, .status = Status::skip, .measured = reason});
}

void Run::picture(const std::string& name, const std::string& caption, const std::string& svg) {
  pictures_.push_back({name, caption, svg});
  if (folder().empty()) return;
  std::filesystem::create_directories(folder() + "/plots");
  io::write_file_atomic(folder() + "/plots/" + name + ".svg", svg);
}

void Run::progress(const std::string& text) const {
  if (options_.on_progress) options_.on_progress(text);
}

int Run::count(Status s) const {
  return int(std::count_if(statements_.begin(), statements_.end(),
                           [s](const Statement& x) { return x.status == s; }));
}

std::string Run::json(const std::string& slug) const {
  std::string list;
  for (const Statement& s : statements_) {
    list += fmt::format(
        "{}\n    {{\"id\": {}, \"text\": {}, \"status\": \"{}\", \"measured\": {}, \"value\": {}, "
        "\"bound\": {}, \"seeds\": [{}], \"note\": {}}}",
        list.empty() ? "" : ",", json_quoted(s.id), json_quoted(s.text), status_text(s.status),
        json_quoted(s.measured), std::isfinite(s.value) ? fmt::format("{}", s.value) : "null",
        json_quoted(s.bound), fmt::join(s.seeds, ", "), json_quoted(s.note));
  }
  return fmt::format("{{\n  \"slug\": {},\n  \"mode\": \"{}\",\n  \"statements\": [{}\n  ]\n}}\n",
                     json_quoted(slug), full() ? "full" : "quick", list);
}

}  // namespace cutaway::reproduce
