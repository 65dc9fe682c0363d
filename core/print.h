#pragma once
#include <iosfwd>

#include <cutaway/core/tensor.h>

namespace cutaway {

// std::cout << x prints what x.to_string() gives; an undefined tensor is "(undefined)".
std::ostream& operator<<(std::ostream& out, const Tensor& x);
// "[2,3]", "f32", "cuda:0".
std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, DType type);
std::ostream& operator<<(std::ostream& out, Device device);

}  // namespace cutaway
