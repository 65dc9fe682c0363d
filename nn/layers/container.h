#pragma once
#include <concepts>
#include <functional>

#include <cutaway/nn/module.h>

namespace cutaway::nn {

// A layer made of a function.
class Function : public Module {
 public:
  explicit Function(std::function<Tensor(const Tensor&)> f) : f_(std::move(f)) {}
  Tensor forward(const Tensor& x) override { return f_(x); }

 private:
  std::function<Tensor(const Tensor&)> f_;
};

// Owns layers of any type, in order; their names are "0", "1", … unless given. A copy owns copies
// of the layers, which share their tensors as copies of all modules do.
class ModuleList : public Module {
 public:
  ModuleList() = default;
  ModuleList(const ModuleList& other);
  ModuleList& operator=(const ModuleList& other);

  // Appends a copy of a layer, or a function of one tensor.
  template <class L>
  ModuleList& append(L layer) {
    return append(std::to_string(children_.size()), std::move(layer));
  }
  template <class L>
  ModuleList& append(const std::string& name, L layer) {
    if constexpr (std::derived_from<L, Module>) {
      own(name, std::make_unique<L>(std::move(layer)), [](const Module& m) {
        return std::unique_ptr<Module>(std::make_unique<L>(static_cast<const L&>(m)));
      });
    } else {
      append(name, Function(std::move(layer)));
    }
    return *this;
  }

  int64_t size() const { return int64_t(children_.size()); }
  // Raises IndexError; negative counts from the end.
  Module& operator[](int64_t i) const;
  // Layer i as what it is; raises ValueError when it is no L.
  template <class L>
  L& get(int64_t i) const {
    L* layer = dynamic_cast<L*>(&(*this)[i]);
    if (!layer) throw_other_type(i);
    return *layer;
  }

 protected:
  std::vector<std::pair<std::string, Module*>> heap_children() const override;

 private:
  using Copy = std::unique_ptr<Module> (*)(const Module&);
  struct Child {
    std::string name;
    std::unique_ptr<Module> module;
    Copy copy;
  };
  void own(const std::string& name, std::unique_ptr<Module> module, Copy copy);
  [[noreturn]] void throw_other_type(int64_t i) const;

  std::vector<Child> children_;
};

// Calls its layers one after the other:
//   nn::Sequential net(nn::Linear{{.in = 4, .out = 8}}, nn::ReLU{}, nn::Linear{{.in = 8, .out =
//   2}});
class Sequential : public ModuleList {
 public:
  Sequential() = default;
  template <class First, class... More>
  requires(sizeof...(More) > 0 ||
           !std::derived_from<std::remove_cvref_t<First>,
                              Sequential>) explicit Sequential(First first, More... more) {
    append(std::move(first));
    (append(std::move(more)), ...);
  }
  Tensor forward(const Tensor& x) override;
};

}  // namespace cutaway::nn
