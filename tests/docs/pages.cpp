#include <tests/docs/pages.h>

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <regex>
#include <sstream>

#include <cutaway/core/dispatch.h>

namespace pages {
namespace {

// Text between numbers, and the numbers.
struct Parts {
  std::vector<std::string> texts;
  std::vector<double> numbers;
};

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// With `blur`, runs of spaces count as one: columns move with the width of their numbers.
Parts split(const std::string& text, bool blur) {
  Parts parts;
  std::string between;
  for (size_t i = 0; i < text.size();) {
    const bool sign = text[i] == '-' && i + 1 < text.size() && digit(text[i + 1]) &&
                      (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1])));
    if (digit(text[i]) || sign) {
      double value = 0;
      const auto end = std::from_chars(text.data() + i, text.data() + text.size(), value).ptr;
      parts.numbers.push_back(value);
      parts.texts.push_back(between);
      between.clear();
      i = size_t(end - text.data());
      continue;
    }
    if (!(blur && text[i] == ' ' && !between.empty() && between.back() == ' ')) between += text[i];
    ++i;
  }
  parts.texts.push_back(between);
  return parts;
}

std::string difference_of_numbers(const std::string& shown, const std::string& written,
                                  double tolerance) {
  const bool vary = tolerance < 0;
  const Parts a = split(shown, true), b = split(written, true);
  if (a.texts != b.texts) return "the text between the numbers differs";
  for (size_t i = 0; i < a.numbers.size() && !vary; ++i) {
    const double allowed = tolerance * std::max(1.0, std::abs(a.numbers[i]));
    if (!(std::abs(a.numbers[i] - b.numbers[i]) <= allowed)) {
      return fmt::format("number {} is {}, the page shows {}", i + 1, b.numbers[i], a.numbers[i]);
    }
  }
  return "";
}

int64_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// Without the numbers of lines in sources, which move with every change of these.
std::string plain(const std::string& text) {
  static const std::regex place("(\\.(cpp|h|md)):[0-9]+");
  return std::regex_replace(text, place, "$1");
}

std::string difference_of(const std::string& mode, const std::string& shown, std::string written) {
  if (shown == written) return "";
  if (mode.empty()) return "the text differs";
  if (mode == "numbers vary") {
    const std::string variant = cutaway::cpu_variant();
    for (size_t at; (at = written.find(variant)) != std::string::npos;) {
      written.replace(at, variant.size(), "AVX0");
    }
    return difference_of_numbers(std::regex_replace(shown, std::regex("avx512"), "AVX0"), written,
                                 -1);
  }
  if (mode.starts_with("within ")) {
    return difference_of_numbers(shown, written, std::stod(mode.substr(7)));
  }
  if (mode.starts_with("on ")) {
    if (mode.substr(3) == cutaway::cpu_variant()) return "the text differs";
    return lines(shown) == lines(written) ? "" : "the number of lines differs";
  }
  return "unknown mode \"" + mode + "\"";
}

}  // namespace

std::vector<Block> read_blocks(const std::string& page) {
  std::ifstream file(page);
  std::vector<Block> blocks;
  std::string line;
  bool inside = false;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (!inside) continue;
      std::istringstream fence(line.substr(3));
      Block block{.line = number};
      fence >> block.language >> std::ws;
      std::getline(fence, block.mode);
      blocks.push_back(block);
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

std::string difference(const Block& shown, const std::string& written) {
  return difference_of(shown.mode, plain(shown.text), plain(written));
}

}  // namespace pages
