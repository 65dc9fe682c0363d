#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// Sees every op of the calling thread that is not part of another record's forward, after it ran.
class OpWatch {
 public:
  virtual ~OpWatch() = default;
  virtual void seen(const Call& call, uint32_t attr_bytes) = 0;
  // Makes `watch` (or null: nobody) the one of this thread; returns the former one.
  static OpWatch* set(OpWatch* watch);
};

}  // namespace cutaway
