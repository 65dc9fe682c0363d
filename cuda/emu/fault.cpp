#include <cutaway/cuda/emu/fault.h>

#include <fmt/format.h>

namespace cutaway::cuda::emu {

std::string line_of(const std::source_location& at) {
  const std::string file = at.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), at.line());
}

const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::out_of_bounds:
      return "out of bounds";
    case FaultKind::uninitialized:
      return "uninitialized read";
    case FaultKind::misaligned:
      return "misaligned access";
    case FaultKind::race:
      return "race";
    case FaultKind::divergent_barrier:
      return "divergent barrier";
    case FaultKind::divergent_warp:
      return "divergent warp operation";
    case FaultKind::bad_mask:
      return "bad mask";
    case FaultKind::undeclared_sync:
      return "undeclared synchronisation";
    case FaultKind::bad_launch:
      return "bad launch";
    case FaultKind::pending_copy:
      return "pending copy";
  }
  return "fault";
}

KernelFault::KernelFault(const char* kernel, FaultKind k, const std::source_location& at,
                         const std::string& what, const char* hint, int other)
    : DeviceError(kernel, fmt::format("{} at {}: {}", name_of(k), line_of(at), what), hint),
      kind(k),
      file(at.file_name()),
      line(int(at.line())),
      other_line(other) {}

}  // namespace cutaway::cuda::emu
