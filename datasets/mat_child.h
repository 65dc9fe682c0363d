#pragma once
#include <cstdint>
#include <string>

// The part of the reader of MATLAB files that runs in a process of its own.
//
// Note: MATLAB files. libmatio and HDF5 trust what they read: damaged files make them read and
// write outside of their memory. So a forked process reads the file and sends the arrays through a
// pipe, and whatever becomes of it, the caller gets arrays or an IoError. The child of a program
// with several threads has only one, and locks may be held by threads that it lacks. glibc keeps
// malloc usable; the child uses malloc, libmatio and system calls, no tensor, no OpenMP, no stream.
// (AddressSanitizer's allocator is not kept usable: there a read may end with "took longer".)
// Its memory and its time are limited.
namespace cutaway::data {

// What begins each message of the child. Numbers are in the machine's order; texts and data follow
// their length.
enum class MatMessage : uint8_t {
  array,     // name, MatType, u8 rank, u64 sizes, u64 bytes, data by columns
  left_out,  // name, what it is
  failure,   // what is wrong
  end        // u64 how many variables there are
};
enum class MatType : uint8_t { f64, f32, i64, i32, i8, u8, boolean };

struct MatLibrary;  // libmatio's functions
// Loads libmatio on first use: it brings some thirty libraries along, which would make every start
// of a program take ten times as long. Raises IoError when it is not installed.
const MatLibrary& mat_library();

struct MatLimits {
  int64_t memory = 0;   // bytes beyond what the process has
  int64_t seconds = 0;  // of the processor
};
// Becomes the child: reads the file and writes messages to the descriptor `pipe`. Does not return.
[[noreturn]] void run_mat_child(const MatLibrary& library, const std::string& path, int pipe,
                                MatLimits limits);

}  // namespace cutaway::data
