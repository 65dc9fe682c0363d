// The pages of docs/ that are programs: what they show is what their code writes. The code is
// compiled from the pages themselves (cmake/Pages.cmake); ```sh and ```python pieces run in their
// place, in the same folder. With CUTAWAY_UPDATE_PAGES=1 the output that differs is written into
// the page: read what changed before you commit it.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>

#include <tests/docs/pages.h>
#include <tests/paths.h>

namespace {

namespace fs = std::filesystem;
using pages::Block;

// Standard output and error of a command of the shell, and its exit status.
std::string output_of(const std::string& command, int& status) {
  std::string text;
  FILE* pipe = popen(("{ " + command + "\n} 2>&1 </dev/null").c_str(), "r");
  std::array<char, 4096> part;
  while (const size_t n = fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), n);
  status = WEXITSTATUS(pclose(pipe));
  return text;
}

// A Python that has what the code imports; empty when there is none.
std::string python_for(const std::string& code) {
  std::string check = "import sys";
  for (const char* module : {"numpy", "torch"}) {
    if (code.find(std::string("import ") + module) != std::string::npos)
      check += std::string(", ") + module;
  }
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    int status = 1;
    output_of(fmt::format("{} -c '{}'", python, check), status);
    if (status == 0) return python;
  }
  return "";
}

// Runs the program of a page in a folder of its own and compares piece by piece.
class PageRun {
 public:
  explicit PageRun(const std::string& page)
      : page_(std::string(kSourceDir) + "/" + page), blocks_(pages::read_blocks(page_)) {
    folder_ = fs::temp_directory_path() / fmt::format("cutaway_page_{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    before_ = fs::current_path();
    fs::current_path(folder_);
    current = this;
  }
  ~PageRun() {
    current = nullptr;
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  void run(void (*program)()) {
    cutaway::manual_seed(0);
    cutaway::set_num_threads(1);  // tests run side by side, and results are the same
    std::cout.flags(std::ios::dec | std::ios::skipws);
    run_scripts();
    testing::internal::CaptureStdout();
    std::string error;
    try {
      program();
    } catch (const std::exception& e) {
      error = e.what();
    }
    const std::string rest = testing::internal::GetCapturedStdout();
    EXPECT_EQ(error, "") << page_ << ": the program ends with this error";
    EXPECT_EQ(rest, "") << page_;
    EXPECT_EQ(next_, blocks_.size()) << page_ << " has more pieces than its program";
    if (std::getenv("CUTAWAY_UPDATE_PAGES")) update();
  }
  // The program has run the next C++ piece.
  void end_of_piece() {
    const std::string written = testing::internal::GetCapturedStdout();
    ASSERT_LT(next_, blocks_.size()) << page_;
    ASSERT_EQ(blocks_[next_].language, "cpp") << page_ << ":" << blocks_[next_].line;
    compare(written);
    run_scripts();
    testing::internal::CaptureStdout();
  }
  const std::string& missing() const { return missing_; }

  static inline PageRun* current = nullptr;

 private:
  // The text block after block next_ must show `written`; none must follow when that is empty.
  void compare(const std::string& written) {
    const Block& code = blocks_[next_++];
    const bool shown = next_ < blocks_.size() && blocks_[next_].language == "text";
    if (!shown) {
      EXPECT_EQ(written, "") << page_ << ":" << code.line << ": the page does not show this output";
      return;
    }
    Block& text = blocks_[next_++];
    const std::string what = pages::difference(text, written);
    if (what.empty()) return;
    if (std::getenv("CUTAWAY_UPDATE_PAGES")) {
      text.text = written;
      return;
    }
    ADD_FAILURE() << page_ << ":" << text.line << ": " << what << "\n--- the page shows\n"
                  << text.text << "--- the program writes\n"
                  << written;
  }
  // Pieces in other languages up to the next C++ piece. Without output to compare with, sh pieces
  // are for the reader only.
  void run_scripts() {
    while (next_ < blocks_.size() && blocks_[next_].language != "cpp") {
      const Block& block = blocks_[next_];
      const bool shown = next_ + 1 < blocks_.size() && blocks_[next_ + 1].language == "text";
      if (block.language == "python") {
        run_python(block, shown);
      } else if (block.language == "sh" && shown) {
        compare(
            run_command(block, fmt::format("PATH={}:$PATH\n{}",
                                           fs::path(kCommand).parent_path().string(), block.text)));
      } else {
        ++next_;
      }
    }
  }
  // What Python writes is shown below it, or below the C++ that stands beside it.
  void run_python(const Block& block, bool shown) {
    const std::string python = python_for(block.text);
    if (python.empty()) {
      missing_ = "there is no python3 with what its Python pieces import";
      next_ += shown ? 2 : 1;
      return;
    }
    std::ofstream("piece.py") << block.text;
    // One thread: starting more takes longer than all that is computed here. Warnings are not
    // shown.
    const std::string written = run_command(
        block,
        fmt::format("OMP_NUM_THREADS=1 {} piece.py 2>errors || {{ cat errors; false; }}", python));
    if (shown) return compare(written);
    for (++next_; next_ < blocks_.size(); ++next_) {
      if (blocks_[next_].language != "cpp") break;
    }
    const bool beside = next_ < blocks_.size() && blocks_[next_].language == "text";
    const std::string what = beside ? pages::difference(blocks_[next_], written) : written;
    EXPECT_EQ(what, "") << page_ << ":" << block.line << ": Python writes\n" << written;
    next_ = size_t(&block - blocks_.data()) + 1;
  }
  std::string run_command(const Block& block, const std::string& command) const {
    int status = 0;
    std::string written = output_of(command, status);
    EXPECT_EQ(status, 0) << page_ << ":" << block.line << "\n" << written;
    return written;
  }
  // Writes the page again with the texts of blocks_.
  void update() const {
    std::ifstream in(page_);
    std::string text, line;
    bool inside = false;
    for (auto block = blocks_.begin(); std::getline(in, line);) {
      if (line.starts_with("```")) {
        inside = !inside;
        if (!inside) text += block++->text;
        text += line + "\n";
      } else if (!inside) {
        text += line + "\n";
      }
    }
    in.close();
    std::ofstream(page_) << text;
  }

  std::string page_;
  std::vector<Block> blocks_;
  size_t next_ = 0;
  fs::path folder_, before_;
  std::string missing_;
};

void check(const std::string& page) {
  const auto& all = pages::programs();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& p) { return page == p.page; });
  ASSERT_NE(found, all.end()) << page;
  PageRun run(page);
  run.run(found->run);
  if (!run.missing().empty()) GTEST_SKIP() << page << ": " << run.missing();
}

TEST(Pages, tensors) { check("docs/tutorial/1-tensors.md"); }
TEST(Pages, autograd) { check("docs/tutorial/2-autograd.md"); }
TEST(Pages, modules) { check("docs/tutorial/3-modules.md"); }
TEST(Pages, optimisers) { check("docs/tutorial/4-optimisers.md"); }
TEST(PagesSlow, from_pytorch) { check("docs/from-pytorch.md"); }
TEST(PagesSlow, training) { check("docs/tutorial/5-training.md"); }
TEST(Pages, looking_inside) { check("docs/tutorial/6-looking-inside.md"); }
TEST(Pages, files) { check("docs/tutorial/7-files.md"); }
TEST(PagesSlow, transformer) { check("docs/tutorial/8-transformer.md"); }

}  // namespace

void pages::end_of_piece() { PageRun::current->end_of_piece(); }
