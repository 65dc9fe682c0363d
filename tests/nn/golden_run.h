#pragma once
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/shape.h>
#include <cutaway/nn/module.h>
#include <tests/golden/golden.h>

namespace cutaway::golden {

inline double tolerance(DType t) { return t == DType::f64 ? 1e-10 : 1e-5; }

inline Tensor tensor_of(const Array& a, DType floating) {
  const DType t = a.dtype == "I64" ? DType::i64 : a.dtype == "BOOL" ? DType::boolean : floating;
  const Tensor flat = tensor(std::span<const double>(a.values), {.dtype = t});
  return make_view(flat, Layout::contiguous(Shape(std::span<const int64_t>(a.shape))));
}

// One stored case, run in one type: gives inputs, fills parameters, compares results and gradients.
class Run {
 public:
  Run(const Case& c, DType dtype) : case_(c), dtype_(dtype) {}

  const Case& data() const { return case_; }
  DType dtype() const { return dtype_; }
  bool has(const std::string& name) const { return case_.has("input." + name); }
  // The input, or an undefined tensor.
  Tensor input(const std::string& name) {
    if (!has(name)) return {};
    Tensor& t = inputs_[name];
    if (!t.defined()) {
      t = tensor_of(case_.at("input." + name), dtype_);
      if (case_.has("grad." + name)) t.set_requires_grad();
    }
    return t;
  }

  // Converts a module and gives it the stored parameters and buffers; every name must be known on
  // both sides.
  template <class M>
  M& fill(M& module) {
    module.to(dtype_);
    nn::NamedTensors state;
    for (const char* kind : {"param", "buffer"}) {
      for (const std::string& name : case_.names(kind)) {
        state.push_back({name, tensor_of(case_.at(std::string(kind) + "." + name), dtype_)});
      }
    }
    module.load_state_dict(state);
    for (const nn::Named& p : module.named_parameters()) parameters_.push_back(p);
    return module;
  }

  // Compares outputs by name, sends the stored upstream gradients in, compares all gradients.
  void finish(const std::map<std::string, Tensor>& outputs) {
    Tensors roots, upstreams;
    for (const auto& [name, value] : outputs) {
      compare(value, case_.at("output." + name), "output " + name);
      if (!case_.has("upstream." + name)) continue;
      roots.push_back(value);
      upstreams.push_back(tensor_of(case_.at("upstream." + name), dtype_));
    }
    if (roots.empty()) return;
    backward(roots, upstreams);
    std::set<std::string> seen;
    for (const auto& [name, value] : inputs_) check_gradient(name, value, seen);
    for (const nn::Named& p : parameters_) check_gradient(p.name, p.value, seen);
    EXPECT_EQ(seen.size(), case_.names("grad").size()) << case_.name();
  }
  void compare(const Tensor& got, const Array& want, const std::string& what) const {
    ASSERT_TRUE(got.defined()) << case_.name() << " " << what;
    const Shape sizes(std::span<const int64_t>(want.shape));
    EXPECT_EQ(to_string(got.sizes()), to_string(sizes)) << case_.name() << " " << what;
    EXPECT_LE(relative_error(got.to_vector(), want), tolerance(dtype_))
        << case_.name() << " " << what << " " << name_of(dtype_);
  }

 private:
  void check_gradient(const std::string& name, const Tensor& value, std::set<std::string>& seen) {
    if (!case_.has("grad." + name)) return;
    compare(value.grad(), case_.at("grad." + name), "gradient of " + name);
    seen.insert(name);
  }

  const Case& case_;
  DType dtype_;
  std::map<std::string, Tensor> inputs_;
  nn::NamedTensors parameters_;
};

// Calls body(run) for each case of an op, in f64 and f32.
template <class F>
void for_cases(const char* group, const char* op, F&& body) {
  for (const Case* c : File::open(group).of_op(op)) {
    for (const DType t : {DType::f64, DType::f32}) {
      SCOPED_TRACE(c->name());
      Run run(*c, t);
      body(run);
    }
  }
}

}  // namespace cutaway::golden
