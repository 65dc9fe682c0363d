// Models as ONNX files: written from a training run, looked at, and run.
#include <fmt/format.h>
#include <algorithm>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/npz.h>
#include <cutaway/models/train/checkpoint.h>
#include <cutaway/models/train/run_data.h>
#include <cutaway/models/train/trainer.h>
#include <cutaway/models/zoo/zoo.h>
#include <cutaway/nn/onnx/export.h>
#include <cutaway/nn/onnx/model.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

struct OnnxArgs {
  Common common;
  std::string run, file, dot, inputs, results;
  bool fixed = false, best = false;
};

int run_export(const OnnxArgs& a) {
  apply_common(a.common);
  const train::TrainConfig config = train::read_config(a.run);
  const zoo::Task task = train::task_of(config, train::open_run_data(config, a.run));
  const auto model = zoo::make_model(config.model, task);
  train::load_weights(a.best ? a.run + "/best.safetensors" : a.run, *model);
  Shape sizes{2};
  for (const int64_t n : task.input) sizes.push_back(n);
  const int64_t numbers = task.graph ? task.graph->edges.nodes : task.vocabulary;
  if (task.graph) sizes = {2};
  const Tensor example = numbers > 0 ? randint(0, numbers, sizes) : randn(sizes);
  onnx::export_model(*model, {example}, a.file, {.dynamic_batch = !a.fixed});
  const onnx::File file = onnx::load_file(a.file);
  say(a.common.quiet,
      fmt::format("{}   {} nodes   {} weights and constants   opset {}", a.file,
                  file.graph.nodes.size(), file.graph.initializers.size(), file.opsets.at("")));
  return 0;
}

std::string dims_text(const onnx::ValueInfo& v) {
  std::string text = onnx::type_name(v.type) + " [";
  for (size_t d = 0; d < v.dims.size(); ++d) {
    const onnx::Dim& dim = v.dims[d];
    text += (d ? "," : "") + (dim.value >= 0     ? std::to_string(dim.value)
                              : dim.name.empty() ? "?"
                                                 : dim.name);
  }
  return text + "]";
}

// Values of a run on zeros, for sizes; free sizes count as 1. Empty when the model cannot run so.
std::map<std::string, Tensor> trial(const onnx::Model& model) {
  try {
    Tensors inputs;
    const auto names = model.input_names();
    for (const onnx::ValueInfo& v : model.file().graph.inputs) {
      if (std::find(names.begin(), names.end(), v.name) == names.end()) continue;
      Shape sizes;
      for (const onnx::Dim& d : v.dims) sizes.push_back(d.value >= 0 ? d.value : 1);
      inputs.push_back(zeros(sizes, {.dtype = onnx::engine_type(v.type)}));
    }
    return model.values(inputs);
  } catch (const Error&) {
    return {};
  }
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& s : parts) text += (text.empty() ? "" : ", ") + (s.empty() ? "-" : s);
  return text;
}

std::string dot_name(const std::string& s) {
  std::string text = "\"";
  for (const char c : s) text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return text + "\"";
}

// Nodes as boxes, values as arrows between them; weights are left out.
std::string dot_text(const onnx::Graph& g) {
  std::map<std::string, std::string> maker;
  std::string text = "digraph onnx {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (const onnx::ValueInfo& v : g.inputs) {
    text += fmt::format("  {} [shape=ellipse];\n", dot_name(v.name));
    maker[v.name] = v.name;
  }
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    const onnx::Node& n = g.nodes[k];
    const std::string id = fmt::format("node {}", k);
    text += fmt::format("  {} [label={}];\n", dot_name(id), dot_name(n.op_type));
    for (const std::string& s : n.inputs) {
      if (maker.contains(s)) text += fmt::format("  {} -> {};\n", dot_name(maker[s]), dot_name(id));
    }
    for (const std::string& s : n.outputs) maker[s] = id;
  }
  for (const onnx::ValueInfo& v : g.outputs) {
    text += fmt::format("  {} [shape=ellipse];\n", dot_name("result " + v.name));
    if (maker.contains(v.name)) {
      text += fmt::format("  {} -> {};\n", dot_name(maker[v.name]), dot_name("result " + v.name));
    }
  }
  return text + "}\n";
}

