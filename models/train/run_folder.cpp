#include <cutaway/models/train/run_folder.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

namespace cutaway::train {
namespace {
namespace fs = std::filesystem;

constexpr const char* kHeader = "step,epoch,split,loss,accuracy,lr,examples_per_s,seconds\n";

std::string format_row(const MetricRow& r) {
  return fmt::format("{},{},{},{},{},{},{:.1f},{:.2f}\n", r.step, r.epoch, r.split, r.loss,
                     r.accuracy, r.lr, r.rate, r.seconds);
}

// Parses one line; false for anything that is not a whole row.
bool parse_row(std::string_view line, MetricRow& r) {
  std::vector<std::string> cells;
  size_t from = 0;
  for (size_t comma; (comma = line.find(',', from)) != std::string::npos; from = comma + 1) {
    cells.emplace_back(line.substr(from, comma - from));
  }
  cells.emplace_back(line.substr(from));
  if (cells.size() != 8) return false;
  const auto number = [](const std::string& s, auto& v) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    return error == std::errc() && end == s.data() + s.size();
  };
  r.split = cells[2];
  return number(cells[0], r.step) && number(cells[1], r.epoch) && number(cells[3], r.loss) &&
         number(cells[4], r.accuracy) && number(cells[5], r.lr) && number(cells[6], r.rate) &&
         number(cells[7], r.seconds);
}

}  // namespace

RunFolder::RunFolder(std::string path) : path_(std::move(path)) {}
RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_fd_(other.lock_fd_) {
  other.lock_fd_ = -1;
}
RunFolder::~RunFolder() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

void RunFolder::lock() {
  const std::string name = file(".lock");
  lock_fd_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_fd_ < 0)
    throw IoError("run", fmt::format("cannot write in {}: {}", path_, std::strerror(errno)));
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    throw IoError("run", fmt::format("another process is working in {}", path_),
                  "choose another --out");
  }
}

RunFolder RunFolder::create(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error)) {
    throw IoError("run", fmt::format("{} is a file, not a folder", path), "choose another --out");
  }
  if (fs::exists(fs::path(path) / "config.json", error)) {
    throw IoError("run", fmt::format("{} already holds a run", path),
                  fmt::format("go on with --resume {}, or choose another --out", path));
  }
  fs::create_directories(path, error);
  if (error) throw IoError("run", fmt::format("cannot create {}: {}", path, error.message()));
  RunFolder folder(path);
  folder.lock();
  fs::create_directories(folder.file("plots"), error);
  if (error) throw IoError("run", fmt::format("cannot write in {}: {}", path, error.message()));
  return folder;
}

RunFolder RunFolder::reopen(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(fs::path(path) / "config.json", error)) {
    throw IoError("run", fmt::format("{} holds no run: config.json is missing", path));
  }
  RunFolder folder(path);
  folder.lock();
  fs::create_directories(folder.file("plots"), error);
  return folder;
}

std::string next_run_path(const std::string& stem) {
  std::error_code ignored;
  for (int i = 1;; ++i) {
    const std::string path = fmt::format("runs/{}-{}", stem, i);
    if (!fs::exists(path, ignored)) return path;
  }
}

RowFile::RowFile(const std::string& path, const std::string& header,
                 const std::function<bool(std::string_view)>& keep)
    : path_(path) {
  std::error_code ignored;
  std::string kept = header;
  if (fs::is_regular_file(path, ignored)) {
    const io::Bytes bytes = io::read_file(path);
    const std::string text(bytes.begin(), bytes.end());
    size_t from = 0;
    for (size_t end; (end = text.find('\n', from)) != std::string::npos; from = end + 1) {
      const std::string_view line = std::string_view(text).substr(from, end - from);
      if (keep(line)) kept.append(line).append("\n");
    }
  }
  io::write_file_atomic(path, kept);
  out_.open(path, std::ios::app | std::ios::binary);
  if (!out_) throw IoError("metrics", "cannot write " + path);
}

void RowFile::add(const std::string& line) {
  out_.write(line.data(), std::streamsize(line.size()));
  out_.flush();
  if (!out_) throw IoError("metrics", "cannot write " + path_, "is the disk full?");
}

MetricsFile::MetricsFile(const std::string& path, int64_t keep)
    : file_(path, kHeader, [&](std::string_view line) {
        MetricRow row;
        if (int64_t(rows_.size()) >= keep || !parse_row(line, row)) return false;
        rows_.push_back(row);
        return true;
      }) {}

void MetricsFile::add(const MetricRow& row) {
  rows_.push_back(row);
  file_.add(format_row(row));
}

}  // namespace cutaway::train
