#include <tools/bench_gpu.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include <cutaway/core/kernels/matmul.h>
#include <cutaway/cuda/lib/attention.h>
#include <cutaway/cutaway.h>
#include <cutaway/models/zoo/gpt.h>
#include <cutaway/models/zoo/resnet.h>

namespace cutaway::tools {

double median_ms(const GpuPlan& plan, int batch, const std::function<void()>& run) {
  using clock = std::chrono::steady_clock;
  for (int i = 0; i < plan.warm_up; ++i) run();
  std::vector<double> times;
  for (int r = 0; r < plan.rounds; ++r) {
    synchronize(plan.device);
    const auto begin = clock::now();
    for (int i = 0; i < batch; ++i) run();
    synchronize(plan.device);
    const std::chrono::duration<double, std::milli> passed = clock::now() - begin;
    times.push_back(passed.count() / batch);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

namespace {

using Plan = GpuPlan;

double report_bandwidth(const Plan& plan, const std::string& name, double bytes, double copy,
                        const std::function<void()>& run) {
  const double ms = median_ms(plan, 4, run);
  const double rate = bytes / ms / 1e6;
  plan.report({name, ms, rate, "GB/s", copy > 0 ? rate / copy : 0, copy > 0 ? "a copy" : ""});
  return rate;
}

void bench_bandwidth(const Plan& plan) {
  const NoGradGuard no_grad;
  const int64_t rows = plan.size(32768, 8), columns = plan.size(4096, 64);
  const Opts f32{.device = plan.device};
  const Tensor x = randn({rows, columns}, f32), z = randn({rows, columns}, f32);
  const Tensor weight = ones({columns}, f32), bias = zeros({columns}, f32);
  Tensor to = empty({rows, columns}, f32);
  const double bytes = 4.0 * double(rows) * double(columns);
  const double copy = report_bandwidth(plan, "copy", 2 * bytes, 0, [&] {
    backend(plan.device.kind).copy(0, to.raw(), x.raw(), int64_t(bytes));
  });
  report_bandwidth(plan, "add", 3 * bytes, copy, [&] { x + z; });
  report_bandwidth(plan, "gelu", 2 * bytes, copy, [&] { gelu(x); });
  const Tensor half = x.to(DType::bf16);
  report_bandwidth(plan, "gelu bf16", bytes, copy, [&] { gelu(half); });
  report_bandwidth(plan, "softmax", 2 * bytes, copy, [&] { softmax(x, 1); });
  report_bandwidth(plan, "layer_norm", 2 * bytes, copy,
                   [&] { layer_norm(x, {columns}, weight, bias); });
  report_bandwidth(plan, "sum of rows", bytes, copy, [&] { sum(x, 1); });
}

void bench_product(const Plan& plan, DType dtype, int64_t n) {
  const NoGradGuard no_grad;
  const Opts opts{.dtype = dtype, .device = plan.device};
  const Tensor a = randn({n, n}, opts), b = randn({n, n}, opts);
  Tensor c = empty({n, n}, opts);
  MatmulArgs args;
  args.m = args.n = args.k = n;
  args.a_row = args.b_row = args.c_row = n;
  args.a_column = args.b_column = 1;
  args.beta = 0;
  args.a = a.raw();
  args.b = b.raw();
  args.c = c.raw();
  const double flops = 2.0 * double(n) * double(n) * double(n);
  const double bare = median_ms(plan, 2, [&] { kernels::matmul(plan.device, dtype, args); });
  const double ms = median_ms(plan, 2, [&] { matmul(a, b); });
  plan.report({std::string("matmul ") + name_of(dtype) + " " + std::to_string(n), ms,
               flops / ms / 1e9, "TFLOP/s", bare / ms, "the library called directly"});
}

// Our attention; of 16-bit heads also as a share of the library's speed, where it has a plan.
void bench_attention(const Plan& plan, DType dtype, bool gradient) {
  const int64_t heads = plan.size(64, 1), length = plan.size(2048, 32), depth = 64;
  const Opts opts{.dtype = dtype, .device = plan.device};
  Tensor q = randn({1, heads, length, depth}, opts), k = randn({1, heads, length, depth}, opts),
         v = randn({1, heads, length, depth}, opts);
  const Tensor upstream = randn({1, heads, length, depth}, opts);
  const double pairs = double(heads) * double(length) * double(length);
  const double flops = (gradient ? 14.0 : 4.0) * double(depth) * pairs;
  for (Tensor* t : {&q, &k, &v}) t->set_requires_grad(gradient);
  const auto milliseconds = [&](cuda::AttentionBy by) {
    const cuda::AttentionByScope scope(by);
    return median_ms(plan, 1, [&] {
      const Tensor o = scaled_dot_product_attention(q, k, v);
      if (gradient) backward({o}, {upstream});
    });
  };
  const double ms = milliseconds(cuda::AttentionBy::own);
  const int64_t before = cuda::library_attention_passes();
  const double of_library = milliseconds(cuda::AttentionBy::cudnn);
  const int64_t calls = plan.warm_up + plan.rounds;
  const bool all = cuda::library_attention_passes() - before == (gradient ? 2 : 1) * calls;
  plan.report({std::string("attention ") + name_of(dtype) +
                   (gradient ? " forward and backward" : " forward"),
               ms, flops / ms / 1e9, "TFLOP/s", all ? of_library / ms : 0,
               all ? "cuDNN's attention" : ""});
}

// A step of training, in steps a second.
void bench_step(const Plan& plan, const std::string& name, nn::Module& model,
                const std::function<Tensor()>& loss) {
  optim::AdamW adam(model.parameters(), {.lr = 1e-4});
  const double ms = median_ms(plan, 1, [&] {
    loss().backward();
    adam.step_and_zero();
  });
  plan.report({name, ms, 1000 / ms, "steps/s", 0, ""});
}

void bench_gpt(const Plan& plan) {
  zoo::GptOptions o;
  if (plan.small) {
    o = {.vocabulary = 50, .context = 16, .layers = 2, .heads = 2, .width = 16};
  }
  zoo::Gpt gpt(o);
  gpt.to(plan.device);
  gpt.to(DType::bf16);
  const int64_t batch = plan.size(8, 1);
  const Tensor tokens = randint(0, o.vocabulary, {batch, o.context}).to(plan.device);
  const Tensor targets = randint(0, o.vocabulary, {batch, o.context}).to(plan.device);
  bench_step(plan, "GPT-2 small, bf16, 8 x 1024 tokens", gpt,
             [&] { return gpt.loss(tokens, targets); });
}

void bench_resnet(const Plan& plan) {
  zoo::ResNetOptions o = zoo::resnet_options(plan.small ? "resnet20" : "resnet50");
  zoo::ResNet net(o);
  net.to(plan.device);
  const int64_t batch = plan.size(64, 2), side = plan.size(224, 8);
  const Tensor images = randn({batch, o.in_channels, side, side}, {.device = plan.device});
  const Tensor labels = randint(0, o.classes, {batch}).to(plan.device);
  bench_step(plan, "ResNet-50, f32, 64 images of 224", net,
             [&] { return cross_entropy(net(images), labels); });
}

}  // namespace

void run_gpu_bench(Device device, bool small, void (*report)(const GpuRow&)) {
  backend(device.kind);  // raises when it is not there
  const Plan plan{device, small, small ? 1 : 11, small ? 0 : 3, report};
  bench_bandwidth(plan);
  for (int64_t n : {plan.size(4096, 16), plan.size(8192, 24)}) {
    bench_product(plan, DType::f32, n);
    bench_product(plan, DType::bf16, n);
  }
  bench_attention(plan, DType::f32, false);
  bench_attention(plan, DType::bf16, false);
  bench_attention(plan, DType::bf16, true);
  bench_group_shared(plan, DType::bf16);
  bench_group_shared(plan, DType::f32);
  bench_gpt(plan);
  bench_resnet(plan);
}

}  // namespace cutaway::tools
