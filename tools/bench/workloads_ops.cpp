// Rows of single ops that move memory. Operands are leaves made once; gradients are dropped before
// each step, so that every step does the same work.
#include <tools/bench/workloads.h>

#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>

namespace cutaway::tools {
namespace {

constexpr double kFloat = 4;

// Mean absolute value, a digest that notices any element.
double digest(const Tensor& t) {
  if (!t.defined()) return 0;
  NoGradGuard no_grad;
  return abs(t.detach().to(DType::f64)).mean().item();
}

Workload add16() {
  return op_case({.operands = {fixed_values("a", {16}), fixed_values("b", {16})},
                  .leaves = 2,
                  .call = [](const Tensors& t) { return add(t[0], t[1]); }},
                 16, 0);
}

Workload tiny() {
  const Tensor x = fixed_values("x", {16});
  return op_case({.operands = {fixed_values("a", {16}), fixed_values("b", {16})},
                  .leaves = 2,
                  .call = [x](const Tensors& t) { return tanh(x * t[1] + t[0]).sum(); },
                  .upstream = scalar_tensor(1.0)},
                 16 * 8, 0);
}

Workload layernorm(bool backward) {
  const int64_t n = 4096, d = 768;
  const double all = double(n * d) * kFloat;
  return op_case(
      {.operands = {fixed_values("x", {n, d}), fixed_values("weight", {d}), fixed_values("b", {d})},
       .leaves = backward ? size_t(3) : 0,
       .call = [d](const Tensors& t) { return layer_norm(t[0], {d}, t[1], t[2]); },
       .upstream = backward ? fixed_values("upstream", {n, d}) : Tensor()},
      0, backward ? 5 * all : 2 * all);
}

Workload softmax_rows(bool backward) {
  const Shape sizes = {4096, 1024};
  const double all = double(sizes.numel()) * kFloat;
  return op_case({.operands = {fixed_values("x", sizes, 4)},
                  .leaves = backward ? size_t(1) : 0,
                  .call = [](const Tensors& t) { return softmax(t[0], -1); },
                  .upstream = backward ? fixed_values("upstream", sizes) : Tensor()},
                 0, backward ? 5 * all : 2 * all);
}

Workload add_large() {
  const Shape sizes = {1 << 24};
  return op_case({.operands = {fixed_values("a", sizes), fixed_values("b", sizes)},
                  .call = [](const Tensors& t) { return add(t[0], t[1]); }},
                 double(sizes.numel()), 3 * double(sizes.numel()) * kFloat);
}

Workload cumsum_rows() {
  const Shape sizes = {4096, 1024};
  return op_case({.operands = {fixed_values("x", sizes)},
                  .call = [](const Tensors& t) { return cumsum(t[0], -1); }},
                 0, 2 * double(sizes.numel()) * kFloat);
}

Workload sort_rows() {
  const Shape sizes = {1024, 1024};
  return op_case({.operands = {fixed_values("x", sizes)},
                  .call = [](const Tensors& t) { return sort(t[0], -1).values; }},
                 0, double(sizes.numel()) * (2 * kFloat + 8));
}

Workload scatter_rows() {
  const int64_t n = 100000, rows = 10000, d = 64;
  const Tensor index = fixed_integers("index", {n, 1}, rows).expand({n, d});
  return op_case({.operands = {fixed_values("x", {rows, d}), fixed_values("source", {n, d})},
                  .call = [index](const Tensors& t) { return scatter_add(t[0], 0, index, t[1]); }},
                 0, double(n * d + 2 * rows * d) * kFloat + double(n) * 8);
}

// Word counts of texts: small ids are frequent, as words are.
Workload embedding_bags() {
  const int64_t bags = 512, length = 100, vocabulary = 20000, d = 64;
  const Tensor ids = fixed_integers("ids", {bags, length}, vocabulary, 3);
  return op_case({.operands = {fixed_values("weight", {vocabulary, d})},
                  .leaves = 1,
                  .call = [ids](const Tensors& t) { return embedding_bag(t[0], ids); },
                  .upstream = fixed_values("upstream", {bags, d})},
                 0,
                 double(2 * bags * length * d + 2 * bags * d + vocabulary * d) * kFloat +
                     double(2 * bags * length) * 8);
}

}  // namespace

Workload op_case(OpCase given, double flops, double bytes) {
  const auto c = std::make_shared<OpCase>(std::move(given));
  for (size_t i = 0; i < c->leaves; ++i) c->operands[i].set_requires_grad(true);
  const auto body = [c](const Tensors&) {
    for (size_t i = 0; i < c->leaves; ++i) c->operands[i].zero_grad();
    Tensor result = c->call(c->operands);
    if (c->upstream.defined()) result.backward(c->upstream);
    return result;
  };
  const auto recording = std::make_shared<RecordedStep>(record(body));
  const auto value = [c] {
    double sum = digest(c->result);
    for (size_t i = 0; i < c->leaves; ++i) sum += digest(c->operands[i].grad());
    return sum;
  };
  return {.flops = flops,
          .bytes = bytes,
          .step = [c, body] { c->result = body({}); },
          .recorded =
              [c, recording] {
                c->result = Tensor();
                c->result = (*recording)({})[0];
              },
          .recording = recording,
          .value = value};
}

std::unique_ptr<Workload> op_workload(const std::string& name) {
  const auto made = [](Workload w) { return std::make_unique<Workload>(std::move(w)); };
  if (name == "add16") return made(add16());
  if (name == "tiny") return made(tiny());
  if (name == "layernorm") return made(layernorm(false));
  if (name == "layernorm-backward") return made(layernorm(true));
  if (name == "softmax") return made(softmax_rows(false));
  if (name == "softmax-backward") return made(softmax_rows(true));
  if (name == "add-large") return made(add_large());
  if (name == "cumsum") return made(cumsum_rows());
  if (name == "sort") return made(sort_rows());
  if (name == "scatter-add") return made(scatter_rows());
  if (name == "embedding-bag") return made(embedding_bags());
  return nullptr;
}

}  // namespace cutaway::tools
