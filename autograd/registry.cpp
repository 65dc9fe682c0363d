#include <cutaway/autograd/op.h>

// The op families in the order in which records are listed, one a line. Each defines
// register_<family>_ops(list) in its source file.
#define CUTAWAY_OP_FAMILIES(X) \
  X(decompositions) \
  X(linalg) \
  X(attention) \
  X(conv) \
  X(cross_entropy) \
  X(linear) \
  X(matmul) \
  X(pointwise) \
  X(pool) \
  X(resize) \
  X(shape) \
  X(slice) \
  X(join) \
  X(remap) \
  X(unfold) \
  X(sum) \
  X(reduce) \
  X(extreme) \
  X(scan) \
  X(softmax) \
  X(norm) \
  X(recurrent) \
  X(channel_norm) \
  X(gather) \
  X(scatter) \
  X(segment) \
  X(group_shared) \
  X(sort) \
  X(mask)

namespace cutaway {

#define CUTAWAY_DECLARE(family) void register_##family##_ops(std::vector<const OpRecord*>& list);
CUTAWAY_OP_FAMILIES(CUTAWAY_DECLARE)
#undef CUTAWAY_DECLARE

const std::vector<const OpRecord*>& op_records() {
  static const std::vector<const OpRecord*> records = [] {
    std::vector<const OpRecord*> list;
#define CUTAWAY_REGISTER(family) register_##family##_ops(list);
    CUTAWAY_OP_FAMILIES(CUTAWAY_REGISTER)
#undef CUTAWAY_REGISTER
    return list;
  }();
  return records;
}

const OpRecord* find_op(const std::string& name) {
  for (const OpRecord* op : op_records()) {
    if (name == op->name) return op;
  }
  return nullptr;
}

}  // namespace cutaway
