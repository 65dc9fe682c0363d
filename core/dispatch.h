#pragma once
#include <string>
#include <vector>

namespace cutaway {

// The variant of the CPU kernels in use: "scalar", "avx2" or "avx512". The best one that was built
// and that the CPU offers, or the one named by the environment variable CUTAWAY_CPU_VARIANT (raises
// ValueError when that is unknown, not built or not offered).
const char* cpu_variant();
// Those that could be chosen here.
std::vector<std::string> available_cpu_variants();

}  // namespace cutaway
