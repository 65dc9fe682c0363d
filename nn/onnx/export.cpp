#include <cutaway/nn/onnx/export.h>

#include <fmt/format.h>
#include <cmath>
#include <deque>
#include <utility>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/op_watch.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/nn/onnx/batch.h>
#include <cutaway/nn/onnx/model.h>

namespace cutaway::onnx {
namespace {

constexpr int64_t kIrVersion = 8;  // the one that opset 17 came with

std::string dotted(const ModuleScope* scope) {
  // The outermost scope is the exported module itself.
  if (!scope || !scope->parent) return "";
  const std::string before = dotted(scope->parent);
  return before.empty() ? scope->name : before + "." + scope->name;
}

// Notes every op. All tensors are kept, so that no memory is used twice meanwhile.
class Notes : public OpWatch {
 public:
  Notes() : before_(set(this)) {}
  ~Notes() override { set(before_); }

  void seen(const Call& call, uint32_t attr_bytes) override {
    RecordedOp r;
    r.op = &call.op;
    for (int i = 0; i < call.num_inputs; ++i) r.inputs.push_back(call.in(i));
    for (int i = 0; i < call.num_outputs; ++i) r.outputs.push_back(call.outputs[i]);
    const char* bytes = static_cast<const char*>(call.attr_data);
    r.attrs.assign(bytes, bytes + attr_bytes);
    r.module = dotted(context().module);
    ops.push_back(std::move(r));
  }

  std::deque<RecordedOp> ops;

 private:
  OpWatch* before_;
};

class EvalMode {
 public:
  explicit EvalMode(nn::Module& m) {
    for (const auto& [name, child] : m.named_modules())
      before_.emplace_back(child, child->training());
    m.eval();
  }
  // Parents come before their children, so that each ends as it was.
  ~EvalMode() {
    for (const auto& [m, training] : before_) m->train(training);
  }

 private:
  std::vector<std::pair<nn::Module*, bool>> before_;
};

std::vector<std::string> names_of(const std::vector<std::string>& given, const char* base,
                                  size_t n) {
  if (!given.empty() && given.size() != n) {
    throw ValueError("onnx", fmt::format("got {} {} names, need {}", given.size(), base, n));
  }
  if (!given.empty()) return given;
  if (n == 1) return {base};
  std::vector<std::string> names;
  for (size_t i = 0; i < n; ++i) names.push_back(fmt::format("{}_{}", base, i));
  return names;
}

ValueInfo described(const std::string& name, const Tensor& t) {
  ValueInfo v{.name = name, .type = type_number(t.dtype()), .has_shape = true};
  for (const int64_t n : t.sizes()) v.dims.push_back({n, ""});
  return v;
}

// A result is copied under its own name.
Graph watched_graph(nn::Module& module, const Forward& forward, const Tensors& inputs,
                    const ExportOptions& options) {
  Notes notes;
  const Tensors results = forward(inputs);
  OpWatch::set(nullptr);
  OnnxGraph g;
  const auto in = names_of(options.input_names, "input", inputs.size());
  const auto out = names_of(options.output_names, "output", results.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    g.add_input(inputs[i], in[i]);
    g.graph.inputs.push_back(described(in[i], inputs[i]));
  }
  for (const nn::Named& n : module.named_parameters()) g.add_weight(n.value, n.name);
  for (const nn::Named& n : module.named_buffers()) g.add_weight(n.value, n.name);
  for (const RecordedOp& op : notes.ops) g.add(op);
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string from = g.value(results[i]);
    g.graph.nodes.push_back({.name = out[i] + ":Identity",
                             .op_type = "Identity",
                             .inputs = {from},
                             .outputs = {out[i]}});
    g.graph.outputs.push_back(described(out[i], results[i]));
  }
  g.finish(out);
  g.graph.name = module.type();
  return std::move(g.graph);
}

// `n` rows of x in turn, from row `first` on.
Tensor rows_of(const Tensor& x, int64_t n, int64_t first) {
  if (x.dim() == 0 || x.size(0) == 0) {
    throw ShapeError(
        "onnx",
        "dimension 0 of each input must be a batch of at least one; got " + to_string(x.sizes()),
        "set .dynamic_batch = false for other inputs");
  }
  std::vector<int64_t> index;
  for (int64_t i = 0; i < n; ++i) index.push_back((first + i) % x.size(0));
  return index_select(x, 0, index_tensor(index)).contiguous();
}
Tensors rows_of(const Tensors& inputs, int64_t n, int64_t first) {
  Tensors list;
  for (const Tensor& x : inputs) list.push_back(rows_of(x, n, first));
  return list;
}

// Other values of the same kind: rows in another order, floats also changed.
Tensors other_inputs(const Tensors& inputs, const ExportOptions& options) {
  Tensors list = options.dynamic_batch ? rows_of(inputs, 4, 1) : inputs;
  for (Tensor& x : list) {
    if (x.dim() > 0) x = flip(x, {0});
    if (x.is_floating()) x = x * 0.75 + 0.125;
  }
  return list;
}

void check(const File& file, const Forward& forward, const Tensors& inputs) {
  const Tensors want = forward(inputs), got = Model(file).run(inputs);
  for (size_t i = 0; i < want.size(); ++i) {
    const Tensor a = want[i].to(DType::f64), b = got[i].to(DType::f64);
    if (a.sizes() != b.sizes()) {
      throw ValueError("onnx", fmt::format("result {} of the exported graph has the sizes {}; need "
                                           "{}",
                                           i, to_string(b.sizes()), to_string(a.sizes())));
    }
    if (a.numel() == 0) continue;
    const bool half = is_half(want[i].dtype());
    const double off = amax(abs(a - b)).item(), scale = std::max(1.0, amax(abs(a)).item());
    if (!(off <= (half ? 3e-2 : 1e-4) * scale)) {
      throw ValueError(
          "onnx",
          fmt::format("the exported graph gives other values for other inputs: result {} is off by "
                      "{:.3g}",
                      i, off),
          "the model computes something past the ops, or draws random numbers");
    }
  }
}

}  // namespace

File export_graph(nn::Module& module, const Forward& forward, const Tensors& examples,
                  const ExportOptions& options) {
  const NoGradGuard no_grad;
  const EvalMode eval(module);
  File file;
  file.ir_version = kIrVersion;
  file.opsets[""] = kOnnxOpset;
  file.producer = "cutaway";
  file.producer_version = CUTAWAY_VERSION;
  file.metadata["cutaway.version"] = CUTAWAY_VERSION;
  if (options.dynamic_batch) {
    Graph two = watched_graph(module, forward, rows_of(examples, 2, 0), options);
    const Graph three = watched_graph(module, forward, rows_of(examples, 3, 0), options);
    file.graph = with_free_batch(std::move(two), three);
  } else {
    file.graph = watched_graph(module, forward, examples, options);
  }
  if (options.check) check(file, forward, other_inputs(examples, options));
  return file;
}

void export_model(nn::Module& module, const Tensors& examples, const std::string& path,
                  const ExportOptions& options) {
  const Forward forward = [&](const Tensors& in) { return Tensors{module(in.at(0))}; };
  if (examples.size() != 1) {
    throw ValueError("onnx",
                     fmt::format("modules of one tensor only; got {} examples", examples.size()),
                     "export_graph() takes a function");
  }
  save_file(path, export_graph(module, forward, examples, options));
}

}  // namespace cutaway::onnx