int run_inspect(const OnnxArgs& a) {
  apply_common(a.common);
  const onnx::File file = onnx::load_file(a.file);
  if (!a.dot.empty()) io::write_file_atomic(a.dot, dot_text(file.graph));
  int64_t numbers = 0;
  for (const auto& t : file.graph.initializers) numbers += t.value.numel();
  const auto opset = file.opsets.find("");
  fmt::print("{}   {} {}   opset {}   {} nodes   {} numbers in {} constants\n", a.file,
             file.producer, file.producer_version, opset == file.opsets.end() ? 0 : opset->second,
             file.graph.nodes.size(), numbers, file.graph.initializers.size());
  for (const auto& v : file.graph.inputs) fmt::print("input    {:<24} {}\n", v.name, dims_text(v));
  for (const auto& v : file.graph.outputs) fmt::print("result   {:<24} {}\n", v.name, dims_text(v));
  std::map<std::string, Tensor> values;
  try {
    values = trial(onnx::Model(file));
  } catch (const Error& e) {
    fmt::print("{}\n", e.what());
  }
  fmt::print("{:<24} {:<16} {}\n", "operator", "sizes", "result ← operands");
  for (const onnx::Node& n : file.graph.nodes) {
    const auto it = n.outputs.empty() ? values.end() : values.find(n.outputs[0]);
    const std::string sizes = it == values.end() ? "?" : to_string(it->second.sizes());
    fmt::print("{:<24} {:<16} {} ← {}\n", n.op_type, sizes, joined(n.outputs), joined(n.inputs));
  }
  return 0;
}

int run_model(const OnnxArgs& a) {
  apply_common(a.common);
  const onnx::Model model = onnx::Model::load(a.file);
  std::map<std::string, Tensor> inputs;
  for (const auto& [name, value] : io::load_npz(a.inputs)) inputs[name] = value;
  io::NamedArrays results;
  for (const auto& [name, value] : model.run(inputs)) {
    say(a.common.quiet, fmt::format("{} {}", name, to_string(value.sizes())));
    results.emplace_back(name, value);
  }
  if (!a.results.empty()) io::save_npz(a.results, results);
  return 0;
}

}  // namespace

void add_onnx(CLI::App& app, int& status) {
  CLI::App* group = app.add_subcommand("onnx", "Models as ONNX files: export, inspect, run");
  group->require_subcommand(1);
  group->footer("Example:\n  cutaway onnx export --run runs/fashion-mnist --file model.onnx");
  {
    auto a = std::make_shared<OnnxArgs>();
    CLI::App* c = group->add_subcommand("export", "Write the model of a run as an ONNX file");
    c->footer("Example:\n  cutaway onnx export --run runs/fashion-mnist --file model.onnx");
    add_common(*c, a->common);
    c->add_option("--run", a->run, "Folder of a training run")->required();
    c->add_option("--file", a->file, "File to write")->required();
    c->add_flag("--best", a->best, "The weights with the best test result, not the newest");
    c->add_flag("--fixed-batch", a->fixed, "For batches of 2 only, instead of any");
    c->callback([a, &status] { status = run_export(*a); });
  }
  {
    auto a = std::make_shared<OnnxArgs>();
    CLI::App* c = group->add_subcommand("inspect", "Print the nodes of an ONNX file with sizes");
    c->footer("Example:\n  cutaway onnx inspect --file model.onnx --dot model.dot");
    add_common(*c, a->common);
    c->add_option("--file", a->file, "ONNX file")->required();
    c->add_option("--dot", a->dot, "Also write the graph for Graphviz");
    c->callback([a, &status] { status = run_inspect(*a); });
  }
  {
    auto a = std::make_shared<OnnxArgs>();
    CLI::App* c = group->add_subcommand("run", "Run an ONNX file on arrays of an NPZ file");
    c->footer("Example:\n  cutaway onnx run --file model.onnx --inputs in.npz --results out.npz");
    add_common(*c, a->common);
    c->add_option("--file", a->file, "ONNX file")->required();
    c->add_option("--inputs", a->inputs, "NPZ file with an array for each input")->required();
    c->add_option("--results", a->results, "NPZ file to write");
    c->callback([a, &status] { status = run_model(*a); });
  }
}

}  // namespace cutaway::tools
