// The statements of section 8, one function each.
#include <cutaway/models/haste/statements.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/haste/bench.h>
#include <cutaway/models/haste/pictures.h>
#include <cutaway/models/haste/train.h>

namespace cutaway::haste {
namespace {

using reproduce::at_least;
using reproduce::at_most;
using reproduce::Run;

double largest(const std::vector<double>& v) {
  double most = 0;
  for (double x : v) most = std::max(most, std::fabs(x));
  return most;
}

// max |a − b| / max |b|.
double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  return worst / largest(b);
}

struct LayerCase {
  int64_t batch, features, labels, fan_in, group;
};

// The layer against its expanded matrix D[ℓ, idx[k,j]] += W[ℓ,j] in f64: the worst of z, dh, dW,
// db.
double expansion_error(const LayerCase& c, uint64_t seed) {
  Generator g{.seed = seed, .stream = 31};
  const int64_t K = (c.labels + c.group - 1) / c.group, F = c.fan_in;
  const Tensor index = randint(0, c.features, {K, F}, {.dtype = DType::i32}, &g);  // duplicates too
  Tensor x = randn({c.batch, c.features}, {}, &g), w = randn({c.labels, F}, {}, &g);
  Tensor b = randn({c.labels}, {}, &g);
  const Tensor dz = randn({c.batch, c.labels}, {}, &g);
  for (Tensor* t : {&x, &w, &b}) t->set_requires_grad();
  const Tensor z = group_shared_linear(x, index, w, b, c.group);
  z.backward(dz);
  NoGradGuard off;
  const std::vector<double> values = w.to_vector();
  std::vector<double> dense(size_t(c.labels * c.features), 0);
  for (int64_t l = 0; l < c.labels; ++l) {
    for (int64_t j = 0; j < F; ++j) {
      const int32_t h = index.data<int32_t>()[l / c.group * F + j];
      dense[size_t(l * c.features + h)] += values[size_t(l * F + j)];
    }
  }
  const Opts f64{.dtype = DType::f64};
  const Tensor D = tensor(dense, f64).reshape({c.labels, c.features});
  const Tensor x64 = x.to(DType::f64), dz64 = dz.to(DType::f64);
  const Tensor dD = matmul(dz64.t(), x64).contiguous();
  std::vector<double> dw(values.size());
  for (int64_t l = 0; l < c.labels; ++l) {
    for (int64_t j = 0; j < F; ++j) {
      const int32_t h = index.data<int32_t>()[l / c.group * F + j];
      dw[size_t(l * F + j)] = dD.data<double>()[l * c.features + h];
    }
  }
  const Tensor z64 = matmul(x64, D.t()) + b.to(DType::f64);
  return std::max({relative_error(z.to_vector(), z64.to_vector()),
                   relative_error(x.grad().to_vector(), matmul(dz64, D).to_vector()),
                   relative_error(w.grad().to_vector(), dw),
                   relative_error(b.grad().to_vector(), sum(dz64, {0}).to_vector())});
}

RunOptions small_options() {
  RunOptions o;
  o.samples = 600, o.labels = 200, o.vocabulary = 400, o.hidden = 64, o.fan_in = 16, o.batch = 64,
  o.epochs = 3;
  o.rewire_interval = 3, o.warmup = 4, o.log_every = 1;
  return o;
}

struct Fixed {
  Batch batch;
  Csr labels;
};
Fixed rows_of(const Prepared& p, int64_t n) {
  std::vector<int64_t> rows(size_t(n), 0);
  std::iota(rows.begin(), rows.end(), int64_t(0));
  return {make_batch(p.set.train.features, rows), take_rows(p.train_labels, rows)};
}

// |slope by differences / g·v − 1| over the encoder's tensors, v ∝ g; the loss goes through all.
double model_gradient_error(uint64_t seed) {
  RunOptions o = small_options();
  o.seed = seed, o.dropout = o.head_dropout = 0;
  const Prepared p = prepare(o, open_set(set_of(o)));
  Model model(o, sizes_of(p));
  const Fixed f = rows_of(p, 32);
  const auto loss = [&] {
    model.encoder().zero_grad();
    return model.step(f.batch, f.labels, {.want_loss = true, .keep_gradients = true});
  };
  double worst = 0;
  for (const nn::Named& parameter : model.encoder().named_parameters()) {
    loss();
    Tensor value = parameter.value;
    const Tensor g = value.grad().clone(), before = value.detach().clone();
    const double square = sum(g * g).item(), step = 2e-3 / std::sqrt(square);
    const auto at = [&](double t) {
      {
        NoGradGuard off;
        value.copy_(before + g * t);
      }
      return loss();
    };
    const double slope = (at(step) - at(-step)) / (2 * step);
    at(0);
    worst = std::max(worst, std::fabs(slope / square - 1));
  }
  return worst;
}

// Values of a short training that differ between one and two threads.
double unequal_values(uint64_t seed) {
  RunOptions o = small_options();
  o.seed = seed;
  const int before = num_threads();
  std::vector<double> runs[2];
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    const Prepared p = prepare(o, open_set(set_of(o)));
    Model model(o, sizes_of(p));
    for (int64_t step = 0; step < 4; ++step) {
      const Fixed f = rows_of(p, 200 + step);
      model.step(f.batch, f.labels, {.lr_out = 0.1, .lr_encoder = 1e-3, .step = step});
      model.rewire_tail(step, 0.5);
    }
    for (const nn::Named& t : model.training_state()) {
      const auto v = t.value.to_vector();
      auto& all = runs[threads - 1];
      all.insert(all.end(), v.begin(), v.end());
    }
  }
  set_num_threads(before);
  double unequal = runs[0].size() == runs[1].size() ? 0 : INFINITY;
  for (size_t i = 0; i < runs[0].size() && std::isfinite(unequal); ++i) {
    unequal += runs[0][i] != runs[1][i];
  }
  return unequal;
}

