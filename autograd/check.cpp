#include <cutaway/autograd/check.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/gradcheck.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {
namespace {

// Note: tolerances. A value may differ from the f64 reference by a few rounding steps of its type,
// relative to the larger of the value itself and the largest value of the result (sums cancel).
constexpr double kTolerance[kNumDTypes] = {1e-11, 2e-5, 4e-2, 6e-3, 0, 0, 0, 0, 0};

std::string compare_values(const std::vector<double>& got, const std::vector<double>& want,
                           double tolerance, double& worst) {
  if (got.size() != want.size()) return fmt::format("{} values, need {}", got.size(), want.size());
  double largest = 1e-30;
  for (double v : want) {
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  }
  std::string message;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (got[i] == want[i]) continue;
    const double scale = std::max(std::fabs(want[i]), std::min(1.0, largest));
    const double error = std::fabs(got[i] - want[i]) / scale;
    if (error > worst) worst = error;
    if (!(error <= tolerance) && message.empty()) {
      message = fmt::format("element {}: got {:.9g}, need {:.9g}", i, got[i], want[i]);
    }
  }
  return message;
}

Tensors cast_inputs(const Tensors& inputs, DType to) {
  Tensors out;
  for (const Tensor& t : inputs) {
    out.push_back(t.defined() && t.is_floating() ? cast_raw(t, to) : t);
  }
  return out;
}

bool any_floating(const Tensors& inputs) {
  for (const Tensor& t : inputs) {
    if (t.defined() && t.is_floating()) return true;
  }
  return false;
}

Tensors moved(const Tensors& inputs, Device device) {
  Tensors out;
  for (const Tensor& t : inputs) out.push_back(t.defined() ? t.to(device) : t);
  return out;
}

// The same values with gaps between elements: every second element of a buffer twice as long.
Tensor strided_copy(const Tensor& t) {
  if (!t.defined() || t.dim() == 0) return t;
  Shape wide = t.sizes();
  const int last = wide.rank() - 1;
  wide[last] = wide[last] * 2 + 1;
  // Dimensions in reverse order as well, so that rows are not rows.
  Shape reversed;
  for (int i = last; i >= 0; --i) reversed.push_back(wide[i]);
  Tensor buffer = full(reversed, 3, {t.dtype(), t.device()});
  Shape back;
  for (int i = last; i >= 0; --i) back.push_back(i);
  const Layout layout = buffer.layout().permute(back).slice(last, 1, 1 + 2 * t.size(last), 2);
  Tensor view = make_view(buffer, layout);
  copy_elements(view, t);
  return view;
}

class OpChecker {
 public:
  OpChecker(const OpRecord& op, Device device) : op_(op), device_(device) {}

  std::vector<CheckResult> run() {
    if (!op_.samples) {
      add("samples", "", "the record has no samples");
      return results_;
    }
    SampleList list;
    op_.samples(list);
    if (list.samples.empty()) add("samples", "", "the record has no samples");
    for (const Sample& s : list.samples) {
      guarded("value", s, [&] { check_value(s); });
      if (s.all_dtypes) guarded("dtypes", s, [&] { check_dtypes(s); });
      if (s.strided) guarded("strided", s, [&] { check_strided(s); });
      guarded("threads", s, [&] { check_threads(s); });
      if (device_ != kCpu) {
        guarded("device", s, [&] { check_device(s); });
        if (op_.backward && s.grad && any_floating(s.inputs)) {
          guarded("gradient", s, [&] { check_device_gradients(s); });
        }
        continue;
      }
      guarded("meta", s, [&] { check_meta(s); });
      if (op_.backward && s.grad && any_floating(s.inputs)) {
        guarded("gradcheck", s, [&] { check_gradients(s); });
        if (op_.fast_backward) guarded("fast backward", s, [&] { check_fast(s); });
      }
    }
    // What follows from sizes and types alone does not depend on the device.
    if (device_ == kCpu) {
      for (const ErrorSample& e : list.errors) check_error(e);
    }
    return results_;
  }

