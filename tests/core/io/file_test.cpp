#include <cutaway/core/io/file.h>

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <cutaway/core/error.h>

namespace cutaway::io {
namespace {
namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("cutaway_file_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string text(const std::string& name) const {
    const Bytes b = read_file(path(name));
    return {b.begin(), b.end()};
  }
  size_t entries() const {
    return size_t(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(File, FC_9a73_a_full_disk_keeps_the_old_content) {
  write_file_atomic(path("w"), "old");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = limit;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    write_file_atomic(path("w"), std::string(2 << 20, 'n'));
  } catch (const IoError& e) {
    message = e.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("cannot write " + path("w") + ": File too large"), std::string::npos)
      << message;
  EXPECT_EQ(text("w"), "old");
  EXPECT_EQ(entries(), 1u) << "no temporary file is left";
}

TEST_F(File, FC_9a73_mode_and_links_are_kept) {
  write_file_atomic(path("w"), "a");
  const mode_t umask = ::umask(0);
  ::umask(umask);
  struct stat info {};
  ASSERT_EQ(::stat(path("w").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~umask);
  for (const mode_t mode : {0644, 0640, 0600}) {
    ASSERT_EQ(::chmod(path("w").c_str(), mode), 0);
    write_file_atomic(path("w"), "b");
    ASSERT_EQ(::stat(path("w").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
  }
  fs::create_symlink("w", path("link"));
  write_file_atomic(path("link"), "c");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(text("w"), "c");
}

TEST_F(File, FC_9a73_without_commit_nothing_changes) {
  write_file_atomic(path("w"), "old");
  {
    AtomicFile file(path("w"));
    file.write(std::string(100000, 'n'));
    EXPECT_EQ(text("w"), "old");
  }
  EXPECT_EQ(text("w"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(File, what_cannot_be_written_or_read_is_named) {
  for (const std::string& wrong : {path("no folder/w"), std::string("/proc/w"), path("")}) {
    try {
      write_file_atomic(wrong, "x");
      FAIL() << wrong;
    } catch (const IoError& e) {
      EXPECT_NE(std::string(e.what()).find(wrong), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(read_file(path("none")), IoError);
  EXPECT_THROW(read_file(folder_.string()), IoError);
  // A file that claims more than the machine's memory is refused before anything is allocated.
  std::ofstream(path("sparse")) << "x";
  std::error_code error;
  fs::resize_file(path("sparse"), uintmax_t(1) << 43, error);
  if (error) GTEST_SKIP() << "no sparse files of 8 TiB here: " << error.message();
  try {
    read_file(path("sparse"));
    FAIL();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("more than this machine's memory"), std::string::npos);
  }
}

}  // namespace
}  // namespace cutaway::io
