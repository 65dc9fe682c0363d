#include <cutaway/cuda/lib/attention.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <cutaway/core/error.h>

namespace cutaway::cuda {
namespace {

AttentionBy choice_of_environment() {
  const char* text = std::getenv("CUTAWAY_ATTENTION");
  if (!text || std::string(text) == "own") return AttentionBy::own;
  if (std::string(text) == "cudnn") return AttentionBy::cudnn;
  throw ValueError("attention", std::string("CUTAWAY_ATTENTION is \"") + text + "\"",
                   "own or cudnn");
}

std::atomic<int64_t> passes{0};

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

}  // namespace

AttentionBy& attention_by() {
  static AttentionBy by = choice_of_environment();
  return by;
}

int64_t library_attention_passes() { return passes; }
void count_library_attention_pass() { ++passes; }

bool library_attends(DType dtype, const AttentionArgs& a) {
  constexpr int64_t kOctet = 8;  // numbers in 16 bytes
  if (dtype != DType::bf16 && dtype != DType::f16) return false;
  if (a.allowed || a.added || a.rank > 2) return false;
  if (a.batch == 0 || a.queries == 0 || a.keys == 0 || a.depth == 0 || a.width == 0) return false;
  if (a.depth > kHalfAttentionColumns || a.width > kHalfAttentionColumns) return false;
  for (const int64_t n : {a.depth, a.width, a.q_row, a.k_row, a.v_row}) {
    if (n % kOctet != 0) return false;
  }
  for (int operand = 0; operand < 3; ++operand) {
    for (int d = 0; d < a.rank; ++d) {
      const int64_t stride = a.strides[operand][d];
      if (stride % kOctet != 0 || (stride == 0 && a.sizes[d] != 1)) return false;
    }
  }
  for (const void* p : {a.q, a.k, a.v, a.upstream}) {
    if (!is_aligned(p)) return false;
  }
  return is_aligned(a.o) && is_aligned(a.dq) && is_aligned(a.dk) && is_aligned(a.dv);
}

}  // namespace cutaway::cuda
