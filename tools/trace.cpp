#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/cuda/emu/options.h>

#include <tools/commands.h>
#include <tools/kernel_view.h>

namespace cutaway::tools {
namespace {

struct TraceArgs {
  std::string kernel, out;
  int sample = -1;
};

// The sample with the most elements, unless one is chosen.
const Sample& chosen_sample(const SampleList& list, const OpRecord& op, int number) {
  if (list.samples.empty()) throw ValueError("trace", fmt::format("{} has no samples", op.name));
  if (number >= int(list.samples.size())) {
    throw ValueError("trace", fmt::format("{} has {} samples; got --sample {}", op.name,
                                          list.samples.size(), number));
  }
  if (number >= 0) return list.samples[size_t(number)];
  const auto elements = [](const Sample& s) {
    int64_t n = 0;
    for (const Tensor& t : s.inputs) n += t.numel();
    return n;
  };
  return *std::max_element(
      list.samples.begin(), list.samples.end(),
      [&](const Sample& a, const Sample& b) { return elements(a) < elements(b); });
}

// Runs one sample of the op on the emulator, f32, forward and backward; what it launched.
std::vector<cuda::emu::Collected> launches_of(const OpRecord& op, int number, std::string& label) {
  SampleList list;
  op.samples(list);
  const Sample& sample = chosen_sample(list, op, number);
  label = sample.label;
  Tensors inputs;
  for (const Tensor& t : sample.inputs) {
    const bool floating = is_floating(t.dtype());
    Tensor x = (floating ? t.to(DType::f32) : t).to(Device{DeviceKind::emu, 0});
    if (floating && op.backward && sample.grad) x.set_requires_grad(true);
    inputs.push_back(x);
  }
  const cuda::emu::OptionsScope counting({.count = true});
  cuda::emu::take_collected();
  const Tensors outputs = sample.call(inputs);
  for (const Tensor& y : outputs) {
    if (y.requires_grad()) backward({y}, {ones_like(y)});
  }
  return cuda::emu::take_collected();
}

int run_trace(const TraceArgs& a) {
  const OpRecord* op = find_op(a.kernel);
  if (!op) {
    throw ValueError("trace", fmt::format("there is no op \"{}\"", a.kernel),
                     "`cutaway ops` lists them");
  }
  std::string label;
  const auto launches = launches_of(*op, a.sample, label);
  fmt::print("{} on the emulator, sample \"{}\": {} launches\n\n", op->name, label,
             launches.size());
  if (launches.empty()) {
    fmt::print(
        "All of its work is done by a library (cuda/lib); there is no kernel to look into.\n");
  }
  for (size_t i = 0; i < launches.size(); ++i) {
    fmt::print("{}. {}\n", i + 1, launch_table(launches[i].counters));
    if (a.out.empty()) continue;
    std::filesystem::create_directories(a.out);
    const std::string path =
        fmt::format("{}/{:02}_{}.svg", a.out, i + 1, launches[i].counters.kernel);
    io::write_file_atomic(path, warp_picture(launches[i]));
    fmt::print("  picture {}\n\n", path);
  }
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, int& status) {
  auto a = std::make_shared<TraceArgs>();
  CLI::App* c = app.add_subcommand(
      "trace", "Run the CUDA kernels of an op on the emulator and show what they do to memory");
  c->footer("Example:\n  cutaway trace --kernel softmax --out pictures");
  c->add_option("--kernel", a->kernel, "The op whose kernels run (`cutaway ops` lists them)")
      ->required();
  c->add_option("--sample", a->sample, "Number of the op's sample to run; the largest by default");
  c->add_option("--out", a->out, "Folder for a picture of each launch (SVG)");
  c->callback([a, &status] { status = run_trace(*a); });
}

}  // namespace cutaway::tools
