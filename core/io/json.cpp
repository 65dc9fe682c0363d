#include <cutaway/core/io/json.h>

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include <cutaway/core/error.h>

namespace cutaway::io {
namespace {

using Sax = nlohmann::json_sax<nlohmann::json>;
constexpr size_t kDeepest = 64;

// Builds the value from outside to inside; `open` are the lists and objects not yet closed.
struct Builder : Sax {
  Json root;
  std::vector<Json> open;
  std::vector<std::string> names;  // of the open ones within theirs
  std::string name, problem;

  bool wrong(std::string what) {
    problem = std::move(what);
    return false;
  }
  bool add(Json value) {
    if (open.empty()) {
      root = std::move(value);
      return true;
    }
    Json& parent = open.back();
    if (parent.is(Json::Kind::object)) parent.keys.push_back(std::move(name));
    parent.items.push_back(std::move(value));
    return true;
  }
  bool begin(Json::Kind kind) {
    if (open.size() >= kDeepest) return wrong("is nested too deeply");
    names.push_back(std::move(name));
    name.clear();
    open.emplace_back().kind = kind;
    return true;
  }
  bool end() {
    Json value = std::move(open.back());
    open.pop_back();
    name = std::move(names.back());
    names.pop_back();
    return add(std::move(value));
  }

  bool null() override { return add({}); }
  bool boolean(bool v) override { return add({.kind = Json::Kind::boolean, .truth = v}); }
  bool number_integer(number_integer_t v) override { return number_float(double(v), {}); }
  bool number_unsigned(number_unsigned_t v) override { return number_float(double(v), {}); }
  bool number_float(number_float_t v, const string_t&) override {
    return add({.kind = Json::Kind::number, .number = v});
  }
  bool string(string_t& v) override {
    Json value{.kind = Json::Kind::text};
    value.text = std::move(v);
    return add(std::move(value));
  }
  bool binary(binary_t&) override { return wrong("is not JSON"); }
  bool start_object(size_t) override { return begin(Json::Kind::object); }
  bool start_array(size_t) override { return begin(Json::Kind::list); }
  bool key(string_t& k) override {
    name = std::move(k);
    return true;
  }
  bool end_array() override { return end(); }
  bool end_object() override {
    std::vector<std::string_view> keys(open.back().keys.begin(), open.back().keys.end());
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) return wrong(fmt::format("has the name \"{}\" twice", *twice));
    return end();
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) override {
    return wrong(fmt::format("is not JSON at character {}", at));
  }
};

}  // namespace

const Json* Json::find(std::string_view key) const {
  if (kind != Kind::object) return nullptr;
  const auto at = std::find(keys.begin(), keys.end(), key);
  return at == keys.end() ? nullptr : &items[size_t(at - keys.begin())];
}

Json parse_json(const std::string& where, std::string_view text) {
  Builder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    throw IoError("json", fmt::format("{}: {}", where, builder.problem));
  }
  return std::move(builder.root);
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (uint8_t(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", uint8_t(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace cutaway::io
