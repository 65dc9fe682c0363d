#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cutaway::data {

// A regular expression over valid UTF-8 text with Unicode classes (PCRE2).
class Regex {
 public:
  // Raises ValueError naming what is wrong and where in the pattern.
  explicit Regex(const std::string& pattern);
  // [begin,end) of all matches that are not empty, from left to right, not overlapping. Raises
  // ValueError when a match takes more work than is allowed.
  std::vector<std::pair<size_t, size_t>> matches(std::string_view text) const;
  const std::string& pattern() const { return pattern_; }

 private:
  struct Code;
  std::string pattern_;
  std::shared_ptr<const Code> code_;
};

}  // namespace cutaway::data
