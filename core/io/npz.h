#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::io {

using NamedArrays = std::vector<std::pair<std::string, Tensor>>;

// Reads a NumPy .npz file: a zip archive of .npy members, in the order of its directory; names lose
// the ending ".npy". Raises IoError naming file, member and rule, also for a name that is there
// twice.
NamedArrays load_npz(const std::string& path);
NamedArrays parse_npz(const std::string& name, const uint8_t* data, int64_t bytes);

struct NpzOptions {
  bool compress = true;
};
// Writes one atomically, each name with ".npy" after it; equal arrays give equal bytes. The file is
// put together in memory. Raises IoError for a name that is empty or there twice.
void save_npz(const std::string& path, const NamedArrays& arrays, NpzOptions options = {});

}  // namespace cutaway::io
