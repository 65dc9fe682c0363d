#include <tests/tools/shell_command.h>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sstream>

#include <cutaway/core/text.h>

namespace cutaway {
namespace fs = std::filesystem;

void ShellCommand::SetUp() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  folder_ =
      fs::temp_directory_path() / fmt::format("cutaway_{}_{}", test->test_suite_name(), ::getpid());
  fs::remove_all(folder_);
  fs::create_directories(folder_);
}

int ShellCommand::run(const std::string& arguments, const std::string& input,
                      const fs::path& where) {
  const std::string all =
      fmt::format("cd {} && CUTAWAY_SAMPLES={}/datasets/samples {} {} <{} >{} 2>&1",
                  shell_quoted((where.empty() ? folder_ : where).string()),
                  shell_quoted(kSourceDir), shell_quoted(kCommand), arguments, shell_quoted(input),
                  shell_quoted((folder_ / "log").string()));
  const int status = std::system(all.c_str());
  text_ = read("log");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string ShellCommand::read(const fs::path& name) const {
  std::ifstream in(folder_ / name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace cutaway
