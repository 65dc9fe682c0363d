// Comparison: which of two entities has more of an attribute.
#include <cutaway/models/grokking/task.h>

#include <fmt/format.h>
#include <charconv>
#include <cmath>

#include <cutaway/core/error.h>

namespace cutaway::grokking {
namespace {

struct Entities {
  std::vector<std::string> names, attributes;
  std::vector<std::vector<double>> values;  // [entity][attribute]
};

Entities grid(int64_t side, int64_t axes) {
  Entities e;
  const char* kAttributes[] = {"age", "height", "weight"};
  int64_t count = 1;
  for (int64_t k = 0; k < axes; ++k) {
    e.attributes.push_back(kAttributes[k]);
    count *= side;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::vector<double> place;
    std::string name;
    for (int64_t k = 0, rest = i; k < axes; ++k, rest /= side) {
      place.push_back(double(rest % side));
      name += (k ? "," : "") + std::to_string(rest % side);
    }
    e.names.push_back(name);
    e.values.push_back(place);
  }
  return e;
}

Entities entity_file(const std::string& path) {
  const auto lines = read_fields(path, ",");
  Entities e;
  if (lines[0].size() < 2 || lines.size() < 4) {
    throw ValueError("grok", path + ": need a first line name,attribute,… and at least 3 entities");
  }
  if (lines.size() > 501) throw ValueError("grok", path + ": more than 500 entities");
  e.attributes.assign(lines[0].begin() + 1, lines[0].end());
  for (size_t i = 1; i < lines.size(); ++i) {
    const auto& f = lines[i];
    if (f.size() != lines[0].size()) {
      throw ValueError("grok", fmt::format("{}: entity {} has {} fields; need {}", path, i,
                                           f.size(), lines[0].size()));
    }
    std::vector<double> values;
    for (size_t k = 1; k < f.size(); ++k) {
      double v = 0;
      const auto [end, error] = std::from_chars(f[k].data(), f[k].data() + f[k].size(), v);
      if (error != std::errc() || end != f[k].data() + f[k].size() || !std::isfinite(v)) {
        throw ValueError("grok", fmt::format("{}: entity {}, {}: \"{}\" is not a number", path, i,
                                             e.attributes[k - 1], f[k]));
      }
      values.push_back(v);
    }
    e.names.push_back(f[0]);
    e.values.push_back(values);
  }
  return e;
}

}  // namespace

Task compare_task(const TaskOptions& o) {
  const std::string kind = o.name.substr(8);
  const Entities e = kind == "2d" ? grid(7, 2) : kind == "3d" ? grid(3, 3) : entity_file(kind);
  const auto n = int64_t(e.names.size()), attributes = int64_t(e.attributes.size());
  Task t{.name = o.name, .entities = n, .tokens = e.names, .length = 3, .binary = o.binary};
  t.places = e.values;
  const char* kRelations[] = {"<", "=", ">"};
  const int64_t relations = o.binary ? 3 : 1;
  for (const std::string& a : e.attributes) {
    for (int64_t r = 0; r < relations; ++r) t.tokens.push_back(o.binary ? a + kRelations[r] : a);
  }
  t.classes = o.binary ? std::vector<std::string>{"false", "true"}
                       : std::vector<std::string>{"<", "=", ">"};
  // Row of (i, attribute k with relation r, j).
  const auto row = [=](int64_t i, int64_t k, int64_t r, int64_t j) {
    return ((i * attributes + k) * relations + r) * n + j;
  };
  const auto relation = [&](int64_t i, int64_t k, int64_t j) {
    const double a = e.values[size_t(i)][size_t(k)], b = e.values[size_t(j)][size_t(k)];
    return a < b ? 0 : a == b ? 1 : 2;
  };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < attributes; ++k) {
      for (int64_t r = 0; r < relations; ++r) {
        for (int64_t j = 0; j < n; ++j) {
          t.inputs.insert(t.inputs.end(), {i, n + k * relations + r, j});
          t.answers.push_back(o.binary ? relation(i, k, j) == r : relation(i, k, j));
          t.pool.push_back(int64_t(t.pool.size()));
        }
      }
    }
  }
  t.laws = {Law::transitivity};
  for (int i = 0; i < 3; ++i) t.ranges[i] = n;
  t.ranges[3] = attributes;
  t.instance = [=, binary = o.binary](Law, const int64_t* v, int64_t* rows) {
    const int64_t a = v[0], b = v[1], c = v[2], k = v[3];
    const int64_t pairs[3][2] = {{a, b}, {b, c}, {a, c}};
    for (int i = 0; i < 3; ++i) {
      if (binary) {
        rows[2 * i] = row(pairs[i][0], k, 2, pairs[i][1]);
        rows[2 * i + 1] = row(pairs[i][0], k, 0, pairs[i][1]);
      } else {
        rows[i] = row(pairs[i][0], k, 0, pairs[i][1]);
      }
    }
    const auto value = [&](int64_t i) { return e.values[size_t(i)][size_t(k)]; };
    return (value(a) < value(b) && value(b) < value(c)) ||
           (value(a) > value(b) && value(b) > value(c));
  };
  return t;
}

}  // namespace cutaway::grokking
