#include <tools/bench_kernels.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/rng.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/options.h>
#include <cutaway/cuda/ladder.h>

namespace cutaway::tools {
namespace {

// A problem for a ladder: the operands on one device, and a way to fill in the arguments.
template <class Args>
struct Problem {
  Tensors operands;
  Tensor result;
  Args args;
};

template <class Args>
using MakeProblem = std::function<Problem<Args>(Device)>;

Tensor numbers(const Shape& sizes, Device device, uint64_t seed) {
  Generator g{.seed = seed};
  return randn(sizes, {}, &g).to(device);
}

Problem<SoftmaxArgs> softmax_problem(Device device, int64_t rows, int64_t columns) {
  Problem<SoftmaxArgs> p;
  p.operands = {numbers({rows, columns}, device, 1)};
  p.result = empty({rows, columns}, {.device = device});
  p.args.in = p.operands[0].raw();
  p.args.out = p.result.raw();
  p.args.outer = rows;
  p.args.n = columns;
  return p;
}

Problem<RowNormArgs> norm_problem(Device device, int64_t rows, int64_t columns) {
  Problem<RowNormArgs> p;
  p.operands = {numbers({rows, columns}, device, 1), numbers({columns}, device, 2),
                numbers({columns}, device, 3),
                empty({rows}, {.dtype = DType::f64, .device = device}),
                empty({rows}, {.dtype = DType::f64, .device = device})};
  p.result = empty({rows, columns}, {.device = device});
  p.args.in = p.operands[0].raw();
  p.args.weight = p.operands[1].raw();
  p.args.bias = p.operands[2].raw();
  p.args.mean = static_cast<double*>(p.operands[3].raw());
  p.args.rstd = static_cast<double*>(p.operands[4].raw());
  p.args.out = p.result.raw();
  p.args.rows = rows;
  p.args.width = columns;
  p.args.eps = 1e-5;
  return p;
}

Problem<MatmulArgs> gemm_problem(Device device, int64_t n) {
  Problem<MatmulArgs> p;
  p.operands = {numbers({n, n}, device, 1), numbers({n, n}, device, 2)};
  p.result = empty({n, n}, {.device = device});
  p.args.m = p.args.n = p.args.k = n;
  p.args.a_row = p.args.b_row = p.args.c_row = n;
  p.args.a_column = p.args.b_column = 1;
  p.args.beta = 0;
  p.args.a = p.operands[0].raw();
  p.args.b = p.operands[1].raw();
  p.args.c = p.result.raw();
  return p;
}

Problem<AttentionArgs> attention_problem(Device device, int64_t heads, int64_t length) {
  constexpr int64_t kDepth = 64;
  Problem<AttentionArgs> p;
  for (uint64_t seed : {1, 2, 3}) {
    p.operands.push_back(numbers({heads, length, kDepth}, device, seed));
  }
  p.operands.push_back(empty({heads, length}, {.device = device}));
  p.result = empty({heads, length, kDepth}, {.device = device});
  AttentionArgs& a = p.args;
  a.rank = 1;
  a.batch = a.sizes[0] = heads;
  for (auto& strides : a.strides) strides[0] = length * kDepth;
  a.queries = a.keys = length;
  a.depth = a.width = kDepth;
  a.q_row = a.k_row = a.v_row = kDepth;
  a.scale = 1 / std::sqrt(double(kDepth));
  a.causal = true;
  a.q = p.operands[0].raw();
  a.k = p.operands[1].raw();
  a.v = p.operands[2].raw();
  a.lse = p.operands[3].raw();
  a.o = p.result.raw();
  return p;
}

Problem<ReduceRowsArgs> scatter_problem(Device device, int64_t rows, int64_t targets,
                                        int64_t columns) {
  Generator g{.seed = 1};
  Problem<ReduceRowsArgs> p;
  p.operands = {randint(0, targets, {rows}, {.dtype = DType::i64}, &g).to(device),
                numbers({rows, columns}, device, 2)};
  p.result = zeros({targets, columns}).to(device);
  p.args.index = static_cast<const int64_t*>(p.operands[0].raw());
  p.args.in = p.operands[1].raw();
  p.args.out = p.result.raw();
  p.args.outer = 1;
  p.args.n = targets;
  p.args.count = rows;
  p.args.inner = columns;
  p.args.mode = ScatterMode::sum;
  return p;
}

double largest_difference(const Tensor& got, const Tensor& want) {
  const double scale = amax(abs(want)).item<double>();
  return amax(abs(got - want)).item<double>() / (scale > 0 ? scale : 1);
}

double median_milliseconds(Device device, const std::function<void()>& run) {
  using clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < 25; ++i) {
    synchronize(device);
    const auto begin = clock::now();
    run();
    synchronize(device);
    times.push_back(std::chrono::duration<double, std::milli>(clock::now() - begin).count());
  }
  // The first few runs warm up.
  std::sort(times.begin() + 5, times.end());
  return times[5 + (times.size() - 5) / 2];
}

struct Size {
  int64_t least_bytes = 0;
  double flops = 0;
};

template <class Args>
void run_ladder(const char* name, const cuda::Ladder<Args>& ladder, Kernel<Args>& reference,
                Device device, bool timed, const MakeProblem<Args>& make, Size size,
                std::vector<LadderResult>& results) {
  const Problem<Args> cpu = make(kCpu);
  reference(kCpu, DType::f32, cpu.args);
  for (const cuda::LadderStep<Args>& step : ladder) {
    LadderResult r;
    r.ladder = name;
    r.step = step.name;
    r.idea = step.idea;
    r.least_bytes = size.least_bytes;
    r.flops = size.flops;
    {
      const Problem<Args> p = make(device);
      const cuda::emu::OptionsScope counting({.check = true, .count = true});
      cuda::emu::take_collected();
      step.run(p.args);
      synchronize(device);
      int64_t launches = 0;
      for (const auto& c : cuda::emu::take_collected()) {
        r.bytes += c.counters.bytes_read() + c.counters.bytes_written();
        r.conflicts += c.counters.bank_conflicts();
        r.lane_use += c.counters.lane_use();
        ++launches;
      }
      if (launches > 0) r.lane_use /= double(launches);
      r.error = largest_difference(p.result.to(kCpu), cpu.result);
    }
    if (timed) {
      const Problem<Args> p = make(device);
      r.milliseconds = median_milliseconds(device, [&] { step.run(p.args); });
    }
    results.push_back(std::move(r));
  }
}

}  // namespace