void exactness(Run& run) {
  double worst = 0;
  for (const int64_t group : {16, 32, 64}) {
    for (const int64_t fan_in : {16, 64, 128}) {
      for (const LayerCase& c : {LayerCase{37, 200, 3 * group + 5, fan_in, group},
                                 LayerCase{130, 150, 5 * group - 3, fan_in, group}}) {
        worst = std::max(worst, expansion_error(c, run.seed()));
      }
    }
  }
  const std::vector<uint64_t> seed = {run.seed()};
  run.add(at_most({"1a", "z, dh, dW, db = expanded dense matrix in f64, 18 sizes, relative", worst,
                   1e-5, "", seed}));
  run.add(at_most({"1b", "gradient of the whole model / finite differences − 1",
                   model_gradient_error(run.seed()), 5e-3, "", seed}));
  run.add(at_most({"1c", "values that differ between 1 and 2 threads after 4 steps",
                   unequal_values(run.seed()), 0, "", seed}));
}

// What rewiring must leave alone, counted; see tests/models/haste/rewire_test.cpp for each rule.
struct RewireFaults {
  double count = 0, logits = 0, fan_in = 0;
};
RewireFaults rewire_faults(const RunOptions& o) {
  const Prepared p = prepare(o, open_set(set_of(o)));
  Model model(o, sizes_of(p));
  const Fixed f = rows_of(p, 64);
  for (int64_t step = 0; step < 5; ++step) {
    model.step(f.batch, f.labels, {.lr_out = 0.1, .lr_encoder = 1e-3, .step = step});
  }
  OutputLayer& tail = model.tail();
  const Slots slots{tail.index(), tail.weight(), tail.momentum(), tail.group(),
                    branches_of(o).tail_width};
  const auto scores = slot_scores(slots, SlotScore::mean);
  const auto index = tail.index().clone(), weight = tail.weight().clone();
  const Model::Features x = model.features(f.batch);
  const auto before = model.scores(x, model.head_size(), tail.labels()).to_vector();
  model.rewire_tail(5, 0.5);
  const auto after = model.scores(x, model.head_size(), tail.labels()).to_vector();
  RewireFaults faults;
  const int64_t F = o.fan_in, rows = x.tail.size(1);
  std::set<int64_t> changed;
  for (int64_t i = 0; i < index.numel(); ++i) {
    if (index.data<int32_t>()[i] != tail.index().data<int32_t>()[i]) changed.insert(i);
  }
  const double wanted = std::floor(o.rewire_fraction * double(index.numel()));
  faults.count = std::fabs(double(changed.size()) - wanted);
  float pruned = 0, kept = INFINITY;
  for (size_t i = 0; i < scores.size(); ++i) {
    changed.count(int64_t(i)) ? pruned = std::max(pruned, scores[i])
                              : kept = std::min(kept, scores[i]);
  }
  faults.count += pruned > kept;
  for (int64_t k = 0; k < index.size(0); ++k) {
    const int32_t* row = tail.index().data<int32_t>() + k * F;
    faults.fan_in += double(F - int64_t(std::set<int32_t>(row, row + F).size()));
  }
  std::vector<double> expected = before;
  for (int64_t l = 0; l < tail.labels(); ++l) {
    for (int64_t j = 0; j < F; ++j) {
      const int64_t slot = l / tail.group() * F + j;
      if (!changed.count(slot)) continue;
      const float* h = x.tail.data<float>() + index.data<int32_t>()[slot] * rows;
      for (int64_t b = 0; b < rows; ++b) {
        expected[size_t(l * rows + b)] -= double(weight.data<float>()[l * F + j]) * double(h[b]);
      }
    }
  }
  faults.logits = relative_error(after, expected);
  return faults;
}

