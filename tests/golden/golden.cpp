#include <tests/golden/golden.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <mutex>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include <tests/paths.h>

namespace cutaway::golden {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw std::runtime_error("[golden] " + where + ": " + what);
}

size_t width(const std::string& dtype) {
  if (dtype == "F64" || dtype == "I64") return 8;
  if (dtype == "F32") return 4;
  return dtype == "BOOL" ? 1 : 0;
}

double value(const std::string& dtype, const unsigned char* at) {
  if (dtype == "F64") {
    double v;
    std::memcpy(&v, at, sizeof v);
    return v;
  }
  if (dtype == "F32") {
    float v;
    std::memcpy(&v, at, sizeof v);
    return v;
  }
  if (dtype == "I64") {
    int64_t v;
    std::memcpy(&v, at, sizeof v);
    return static_cast<double>(v);
  }
  return *at != 0 ? 1.0 : 0.0;
}

Array array(const std::string& where, const json& entry, std::span<const unsigned char> data) {
  Array a;
  a.dtype = entry.at("dtype").get<std::string>();
  a.shape = entry.at("shape").get<std::vector<int64_t>>();
  const auto offsets = entry.at("data_offsets").get<std::vector<size_t>>();
  const size_t step = width(a.dtype);
  if (step == 0) fail(where, "unknown dtype " + a.dtype);
  size_t count = 1;
  for (const int64_t size : a.shape) count *= static_cast<size_t>(size);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size() ||
      offsets[1] - offsets[0] != count * step) {
    fail(where, "offsets and shape disagree");
  }
  a.values.reserve(count);
  for (size_t at = offsets[0]; at < offsets[1]; at += step) {
    a.values.push_back(value(a.dtype, data.data() + at));
  }
  return a;
}

/// The option, or null when it is absent.
const json& option(const json& options, const std::string& key) {
  static const json null;
  const auto found = options.find(key);
  return found == options.end() ? null : *found;
}

template <typename T>
T read(const Case& c, const std::string& key, const T& fallback) {
  const json& found = option(c.options(), key);
  if (found.is_null()) return fallback;
  try {
    return found.get<T>();
  } catch (const json::exception& e) {
    fail(c.name(), "option " + key + ": " + e.what());
  }
}

template <typename T>
std::vector<T> read_list(const Case& c, const std::string& key, const std::vector<T>& fallback) {
  if (option(c.options(), key).is_number()) return {read<T>(c, key, T{})};
  return read(c, key, fallback);
}

}  // namespace

const Array& Case::at(const std::string& tensor) const {
  const auto found = arrays_.find(tensor);
  if (found == arrays_.end()) fail(name_, "no tensor " + tensor);
  return found->second;
}

std::vector<std::string> Case::names(const std::string& kind) const {
  std::vector<std::string> found;
  for (const auto& [key, unused] : arrays_) {
    if (key.starts_with(kind + ".")) found.push_back(key.substr(kind.size() + 1));
  }
  return found;
}

bool Case::has_option(const std::string& key) const { return !option(*options_, key).is_null(); }

int64_t Case::integer(const std::string& key, int64_t fallback) const {
  return read(*this, key, fallback);
}

double Case::number(const std::string& key, double fallback) const {
  return read(*this, key, fallback);
}

bool Case::flag(const std::string& key, bool fallback) const { return read(*this, key, fallback); }

std::string Case::text(const std::string& key, const std::string& fallback) const {
  return read(*this, key, fallback);
}

std::vector<int64_t> Case::integers(const std::string& key,
                                    const std::vector<int64_t>& fallback) const {
  return read_list(*this, key, fallback);
}

std::vector<double> Case::numbers(const std::string& key,
                                  const std::vector<double>& fallback) const {
  return read_list(*this, key, fallback);
}

File File::parse(const std::string& group, std::span<const unsigned char> bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length) fail(group, "shorter than its header length");
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes = bytes.subspan(sizeof length);
  if (length > bytes.size()) fail(group, "header longer than the file");
  const json header = json::parse(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
  std::map<std::string, Case> cases;
  for (const auto& [name, text] : header.at("__metadata__").items()) {
    Case& c = cases[name];
    c.name_ = name;
    c.options_ = std::make_shared<const json>(json::parse(text.get<std::string>()));
  }
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") continue;
    const size_t slash = key.find('/');
    const auto found = cases.find(key.substr(0, slash));
    if (slash == std::string::npos || found == cases.end()) fail(group, "no case for " + key);
    found->second.arrays_[key.substr(slash + 1)] =
        array(group + " " + key, entry, bytes.subspan(length));
  }
  File file;
  file.group_ = group;
  for (auto& [name, c] : cases) file.cases_.push_back(std::move(c));
  return file;
}

const File& File::open(const std::string& group) {
  static std::mutex mutex;
  static std::map<std::string, File> files;
  const std::lock_guard lock(mutex);
  if (const auto found = files.find(group); found != files.end()) return found->second;
  const std::string path = std::string(kSourceDir) + "/tests/golden/" + group + ".safetensors";
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(group, "cannot open " + path);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  return files.emplace(group, parse(group, {data, bytes.size()})).first->second;
}

const Case& File::at(const std::string& name) const {
  for (const Case& c : cases_) {
    if (c.name() == name) return c;
  }
  fail(group_, "no case " + name);
}

std::vector<const Case*> File::of_op(const std::string& op) const {
  std::vector<const Case*> found;
  for (const Case& c : cases_) {
    if (c.text("op") == op) found.push_back(&c);
  }
  if (found.empty()) fail(group_, "no case of " + op);
  return found;
}

double relative_error(std::span<const double> got, const Array& want) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (got.size() != want.values.size()) return kInfinity;
  double error = 0, scale = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double w = want.values[i];
    if (std::isnan(w) ? std::isnan(got[i]) : got[i] == w) {
      if (std::isfinite(w)) scale = std::max(scale, std::abs(w));
      continue;
    }
    if (!std::isfinite(w) || !std::isfinite(got[i])) return kInfinity;
    error = std::max(error, std::abs(got[i] - w));
    scale = std::max(scale, std::abs(w));
  }
  return error / std::max(scale, 1e-12);
}

}  // namespace cutaway::golden
