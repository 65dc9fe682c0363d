#include <tools/bench_traffic.h>

#include <functional>
#include <utility>

#include <cutaway/core/kernels/group_shared.h>
#include <cutaway/core/kernels/rows.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/options.h>
#include <cutaway/cutaway.h>

namespace cutaway::tools {
namespace {

constexpr Device kEmu{DeviceKind::emu, 0};

class Table {
 public:
  void add(std::string name, std::string size, int64_t least, const std::function<void()>& work) {
    TrafficRow row{std::move(name), std::move(size), 0, least, 0, 0};
    const cuda::emu::OptionsScope counting({.check = false, .count = true});
    cuda::emu::take_collected();
    work();
    for (const cuda::emu::Collected& c : cuda::emu::take_collected()) {
      row.bytes += c.counters.bytes_read() + c.counters.bytes_written();
      row.conflicts += c.counters.bank_conflicts();
      ++row.launches;
    }
    rows_.push_back(std::move(row));
  }
  std::vector<TrafficRow> take() { return std::move(rows_); }

 private:
  std::vector<TrafficRow> rows_;
};

void add_elementwise(Table& table) {
  constexpr int64_t kN = 65536;
  const Tensor a = randn({kN}).to(kEmu), b = randn({kN}).to(kEmu), half = a.to(DType::bf16);
  const std::string size = std::to_string(kN);
  table.add("add", size, 3 * 4 * kN, [&] { a + b; });
  table.add("gelu", size, 2 * 4 * kN, [&] { gelu(a); });
  table.add("gelu bf16", size, 2 * 2 * kN, [&] { gelu(half); });
  table.add("to bf16", size, (4 + 2) * kN, [&] { a.to(DType::bf16); });
}

void add_softmax(Table& table) {
  constexpr int64_t kRows = 64, kColumns = 1024, kBytes = 4 * kRows * kColumns;
  const Tensor x = randn({kRows, kColumns}).to(kEmu), g = randn({kRows, kColumns}).to(kEmu);
  const Tensor y = softmax(x, 1);
  Tensor dx = empty({kRows, kColumns}, {.device = kEmu});
  table.add("softmax", "64 x 1024", 2 * kBytes, [&] { softmax(x, 1); });
  SoftmaxArgs args{.in = y.raw(), .grad = g.raw(), .out = dx.raw()};
  args.outer = kRows;
  args.n = kColumns;
  table.add("softmax backward", "64 x 1024", 3 * kBytes,
            [&] { kernels::softmax_backward(kEmu, DType::f32, args); });
}

void add_layer_norm(Table& table, int64_t rows, int64_t columns) {
  const Opts on{.device = kEmu};
  const Tensor x = randn({rows, columns}).to(kEmu), g = randn({rows, columns}).to(kEmu);
  const Tensor w = ones({columns}, on), b = zeros({columns}, on);
  Tensor y = empty({rows, columns}, on), dw = empty({columns}, on), db = empty({columns}, on);
  Tensor mean = empty({rows}, {DType::f64, kEmu}), rstd = empty({rows}, {DType::f64, kEmu});
  RowNormArgs a;
  a.rows = rows;
  a.width = columns;
  a.eps = 1e-5;
  a.in = x.raw();
  a.out = y.raw();
  a.weight = w.raw();
  a.bias = b.raw();
  a.mean = static_cast<double*>(mean.raw());
  a.rstd = static_cast<double*>(rstd.raw());
  const int64_t array = 4 * rows * columns, statistics = 16 * rows, row = 4 * columns;
  const std::string size = std::to_string(rows) + " x " + std::to_string(columns);
  table.add("layer_norm", size, 2 * array + statistics + 2 * row,
            [&] { kernels::row_norm(kEmu, DType::f32, a); });
  a.grad = g.raw();
  a.grad_weight = dw.raw();
  a.grad_bias = db.raw();
  table.add("layer_norm backward", size, 3 * array + statistics + 3 * row,
            [&] { kernels::row_norm_backward(kEmu, DType::f32, a); });
}

void add_optimiser(Table& table) {
  constexpr int64_t kN = 65536;
  const Tensor w = randn({kN}).to(kEmu).set_requires_grad();
  optim::AdamW adam({{"w", w}}, {.lr = 1e-3});
  const auto step = [&] {
    sum(w).backward();
    adam.step();
  };
  step();  // makes the moments
  table.add("AdamW", std::to_string(kN), 7 * 4 * kN, [&] { adam.step(); });
}

// A group-shared layer in bf16, and beside it the kernels that go label by label (group 1). The
// least has x once; groups read it again from the cache.
void add_group_shared(Table& table, int64_t group) {
  constexpr int64_t kBatch = 64, kFeatures = 768, kLabels = 2048, kFanIn = 64;
  const Opts on{.dtype = DType::bf16, .device = kEmu};
  const Tensor x = randn({kFeatures, kBatch}).to(on.device).to(on.dtype);
  const Tensor dz = randn({kLabels, kBatch}).to(on.device).to(on.dtype);
  const Tensor weight = randn({kLabels, kFanIn}).to(on.device).to(on.dtype);
  const Tensor z = empty({kLabels, kBatch}, on), dweight = empty({kLabels, kFanIn}, on);
  const Tensor dx = empty({kFeatures, kBatch}, on);
  const int64_t groups = kLabels / group;
  const Tensor index = randint(0, kFeatures, {groups, kFanIn}).to(DType::i32).to(kEmu);
  GroupSharedShape s{kBatch, kFeatures, kLabels, kFanIn, group, false, on.dtype};
  s.x_row = s.z_row = kBatch;
  s.index = index.data<int32_t>();
  GroupSharedForwardArgs f{s, x.raw(), weight.raw(), nullptr, z.raw()};
  GroupSharedWeightGradArgs w{s, x.raw(), dz.raw(), dweight.raw(), nullptr};
  GroupSharedInputGradArgs i{s, false, true, weight.raw(), dz.raw(), dx.raw()};
  const int64_t least = 2 * kBatch * (kFeatures + kLabels) + 2 * kLabels * kFanIn +
                        4 * groups * kFanIn;  // the same for all three
  const std::string size = "group " + std::to_string(group);
  table.add("group-shared bf16", size, least,
            [&] { kernels::group_shared_forward(kEmu, on.dtype, f); });
  table.add("group-shared bf16 dW", size, least,
            [&] { kernels::group_shared_weight_grad(kEmu, on.dtype, w); });
  table.add("group-shared bf16 dh", size, least,
            [&] { kernels::group_shared_input_grad(kEmu, on.dtype, i); });
}

}  // namespace

std::vector<TrafficRow> measure_traffic() {
  Table table;
  add_elementwise(table);
  add_softmax(table);
  for (const int64_t rows : {264, 1056, 4096, 8192, 16384}) add_layer_norm(table, rows, 512);
  add_optimiser(table);
  for (const int64_t group : {64, 32, 16, 1}) add_group_shared(table, group);
  return table.take();
}

}  // namespace cutaway::tools
