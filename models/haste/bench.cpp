#include <cutaway/models/haste/bench.h>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/group_shared.h>
#include <cutaway/core/kernels/matmul.h>
#include <cutaway/core/linalg/blas.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>
#include <cutaway/models/haste/output_layer.h>
#include <cutaway/models/report/svg.h>

namespace cutaway::haste {
namespace {

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.size() % 2 ? v[v.size() / 2] : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
}

// One thing to time.
struct Contestant {
  std::string kernel, pass;
  int64_t bytes = 0;
  std::function<void()> run;
  std::vector<double> times = {};
};

// Operands of all contestants.
struct Operands {
  const BenchOptions& o;
  Tensor x, u, weight, bias, z, dz, dweight, dx, du;
  Tensor shared, own, blocks;

  explicit Operands(const BenchOptions& options) : o(options) {
    Generator random{.seed = 1};
    const auto normal = [&](const Shape& sizes) { return randn(sizes, {}, &random); };
    x = normal({o.features, o.batch});
    u = normal({o.fan_in, o.batch});
    weight = normal({o.labels, o.fan_in});
    bias = normal({o.labels});
    dz = normal({o.labels, o.batch});
    z = zeros({o.labels, o.batch});
    dweight = zeros({o.labels, o.fan_in});
    dx = zeros({o.features, o.batch});
    du = zeros({o.fan_in, o.batch});
    const int64_t groups = (o.labels + o.group - 1) / o.group;
    const auto indices = [&](const Shape& sizes, int64_t below) {
      return randint(0, below, sizes, {.dtype = DType::i32}, &random);
    };
    shared = indices({groups, o.fan_in}, o.features);
    own = indices({o.labels, o.fan_in}, o.features);
    blocks = indices({groups}, o.features - o.fan_in + 1);
  }

  GroupSharedShape shape(const Tensor& index, int64_t group, bool block) const {
    return {.batch = o.batch,
            .features = o.features,
            .labels = o.labels,
            .fan_in = o.fan_in,
            .group = group,
            .block = block,
            .weight_type = DType::f32,
            .x_row = o.batch,
            .z_row = o.batch,
            .index = index.data<int32_t>()};
  }
};

void add_sparse(std::vector<Contestant>& list, const Operands& t, const char* name,
                const Tensor& index, int64_t group, bool block) {
  const int64_t index_bytes = index.numel() * 4;
  const auto bytes = [&](std::initializer_list<const Tensor*> moved) {
    int64_t n = index_bytes;
    for (const Tensor* m : moved) n += m->numel() * 4;
    return n;
  };
  const GroupSharedShape shape = t.shape(index, group, block);
  list.push_back({name, "forward", bytes({&t.x, &t.weight, &t.bias, &t.z}), [&t, shape] {
                    GroupSharedForwardArgs a{shape};
                    a.x = t.x.raw(), a.weight = t.weight.raw(), a.bias = t.bias.raw();
                    a.z = t.z.raw();
                    kernels::group_shared_forward(kCpu, DType::f32, a);
                  }});
  list.push_back({name, "dh", bytes({&t.dx, &t.weight, &t.dz}), [&t, shape] {
                    GroupSharedInputGradArgs a{shape};
                    a.weight = t.weight.raw(), a.dz = t.dz.raw(), a.dx = t.dx.raw();
                    kernels::group_shared_input_grad(kCpu, DType::f32, a);
                  }});
  list.push_back({name, "dW", bytes({&t.x, &t.dz, &t.dweight}), [&t, shape] {
                    GroupSharedWeightGradArgs a{shape};
                    a.x = t.x.raw(), a.dz = t.dz.raw(), a.dweight = t.dweight.raw();
                    kernels::group_shared_weight_grad(kCpu, DType::f32, a);
                  }});
}

// C = op(A) · op(B) of dense matrices, by the library's own kernel or by BLAS.
struct DenseProduct {
  int64_t m, n, k;
  const Tensor &a, &b, &c;
  bool turn_a, turn_b;

