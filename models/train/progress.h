#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace cutaway::train {

// A progress line: redrawn in place on a terminal, a plain line now and then elsewhere.
class ProgressLine {
 public:
  ProgressLine(bool quiet, std::string title, int64_t total, int64_t done);
  // Redraws at most ten times a second (every ten seconds without a terminal).
  void update(int64_t done, double loss, double rate, bool force = false);
  void finish();

 private:
  bool quiet_, terminal_;
  std::string title_;
  int64_t total_, first_;
  std::chrono::steady_clock::time_point begin_, last_;
};

// "0:03:07", hours unbounded.
std::string clock_text(double seconds);
// "12 840".
std::string grouped(int64_t n);

// While alive, Ctrl-C sets a flag instead of ending the program; a second one ends it at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  static bool requested();
};

}  // namespace cutaway::train
