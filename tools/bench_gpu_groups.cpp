#include <algorithm>
#include <numeric>
#include <random>

#include <cutaway/core/kernels/group_shared.h>
#include <cutaway/core/kernels/matmul.h>
#include <cutaway/cuda/lib/sparse.h>
#include <cutaway/cutaway.h>

#include <tools/bench_gpu.h>

namespace cutaway::tools {
namespace {

// Milliseconds of the passes of a layer.
struct Passes {
  double forward = 0, weight_grad = 0, input_grad = 0;
  double backward() const { return weight_grad + input_grad; }
};

struct Sizes {
  int64_t batch, features, labels, fan_in, group;
  double flops() const { return 2.0 * double(batch) * double(labels) * double(fan_in); }
};

// `groups` ascending lists of distinct features.
std::vector<int32_t> random_features(int64_t groups, int64_t fan_in, int64_t features) {
  std::mt19937 random(1);
  std::vector<int32_t> all(static_cast<size_t>(features)), out;
  std::iota(all.begin(), all.end(), 0);
  for (int64_t k = 0; k < groups; ++k) {
    for (int64_t j = 0; j < fan_in; ++j) {
      const auto other = j + int64_t(random() % uint64_t(features - j));
      std::swap(all[static_cast<size_t>(j)], all[static_cast<size_t>(other)]);
    }
    std::sort(all.begin(), all.begin() + fan_in);
    out.insert(out.end(), all.begin(), all.begin() + fan_in);
  }
  return out;
}

template <class T>
Tensor on_device(std::vector<T>& values, DType dtype, Device device) {
  const Opts opts{.dtype = dtype, .device = device};
  const Tensor t = empty({int64_t(values.size())}, opts);
  copy_elements(t, from_blob(values.data(), t.sizes(), {.dtype = dtype}).to(device));
  return t;
}

// The layer's operands, transposed as the kernels want them, and its results.
struct Layer {
  Sizes n;
  Tensor x, z, dz, weight, bias, dweight, dbias, dx;