  void own() const {
    MatmulArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a_row = turn_a ? 1 : k, g.a_column = turn_a ? m : 1;
    g.b_row = turn_b ? 1 : n, g.b_column = turn_b ? k : 1;
    g.c_row = n;
    g.a = a.raw(), g.b = b.raw(), g.c = c.raw();
    kernels::matmul(kCpu, DType::f32, g);
  }
  void blas() const {
    blas::gemm(blas::Gemm<float>{.transpose_a = turn_a,
                                 .transpose_b = turn_b,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .a = a.data<float>(),
                                 .lda = turn_a ? m : k,
                                 .b = b.data<float>(),
                                 .ldb = turn_b ? k : n,
                                 .c = c.data<float>(),
                                 .ldc = n});
  }
};

void add_dense(std::vector<Contestant>& list, const Operands& t) {
  const BenchOptions& o = t.o;
  const int64_t bytes = 4 * (o.labels * (o.fan_in + o.batch) + o.fan_in * o.batch);
  const auto add = [&](const char* pass, const DenseProduct& p) {
    list.push_back({"dense (own)", pass, bytes, [p] { p.own(); }});
    list.push_back({"dense (BLAS)", pass, bytes, [p] { p.blas(); }});
  };
  add("forward", {o.labels, o.batch, o.fan_in, t.weight, t.u, t.z, false, false});
  add("dh", {o.fan_in, o.batch, o.labels, t.weight, t.dz, t.du, true, false});
  add("dW", {o.labels, o.fan_in, o.batch, t.dz, t.u, t.dweight, false, true});
}

// Five labels for each sample.
Csr some_labels(const BenchOptions& o) {
  Csr rows;
  rows.cols = o.labels;
  for (int64_t b = 0; b < o.batch; ++b) {
    std::vector<std::pair<int32_t, float>> row;
    for (int64_t i = 0; i < 5; ++i) {
      row.push_back({int32_t((b + i * std::max<int64_t>(1, o.labels / 5)) % o.labels), 1.0f});
    }
    add_row(rows, row);
  }
  return rows;
}

// Whole steps of output layers: forward, loss, gradients and update, chunk by chunk of labels.
void add_steps(std::vector<Contestant>& list, const Operands& t, const Csr& positives) {
  const BenchOptions& o = t.o;
  const auto add = [&](const char* name, OutputKind kind, DType dtype) {
    const auto layer = std::make_shared<OutputLayer>(OutputOptions{.kind = kind,
                                                                   .labels = o.labels,
                                                                   .features = o.features,
                                                                   .group = o.group,
                                                                   .fan_in = o.fan_in,
                                                                   .dtype = dtype,
                                                                   .chunk = o.chunk});
    // Weights are read by forward and dh, read and written by the update; the momentum, too.
    const int64_t bytes = o.labels * o.fan_in * (4 * size_of(dtype) + 8);
    list.push_back({name, "step", bytes, [&t, &positives, layer] {
                      (void)layer->step(t.x, positives, {.lr = 1e-6, .momentum = 0.9});
                    }});
  };
  add("group-shared", OutputKind::haste, DType::f32);
  add("group-shared bf16", OutputKind::haste, DType::bf16);
  add("ffi", OutputKind::ffi, DType::f32);
  add("block", OutputKind::block, DType::f32);
  add("bottleneck", OutputKind::bottleneck, DType::f32);
}

// What the machine does at most, on `threads`: FLOP/s of a product in cache, bytes/s of a copy.
struct Machine {
  double flops = 0, bytes = 0;
};
Machine measure(int threads) {
  set_num_threads(threads);
  const int64_t n = 384;
  const Tensor a = ones({n, n}), b = ones({n, n}), c = zeros({n, n});
  const DenseProduct product{n, n, n, a, b, c, false, false};
  const int64_t size = int64_t(1) << 23;
  const Tensor from = ones({size}), to = zeros({size});
  double fastest = 1e9, copied = 1e9;
  for (int i = 0; i < 9; ++i) {
    fastest = std::min(fastest, seconds([&] { product.own(); }));
    copied = std::min(copied, seconds([&] {
                        parallel_for(size, kGrain, [&](int64_t begin, int64_t end) {
                          std::memcpy(to.data<float>() + begin, from.data<float>() + begin,
                                      size_t(end - begin) * 4);
                        });
                      }));
  }
  return {2.0 * double(n * n * n) / fastest, 8.0 * double(size) / copied};
}

// Rows of one number of threads; backward is the sum of its two passes.
void add_rows(std::vector<BenchRow>& rows, std::vector<Contestant>& list, const BenchOptions& o,
              int threads, const Machine& machine) {
  std::map<std::string, std::map<std::string, BenchRow>> by_pass;
  const double flops = 2.0 * double(o.batch) * double(o.labels) * double(o.fan_in);
  const auto add = [&](const std::string& kernel, const std::string& pass, double time,
                       int64_t bytes, double work) {
    BenchRow r{.kernel = kernel, .pass = pass, .threads = threads, .milliseconds = time * 1e3};
    r.gflops = work / time * 1e-9;
    r.bytes = bytes;
    r.floor = std::max(work / machine.flops, double(bytes) / machine.bytes) / time;
    by_pass[pass][kernel] = r;
  };
  for (const Contestant& c : list) {
    add(c.kernel, c.pass, median(c.times), c.bytes, c.pass == "step" ? 3 * flops : flops);
  }
  for (const auto& [kernel, dh] : std::map(by_pass["dh"])) {
    const BenchRow& dw = by_pass["dW"][kernel];
    add(kernel, "backward", (dh.milliseconds + dw.milliseconds) * 1e-3, dh.bytes + dw.bytes,
        2 * flops);
  }
  for (const char* pass : {"forward", "dh", "dW", "backward"}) {
    auto& kernels = by_pass[pass];
    const double dense =
        std::min(kernels["dense (own)"].milliseconds, kernels["dense (BLAS)"].milliseconds);
    for (const char* name : {"group-shared", "ffi", "block", "dense (own)", "dense (BLAS)"}) {
      BenchRow& r = kernels[name];
      r.over_ffi = kernels["ffi"].milliseconds / r.milliseconds;
      r.over_dense = dense / r.milliseconds;
      rows.push_back(r);
    }
  }
  auto& steps = by_pass["step"];
  if (!o.steps) return;
  for (const char* name : {"group-shared", "group-shared bf16", "ffi", "block", "bottleneck"}) {
    BenchRow& r = steps[name];
    r.over_ffi = steps["ffi"].milliseconds / r.milliseconds;
    r.over_dense = steps["bottleneck"].milliseconds / r.milliseconds;
    rows.push_back(r);
  }
}

// The number of threads as it was, at the end of a scope.
struct ThreadsKept {
  int threads = num_threads();
  ~ThreadsKept() { set_num_threads(threads); }
};

}  // namespace