void rewiring(Run& run) {
  RunOptions o = small_options();
  o.seed = run.seed();
  const RewireFaults faults = rewire_faults(o);
  const std::vector<uint64_t> seed = {run.seed()};
  run.add(at_most(
      {"2a", "⌊ρKF⌋ slots change, the smallest by score: faults", faults.count, 0, "", seed}));
  run.add(at_most(
      {"2b", "logits after = before − pruned slots, relative", faults.logits, 1e-5, "", seed}));
  run.add(
      at_most({"2c", "fan-in unchanged: duplicates within groups", faults.fan_in, 0, "", seed}));
  o.epochs = 6;  // ⌊0.66 · 6⌋ = 3
  const RunResult r = train(o, prepare(o, open_set(set_of(o))));
  double late = 0, early = 0;
  for (const EpochRow& row : r.rows) (row.epoch > 3 ? late : early) += double(row.rewired);
  run.add(at_most({"2d", "slots changed after 0.66 E (before: some)", early > 0 ? late : INFINITY,
                   0, fmt::format("{} ({} before)", late, early), seed}));
}

int64_t bytes_of(const OutputLayer& layer, const std::string& part) {
  int64_t sum = 0;
  for (const auto& [name, bytes] : layer.memory()) {
    if (part.empty() || name == part) sum += bytes;
  }
  return sum;
}

void memory(Run& run) {
  const int64_t L = 32768, F = 64, G = 32;
  double off = 0;
  for (const bool momentum : {false, true}) {
    const OutputLayer layer({.kind = OutputKind::haste,
                             .labels = L,
                             .features = 256,
                             .group = G,
                             .fan_in = F,
                             .momentum = momentum});
    const int64_t wanted = 4 * (L * F + L + L * F / G) + (momentum ? 4 * (L * F + L) : 0);
    off += std::fabs(double(bytes_of(layer, "") - wanted));
  }
  run.add(at_most({"3a", "tail bytes − 4 (L F + L + L F / G), with and without momentum", off, 0}));
  const OutputLayer shared({.labels = L, .features = 256, .group = G, .fan_in = F});
  const OutputLayer own({.kind = OutputKind::ffi, .labels = L, .features = 256, .fan_in = F});
  const double ratio = double(bytes_of(own, "index")) / double(bytes_of(shared, "index"));
  run.add(at_least({"3b", "index memory of FFI / group-shared, G = 32", ratio, double(G)}));
}

