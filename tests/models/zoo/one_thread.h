#pragma once
#include <cutaway/core/parallel.h>

namespace cutaway::zoo {

// Computes on one thread while alive: on tensors as small as those of tests, threads of a busy
// machine wait for each other longer than they work.
class OneThread {
 public:
  OneThread() : before_(num_threads()) { set_num_threads(1); }
  ~OneThread() { set_num_threads(before_); }
  OneThread(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace cutaway::zoo
