#include <cutaway/autograd/op.h>

// The elementwise records, file by file.
#define CUTAWAY_POINTWISE_FILES(X) \
  X(arithmetic)                    \
  X(select)                        \
  X(elementary)                    \
  X(special)                       \
  X(activation)                    \
  X(compare)                       \
  X(logic)                         \
  X(cast)                          \
  X(random)

namespace cutaway {

#define CUTAWAY_DECLARE(file) void register_##file##_ops(std::vector<const OpRecord*>& list);
CUTAWAY_POINTWISE_FILES(CUTAWAY_DECLARE)
#undef CUTAWAY_DECLARE

void register_pointwise_ops(std::vector<const OpRecord*>& list) {
#define CUTAWAY_REGISTER(file) register_##file##_ops(list);
  CUTAWAY_POINTWISE_FILES(CUTAWAY_REGISTER)
#undef CUTAWAY_REGISTER
}

}  // namespace cutaway
