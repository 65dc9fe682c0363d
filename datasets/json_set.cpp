#include <cutaway/datasets/json_set.h>

#include <fmt/format.h>
#include <map>

#include <cutaway/core/error.h>
#include <cutaway/datasets/formats.h>
#include <cutaway/datasets/targets.h>

namespace cutaway::data {
namespace {

size_t target_column(const JsonLines& lines) {
  for (const char* name : {"target", "label", "class", "y"}) {
    for (size_t c = 0; c < lines.columns.size(); ++c) {
      if (lines.columns[c].name == name) return c;
    }
  }
  return lines.columns.size() - 1;
}

// Texts as numbers of classes.
std::vector<double> numbered(const std::vector<std::string>& texts,
                             std::vector<std::string>& classes) {
  std::map<std::string, size_t> known;
  std::vector<double> numbers;
  for (const std::string& text : texts) {
    const auto [at, fresh] = known.emplace(text, classes.size());
    if (fresh) classes.push_back(text);
    numbers.push_back(double(at->second));
  }
  return numbers;
}

}  // namespace

Dataset json_lines_dataset(const std::string& name, const JsonLines& lines) {
  const auto width = int64_t(lines.columns.size()) - 1;
  if (width < 1) throw IoError("json", name + ": needs at least one input field and a target");
  const size_t target = target_column(lines);
  Dataset d{.name = name, .inputs = empty({lines.lines, width})};
  float* x = d.inputs.data<float>();
  for (size_t c = 0; c < lines.columns.size(); ++c) {
    const JsonColumn& column = lines.columns[c];
    if (c == target) continue;
    if (!column.values.defined()) {
      throw IoError(
          "json", fmt::format("{}: the field '{}' is text; inputs are numbers", name, column.name));
    }
    const double* v = column.values.data<double>();
    for (int64_t i = 0; i < lines.lines; ++i) x[i * width] = float(v[i]);
    ++x;
  }
  const JsonColumn& y = lines.columns[target];
  std::vector<std::string> classes;
  const Targets targets =
      make_targets(y.values.defined() ? y.values.to_vector() : numbered(y.texts, classes));
  d.targets = targets.values;
  d.classes = classes.empty() ? targets.classes : classes;
  return d;
}

bool is_json_lines(const std::string& path) {
  return has_ending(path, ".jsonl") || has_ending(path, ".ndjson");
}

Dataset open_json_lines(const std::string& path, const std::string& split) {
  return take_split(json_lines_dataset(path, load_json_lines(path)), split);
}

}  // namespace cutaway::data