std::vector<LadderResult> run_ladders(DeviceKind kind, const std::string& filter, bool small) {
  const Device device{kind, 0};
  backend(kind);  // raises when it is not there
  const bool gpu = kind == DeviceKind::cuda && !small;
  const cuda::Ladders& ladders = cuda::ladders(kind);
  // The emulator is for reading and checking: its problems are small.
  const int64_t rows = gpu ? 16384 : 24, columns = gpu ? 4096 : 1024, n = gpu ? 4096 : 64;
  const int64_t heads = gpu ? 64 : 1, length = gpu ? 2048 : 96;
  const int64_t targets = gpu ? 10000 : 40, entries = gpu ? 1000000 : 300, width = gpu ? 128 : 64;
  std::vector<LadderResult> results;
  const auto wanted = [&](const char* name) {
    return std::string(name).find(filter) != std::string::npos;
  };
  if (wanted("softmax")) {
    run_ladder<SoftmaxArgs>(
        "softmax", ladders.softmax, kernels::softmax, device, gpu,
        [&](Device d) { return softmax_problem(d, rows, columns); }, {8 * rows * columns, 0},
        results);
  }
  if (wanted("layer_norm")) {
    run_ladder<RowNormArgs>(
        "layer_norm", ladders.layer_norm, kernels::row_norm, device, gpu,
        [&](Device d) { return norm_problem(d, rows, columns); },
        {8 * rows * columns + 8 * columns + 16 * rows, 0}, results);
  }
  if (wanted("gemm")) {
    run_ladder<MatmulArgs>(
        "gemm", ladders.gemm, kernels::matmul, device, gpu,
        [&](Device d) { return gemm_problem(d, n); }, {12 * n * n, 2.0 * double(n) * n * n},
        results);
  }
  if (wanted("attention")) {
    const double pairs = double(heads) * double(length) * double(length + 1) / 2;
    run_ladder<AttentionArgs>(
        "attention", ladders.attention, kernels::attention, device, gpu,
        [&](Device d) { return attention_problem(d, heads, length); },
        {16 * heads * length * 64 + 4 * heads * length, 4.0 * 64 * pairs}, results);
  }
  if (wanted("scatter")) {
    run_ladder<ReduceRowsArgs>(
        "scatter", ladders.scatter, kernels::reduce_rows, device, gpu,
        [&](Device d) { return scatter_problem(d, entries, targets, width); },
        {8 * entries + 4 * entries * width + 8 * targets * width, 0}, results);
  }
  if (results.empty()) {
    throw ValueError("bench", "there is no kernel ladder \"" + filter + "\"",
                     "softmax, layer_norm, gemm, attention, scatter");
  }
  return results;
}

}  // namespace cutaway::tools
