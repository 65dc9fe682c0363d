#include <cutaway/models/train/progress.h>

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>

namespace cutaway::train {
namespace {

std::atomic<bool> interrupted{false};
void (*before_handler)(int) = SIG_DFL;

void on_interrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);  // a second Ctrl-C ends the program
}

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

}  // namespace

std::string clock_text(double seconds) {
  const auto s = int64_t(std::min(std::max(seconds, 0.0), 9e15));
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string grouped(int64_t n) {
  std::string s = std::to_string(n);
  const int64_t first = n < 0 ? 1 : 0;
  for (int64_t at = int64_t(s.size()) - 3; at > first; at -= 3) s.insert(size_t(at), 1, ' ');
  return s;
}

ProgressLine::ProgressLine(bool quiet, std::string title, int64_t total, int64_t done)
    : quiet_(quiet),
      terminal_(isatty(STDOUT_FILENO)),
      title_(std::move(title)),
      total_(total),
      first_(done),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

void ProgressLine::update(int64_t done, double loss, double rate, bool force) {
  if (quiet_) return;
  if (!force && seconds_since(last_) < (terminal_ ? 0.1 : 10.0)) return;
  last_ = std::chrono::steady_clock::now();
  const double used = seconds_since(begin_);
  const int64_t now = done - first_;
  const double left = now > 0 ? used / double(now) * double(total_ - done) : 0;
  const std::string time = done < total_ ? "left " + clock_text(left) : clock_text(used);
  if (!terminal_) {
    fmt::print("{}  {}/{}   loss {:.4f}   {} /s   {}\n", title_, done, total_, loss,
               grouped(int64_t(rate)), time);
    std::fflush(stdout);
    return;
  }
  constexpr int kWidth = 30;
  const int full = int(kWidth * done / std::max<int64_t>(total_, 1));
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < full ? "━" : i == full ? "╸" : " ";
  fmt::print("\r\033[K{}  {}  {:>{}}/{}   loss {:.4f}   {} /s   {}", title_, bar, done,
             std::to_string(total_).size(), total_, loss, grouped(int64_t(rate)), time);
  std::fflush(stdout);
}

void ProgressLine::finish() {
  if (!quiet_ && terminal_) fmt::print("\n");
  std::fflush(stdout);
}

InterruptGuard::InterruptGuard() {
  interrupted.store(false);
  before_handler = std::signal(SIGINT, on_interrupt);
}
InterruptGuard::~InterruptGuard() { std::signal(SIGINT, before_handler); }
bool InterruptGuard::requested() { return interrupted.load(); }

}  // namespace cutaway::train
