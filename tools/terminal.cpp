#include <tools/terminal.h>

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace cutaway::tools {
namespace {

int columns_of(const std::string& utf8) {
  return int(std::count_if(utf8.begin(), utf8.end(),
                           [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

int terminal_width() {
  winsize size{};
  int width = 0;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  if (width == 0 && columns) width = std::atoi(columns);
  if (width == 0) width = 100;
  return std::max(width, 40);
}

std::string wrapped(const std::string& text, int indent, int width) {
  std::istringstream words(text);
  std::string out, word;
  int at = 0;
  while (words >> word) {
    const int columns = columns_of(word);
    if (at > 0 && at + 1 + columns <= width) {
      out += " " + word;
      at += 1 + columns;
      continue;
    }
    if (!out.empty()) out += "\n";
    out += std::string(size_t(indent), ' ') + word;
    at = indent + columns;
  }
  return out;
}

}  // namespace cutaway::tools