 private:
  void add(std::string check, std::string sample, std::string message, double worst = 0) {
    results_.push_back(
        {std::move(check), std::move(sample), message.empty(), worst, std::move(message)});
  }
  template <class F>
  void guarded(const char* check, const Sample& s, F&& body) {
    try {
      body();
    } catch (const std::exception& e) {
      add(check, s.label, std::string("raised: ") + e.what());
    }
  }

  void compare(const char* check, const Sample& s, const Tensors& got, const Tensors& want,
               double tolerance) {
    double worst = 0;
    std::string message;
    if (got.size() != want.size()) {
      message = fmt::format("{} results, need {}", got.size(), want.size());
    }
    for (size_t i = 0; i < got.size() && message.empty(); ++i) {
      if (got[i].sizes() != want[i].sizes()) {
        message = fmt::format("result {} has sizes {}, need {}", i, to_string(got[i].sizes()),
                              to_string(want[i].sizes()));
        break;
      }
      message =
          compare_values(got[i].to_vector(), want[i].to_vector(), tolerance * s.loosen, worst);
      if (!message.empty()) message = fmt::format("result {} {}", i, message);
    }
    add(check, s.label, message, worst);
  }

  void check_value(const Sample& s) {
    compare("value", s, s.call(moved(s.inputs, device_)), s.reference(s.inputs), kTolerance[0]);
  }

  void check_dtypes(const Sample& s) {
    for (int t = 1; t < 4; ++t) {
      const DType dtype = DType(t);
      if (!op_.dtypes.has(dtype) || !any_floating(s.inputs)) continue;
      const Tensors inputs = cast_inputs(s.inputs, dtype);
      const std::string name = std::string("dtype ") + name_of(dtype);
      compare(name.c_str(), s, s.call(moved(inputs, device_)),
              s.reference(cast_inputs(inputs, DType::f64)), kTolerance[t]);
    }
  }

  void check_strided(const Sample& s) {
    Tensors inputs;
    for (const Tensor& t : moved(s.inputs, device_)) inputs.push_back(strided_copy(t));
    compare("strided", s, s.call(inputs), s.reference(s.inputs), kTolerance[0]);
  }

  void check_meta(const Sample& s) {
    Tensors inputs;
    for (const Tensor& t : s.inputs) {
      inputs.push_back(t.defined() ? empty(t.sizes(), {.dtype = t.dtype(), .device = kMeta}) : t);
    }
    Tensors shapes;
    try {
      shapes = s.call(inputs);
    } catch (const DeviceError&) {
      return;  // sizes depend on values: the op says so
    }
    const Tensors real = s.call(s.inputs);
    std::string message;
    for (size_t i = 0; i < real.size() && message.empty(); ++i) {
      if (shapes[i].sizes() != real[i].sizes() || shapes[i].dtype() != real[i].dtype()) {
        message = fmt::format("meta says {} {}, the op gives {} {}", to_string(shapes[i].sizes()),
                              name_of(shapes[i].dtype()), to_string(real[i].sizes()),
                              name_of(real[i].dtype()));
      }
    }
    add("meta", s.label, message);
  }

