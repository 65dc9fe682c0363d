// What one op costs beside its arithmetic: a pooled tensor, the call path, and a node when
// recording. Budget (architecture of the engine): recorded add of 16 floats ≤ 150 ns, unrecorded ≤
// 60 ns.
#include <benchmark/benchmark.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

void add_unrecorded(benchmark::State& state) {
  set_num_threads(1);
  const Tensor a = ones({16}), b = ones({16});
  for (auto _ : state) benchmark::DoNotOptimize(add(a, b));
}
BENCHMARK(add_unrecorded);

void add_recorded(benchmark::State& state) {
  set_num_threads(1);
  const Tensor a = ones({16}, {.requires_grad = true}), b = ones({16}, {.requires_grad = true});
  for (auto _ : state) benchmark::DoNotOptimize(add(a, b));
}
BENCHMARK(add_recorded);

void mul_recorded(benchmark::State& state) {
  set_num_threads(1);
  const Tensor a = ones({16}, {.requires_grad = true}), b = ones({16}, {.requires_grad = true});
  for (auto _ : state) benchmark::DoNotOptimize(mul(a, b));
}
BENCHMARK(mul_recorded);

void sum_unrecorded(benchmark::State& state) {
  set_num_threads(1);
  const Tensor a = ones({16});
  for (auto _ : state) benchmark::DoNotOptimize(sum(a));
}
BENCHMARK(sum_unrecorded);

void sum_recorded(benchmark::State& state) {
  set_num_threads(1);
  const Tensor a = ones({16}, {.requires_grad = true});
  for (auto _ : state) benchmark::DoNotOptimize(sum(a));
}
BENCHMARK(sum_recorded);

void softmax_unrecorded(benchmark::State& state) {
  set_num_threads(1);
  const Tensor a = ones({16});
  for (auto _ : state) benchmark::DoNotOptimize(softmax(a, 0));
}
BENCHMARK(softmax_unrecorded);

void softmax_recorded(benchmark::State& state) {
  set_num_threads(1);
  const Tensor a = ones({16}, {.requires_grad = true});
  for (auto _ : state) benchmark::DoNotOptimize(softmax(a, 0));
}
BENCHMARK(softmax_recorded);

// tanh((x·b) + a).sum(), forward and backward on 16 floats.
void tiny_step(benchmark::State& state) {
  set_num_threads(1);
  const Tensor x = ones({16}), b = ones({16}, {.requires_grad = true});
  const Tensor a = ones({16}, {.requires_grad = true});
  for (auto _ : state) {
    tanh(x * b + a).sum().backward();
    Tensor(a).zero_grad();
    Tensor(b).zero_grad();
  }
}
BENCHMARK(tiny_step);

void allocate_64_bytes(benchmark::State& state) {
  for (auto _ : state) {
    void* p = pool_allocate(64);
    benchmark::DoNotOptimize(p);
    pool_free(p, 64);
  }
}
BENCHMARK(allocate_64_bytes);

void tensor_empty(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(empty({16}));
}
BENCHMARK(tensor_empty);

}  // namespace
}  // namespace cutaway
