#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/core/io/npz.h>

namespace cutaway::data {

struct MatFile {
  // Arrays of numbers in the order of the file, with the sizes that MATLAB shows. What lies in
  // cells and structs is named as MATLAB would: "X{1}", "s.field", "s(2).field" (cells numbered by
  // columns). logical is bool, int16 and uint16 i32, uint32 and uint64 i64; sparse ones are dense.
  io::NamedArrays arrays;
  // Name and kind of what is no array of numbers: text, functions, complex numbers.
  std::vector<std::pair<std::string, std::string>> left_out;
};
// MATLAB's files: version 4, 5 to 7.2 and 7.3 (HDF5), by libmatio, plain or gzipped. The file is
// read in a process of its own (datasets/mat_child.h): damaged files that make the library crash,
// or take too much memory or time, raise IoError naming the file, as do files that are cut off and
// arrays of more than io::unpack_limit() bytes together. IoError also when libmatio is missing.
MatFile load_mat(const std::string& path);
MatFile parse_mat(const std::string& name, std::span<const uint8_t> bytes);

}  // namespace cutaway::data
