#include <cmath>
#include <fmt/format.h>

#include <cutaway/core/tensor.h>

namespace cutaway {
namespace {

constexpr int64_t kEdge = 3;         // shown at both ends of a long dimension
constexpr int64_t kSummarize = 1000; // more elements than this are shortened

struct Printer {
  const Shape& sizes;
  const std::vector<double>& v;
  bool floating, boolean, shorten;
  std::string out;

  std::string number(double x) const {
    if (boolean) return x != 0 ? "true" : "false";
    if (!floating) return fmt::format("{}", int64_t(x));
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
    return fmt::format("{:.5g}", x);
  }

  void print(int dim, int64_t offset, int64_t block) {
    if (dim == sizes.rank()) {
      out += number(v[size_t(offset)]);
      return;
    }
    const int64_t n = sizes[dim], inner = n ? block / n : 0;
    const bool last = dim + 1 == sizes.rank();
    out += "[";
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) out += last ? ", " : ",\n" + std::string(size_t(dim) + 1, ' ');
      if (shorten && n > 2 * kEdge && i == kEdge) {
        out += "…";
        i = n - kEdge - 1;
        continue;
      }
      print(dim + 1, offset + i * inner, inner);
    }
    out += "]";
  }
};

}  // namespace

std::string Tensor::to_string() const {
  std::string tail = fmt::format("  {} {} {}", cutaway::to_string(sizes()), name_of(dtype()),
                                 cutaway::to_string(device()));
  if (is_meta()) return "(sizes only)" + tail;
  const std::vector<double> v = to_vector();
  Printer p{sizes(), v, is_floating(), dtype() == DType::boolean, numel() > kSummarize, {}};
  p.print(0, 0, numel());
  return p.out + tail;
}

}  // namespace cutaway
