#pragma once
#include <cstdint>
#include <string>

#include <cutaway/core/io/npz.h>

namespace cutaway::io {

// Reads the tensors of a file that torch.save of PyTorch 1.6 or later wrote (.pt, .pth, .bin), in
// the order in which they stand there. Names are the keys of nested dictionaries and the places in
// lists joined by dots; a lone tensor has the empty name; numbers, texts and None are left out.
// Tensors of one storage share it here too, with their strides. The file is never executed: only
// tensors, dictionaries, lists, tuples, numbers and texts are built. Raises IoError naming file and
// rule for anything else (a global by its name), for the older format without zip, for a name that
// is there twice, and for lengths, offsets or strides that do not fit their storage.
NamedArrays load_torch(const std::string& path);
NamedArrays parse_torch(const std::string& name, const uint8_t* data, int64_t bytes);

// Whether bytes begin like a file of torch.save, old or new, and not like safetensors.
bool is_torch_file(const uint8_t* data, int64_t bytes);

}  // namespace cutaway::io
