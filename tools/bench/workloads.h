#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cutaway/autograd/record.h>
#include <cutaway/nn/nn.h>

namespace cutaway::tools {

// One thing to measure, with its state: a training step, or an op on fixed operands.
struct Workload {
  std::string name;
  DType dtype = DType::f32;  // bf16: matrix products and convolutions under autocast
  double flops = 0;          // floating-point operations that one step needs
  double bytes = 0;          // bytes that one step has to read and write at least
  std::function<void()> step;
  // The same step as a recording, on the same state.
  std::function<void()> recorded;
  std::shared_ptr<RecordedStep> recording;
  // After a step: the loss, or a digest of all results of an op. Both sides of a comparison must
  // agree about it.
  std::function<double()> value;
};

// A line about each workload. Training steps (`model`) also run in bf16.
struct WorkloadInfo {
  std::string name, about;
  bool model = false;
};
const std::vector<WorkloadInfo>& known_workloads();
// The workload in its initial state; the same values in every run and in the peer script. Raises
// ValueError for an unknown name, or bf16 for what is no training step.
Workload make_workload(const std::string& name, DType dtype = DType::f32);

// Runs n steps; milliseconds of one.
double time_steps(const Workload& workload, int64_t n);
// Runs n steps; the value after each.
std::vector<double> step_values(const Workload& workload, int n);

// Note: values of workloads. Element i of the array `name` is scale · (2u − 1), u the upper 24 bits
// of a SplitMix64 hash of i and the FNV-1a hash of the name. peer_torch.py has the same formula, so
// both sides start from the same bits without a file.
Tensor fixed_values(const std::string& name, const Shape& sizes, double scale = 1);
// ⌊uᵖ · end⌋, i64, for power p: whole numbers in [0, end), small ones more often for larger p.
Tensor fixed_integers(const std::string& name, const Shape& sizes, int64_t end, int power = 1);
// Parameters of a model by their names: weights within ±1/√(elements of a row), vectors called
// "weight" 1, other vectors within ±0.05.
void fix_parameters(nn::Module& model);

// An op on operands, the first `leaves` of which want gradients. With `upstream` a step also runs
// backward from it.
struct OpCase {
  Tensors operands;
  size_t leaves = 0;
  std::function<Tensor(const Tensors&)> call;
  Tensor upstream, result;
};
Workload op_case(OpCase given, double flops, double bytes);

// ---- one function a family; null when the name is none of theirs
std::unique_ptr<Workload> op_workload(const std::string& name);
std::unique_ptr<Workload> kernel_workload(const std::string& name);  // products and convolutions
std::unique_ptr<Workload> model_workload(const std::string& name, DType dtype);

// ---- models whose size can be chosen, for scaling
struct MlpSize {
  int64_t batch = 64, width = 256, depth = 1;  // hidden layers
};
Workload mlp_workload(const MlpSize& size);
struct GptSize {
  int64_t batch = 4, width = 128, depth = 2, length = 64;
};
Workload gpt_workload(const GptSize& size);
struct ResNetSize {
  int64_t batch = 8, width = 16, depth = 1;  // blocks of each of three stages
};
Workload resnet_workload(const ResNetSize& size);

}  // namespace cutaway::tools
