#pragma once
#include <cstdint>

namespace cutaway::cuda::emu {

// The order in which the lanes of a block, and the blocks of a grid, take their turns. A correct
// kernel gives the same bits in every order.
enum class Order : uint8_t { forward, reverse, shuffled };

struct Options {
  // Races and reads of memory that nothing wrote; costs about ten times the time. Without it only
  // bounds, alignment, barriers and masks are checked, and blocks run on several threads.
  bool check = true;
  // Counts memory transactions, bank conflicts and idle lanes (counters.h). Implies one thread.
  bool count = false;
  Order order = Order::forward;
  uint64_t seed = 0;  // of Order::shuffled
};

// The options of the process. They start from the environment: CUTAWAY_EMU_CHECK=0|1,
// CUTAWAY_EMU_ORDER=forward|reverse|shuffled.
Options& options();

// Other options while it lives.
class OptionsScope {
 public:
  explicit OptionsScope(const Options& o) : before_(options()) { options() = o; }
  ~OptionsScope() { options() = before_; }
  OptionsScope(const OptionsScope&) = delete;

 private:
  Options before_;
};

}  // namespace cutaway::cuda::emu
