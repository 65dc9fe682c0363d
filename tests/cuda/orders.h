#pragma once
#include <vector>

#include <cutaway/cuda/emu/options.h>

#include <tests/paths.h>

namespace cutaway::cuda::emu {

// The orders in which tests run lanes and blocks: all of them, and the one that is neither forward
// nor backward in a sanitized build, which stands beside one that tries them all.
inline std::vector<Order> tested_orders() {
  if (kSanitized) return {Order::shuffled};
  return {Order::forward, Order::reverse, Order::shuffled};
}

}  // namespace cutaway::cuda::emu