  Layer(const Sizes& sizes, const Opts& opts)
      : n(sizes),
        x(randn({n.features, n.batch}, opts)),
        z(empty({n.labels, n.batch}, opts)),
        dz(randn({n.labels, n.batch}, opts)),
        weight(randn({n.labels, n.fan_in}, opts)),
        bias(zeros({n.labels}, opts)),
        dweight(empty({n.labels, n.fan_in}, opts)),
        dbias(empty({n.labels}, opts)),
        dx(empty({n.features, n.batch}, opts)) {}
};

// Our kernels; with groups of 1 they go label by label.
Passes of_kernels(const GpuPlan& plan, Layer& l, int64_t group, bool atomics) {
  const Sizes& n = l.n;
  auto list = random_features((n.labels + group - 1) / group, n.fan_in, n.features);
  const Tensor index = on_device(list, DType::i32, plan.device);
  GroupSharedShape s{n.batch, n.features, n.labels, n.fan_in, group, false, l.x.dtype()};
  s.x_row = s.z_row = n.batch;
  s.index = index.data<int32_t>();
  GroupSharedForwardArgs f{s, l.x.raw(), l.weight.raw(), l.bias.raw(), l.z.raw()};
  GroupSharedWeightGradArgs w{s, l.x.raw(), l.dz.raw(), l.dweight.raw(), l.dbias.raw()};
  GroupSharedInputGradArgs i{s, false, atomics, l.weight.raw(), l.dz.raw(), l.dx.raw()};
  const Device on = plan.device;
  const DType type = l.x.dtype();
  return {median_ms(plan, 4, [&] { kernels::group_shared_forward(on, type, f); }),
          median_ms(plan, 4, [&] { kernels::group_shared_weight_grad(on, type, w); }),
          median_ms(plan, 4, [&] { kernels::group_shared_input_grad(on, type, i); })};
}

// c [m,n] = a [m,k] · b [k,n], by way of the library; turned operands are stored the other way.
double product_ms(const GpuPlan& plan, const Tensor& c, const Tensor& a, bool turn_a,
                  const Tensor& b, bool turn_b) {
  MatmulArgs x;
  x.m = c.sizes()[0];
  x.n = c.sizes()[1];
  x.k = a.sizes()[turn_a ? 0 : 1];
  x.a_row = turn_a ? 1 : x.k;
  x.a_column = turn_a ? x.m : 1;
  x.b_row = turn_b ? 1 : x.n;
  x.b_column = turn_b ? x.k : 1;
  x.c_row = x.n;
  x.a = a.raw();
  x.b = b.raw();
  x.c = c.raw();
  return median_ms(plan, 4, [&] { kernels::matmul(plan.device, c.dtype(), x); });
}
Passes of_bottleneck(const GpuPlan& plan, Layer& l) {
  const Opts opts{.dtype = l.x.dtype(), .device = plan.device};
  const Tensor h = randn({l.n.fan_in, l.n.batch}, opts), dh = empty({l.n.fan_in, l.n.batch}, opts);
  return {product_ms(plan, l.z, l.weight, false, h, false),
          product_ms(plan, l.dweight, l.dz, false, h, true),
          product_ms(plan, dh, l.weight, true, l.dz, false)};
}

// The expanded matrix in compressed rows.
Passes of_sparse_library(const GpuPlan& plan, Layer& l) {
  const Sizes& n = l.n;
  const auto groups = random_features((n.labels + n.group - 1) / n.group, n.fan_in, n.features);
  std::vector<int64_t> starts, columns;
  for (int64_t i = 0; i <= n.labels; ++i) starts.push_back(i * n.fan_in);
  for (int64_t i = 0; i < n.labels; ++i) {
    const auto begin = groups.begin() + i / n.group * n.fan_in;
    columns.insert(columns.end(), begin, begin + n.fan_in);
  }
  const Tensor rows = on_device(starts, DType::i64, plan.device);
  const Tensor indices = on_device(columns, DType::i64, plan.device);
  const cuda::CsrMatrix matrix{
      n.labels,      n.features, n.labels * n.fan_in, rows.data<int64_t>(), indices.data<int64_t>(),
      l.weight.raw()};
  const cuda::Spmm forward{
      .a = matrix, .n = n.batch, .b = l.x.raw(), .ldb = n.batch, .c = l.z.raw(), .ldc = n.batch};
  cuda::Spmm back = forward;
  back.transpose_a = true;
  back.b = l.dz.raw();
  back.c = l.dx.raw();
  cuda::Sddmm weights{
      .s = matrix, .k = n.batch, .a = l.dz.raw(), .lda = n.batch, .b = l.x.raw(), .ldb = n.batch};
  weights.s.values = l.dweight.raw();
  const cuda::SparseLibrary& library = cuda::sparse_library(plan.device.kind);
  return {median_ms(plan, 1, [&] { library.spmm(forward); }),
          median_ms(plan, 1, [&] { library.sddmm(weights); }),
          median_ms(plan, 1, [&] { library.spmm(back); })};
}

void report_passes(const GpuPlan& plan, const Sizes& n, const std::string& name, const Passes& p) {
  const auto row = [&](const char* pass, double ms) {
    plan.report({name + " " + pass, ms, n.flops() / ms / 1e9, "TFLOP/s", 0, ""});
  };
  row("forward", p.forward);
  row("dW", p.weight_grad);
  row("dh", p.input_grad);
}

}  // namespace

void bench_group_shared(const GpuPlan& plan, DType dtype) {
  const NoGradGuard no_grad;
  const Sizes n{plan.size(128, 16), plan.size(768, 64), plan.size(65536, 64), plan.size(64, 16),
                plan.size(32, 16)};
  Layer layer(n, {.dtype = dtype, .device = plan.device});
  const std::string type = std::string(" ") + name_of(dtype);
  const Passes ours = of_kernels(plan, layer, n.group, true);
  const Passes in_order = of_kernels(plan, layer, n.group, false);
  const Passes labels = of_kernels(plan, layer, 1, true);
  const Passes bottleneck = of_bottleneck(plan, layer);
  report_passes(plan, n, "group-shared" + type, ours);
  plan.report({"group-shared" + type + " dh in order", in_order.input_grad,
               n.flops() / in_order.input_grad / 1e9, "TFLOP/s",
               ours.input_grad / in_order.input_grad, "dh by atomics"});
  report_passes(plan, n, "label by label" + type, labels);
  report_passes(plan, n, "bottleneck" + type, bottleneck);
  if (dtype == DType::f32 && cuda::sparse_library(plan.device.kind).spmm) {
    report_passes(plan, n, "sparse library" + type, of_sparse_library(plan, layer));
  }
  const auto beside = [&](const char* pass, int passes, double ms, double other, const char* of) {
    plan.report({"group-shared" + type + " " + pass, ms, passes * n.flops() / ms / 1e9, "TFLOP/s",
                 other / ms, of});
  };
  // The bars: 2 and 5 times as fast as label by label, at most 1.3 times as long as the products.
  beside("forward", 1, ours.forward, labels.forward, "label by label (bar: 200 %)");
  beside("backward", 2, ours.backward(), labels.backward(), "label by label (bar: 500 %)");
  beside("forward", 1, ours.forward, bottleneck.forward, "the bottleneck (bar: 77 %)");
  beside("backward", 2, ours.backward(), bottleneck.backward(), "the bottleneck (bar: 77 %)");
}

}  // namespace cutaway::tools
