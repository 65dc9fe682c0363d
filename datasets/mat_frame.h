#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace cutaway::data {

// Throws IoError "name: rule".
[[noreturn]] void refuse_mat(const std::string& name, const std::string& rule);

// How many variables a MATLAB file holds, from what can be told without libmatio, which takes a
// variable that is cut off for the end of the file; −1 for version 7.3, where HDF5 keeps that.
// Raises IoError naming `name` for anything else than versions 4, 5 and 7.3, for variables that are
// cut off, and for plain arrays of version 5 whose sizes and data disagree.
int64_t count_mat_variables(const std::string& name, std::span<const uint8_t> bytes);

}  // namespace cutaway::data
