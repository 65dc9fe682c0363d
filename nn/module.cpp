#include <cutaway/nn/module.h>

#include <cxxabi.h>
#include <fmt/format.h>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <typeindex>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>
#include <cutaway/core/record/hook.h>

namespace cutaway::nn {
namespace {

thread_local Module::Observer* observer = nullptr;

}  // namespace

Tensor Module::forward(const Tensor&) {
  throw ValueError(type(), "has no forward of one tensor",
                   "override Tensor forward(const Tensor& x), or call it with its own arguments");
}

const char* Module::type() const {
  static std::mutex mutex;
  static auto* names = new std::map<std::type_index, std::string>;
  std::lock_guard lock(mutex);
  std::string& name = (*names)[std::type_index(typeid(*this))];
  if (name.empty()) {
    int status = 0;
    char* readable = abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status);
    name = status == 0 ? readable : typeid(*this).name();
    std::free(readable);
    name = name.substr(0, name.find('<'));  // of a template, its own name
    const size_t colon = name.rfind(':');
    if (colon != std::string::npos) name = name.substr(colon + 1);
  }
  return name.c_str();
}

void Module::register_entry(const std::string& name, Kind kind, void* address) {
  if (name.empty() || name.find('.') != std::string::npos) {
    throw ValueError(
        type(), fmt::format("a registered name must not be empty or hold a dot; got \"{}\"", name));
  }
  for (const Entry& e : entries_) {
    if (e.name == name) throw ValueError(type(), fmt::format("\"{}\" is registered twice", name));
  }
  entries_.push_back({name, kind, static_cast<char*>(address) - reinterpret_cast<char*>(this)});
}

void Module::add(const std::string& name, Module& child) {
  register_entry(name, Kind::child, &child);
  child.name_ = name;
}
void Module::add(const std::string& name, Tensor& parameter) {
  register_entry(name, Kind::parameter, &parameter);
  if (parameter.defined()) parameter.set_requires_grad();
}
void Module::add_buffer(const std::string& name, Tensor& buffer, bool persistent) {
  register_entry(name, persistent ? Kind::buffer : Kind::transient, &buffer);
}

std::vector<std::pair<std::string, Module*>> Module::named_children() const {
  std::vector<std::pair<std::string, Module*>> list;
  for (const Entry& e : entries_) {
    if (e.kind == Kind::child) list.emplace_back(e.name, &member<Module>(e));
  }
  for (auto& child : heap_children()) list.push_back(std::move(child));
  return list;
}

void Module::collect(const std::string& prefix, std::vector<Slot>& out) {
  for (const Entry& e : entries_) {
    if (e.kind == Kind::child) continue;
    out.push_back({prefix + e.name, &member<Tensor>(e), e.kind == Kind::parameter,
                   e.kind != Kind::transient});
  }
  for (auto& [name, handle] : heap_parameters()) out.push_back({prefix + name, handle, true, true});
  for (auto& [name, child] : named_children()) child->collect(prefix + name + ".", out);
}

std::vector<Module::Slot> Module::slots() {
  std::vector<Slot> out;
  collect("", out);
  return out;
}

NamedTensors Module::named_parameters() const {
  NamedTensors list;
  std::set<TensorImpl*> seen;  // a tied weight is listed once, under its first name
  for (const Slot& s : const_cast<Module*>(this)->slots()) {
    if (s.parameter && s.handle->defined() && seen.insert(s.handle->impl()).second) {
      list.push_back({s.name, *s.handle});
    }
  }
  return list;
}

NamedTensors Module::named_buffers() const {
  NamedTensors list;
  for (const Slot& s : const_cast<Module*>(this)->slots()) {
    if (!s.parameter && s.handle->defined()) list.push_back({s.name, *s.handle});
  }
  return list;
}

NamedTensors Module::state_dict() const {
  NamedTensors list;
  for (const Slot& s : const_cast<Module*>(this)->slots()) {
    if (s.persistent && s.handle->defined()) list.push_back({s.name, *s.handle});
  }
  return list;
}

void Module::collect_modules(const std::string& prefix,
                             std::vector<std::pair<std::string, Module*>>& out) const {
  out.emplace_back(prefix, const_cast<Module*>(this));
  for (auto& [name, child] : named_children()) {
    child->collect_modules(prefix.empty() ? name : prefix + "." + name, out);
  }
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() const {
  std::vector<std::pair<std::string, Module*>> out;
  collect_modules("", out);
  return out;
}

int64_t Module::num_parameters() const {
  int64_t n = 0;
  for (const Named& p : named_parameters()) n += p.value.numel();
  return n;
}

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  std::map<std::string, const Tensor*> given;
  for (const Named& s : state) given[s.name] = &s.value;
  std::string missing, unknown;
  std::vector<std::pair<Tensor*, const Tensor*>> writes;
  for (const Slot& s : slots()) {
    if (!s.persistent || !s.handle->defined()) continue;
    const auto found = given.find(s.name);
    if (found == given.end()) {
      missing += " " + s.name;
      continue;
    }
    if (found->second->sizes() != s.handle->sizes()) {
      throw ShapeError("load_state_dict", fmt::format("{} has other sizes; got {}, need {}", s.name,
                                                      to_string(found->second->sizes()),
                                                      to_string(s.handle->sizes())));
    }
    writes.emplace_back(s.handle, found->second);
    given.erase(found);
  }
  for (const auto& [name, value] : given) unknown += " " + name;
  if (strict && (!missing.empty() || !unknown.empty())) {
    throw ValueError(
        "load_state_dict",
        fmt::format("names differ; missing:{}; unknown:{}", missing.empty() ? " none" : missing,
                    unknown.empty() ? " none" : unknown),
        "strict = false loads what fits");
  }
  for (auto& [handle, value] : writes) {
    copy_elements(*handle, value->detach().to(handle->device()));
    handle->storage()->bump("load_state_dict");
  }
}

