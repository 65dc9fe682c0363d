#pragma once
#include <cstdint>
#include <source_location>
#include <string>

namespace cutaway {

// One step of the module path ("net" → "fc1"); pushed by Module::operator(). Scopes are interned
// and never freed, so nodes and traces may keep the pointer.
struct ModuleScope {
  const char* name;
  const char* type;
  const ModuleScope* parent;
};

// What the current thread is doing. One thread-local read per op.
struct Context {
  bool grad_enabled = true;
  bool anomaly = false;
  bool watched = false;       // an OpWatch of this thread sees every op (autograd/op_watch.h)
  bool deterministic = true;
  uint8_t autocast = 0;       // 0 off, otherwise 1 + DType of the low type
  int32_t call_depth = 0;     // > 0 inside a composite op: the outer call site stays
  const char* op = nullptr;   // op being run, for allocation tags and messages
  const ModuleScope* module = nullptr;
  std::source_location site;  // where user code called the op
};
extern constinit thread_local Context tl_context;
inline Context& context() { return tl_context; }

// The scope of child `name` of type `type` below `parent`; the same pointer for the same three.
const ModuleScope* intern_scope(const ModuleScope* parent, const std::string& name,
                                const char* type);
// "net.fc1 (Linear)", or empty outside modules.
std::string module_path(const ModuleScope* scope);
inline std::string module_path() { return module_path(context().module); }

// Marks a composite op: errors raised inside name the call site of the composite.
class CallScope {
 public:
  explicit CallScope(std::source_location site) {
    Context& c = context();
    if (c.call_depth++ == 0) c.site = site;
  }
  ~CallScope() { --context().call_depth; }
  CallScope(const CallScope&) = delete;
};

}  // namespace cutaway