std::vector<BenchRow> bench_output_kernels(const BenchOptions& o) {
  if (o.labels < 1 || o.fan_in < 1 || o.group < 1 || o.batch < 1 || o.repeats < 1 ||
      o.fan_in > o.features) {
    throw ValueError("xmc bench",
                     fmt::format("sizes must be at least 1 and fan_in at most features; got labels "
                                 "{}, fan_in {}, features {}, group {}, batch {}, repeats {}",
                                 o.labels, o.fan_in, o.features, o.group, o.batch, o.repeats));
  }
  const ThreadsKept kept;
  const Operands operands(o);
  const Csr positives = some_labels(o);
  std::vector<BenchRow> rows;
  for (const int threads : o.threads) {
    const Machine machine = measure(threads);
    std::vector<Contestant> list;
    add_sparse(list, operands, "group-shared", operands.shared, o.group, false);
    add_sparse(list, operands, "ffi", operands.own, 1, false);
    add_sparse(list, operands, "block", operands.blocks, o.group, true);
    add_dense(list, operands);
    if (o.steps) add_steps(list, operands, positives);
    for (int round = -1; round < o.repeats; ++round) {
      for (Contestant& c : list) {
        const double time = seconds(c.run);
        if (round >= 0) c.times.push_back(time);  // the first round warms up
      }
    }
    add_rows(rows, list, o, threads, machine);
  }
  return rows;
}

