#include <tools/bench/workloads.h>

#include <fmt/format.h>
#include <chrono>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>

namespace cutaway::tools {
namespace {

uint64_t name_hash(const std::string& name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : name) h = (h ^ c) * 0x100000001b3u;
  return h;
}

// Uniform in [0, 1), a multiple of 2^-24.
double unit(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return double(z >> 40) * 0x1p-24;
}

const std::vector<WorkloadInfo>& list() {
  static const std::vector<WorkloadInfo> all = {
      {"add16", "one recorded sum of 16 floats"},
      {"tiny", "tanh(x·b + a).sum() of 16 floats, forward and backward"},
      {"mlp", "784-256-10, batch 64, Adam", true},
      {"mlp1", "64-64-64-10, batch 1, SGD", true},
      {"grok-512", "one-layer transformer, p 113, width 128, 4 heads, MLP 512, batch 512, AdamW",
       true},
      {"grok-3830", "the same, batch 3830", true},
      {"nanogpt", "GPT of 4 layers, width 128, 64 tokens, batch 12, AdamW", true},
      {"gpt-mid", "GPT of 6 layers, width 384, 256 tokens, batch 4, AdamW", true},
      {"resnet20", "ResNet-20 on 32×32, batch 32, SGD", true},
      {"lstm", "two layers of 256, 64 steps, batch 32, Adam", true},
      {"conv3x3-16", "16 → 16 channels, 32×32, batch 32, forward and backward"},
      {"conv3x3-64", "64 → 64 channels, 28×28, batch 16, forward and backward"},
      {"conv3x3-256", "256 → 256 channels, 14×14, batch 8, forward and backward"},
      {"depthwise-32", "3×3, 32 channels, 112×112, batch 4, forward and backward"},
      {"depthwise-128", "3×3, 128 channels, 28×28, batch 16, forward and backward"},
      {"depthwise-512", "3×3, 512 channels, 14×14, batch 16, forward and backward"},
      {"layernorm", "4096×768, forward"},
      {"layernorm-backward", "4096×768, forward and backward"},
      {"softmax", "4096×1024, forward"},
      {"softmax-backward", "4096×1024, forward and backward"},
      {"attention-64", "batch 32, 4 heads of 32, 64 tokens, causal, forward and backward"},
      {"attention-256", "batch 8, 6 heads of 64, 256 tokens, causal, forward and backward"},
      {"attention-1024", "batch 2, 8 heads of 64, 1024 tokens, causal, forward and backward"},
      {"embedding-bag", "mean over bags of 100 of 20000×64, 512 bags, forward and backward"},
      {"matmul-64", "64×64 times 64×64"},
      {"matmul-128", "128×128 times 128×128"},
      {"matmul-256", "256×256 times 256×256"},
      {"matmul-512", "512×512 times 512×512"},
      {"matmul-1024", "1024×1024 times 1024×1024"},
      {"matmul-2048", "2048×2048 times 2048×2048"},
      {"add-large", "the sum of two arrays of 2^24 floats"},
      {"cumsum", "4096×1024 along rows"},
      {"sort", "1024×1024 along rows"},
      {"scatter-add", "100000 rows of 64 into 10000"},
  };
  return all;
}

}  // namespace

const std::vector<WorkloadInfo>& known_workloads() { return list(); }

Workload make_workload(const std::string& name, DType dtype) {
  const WorkloadInfo* info = nullptr;
  std::string names;
  for (const WorkloadInfo& w : known_workloads()) {
    if (w.name == name) info = &w;
    names += " " + w.name;
  }
  if (!info) {
    throw ValueError("bench",
                     fmt::format("there is no workload \"{}\"; known are:{}", name, names));
  }
  if (dtype != DType::f32 && (dtype != DType::bf16 || !info->model)) {
    throw ValueError("bench", fmt::format("{} does not run in {}", name, name_of(dtype)),
                     "training steps run in f32 and bf16, ops in f32");
  }
  std::unique_ptr<Workload> w = op_workload(name);
  if (!w) w = kernel_workload(name);
  if (!w) w = model_workload(name, dtype);
  if (!w) throw ValueError("bench", fmt::format("{} has no program", name));
  w->name = name;
  w->dtype = dtype;
  return *w;
}

double time_steps(const Workload& w, int64_t n) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int64_t i = 0; i < n; ++i) w.step();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / double(n);
}

std::vector<double> step_values(const Workload& w, int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) {
    w.step();
    values.push_back(w.value());
  }
  return values;
}

Tensor fixed_values(const std::string& name, const Shape& sizes, double scale) {
  Tensor t = empty(sizes);
  float* p = t.data<float>();
  const uint64_t seed = name_hash(name);
  for (int64_t i = 0; i < t.numel(); ++i) {
    p[i] = float((2 * unit(seed, uint64_t(i)) - 1) * scale);
  }
  return t;
}

Tensor fixed_integers(const std::string& name, const Shape& sizes, int64_t end, int power) {
  Tensor t = empty(sizes, {.dtype = DType::i64});
  int64_t* p = t.data<int64_t>();
  const uint64_t seed = name_hash(name);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double u = unit(seed, uint64_t(i));
    double v = u;
    for (int k = 1; k < power; ++k) v *= u;
    p[i] = int64_t(v * double(end));
  }
  return t;
}

void fix_parameters(nn::Module& model) {
  NoGradGuard no_grad;
  for (const nn::Named& p : model.named_parameters()) {
    Tensor value = p.value;
    if (value.dim() > 1) {
      const double row = double(value.numel()) / double(value.size(0));
      value.copy_(fixed_values(p.name, value.sizes(), 1 / std::sqrt(row)));
    } else if (p.name.ends_with("weight")) {
      value.fill_(1);
    } else {
      value.copy_(fixed_values(p.name, value.sizes(), 0.05));
    }
  }
}

}  // namespace cutaway::tools
