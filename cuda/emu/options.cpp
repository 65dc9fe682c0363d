#include <cutaway/cuda/emu/options.h>

#include <cstdlib>
#include <cstring>

namespace cutaway::cuda::emu {
namespace {

Options options_from_environment() {
  Options o;
  if (const char* check = std::getenv("CUTAWAY_EMU_CHECK")) o.check = std::strcmp(check, "0") != 0;
  if (const char* order = std::getenv("CUTAWAY_EMU_ORDER")) {
    if (std::strcmp(order, "reverse") == 0) o.order = Order::reverse;
    if (std::strcmp(order, "shuffled") == 0) o.order = Order::shuffled;
  }
  return o;
}

}  // namespace

Options& options() {
  static Options o = options_from_environment();
  return o;
}

}  // namespace cutaway::cuda::emu
