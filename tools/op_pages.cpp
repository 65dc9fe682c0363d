#include <tools/op_pages.h>

#include <fmt/format.h>
#include <filesystem>
#include <map>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

namespace cutaway::tools {
namespace {

constexpr int64_t kShownElements = 12;
constexpr size_t kShownCases = 3;

// Cells of a table must not hold the sign that ends them.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string code(const std::string& text) { return "`" + cell(text) + "`"; }

bool small(const Tensors& tensors) {
  for (const Tensor& t : tensors) {
    if (t.defined() && (t.numel() > kShownElements || t.numel() == 0)) return false;
  }
  return true;
}

// The values of a few small cases. Results of random ops are left out: they say nothing.
std::string examples(const SampleList& list) {
  std::string text;
  size_t shown = 0;
  for (const Sample& s : list.samples) {
    if (shown == kShownCases) break;
    if (!s.reference || !small(s.inputs)) continue;
    const Tensors results = s.call(s.inputs);
    if (!small(results)) continue;
    text += fmt::format("\n{}:\n\n```text\n", s.label);
    for (size_t i = 0; i < s.inputs.size(); ++i) {
      if (s.inputs[i].defined()) text += fmt::format("input {}\n{}\n", i, s.inputs[i].to_string());
    }
    for (const Tensor& r : results) text += "→\n" + r.detach().to_string() + "\n";
    text += "```\n";
    ++shown;
  }
  return text.empty() ? "" : "\n## Small cases\n" + text;
}

std::string all_cases(const SampleList& list) {
  if (list.samples.empty()) return "";
  std::string text = "\n## Tested with\n\n| Case | Inputs | Derivatives |\n|---|---|---|\n";
  for (const Sample& s : list.samples) {
    std::string inputs;
    for (const Tensor& t : s.inputs) {
      if (!t.defined()) continue;
      inputs += fmt::format("{}{} {}", inputs.empty() ? "" : ", ", to_string(t.sizes()),
                            name_of(t.dtype()));
    }
    text += fmt::format("| {} | {} | {} |\n", cell(s.label), inputs,
                        s.grad_grad && s.grad ? "first, second"
                        : s.grad              ? "first"
                                              : "");
  }
  return text;
}

std::string errors(const SampleList& list) {
  if (list.errors.empty()) return "";
  std::string text = "\n## Errors\n\n";
  for (const ErrorSample& e : list.errors) {
    try {
      e.call();
    } catch (const Error& error) {
      const std::string message = error.what();
      text += fmt::format("- {}: `{}`\n", e.label, message.substr(0, message.find('\n')));
    }
  }
  return text;
}

}  // namespace

std::string saved_text(const OpRecord& op) {
  std::string s;
  for (int i = 0; i < 32; ++i) {
    if (op.save_inputs >> i & 1) s += (s.empty() ? "" : ", ") + fmt::format("input {}", i);
  }
  for (int i = 0; i < 32; ++i) {
    if (op.save_outputs >> i & 1) s += (s.empty() ? "" : ", ") + fmt::format("output {}", i);
  }
  return s.empty() ? "nothing" : s;
}

const char* compute_name(Compute c) {
  return c == Compute::keep ? "own type" : c == Compute::low ? "low type" : "f32";
}

std::string source_text(const OpRecord& op) {
  const std::string file = op.file;
  const size_t at = file.rfind("autograd/ops/");
  return fmt::format("{}:{}", at == std::string::npos ? file : file.substr(at), op.line);
}

std::string op_family(const OpRecord& op) {
  std::string name = std::filesystem::path(op.file).stem().string();
  for (char& c : name) {
    if (c == '_') c = ' ';
  }
  return name;
}

std::string op_page(const OpRecord& op) {
  std::string text = fmt::format("# {}\n\n`{}`\n\n{}\n\n```text\n{}\n```\n\n| | |\n|---|---|\n",
                                 op.name, op.signature, op.meaning, op.formula);
  const auto row = [&](const char* what, const std::string& value) {
    text += fmt::format("| {} | {} |\n", what, value);
  };
  row("Shapes", code(op.shapes));
  row("Types", to_string(op.dtypes));
  row("Under autocast", compute_name(op.compute));
  row("Results", op.determinism);
  if (op.backward) {
    row("Derivative", code(op.backward_text));
    row("First order", op.fast_backward ? "a kernel of its own" : "the formula, op by op");
    row("Kept for it", saved_text(op));
  } else {
    row("Derivative", fmt::format("none: {}", op.no_gradient ? op.no_gradient : ""));
  }
  row("Source", code(source_text(op)));
  SampleList list;
  if (op.samples) op.samples(list);
  return text + examples(list) + all_cases(list) + errors(list) + "\n[All ops](README.md)\n";
}

void write_op_pages(const std::vector<const OpRecord*>& ops, const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw IoError("ops", fmt::format("cannot create {}: {}", folder, failed.message()));
  std::map<std::string, std::string> families;
  for (const OpRecord* op : ops) {
    io::write_file_atomic(fmt::format("{}/{}.md", folder, op->name), op_page(*op));
    families[op_family(*op)] += fmt::format("- [{0}]({0}.md): {1}\n", op->name, op->meaning);
  }
  std::string index = fmt::format(
      "# Ops\n\n{} ops, by the file that defines them. Made from their records by `cutaway ops "
      "--pages FOLDER`.\n",
      ops.size());
  for (const auto& [family, list] : families) index += fmt::format("\n## {}\n\n{}", family, list);
  io::write_file_atomic(folder + "/README.md", index);
}

}  // namespace cutaway::tools
