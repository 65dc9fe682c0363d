// Rows of single ops that compute: products, convolutions, attention.
#include <tools/bench/workloads.h>

#include <cutaway/autograd/ops.h>

namespace cutaway::tools {
namespace {

constexpr double kFloat = 4;

Workload matmul_case(int64_t n) {
  const double m = double(n);
  return op_case({.operands = {fixed_values("a", {n, n}), fixed_values("b", {n, n})},
                  .call = [](const Tensors& t) { return matmul(t[0], t[1]); }},
                 2 * m * m * m, 3 * m * m * kFloat);
}

struct ConvSize {
  int64_t batch, channels, image, groups;
};

// 3×3 with padding 1, as many channels out as in, forward and backward.
Workload conv_case(const ConvSize& c) {
  const Shape x = {c.batch, c.channels, c.image, c.image};
  const Shape weight = {c.channels, c.channels / c.groups, 3, 3};
  const ConvOptions options{.padding = 1, .groups = c.groups};
  const double flops = 2.0 * double(x.numel()) * double(c.channels / c.groups) * 9;
  return op_case({.operands = {fixed_values("x", x), fixed_values("weight", weight, 0.1),
                               fixed_values("b", {c.channels})},
                  .leaves = 3,
                  .call = [options](const Tensors& t) { return conv2d(t[0], t[1], t[2], options); },
                  .upstream = fixed_values("upstream", x)},
                 3 * flops, double(5 * x.numel() + 3 * weight.numel()) * kFloat);
}

struct AttentionSize {
  int64_t batch, heads, length, width;
};

// Causal: half of the scores. Backward needs five products where forward needs two.
Workload attention_case(const AttentionSize& a) {
  const Shape sizes = {a.batch, a.heads, a.length, a.width};
  const double scores = double(a.batch * a.heads * a.length) * double(a.length + 1) / 2;
  return op_case(
      {.operands = {fixed_values("q", sizes), fixed_values("k", sizes), fixed_values("v", sizes)},
       .leaves = 3,
       .call =
           [](const Tensors& t) {
             return scaled_dot_product_attention(t[0], t[1], t[2], {.causal = true});
           },
       .upstream = fixed_values("upstream", sizes)},
      2 * 7 * scores * double(a.width), double(12 * sizes.numel()) * kFloat);
}

}  // namespace

std::unique_ptr<Workload> kernel_workload(const std::string& name) {
  const auto made = [](Workload w) { return std::make_unique<Workload>(std::move(w)); };
  if (name.starts_with("matmul-")) return made(matmul_case(std::stoll(name.substr(7))));
  if (name == "conv3x3-16") return made(conv_case({32, 16, 32, 1}));
  if (name == "conv3x3-64") return made(conv_case({16, 64, 28, 1}));
  if (name == "conv3x3-256") return made(conv_case({8, 256, 14, 1}));
  if (name == "depthwise-32") return made(conv_case({4, 32, 112, 32}));
  if (name == "depthwise-128") return made(conv_case({16, 128, 28, 128}));
  if (name == "depthwise-512") return made(conv_case({16, 512, 14, 512}));
  if (name == "attention-64") return made(attention_case({32, 4, 64, 32}));
  if (name == "attention-256") return made(attention_case({8, 6, 256, 64}));
  if (name == "attention-1024") return made(attention_case({2, 8, 1024, 64}));
  return nullptr;
}

}  // namespace cutaway::tools
