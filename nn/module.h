#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <cutaway/core/context.h>
#include <cutaway/core/tensor.h>

namespace cutaway::nn {

// A tensor with its name in the module ("conv.weight"). Names are PyTorch's state-dict keys.
struct Named {
  std::string name;
  Tensor value;
};
using NamedTensors = std::vector<Named>;

// Base of all layers and models. Derive, hold layers and tensors as members, and register them in
// the constructor:
//
//   struct Net : nn::Module {
//     nn::Linear fc{{.in = 4, .out = 2}};
//     Net() { add("fc", fc); }
//     Tensor forward(const Tensor& x) override { return relu(fc(x)); }
//   };
//
// Modules copy like values that share: a copy has the same parameter tensors; clone() makes new
// ones. What is registered must be a member of the object itself (Note: registration by offset);
// layers on the heap belong in Sequential or ModuleList.
class Module {
 public:
  Module() = default;
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  virtual ~Module() = default;

  // The computation. Modules with other signatures declare their own forward and operator().
  virtual Tensor forward(const Tensor& x);
  // Runs forward inside this module's scope, so that errors and traces know the module path.
  Tensor operator()(const Tensor& x) {
    Scope scope(*this);
    return scope.done(forward(x));
  }

  // ---- what it holds, in order of registration, children after own entries
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  NamedTensors parameters() const { return named_parameters(); }
  // Parameters and persistent buffers: what a file holds.
  NamedTensors state_dict() const;
  std::vector<std::pair<std::string, Module*>> named_modules() const;  // itself first, as ""
  std::vector<std::pair<std::string, Module*>> named_children() const;
  int64_t num_parameters() const;

  // Copies values by name. Names and sizes are checked first: with strict, missing or unknown names
  // raise ValueError; unequal sizes always raise ShapeError. Types are converted.
  void load_state_dict(const NamedTensors& state, bool strict = true);

  // ---- modes
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool training() const { return training_; }
  Module& requires_grad(bool on);
  void zero_grad();
  // Converts all floating parameters and buffers, in place: every handle sees it.
  Module& to(DType dtype);
  Module& to(Device device);

  const char* type() const;  // "Linear"
  const std::string& name() const { return name_; }

  // ---- for containers, summary and functional_call
  // The member handles themselves, with their full names.
  struct Slot {
    std::string name;
    Tensor* handle;
    bool parameter;
    bool persistent;
  };
  std::vector<Slot> slots();

  // Sees each module call as it ends; see summary().
  struct Observer {
    virtual ~Observer() = default;
    virtual void leave(const Module& module, const ModuleScope* scope, const Tensor& result) = 0;
  };
  static Observer* set_observer(Observer* observer);  // of this thread; returns the former one

 protected:
  void add(const std::string& name, Module& child);
  void add(const std::string& name,
           Tensor& parameter);  // undefined: an absent option, such as no bias
  void add_buffer(const std::string& name, Tensor& buffer, bool persistent = true);
  // Children that are not members (Sequential, ModuleList) are given here.
  virtual std::vector<std::pair<std::string, Module*>> heap_children() const { return {}; }
  // Parameters that are not members, such as those of a list of layers.
  virtual std::vector<std::pair<std::string, Tensor*>> heap_parameters() const { return {}; }
  void set_child_name(Module& child, const std::string& name) const { child.name_ = name; }

  // Pushes the module onto the path while alive.
  class Scope {
   public:
    explicit Scope(const Module& m);
    ~Scope() { context().module = before_; }
    Scope(const Scope&) = delete;
    const Tensor& done(const Tensor& result);
    Tensor done(Tensor&& result);

   private:
    const Module& module_;
    const ModuleScope* before_;
  };

 private:
  // Note: registration by offset. Entries keep the distance from this object to the member, not a
  // pointer, so that copies and moves of the whole object keep a valid registry of their own
  // members.
  enum class Kind : uint8_t { parameter, buffer, transient, child };
  struct Entry {
    std::string name;
    Kind kind;
    std::ptrdiff_t offset;
  };
  template <class T>
  T& member(const Entry& e) const {
    return *reinterpret_cast<T*>(reinterpret_cast<char*>(const_cast<Module*>(this)) + e.offset);
  }
  void register_entry(const std::string& name, Kind kind, void* address);
  void collect(const std::string& prefix, std::vector<Slot>& out);
  void collect_modules(const std::string& prefix,
                       std::vector<std::pair<std::string, Module*>>& out) const;
  const ModuleScope* scope_below(const ModuleScope* parent) const;

  std::vector<Entry> entries_;
  std::string name_;
  bool training_ = true;
  mutable const ModuleScope* scope_ = nullptr;  // last scope and the parent it belongs to
  mutable const ModuleScope* scope_parent_ = nullptr;
};

namespace detail {
// Gives every tensor of a module storage of its own, on `device` if given. Handles of one tensor
// (tied weights) stay handles of one tensor.
void separate(std::vector<Module::Slot> slots, const Device* device = nullptr);
}  // namespace detail

// An independent copy: same structure, parameters and buffers with storage of their own, no
// gradients.
template <class M>
M clone(const M& module) {
  M copy = module;
  detail::separate(copy.slots());
  return copy;
}

// Puts other tensors in the place of named parameters and buffers while alive. With results of ops
// as values, gradients flow to what they were computed from: inner loops become differentiable.
// Raises ValueError for an unknown name, ShapeError for other sizes.
class Substitute {
 public:
  Substitute(Module& module, const NamedTensors& values);
  ~Substitute();
  Substitute(const Substitute&) = delete;

 private:
  std::vector<std::pair<Tensor*, Tensor>> before_;
};
// module(args…) with `values` in the place of the parameters of the same names.
template <class M, class... Args>
auto functional_call(M& module, const NamedTensors& values, Args&&... args) {
  Substitute substitute(module, values);
  return module(std::forward<Args>(args)...);
}

// One line of a summary.
struct SummaryRow {
  std::string path, type;
  Shape output;
  int64_t parameters = 0;  // of this module itself, not of its children
};
namespace detail {
std::vector<SummaryRow> summarize(Module& copy, const Shape& input, DType dtype);
}
// Modules in order of their calls with result sizes and parameter counts, found on the meta device:
// no memory, no arithmetic. `input` are the sizes of x.
template <class M>
std::vector<SummaryRow> summary_rows(const M& module, const Shape& input,
                                     DType dtype = DType::f32) {
  M copy = module;
  detail::separate(copy.slots(), &kMeta);
  return detail::summarize(copy, input, dtype);
}
std::string summary_text(const std::vector<SummaryRow>& rows);
template <class M>
std::string summary(const M& module, const Shape& input, DType dtype = DType::f32) {
  return summary_text(summary_rows(module, input, dtype));
}

}  // namespace cutaway::nn
