#pragma once
#include <unistd.h>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <string>

namespace cutaway::test {

// While alive, the process has a locale that writes 0,1 for a tenth and 1.000 for a thousand: C's
// de_DE.UTF-8 (compiled to a temporary folder where it is not installed, if localedef is there) and
// C++'s global locale.
class CommaLocale {
 public:
  CommaLocale() : before_(std::setlocale(LC_ALL, nullptr)) {
    std::locale::global(std::locale(std::locale::classic(), new Comma));
    if (std::setlocale(LC_ALL, "de_DE.UTF-8")) return;
    folder_ = std::filesystem::temp_directory_path() / ("cutaway_l_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    const std::string make = "localedef -i de_DE -f UTF-8 --no-archive " +
                             (folder_ / "de_DE.UTF-8").string() + " >/dev/null 2>&1";
    if (std::system(make.c_str()) != 0) return;
    ::setenv("LOCPATH", folder_.c_str(), 1);
    std::setlocale(LC_ALL, "de_DE.UTF-8");
  }
  ~CommaLocale() {
    std::locale::global(std::locale::classic());
    std::setlocale(LC_ALL, before_.c_str());
    ::unsetenv("LOCPATH");
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  // Whether C functions use the comma too.
  static bool in_c() { return std::string(std::localeconv()->decimal_point) == ","; }

 private:
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::string before_;
  std::filesystem::path folder_;
};

}  // namespace cutaway::test
