#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include <cutaway/core/error.h>

namespace cutaway::data {

// Lines of a text file with what errors need to say about them. `op` begins the messages; `number`
// is that of the line before the text.
class TextLines {
 public:
  TextLines(const char* op, const std::string& name, std::string_view text, int64_t number = 0)
      : op_(op), name_(name), left_(text), number_(number) {}

  // The next line without its end; false at the end of the text.
  bool next(std::string_view& line) {
    if (left_.empty()) return false;
    const size_t end = left_.find('\n');
    line = left_.substr(0, end);
    left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number_;
    return true;
  }
  int64_t number() const { return number_; }
  // Throws IoError "file:line: rule".
  [[noreturn]] void fail(const std::string& rule, std::string_view hint = {}) const {
    throw IoError(op_, name_ + ":" + std::to_string(number_) + ": " + rule, hint);
  }
  // A piece of the text for a message: short, without control characters.
  static std::string shown(std::string_view text) {
    std::string out = "\"";
    for (const char c : text.substr(0, 40)) out += static_cast<unsigned char>(c) < 32 ? '?' : c;
    return out + (text.size() > 40 ? "…\"" : "\"");
  }
  // The whole of `text` as a number; false when it is not one or does not fit.
  template <class T>
  static bool number(std::string_view text, T& value) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && stop == text.data() + text.size() && !text.empty();
  }

 private:
  const char* op_;
  const std::string& name_;
  std::string_view left_;
  int64_t number_;
};

// Takes the piece up to the next separator off the front of `text`.
inline std::string_view cut(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return piece;
}

}  // namespace cutaway::data
