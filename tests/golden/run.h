#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

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

// One stored case, run in one type: gives inputs and parameters, compares results and gradients,
// and remembers which tensors of the case have been read.
class Run {
 public:
  Run(const Case& c, DType dtype) : case_(c), dtype_(dtype) {}

  const Case& data() const { return case_; }
  DType dtype() const { return dtype_; }
  bool has(const std::string& name) const { return case_.has("input." + name); }
  // The input or the parameter, or an undefined tensor. A leaf when its gradient is stored.
  Tensor input(const std::string& name) { return leaf("input." + name, name); }
  Tensor parameter(const std::string& name) { return leaf("param." + name, name); }

  // Converts a module and gives it the stored parameters and buffers; every name must be known on
  // both sides.
  template <class M>
  M& fill(M& module) {
    module.to(dtype_);
    nn::NamedTensors state;
    for (const char* kind : {"param", "buffer"}) {
      for (const std::string& name : case_.names(kind)) {
        state.push_back({name, tensor_of(at(std::string(kind) + "." + name), dtype_)});
      }
    }
    module.load_state_dict(state);
    for (const nn::Named& p : module.named_parameters()) leaves_[p.name] = p.value;
    return module;
  }

  // Compares outputs by name, sends the stored upstream gradients in, compares all gradients.
  void finish(const std::map<std::string, Tensor>& outputs) {
    Tensors roots, upstreams;
    for (const auto& [name, value] : outputs) {
      compare(value, "output." + name);
      if (!case_.has("upstream." + name)) continue;
      const Tensor upstream = tensor_of(at("upstream." + name), dtype_);
      if (!value.requires_grad()) continue;  // constant almost everywhere: the sign of slogdet
      roots.push_back(value);
      upstreams.push_back(upstream);
    }
    if (!roots.empty()) backward(roots, upstreams);
    for (const auto& [name, value] : leaves_) {
      if (case_.has("grad." + name)) compare(value.grad(), "grad." + name);
    }
  }
  // Compares with the stored tensor "<kind>.<name>", sizes and values.
  void compare(const Tensor& got, const std::string& stored) {
    const Array& want = at(stored);
    ASSERT_TRUE(got.defined()) << stored;
    const Shape sizes(std::span<const int64_t>(want.shape));
    EXPECT_EQ(to_string(got.sizes()), to_string(sizes)) << stored;
    EXPECT_LE(relative_error(got.to_vector(), want), tolerance(dtype_))
        << stored << " in " << name_of(dtype_);
  }

  // Tensors of the case that nothing has asked for or compared.
  std::vector<std::string> unread() const {
    std::vector<std::string> names;
    for (const char* kind : {"input", "param", "buffer", "after", "upstream", "output", "grad"}) {
      for (const std::string& name : case_.names(kind)) {
        const std::string stored = std::string(kind) + "." + name;
        if (!read_.contains(stored)) names.push_back(stored);
      }
    }
    return names;
  }

 private:
  const Array& at(const std::string& stored) {
    read_.insert(stored);
    return case_.at(stored);
  }
  Tensor leaf(const std::string& stored, const std::string& name) {
    if (!case_.has(stored)) return {};
    Tensor& t = leaves_[name];
    if (!t.defined()) {
      t = tensor_of(at(stored), dtype_);
      if (case_.has("grad." + name)) t.set_requires_grad();
    }
    return t;
  }

  const Case& case_;
  DType dtype_;
  std::map<std::string, Tensor> leaves_;
  std::set<std::string> read_;
};

using Comparisons = std::map<std::string, std::function<void(Run&)>>;

// Runs the comparison of its op for every case of a file, in f64 and f32. What is not compared
// fails: a case whose op has no comparison, a tensor of a case that its comparison leaves unread,
// and a comparison without a case.
inline void compare_file(const File& file, const Comparisons& by_op) {
  std::set<std::string> used;
  for (const Case& c : file.cases()) {
    SCOPED_TRACE(c.name());
    const auto found = by_op.find(c.text("op"));
    if (found == by_op.end()) {
      ADD_FAILURE() << "no comparison for " << c.text("op");
      continue;
    }
    used.insert(found->first);
    for (const DType dtype : {DType::f64, DType::f32}) {
      Run run(c, dtype);
      found->second(run);
      for (const std::string& name : run.unread()) ADD_FAILURE() << name << " is not compared";
    }
  }
  for (const auto& [op, unused] : by_op) EXPECT_TRUE(used.contains(op)) << "no case of " << op;
}
inline void compare_file(const char* group, const Comparisons& by_op) {
  compare_file(File::open(group), by_op);
}

}  // namespace cutaway::golden
