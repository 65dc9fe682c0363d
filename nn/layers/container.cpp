#include <cutaway/nn/layers/container.h>

#include <fmt/format.h>

#include <cutaway/core/error.h>

namespace cutaway::nn {

ModuleList::ModuleList(const ModuleList& other) : Module(other) {
  for (const Child& c : other.children_) own(c.name, c.copy(*c.module), c.copy);
}

ModuleList& ModuleList::operator=(const ModuleList& other) {
  if (this == &other) return *this;
  ModuleList copy(other);
  Module::operator=(other);
  children_ = std::move(copy.children_);
  return *this;
}

void ModuleList::own(const std::string& name, std::unique_ptr<Module> module, Copy copy) {
  if (name.empty() || name.find('.') != std::string::npos) {
    throw ValueError(type(),
                     fmt::format("a name must not be empty or hold a dot; got \"{}\"", name));
  }
  for (const Child& c : children_) {
    if (c.name == name) throw ValueError(type(), fmt::format("\"{}\" is appended twice", name));
  }
  set_child_name(*module, name);
  children_.push_back({name, std::move(module), copy});
}

Module& ModuleList::operator[](int64_t i) const {
  const int64_t at = i < 0 ? i + size() : i;
  if (at < 0 || at >= size()) {
    throw IndexError(type(), fmt::format("index {} is out of range for {} layers", i, size()));
  }
  return *children_[size_t(at)].module;
}

void ModuleList::throw_other_type(int64_t i) const {
  throw ValueError(
      type(), fmt::format("layer {} is of type {}, not what was asked for", i, (*this)[i].type()));
}

std::vector<std::pair<std::string, Module*>> ModuleList::heap_children() const {
  std::vector<std::pair<std::string, Module*>> list;
  for (const Child& c : children_) list.emplace_back(c.name, c.module.get());
  return list;
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (int64_t i = 0; i < size(); ++i) y = (*this)[i](y);
  return y;
}

}  // namespace cutaway::nn
