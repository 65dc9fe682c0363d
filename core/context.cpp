#include <cutaway/core/context.h>

#include <map>
#include <mutex>
#include <tuple>

namespace cutaway {

constinit thread_local Context tl_context;

const ModuleScope* intern_scope(const ModuleScope* parent, const std::string& name,
                                const char* type) {
  struct Entry {
    std::string name;
    ModuleScope scope;
  };
  static std::mutex mutex;
  static auto* scopes =
      new std::map<std::tuple<const ModuleScope*, std::string, const char*>, Entry*>;
  std::lock_guard lock(mutex);
  Entry*& e = (*scopes)[{parent, name, type}];
  if (!e) {
    e = new Entry{name, {}};
    e->scope = {e->name.c_str(), type, parent};
  }
  return &e->scope;
}

std::string module_path(const ModuleScope* scope) {
  if (!scope) return {};
  std::string path = scope->name;
  for (const ModuleScope* s = scope->parent; s; s = s->parent)
    path = std::string(s->name) + "." + path;
  return path + " (" + scope->type + ")";
}

}  // namespace cutaway
