#include <cutaway/core/error.h>

#include <cutaway/core/context.h>
#include <cutaway/core/text.h>

namespace cutaway {
namespace {

[[gnu::cold]] std::string compose(const char* op, std::string_view rule, std::string_view hint) {
  const Context& c = context();
  std::string text = "[";
  text.append(op ? op : "cutaway").append("] ").append(rule);
  if (c.module) text += "\n  at  " + module_path(c.module);
  if (c.call_depth > 0 && c.site.line() > 0) {
    text += "\n  in  " + std::string(source_name(c.site.file_name())) + ":" +
            std::to_string(c.site.line());
  }
  if (!hint.empty()) text += "\n  hint: " + std::string(hint);
  return text;
}

}  // namespace

Error::Error(const std::string& text) : std::runtime_error(text) {}
Error::Error(const char* op, std::string_view rule, std::string_view hint)
    : std::runtime_error(compose(op, rule, hint)) {}

}  // namespace cutaway