std::vector<SweepRow> sweep_output_kernels(const BenchOptions& options,
                                           const std::function<void(int done, int all)>& progress) {
  std::vector<BenchOptions> settings;
  for (const int64_t group : {16, 32, 64}) {
    for (const int64_t fan_in : {16, 32, 64, 128, 256}) {
      if (fan_in > options.features) continue;
      settings.push_back(options);
      settings.back().group = group, settings.back().fan_in = fan_in;
      settings.back().steps = false;
    }
  }
  std::vector<SweepRow> rows;
  for (size_t i = 0; i < settings.size(); ++i) {
    if (progress) progress(int(i), int(settings.size()));
    for (const BenchRow& r : bench_output_kernels(settings[i])) {
      rows.push_back({settings[i].group, settings[i].fan_in, r});
    }
  }
  return rows;
}

std::string bench_table(const std::vector<BenchRow>& rows) {
  std::string text =
      fmt::format("{:<9}{:<18}{:>8}{:>10}{:>10}{:>9}{:>8}{:>9}{:>10}\n", "pass", "kernel",
                  "threads", "ms", "GFLOP/s", "MB", "floor", "to FFI", "to dense");
  for (const BenchRow& r : rows) {
    text += fmt::format("{:<9}{:<18}{:>8}{:>10.2f}{:>10.1f}{:>9.1f}{:>7.0f}%{:>8.2f}x{:>9.2f}x\n",
                        r.pass, r.kernel, r.threads, r.milliseconds, r.gflops,
                        double(r.bytes) * 1e-6, 100 * r.floor, r.over_ffi, r.over_dense);
  }
  return text;
}

std::string sweep_csv(const std::vector<SweepRow>& rows) {
  std::string text = "group,fan_in,pass,kernel,threads,ms,gflops,bytes,floor,over_ffi,over_dense\n";
  for (const auto& [group, fan_in, r] : rows) {
    text += fmt::format("{},{},{},{},{},{:.4f},{:.2f},{},{:.4f},{:.3f},{:.3f}\n", group, fan_in,
                        r.pass, r.kernel, r.threads, r.milliseconds, r.gflops, r.bytes, r.floor,
                        r.over_ffi, r.over_dense);
  }
  return text;
}

std::string sweep_json(const std::vector<SweepRow>& rows) {
  std::string text = "[";
  for (const auto& [group, fan_in, r] : rows) {
    text += fmt::format(
        "{}\n  {{\"group\": {}, \"fan_in\": {}, \"pass\": \"{}\", \"kernel\": \"{}\", \"threads\": "
        "{}, \"ms\": {:.4f}, \"gflops\": {:.2f}, \"bytes\": {}, \"floor\": {:.4f}, \"over_ffi\": "
        "{:.3f}, \"over_dense\": {:.3f}}}",
        text.size() > 1 ? "," : "", group, fan_in, r.pass, r.kernel, r.threads, r.milliseconds,
        r.gflops, r.bytes, r.floor, r.over_ffi, r.over_dense);
  }
  return text + "\n]\n";
}

std::string sweep_svg(const std::vector<SweepRow>& rows, const std::string& pass) {
  std::map<std::string, report::Line> lines;
  int threads = 1;
  for (const auto& s : rows) threads = std::max(threads, s.row.threads);
  for (const auto& [group, fan_in, r] : rows) {
    if (r.pass != pass || r.threads != threads) continue;
    const bool shared = r.kernel == "group-shared";
    if (!shared && (group != 32 || r.kernel == "block")) continue;
    report::Line& line = lines[shared ? fmt::format("G = {}", group) : r.kernel];
    line.label = shared ? fmt::format("G = {}", group) : r.kernel;
    line.dashed = !shared;
    line.marked = true;
    line.x.push_back(double(fan_in));
    line.y.push_back(r.gflops);
  }
  std::vector<report::Line> list;
  for (auto& [name, line] : lines) list.push_back(line);
  return report::line_plot(list, {.title = pass + " of group-shared layers",
                                  .x_label = "fan-in F",
                                  .y_label = fmt::format("GFLOP/s, {} threads", threads),
                                  .log_x = true,
                                  .legend = true});
}

}  // namespace cutaway::haste
