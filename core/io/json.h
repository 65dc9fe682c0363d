#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::io {

// A JSON value as it stands in a file; members of objects keep their order.
struct Json {
  enum class Kind { null, boolean, number, text, list, object };
  Kind kind = Kind::null;
  bool truth = false;
  double number = 0;
  std::string text;
  std::vector<Json> items;        // of a list, or the values of an object …
  std::vector<std::string> keys;  // … under these names

  bool is(Kind k) const { return kind == k; }
  // The member of this name, nullptr when there is none or this is no object. Linear.
  const Json* find(std::string_view key) const;
};

// One value and nothing after it. Raises IoError beginning with `where` for what is not JSON or not
// UTF-8, is nested more than 64 deep, or has an object with a name twice.
Json parse_json(const std::string& where, std::string_view text);
// UTF-8 text as a JSON string, with its quotation marks; nothing is lost.
std::string json_string(std::string_view text);

}  // namespace cutaway::io
