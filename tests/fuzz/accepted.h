#pragma once
#include <stdexcept>
#include <string>

#include <cutaway/core/error.h>

namespace cutaway::fuzz {

inline constexpr char kName[] = "the/input.file";

// Runs a reader; false with its message when it refuses.
template <class Read>
bool accepted(Read read, std::string* message) {
  try {
    read();
    return true;
  } catch (const Error& e) {
    if (message) *message = e.what();
    if (std::string(e.what()).find(kName) == std::string::npos) {
      throw std::logic_error(std::string("the message does not name the file: ") + e.what());
    }
    return false;
  }
}

}  // namespace cutaway::fuzz
