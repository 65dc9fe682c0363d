#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cutaway::io {

// What a flat JSON object holds: its texts and its numbers; a lone number is a list of one. Other
// values (true, null, objects, lists of anything but numbers) are left out.
struct JsonFields {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, std::vector<double>>> numbers;

  // nullptr when there is none of this name.
  const std::string* text(const std::string& name) const;
  const std::vector<double>* list(const std::string& name) const;
};

// One object, such as a line of a JSON lines file. Raises IoError with `where` ("file:line") for
// what is not JSON, not an object, nested more than 8 deep, or has a name twice.
JsonFields parse_json_fields(const std::string& where, const std::string& text);

}  // namespace cutaway::io
