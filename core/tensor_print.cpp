#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include <cutaway/core/element.h>
#include <cutaway/core/tensor.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

constexpr int64_t kEdge = 3;          // shown at both ends of a long dimension
constexpr int64_t kSummarize = 1000;  // tensors with more elements are shortened

// Writes nested lists, all numbers padded to one width, in the manner of NumPy.
class Printer {
 public:
  explicit Printer(const Tensor& host)
      : layout_(host.layout()), data_(host.raw()), dtype_(host.dtype()),
        shorten_(host.numel() > kSummarize) {
    walk(0, 0, [&](int64_t at) { width_ = std::max(width_, number(at).size()); }, nullptr);
    walk(0, 0, [&](int64_t at) { text_ += fmt::format("{:>{}}", number(at), width_); }, &text_);
  }
  const std::string& text() const { return text_; }

 private:
  std::string number(int64_t at) const {
    if (dtype_ == DType::boolean) return element_as_int(data_, dtype_, at) ? "true" : "false";
    if (!is_floating(dtype_)) return fmt::format("{}", element_as_int(data_, dtype_, at));
    const double x = element_as_double(data_, dtype_, at);
    if (std::isnan(x)) return "nan";
    return fmt::format("{:.5g}", x);
  }

  template <class F>
  void walk(int dim, int64_t at, const F& each, std::string* out) const {
    const int rank = layout_.sizes.rank();
    if (dim == rank) return each(at);
    const int64_t n = layout_.sizes[dim];
    const std::string gap = ",\n" + std::string(size_t(dim) + 1, ' ');
    if (out) *out += "[";
    for (int64_t i = 0; i < n; ++i) {
      if (out && i > 0) *out += dim + 1 == rank ? ", " : gap;
      if (shorten_ && n > 2 * kEdge && i == kEdge) {
        if (out) *out += "…";
        i = n - kEdge - 1;
        continue;
      }
      walk(dim + 1, at + i * layout_.strides[dim], each, out);
    }
    if (out) *out += "]";
  }

  const Layout& layout_;
  const void* data_;
  DType dtype_;
  bool shorten_;
  size_t width_ = 0;
  std::string text_;
};

}  // namespace

std::string Tensor::to_string() const {
  const std::string tail = fmt::format("  {} {} {}", cutaway::to_string(sizes()), name_of(dtype()),
                                       cutaway::to_string(device()));
  if (is_meta()) return "(sizes only)" + tail;
  if (device().kind == DeviceKind::cpu) return Printer(*this).text() + tail;
  return Printer(host_copy("to_string", *this)).text() + tail;
}

}  // namespace cutaway