void speed(Run& run) {
  const auto rows = bench_output_kernels(
      {.labels = 32768, .group = 32, .threads = {1}, .steps = false, .repeats = 3});
  const auto find = [&](const std::string& pass) {
    for (const BenchRow& r : rows) {
      if (r.kernel == "group-shared" && r.pass == pass) return r;
    }
    throw ValueError("haste", "the benchmark has no pass " + pass);
  };
  const BenchRow forward = find("forward"), backward = find("backward");
  const auto text = [](double ratio, const BenchRow& r) {
    return fmt::format("{:.2f} ({:.1f} ms, {:.0f} GFLOP/s)", ratio, r.milliseconds, r.gflops);
  };
  const char* note = "H 768, F 64, L 32 768, B 128, G 32, one thread, kernels take turns";
  run.add(at_least({"4a",
                    "forward: times faster than FFI",
                    forward.over_ffi,
                    1.2,
                    text(forward.over_ffi, forward),
                    {},
                    note}));
  run.add(at_least({"4b",
                    "dh and dW: times faster than FFI",
                    backward.over_ffi,
                    2,
                    text(backward.over_ffi, backward),
                    {},
                    note}));
  const double slower = std::max(1 / forward.over_dense, 1 / backward.over_dense);
  run.add(at_most({"4c",
                   "time / that of the same-FLOPs dense product",
                   slower,
                   1.3,
                   fmt::format("{:.2f} (forward {:.2f}, backward {:.2f})", slower,
                               1 / forward.over_dense, 1 / backward.over_dense),
                   {},
                   note}));
  run.skip("4d", "GPU: ≥ 2 × forward, ≥ 5 × backward of FFI", "needs a GPU: tools/gpu_check.sh");
  run.remark("Kernels:\n" + bench_table(rows));
}

void cohesion_statements(Run& run) {
  XmcSet set;
  try {
    set = open_set({.name = "debian-deps"});
  } catch (const IoError&) {
    set = open_set({.name = "debian-sample"});
  }
  const auto make = [&](Grouping method) {
    return order_labels(set.train, {.method = method, .group = 16, .seed = run.seed()});
  };
  const auto grouped_cosine = [&](const LabelOrder& order) {
    const std::vector<int32_t> tail(order.label.begin() + order.head,
                                    order.label.begin() + order.seen);
    const auto e = label_embeddings(set.train, tail, 128, run.seed());
    std::vector<int32_t> places(tail.size());
    std::iota(places.begin(), places.end(), 0);
    return cohesion(e, 128, places, order.group).mean;
  };
  const std::vector<uint64_t> seed = {run.seed()};
  const LabelOrder order = make(Grouping::semantic);
  const double near = grouped_cosine(order), far = grouped_cosine(make(Grouping::random));
  run.add(
      at_least({"6a", set.name + ": cosine to the centroid, semantic − random groups", near - far,
                0.15, fmt::format("{:.3f} ({:.3f}, {:.3f})", near - far, near, far), seed}));
  std::vector<int32_t> sorted = order.label;
  std::sort(sorted.begin(), sorted.end());
  double faults = 0;
  for (size_t i = 0; i < sorted.size(); ++i) faults += sorted[i] != int32_t(i);
  run.add(at_most({"6b", "every label exactly once; all groups but the last have G", faults, 0,
                   fmt::format("{} ({} labels, {} groups)", faults, sorted.size(), order.groups()),
                   seed}));
}

void run_all(Run& run) {
  exactness(run);
  rewiring(run);
  memory(run);
  run.progress("timing the kernels");
  speed(run);
  quality_statements(run);
  cohesion_statements(run);
  number_statements(run);
}

}  // namespace

const reproduce::Study kStudy = {"haste", "Group-shared fixed fan-in for very many labels",
                                 "about 15 min on 2 cores", run_all};

}  // namespace cutaway::haste
