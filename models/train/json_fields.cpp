#include <cutaway/models/train/json_fields.h>

#include <fmt/format.h>

#include <cutaway/core/text.h>

namespace cutaway::train {

std::string field_text(const std::string& value) { return json_quoted(value); }
std::string field_text(bool value) { return value ? "1" : "0"; }
std::string field_text(int64_t value) { return fmt::to_string(value); }
std::string field_text(uint64_t value) { return fmt::to_string(value); }
std::string field_text(double value) { return fmt::to_string(value); }

void write_fields(const std::vector<std::string>& members, const std::string& path) {
  std::string text = "{\n";
  for (const std::string& m : members) text += "  " + m + ",\n";
  io::write_file_atomic(path, text + "  \"version\": \"" CUTAWAY_VERSION "\"\n}\n");
}

}  // namespace cutaway::train
