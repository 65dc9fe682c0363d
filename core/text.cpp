#include <cutaway/core/text.h>

#include <fmt/format.h>

namespace cutaway {

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string out = "'";
  for (char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = double(bytes) / 1024;
  int unit = 0;
  for (; (value >= 1024 || value <= -1024) && unit < 5; ++unit) value /= 1024;
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string_view source_name(std::string_view file) {
  constexpr std::string_view here = __FILE__, place = "core/text.cpp";
  static_assert(here.ends_with(place));
  constexpr std::string_view root = here.substr(0, here.size() - place.size());
  return file.starts_with(root) ? file.substr(root.size()) : file;
}

}  // namespace cutaway
