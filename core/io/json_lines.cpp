#include <cutaway/core/io/json_lines.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

#include <cutaway/core/error.h>

namespace cutaway::io {
namespace {

using Sax = nlohmann::json_sax<nlohmann::json>;

// Keeps what is at the first level; deeper levels are walked over.
struct Collector : Sax {
  JsonFields fields;
  std::string problem, name;
  std::set<std::string> keys;
  std::vector<double> numbers;
  int depth = 0;
  bool in_list = false, all_numbers = false;

  bool add(double value) {
    if (depth == 1) fields.numbers.push_back({name, {value}});
    if (depth == 2 && in_list) numbers.push_back(value);
    return true;
  }
  bool other() {
    all_numbers = false;
    return depth > 0 || wrong("is not an object");
  }
  bool wrong(std::string what) {
    problem = std::move(what);
    return false;
  }
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t v) override {
    return depth ? add(double(v)) : wrong("is not an object");
  }
  bool number_unsigned(number_unsigned_t v) override {
    return depth ? add(double(v)) : wrong("is not an object");
  }
  bool number_float(number_float_t v, const string_t&) override {
    return depth ? add(v) : wrong("is not an object");
  }
  bool string(string_t& v) override {
    if (depth == 1) fields.texts.emplace_back(name, std::move(v));
    return other();
  }
  bool binary(binary_t&) override { return other(); }
  bool start_object(size_t) override {
    all_numbers = false;
    return ++depth <= 8 || wrong("is nested too deeply");
  }
  bool key(string_t& k) override {
    if (depth != 1) return true;
    name = k;
    return keys.insert(k).second || wrong(fmt::format("has the name \"{}\" twice", k));
  }
  bool end_object() override {
    --depth;
    return true;
  }
  bool start_array(size_t) override {
    if (depth == 0) return wrong("is not an object");
    if (depth == 1) {
      in_list = all_numbers = true;
      numbers.clear();
    } else {
      all_numbers = false;
    }
    return ++depth <= 8 || wrong("is nested too deeply");
  }
  bool end_array() override {
    if (--depth == 1) {
      if (all_numbers) fields.numbers.emplace_back(name, numbers);
      in_list = false;
    }
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) override {
    return wrong(fmt::format("is not JSON at character {}", at));
  }
};

}  // namespace

const std::string* JsonFields::text(const std::string& name) const {
  for (const auto& [key, value] : texts) {
    if (key == name) return &value;
  }
  return nullptr;
}

const std::vector<double>* JsonFields::list(const std::string& name) const {
  for (const auto& [key, value] : numbers) {
    if (key == name) return &value;
  }
  return nullptr;
}

JsonFields parse_json_fields(const std::string& where, const std::string& text) {
  Collector collector;
  if (!nlohmann::json::sax_parse(text, &collector)) {
    throw IoError("json", fmt::format("{}: {}", where, collector.problem));
  }
  return std::move(collector.fields);
}

}  // namespace cutaway::io
