#pragma once
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

namespace cutaway::train {

// Whole numbers in files: beyond this no count of a run is real, and sums of them stay in 64 bits.
inline constexpr int64_t kLargestCount = int64_t(1) << 53;

// A JSON object from a file; raises IoError naming it. Nesting costs no stack.
inline nlohmann::json read_json_object(const char* who, const std::string& path) {
  const io::Bytes bytes = io::read_file(path);
  auto json = nlohmann::json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!json.is_object()) throw IoError(who, path + ": is not JSON");
  return json;
}

// The field `name`: text, a finite number, a whole number from 0 to 2^53, or (uint64_t) any whole
// number from 0. Raises IoError naming file, field and what it must be.
template <class T>
T json_field(const char* who, const nlohmann::json& j, const char* name, const std::string& path) {
  const auto fail = [&](const char* what) {
    throw IoError(who, path + ": \"" + name + "\" is missing or not " + what);
  };
  const auto found = j.find(name);
  if constexpr (std::is_same_v<T, std::string>) {
    if (found == j.end() || !found->is_string()) fail("text");
  } else if constexpr (std::is_same_v<T, double>) {
    if (found == j.end() || !found->is_number() || !std::isfinite(found->template get<double>()))
      fail("a finite number");
  } else {
    const bool whole = found != j.end() && found->is_number_unsigned();
    const bool small = whole && found->template get<uint64_t>() <= uint64_t(kLargestCount);
    if (!(std::is_same_v<T, uint64_t> ? whole : small)) fail("a whole number from 0 to 2^53");
  }
  return found->template get<T>();
}

// A value as JSON; truth values are 0 and 1.
std::string field_text(const std::string& value);
std::string field_text(bool value);
std::string field_text(int64_t value);
std::string field_text(uint64_t value);
std::string field_text(double value);
// Writes the members, `"name": value` each, as one object, with the version of the library.
void write_fields(const std::vector<std::string>& members, const std::string& path);

// The options of a run as a flat JSON object. each_field(options, f) calls f(name, value) for every
// one of them.
template <class Options, class EachField>
void save_fields(const Options& options, EachField each_field, const std::string& path) {
  std::vector<std::string> members;
  each_field(options, [&](const char* name, const auto& value) {
    members.push_back(std::string("\"") + name + "\": " + field_text(value));
  });
  write_fields(members, path);
}
// What save_fields wrote; raises IoError as json_field does.
template <class Options, class EachField>
Options load_fields(const char* who, EachField each_field, const std::string& path) {
  const auto json = read_json_object(who, path);
  Options o;
  each_field(o, [&](const char* name, auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, bool>) {
      value = json_field<int64_t>(who, json, name, path) != 0;
    } else {
      value = json_field<T>(who, json, name, path);
    }
  });
  return o;
}

}  // namespace cutaway::train