  void check_threads(const Sample& s) {
    const Tensors inputs = moved(s.inputs, device_);
    const int before = num_threads();
    set_num_threads(1);
    const Tensors one = s.call(inputs);
    set_num_threads(3);
    const Tensors three = s.call(inputs);
    set_num_threads(before);
    std::string message;
    for (size_t i = 0; i < one.size() && message.empty(); ++i) {
      const auto a = one[i].to_vector(), b = three[i].to_vector();
      if (!a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) != 0) {
        message = fmt::format("result {} differs between 1 and 3 threads", i);
      }
    }
    add("threads", s.label, message);
  }

  // Results stay on the device; operands on two devices are refused, not read.
  void check_device(const Sample& s) {
    const Tensors inputs = moved(s.inputs, device_);
    std::string message;
    for (const Tensor& t : s.call(inputs)) {
      if (t.device() != device_) message = "a result is on " + to_string(t.device());
    }
    const auto tensors =
        std::count_if(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.defined(); });
    for (size_t i = 0; tensors > 1 && i < inputs.size() && message.empty(); ++i) {
      if (!inputs[i].defined()) continue;
      Tensors mixed = inputs;
      mixed[i] = s.inputs[i];
      try {
        s.call(mixed);
        message = fmt::format("input {} on the cpu, the others on the device: no error", i);
      } catch (const DeviceError&) {
      }
    }
    add("device", s.label, message);
  }

  // Gradients of first order, by both rules, against those of the cpu (which gradcheck judges).
  void check_device_gradients(const Sample& s) {
    const Tensors here = with_grad(s.inputs);
    const Tensors there = with_grad(moved(s.inputs, device_));
    const Tensors want = gradients(s, here, true);
    compare("gradient", s, gradients(s, there, true), want, 1e-9);
    if (op_.fast_backward) compare("fast backward", s, gradients(s, there, false), want, 1e-9);
  }

  static Tensors with_grad(const Tensors& inputs) {
    Tensors out;
    for (const Tensor& t : inputs) {
      out.push_back(t.defined() && t.is_floating()
                        ? cast_raw(t, DType::f64).detach().set_requires_grad()
                        : t);
    }
    return out;
  }

  void check_gradients(const Sample& s) {
    const Tensors inputs = with_grad(s.inputs);
    const GradcheckReport first = gradcheck(s.call, inputs);
    add("gradcheck", s.label, first.ok ? "" : first.message, first.worst);
    if (!s.grad_grad) return;
    const GradcheckReport second = gradgradcheck(s.call, inputs, {.rtol = 1e-5, .atol = 1e-7});
    const bool constant = second.message == "no output requires grad";
    add("gradgradcheck", s.label, second.ok || constant ? "" : second.message, second.worst);
  }

  // Gradients of the inputs for random upstream gradients; the composite rules with create_graph.
  static Tensors gradients(const Sample& s, const Tensors& inputs, bool create_graph) {
    Tensors wanted, outputs, up;
    for (const Tensor& t : inputs) {
      if (t.defined() && t.requires_grad()) wanted.push_back(t);
    }
    SampleList upstreams;
    for (const Tensor& t : s.call(inputs)) {
      if (!t.requires_grad()) continue;
      outputs.push_back(t);
      up.push_back(upstreams.randn(t.sizes()).to(t.device()));
    }
    if (outputs.empty()) return {};
    Tensors g = grad(outputs, wanted, {.create_graph = create_graph, .allow_unused = true}, up);
    std::erase_if(g, [](const Tensor& t) { return !t.defined(); });
    return g;
  }

  void check_fast(const Sample& s) {
    const Tensors inputs = with_grad(s.inputs);
    compare("fast backward", s, gradients(s, inputs, false), gradients(s, inputs, true), 1e-9);
  }

  void check_error(const ErrorSample& e) {
    try {
      e.call();
      add("error", e.label, "no exception");
    } catch (const Error& error) {
      const std::string what = error.what();
      add("error", e.label,
          what.find(e.text) != std::string::npos ? "" : "text was: " + what + "; need: " + e.text);
    } catch (const std::exception& other) {
      add("error", e.label, std::string("not a cutaway::Error: ") + other.what());
    }
  }

  const OpRecord& op_;
  const Device device_;
  std::vector<CheckResult> results_;
};

}  // namespace

double value_tolerance(DType t) { return kTolerance[static_cast<int>(t)]; }

std::vector<CheckResult> check_op(const OpRecord& op, Device device) {
  return OpChecker(op, device).run();
}

std::vector<std::string> records_without_samples(const std::vector<const OpRecord*>& records) {
  std::vector<std::string> names;
  for (const OpRecord* op : records) {
    SampleList list;
    if (op->samples) op->samples(list);
    const bool checked =
        !list.errors.empty() || std::any_of(list.samples.begin(), list.samples.end(),
                                            [](const Sample& s) { return s.call && s.reference; });
    if (!checked) names.push_back(op->name);
  }
  return names;
}

}  // namespace cutaway
