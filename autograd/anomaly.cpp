#include <cutaway/autograd/anomaly.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/node.h>
#include <cutaway/core/text.h>

namespace cutaway {
namespace {

bool has_bad_value(const Tensor& t) {
  if (!t.defined() || !t.is_floating() || t.is_meta()) return false;
  for (double v : t.to_vector()) {
    if (!std::isfinite(v)) return true;
  }
  return false;
}

// "a [2,3] f32: min -1, max 4, mean 0.5, 1 nan, 0 inf".
std::string statistics(const std::string& name, const Tensor& t) {
  if (!t.defined()) return name + " none";
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t nan = 0, inf = 0;
  for (double v : t.to_vector()) {
    nan += std::isnan(v);
    inf += std::isinf(v);
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
  }
  const int64_t finite = t.numel() - nan - inf;
  return fmt::format("{} {} {}: min {:.4g}, max {:.4g}, mean {:.4g}, {} nan, {} inf", name,
                     to_string(t.sizes()), name_of(t.dtype()), low, high,
                     finite ? sum / double(finite) : NAN, nan, inf);
}

}  // namespace

void check_forward_values(const Call& call) {
  for (int i = 0; i < call.num_outputs; ++i) {
    if (!has_bad_value(call.outputs[i])) continue;
    std::string rule = fmt::format("anomaly: the forward result {} is not finite", i);
    for (int k = 0; k < call.num_inputs; ++k) {
      rule += "\n    " + statistics(fmt::format("input {}", k), call.in(k));
    }
    throw AutogradError(call.op.name, rule,
                        "look at the first input that is large, zero or not finite");
  }
}

void check_backward_values(Backward& b) {
  for (size_t i = 0; i < b.grads.size(); ++i) {
    if (!has_bad_value(b.grads[i])) continue;
    std::string rule = fmt::format(
        "anomaly: the gradient of input {} is not finite; the forward call was at {}:{}{}{}", i,
        source_name(b.node.site.file_name()), b.node.site.line(), b.node.module ? " in " : "",
        module_path(b.node.module));
    for (uint32_t k = 0; k < b.node.num_outputs; ++k) {
      rule += "\n    " + statistics(fmt::format("upstream {}", k), b.upstreams[k]);
    }
    for (uint32_t k = 0; k < b.node.num_saved; ++k) {
      const Saved& s = b.node.saved()[k];
      if (s.defined()) {
        rule +=
            "\n    " + statistics(fmt::format("saved {}", k), s.unpack(b.node.name(), b.node.site));
      }
    }
    throw AutogradError(b.node.name(), rule,
                        "look at the first value that is large, zero or not finite");
  }
}

}  // namespace cutaway