Module& Module::train(bool on) {
  for (auto& [name, m] : named_modules()) {
    if (m->training_ != on) cutaway::detail::note_state_change();
    m->training_ = on;
  }
  return *this;
}

Module& Module::requires_grad(bool on) {
  for (const Slot& s : slots()) {
    if (s.parameter && s.handle->defined()) s.handle->set_requires_grad(on);
  }
  return *this;
}

void Module::zero_grad() {
  for (const Slot& s : slots()) {
    if (s.handle->defined()) s.handle->zero_grad();
  }
}

Module& Module::to(DType dtype) {
  if (!cutaway::is_floating(dtype)) {
    throw DTypeError("to",
                     std::string("a module's parameters must be floating; got ") + name_of(dtype));
  }
  NoGradGuard no_grad;
  for (const Slot& s : slots()) {
    if (s.handle->defined() && s.handle->is_floating()) s.handle->set_data(s.handle->to(dtype));
  }
  return *this;
}

Module& Module::to(Device device) {
  NoGradGuard no_grad;
  for (const Slot& s : slots()) {
    if (s.handle->defined()) s.handle->set_data(s.handle->to(device));
  }
  return *this;
}

const ModuleScope* Module::scope_below(const ModuleScope* parent) const {
  if (!scope_ || scope_parent_ != parent) {
    scope_ = intern_scope(parent, name_.empty() ? "model" : name_, type());
    scope_parent_ = parent;
  }
  return scope_;
}

Module::Scope::Scope(const Module& m) : module_(m), before_(context().module) {
  context().module = m.scope_below(before_);
}
const Tensor& Module::Scope::done(const Tensor& result) {
  if (observer) observer->leave(module_, context().module, result);
  return result;
}
Tensor Module::Scope::done(Tensor&& result) {
  if (observer) observer->leave(module_, context().module, result);
  return std::move(result);
}

Module::Observer* Module::set_observer(Observer* next) {
  Observer* before = observer;
  observer = next;
  return before;
}

Substitute::Substitute(Module& module, const NamedTensors& values) {
  std::map<std::string, Tensor*> handles;
  for (const Module::Slot& s : module.slots()) handles[s.name] = s.handle;
  for (const Named& v : values) {
    const auto found = handles.find(v.name);
    if (found == handles.end()) {
      throw ValueError("functional_call",
                       fmt::format("the module has no parameter \"{}\"", v.name));
    }
    if (found->second->defined() && found->second->sizes() != v.value.sizes()) {
      throw ShapeError("functional_call",
                       fmt::format("{} must keep its sizes; got {}, need {}", v.name,
                                   to_string(v.value.sizes()), to_string(found->second->sizes())));
    }
  }
  for (const Named& v : values) {
    Tensor* handle = handles[v.name];
    before_.emplace_back(handle, *handle);
    *handle = v.value;
  }
}
Substitute::~Substitute() {
  for (auto it = before_.rbegin(); it != before_.rend(); ++it) *it->first = it->second;
}

namespace detail {

void separate(std::vector<Module::Slot> slots, const Device* device) {
  NoGradGuard no_grad;
  std::map<TensorImpl*, Tensor> fresh;
  std::vector<Tensor> before;  // keeps the keys alive
  for (const Module::Slot& s : slots) {
    if (!s.handle->defined()) continue;
    before.push_back(*s.handle);
    Tensor& t = fresh[s.handle->impl()];
    if (!t.defined()) {
      t = empty(s.handle->sizes(), {s.handle->dtype(), device ? *device : s.handle->device()});
      if (!t.is_meta()) t.copy_(*s.handle);
      t.set_requires_grad(s.handle->requires_grad());
    }
    *s.handle = t;
  }
}

std::vector<SummaryRow> summarize(Module& copy, const Shape& input, DType dtype) {
  struct Recorder : Module::Observer {
    std::vector<SummaryRow> rows;
    void leave(const Module& module, const ModuleScope* scope, const Tensor& result) override {
      int64_t own = 0, all = module.num_parameters();
      for (auto& [name, child] : module.named_children()) own -= child->num_parameters();
      std::string path = module_path(scope);
      path = path.substr(0, path.rfind(" ("));
      rows.push_back({path, module.type(), result.sizes(), own + all});
    }
  } recorder;
  Module::Observer* before = Module::set_observer(&recorder);
  struct Restore {
    Module::Observer* before;
    ~Restore() { Module::set_observer(before); }
  } restore{before};
  NoGradGuard no_grad;
  copy(empty(input, {.dtype = dtype, .device = kMeta}));
  return recorder.rows;
}

}  // namespace detail

std::string summary_text(const std::vector<SummaryRow>& rows) {
  size_t wide = 5;
  int64_t total = 0;
  for (const SummaryRow& r : rows) wide = std::max(wide, r.path.size());
  std::string text =
      fmt::format("{:<{}}  {:<18} {:<20} {:>12}\n", "layer", wide, "type", "output", "parameters");
  for (const SummaryRow& r : rows) {
    text += fmt::format("{:<{}}  {:<18} {:<20} {:>12}\n", r.path, wide, r.type, to_string(r.output),
                        r.parameters);
    total += r.parameters;
  }
  return text + fmt::format("{:<{}}  {:<18} {:<20} {:>12}\n", "total", wide, "", "", total);
}

}  // namespace cutaway::nn
