#include <cutaway/core/print.h>

#include <ostream>

namespace cutaway {

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  return out << (x.defined() ? x.to_string() : "(undefined)");
}
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, DType type) { return out << name_of(type); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }

}  // namespace cutaway
