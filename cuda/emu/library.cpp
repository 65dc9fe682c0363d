#include <cutaway/cuda/emu/library.h>

#include <string>

#include <cutaway/cuda/emu/fault.h>
#include <cutaway/cuda/emu/shadow.h>

namespace cutaway::cuda::emu {

Block LibraryCall::block_of(const void* p, int64_t rows, int64_t bytes, int64_t distance) const {
  require_range(name_, p, (rows - 1) * distance + bytes);
  return find_block(p);
}

void LibraryCall::reads(const char* what, const void* p, int64_t rows, int64_t bytes,
                        int64_t distance) const {
  if (rows <= 0 || bytes <= 0) return;
  const Block b = block_of(p, rows, bytes, distance);
  if (!b.shadow) return;
  const int64_t begin = static_cast<const char*>(p) - b.begin;
  for (int64_t i = 0; i < rows; ++i) {
    if (b.shadow->written(begin + i * distance, bytes)) continue;
    throw KernelFault(name_, FaultKind::uninitialized, at_,
                      std::string("row ") + std::to_string(i) + " of " + what +
                          " holds bytes that nothing wrote; " + block_name(p),
                      "fill the operand before the call");
  }
}

void LibraryCall::writes(const void* p, int64_t rows, int64_t bytes, int64_t distance) const {
  if (rows <= 0 || bytes <= 0) return;
  const Block b = block_of(p, rows, bytes, distance);
  if (!b.shadow) return;
  const int64_t begin = static_cast<const char*>(p) - b.begin;
  for (int64_t i = 0; i < rows; ++i) b.shadow->set_written(begin + i * distance, bytes);
}

}  // namespace cutaway::cuda::emu
