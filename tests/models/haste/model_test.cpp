// The whole model: gradients against finite differences, threads, learning, resume.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/haste/checkpoint.h>
#include <cutaway/models/haste/train.h>

namespace cutaway::haste {
namespace {
namespace fs = std::filesystem;

RunOptions small() {
  RunOptions o;
  o.hidden = 64, o.fan_in = 16, o.group = 16, o.batch = 32, o.epochs = 3, o.warmup = 4;
  o.rewire_interval = 7, o.log_every = 1, o.words = 8, o.blocks = 1;
  return o;
}

const Prepared& small_data(const RunOptions& o) {
  static std::map<std::string, Prepared> made;
  const std::string key = fmt::format("{} {} {}", o.layer, o.head_ratio, o.seed);
  const auto found = made.find(key);
  if (found != made.end()) return found->second;
  XmcSet set = make_synth({.train = 400, .test = 100, .labels = 160, .words = 300});
  return made.emplace(key, prepare(o, std::move(set))).first->second;
}

struct Fixed {
  Batch batch;
  Csr labels;
};
Fixed first_rows(const Prepared& p, int64_t n) {
  std::vector<int64_t> rows(size_t(n), 0);
  std::iota(rows.begin(), rows.end(), int64_t(0));
  return {make_batch(p.set.train.features, rows), take_rows(p.train_labels, rows)};
}

// g · v of the encoder's parameters, and the same by differences of the loss.
void check_encoder(const RunOptions& o) {
  const Prepared& p = small_data(o);
  Model model(o, sizes_of(p));
  const Fixed f = first_rows(p, 16);
  const StepOptions still{.want_loss = true, .keep_gradients = true};
  const auto loss = [&] {
    model.encoder().zero_grad();
    return model.step(f.batch, f.labels, still);
  };
  loss();
  Generator random{.seed = 3};
  for (const nn::Named& parameter : model.encoder().named_parameters()) {
    Tensor value = parameter.value;
    const Tensor v = randn(value.sizes(), {}, &random);
    loss();
    ASSERT_TRUE(value.grad().defined()) << parameter.name;
    const double slope = sum(value.grad() * v).item();
    NoGradGuard off;
    const double size = std::sqrt(sum(v * v).item());
    const double step = 0.004 / size;
    const Tensor before = value.clone();
    GradModeGuard on(true);
    const auto at = [&](double t) {
      {
        NoGradGuard inner;
        value.copy_(before + v * t);
      }
      return loss();
    };
    const double up = at(step), down = at(-step);
    at(0);
    EXPECT_NEAR((up - down) / (2 * step), slope, 4e-3 * std::fabs(slope) + 0.02 * size)
        << o.layer << " " << o.encoder << " " << parameter.name;
  }
}

TEST(HasteModel, encoder_gradient_against_differences) {
  for (const char* layer : {"haste", "ffi", "dense", "block", "bottleneck"}) {
    RunOptions o = small();
    o.layer = layer, o.dropout = o.head_dropout = 0, o.weight_decay = 0;
    check_encoder(o);
  }
  for (const char* features : {"shared", "proj"}) {
    RunOptions o = small();
    o.features = features, o.dropout = o.head_dropout = 0;
    check_encoder(o);
  }
  RunOptions o = small();
  o.encoder = "transformer", o.dropout = o.head_dropout = 0;
  check_encoder(o);
}

// In-place SGD moves weights by −lr · gradient: the loss must fall by lr · |g|² to first order.
TEST(HasteModel, output_gradient_against_differences) {
  for (const char* layer : {"haste", "ffi", "dense", "block", "bottleneck"}) {
    RunOptions o = small();
    o.layer = layer, o.dropout = o.head_dropout = 0, o.momentum = 0, o.weight_decay = 0;
    const Prepared& p = small_data(o);
    Model model(o, sizes_of(p));
    const Fixed f = first_rows(p, 16);
    nn::NamedTensors before;
    for (const nn::Named& t : model.tensors()) before.push_back({t.name, t.value.clone()});
    constexpr double kRate = 1e-4;
    const double at_0 =
        model.step(f.batch, f.labels, {.lr_out = kRate, .want_loss = true, .keep_gradients = true});
    double square = 0;
    const nn::NamedTensors after = model.tensors();
    for (size_t i = 0; i < after.size(); ++i) {
      if (before[i].value.dtype() != DType::f32) continue;
      const auto a = before[i].value.to_vector(), b = after[i].value.to_vector();
      for (size_t k = 0; k < a.size(); ++k) square += (a[k] - b[k]) * (a[k] - b[k]);
    }
    const double at_1 = model.step(f.batch, f.labels, {.want_loss = true, .keep_gradients = true});
    EXPECT_NEAR((at_0 - at_1) / (square / kRate), 1, 0.05) << layer;
  }
}

std::vector<double> values_of(Model& model) {
  std::vector<double> all;
  for (const nn::Named& t : model.training_state()) {
    const auto v = t.value.to_vector();
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}

TEST(HasteModel, threads_do_not_matter) {
  const RunOptions o = small();
  const Prepared& p = small_data(o);
  const int before = num_threads();
  std::vector<double> one, two;
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    Model model(o, sizes_of(p));
    for (int64_t step = 0; step < 5; ++step) {
      const Fixed f = first_rows(p, 64 + step);
      model.step(f.batch, f.labels, {.lr_out = 0.05, .lr_encoder = 1e-3, .step = step});
      model.rewire_tail(step, 0.5);
    }
    (threads == 1 ? one : two) = values_of(model);
  }
  set_num_threads(before);
  EXPECT_EQ(one, two);
}

#ifndef __SANITIZE_ADDRESS__  // there every block comes from the system
// A whole step, encoder and optimisers included.
TEST(HasteModel, a_steady_step_asks_nothing_of_the_system) {
  const RunOptions o = small();
  const Prepared& p = small_data(o);
  Model model(o, sizes_of(p));
  const Fixed f = first_rows(p, 32);
  int64_t step = 0;
  const auto run = [&] {
    (void)model.step(f.batch, f.labels, {.lr_out = 0.01, .lr_encoder = 1e-3, .step = step++});
  };
  for (int i = 0; i < 3; ++i) run();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 5; ++i) run();
  EXPECT_EQ(memory_stats().live, before.live);
  EXPECT_EQ(memory_stats().from_system, before.from_system);
}
#endif

TEST(HasteModel, the_best_epoch_is_that_of_the_chosen_measure) {
  for (const char* name : {"P@1", "P@3", "PSP@5"}) {
    RunOptions o = small();
    o.epochs = 6, o.best_by = name;
    const RunResult r = train(o, small_data(o));
    const auto value = [&](const std::vector<double>& p, const std::vector<double>& psp) {
      return name[1] == 'S' ? psp[4] : p[size_t(name[2] - '1')];
    };
    double most = -1;
    for (const EpochRow& row : r.rows) most = std::max(most, value(row.p, row.psp));
    EXPECT_EQ(value(r.best.precision, r.best.psp), most) << name;
    EXPECT_EQ(value(r.rows[size_t(r.best_epoch - 1)].p, r.rows[size_t(r.best_epoch - 1)].psp), most)
        << name;
  }
}

TEST(HasteModel, learns_a_small_set) {
  for (const char* layer : {"haste", "ffi", "dense", "block", "bottleneck"}) {
    RunOptions o = small();
    o.layer = layer, o.epochs = 8, o.hidden = 128;
    const RunResult r = train(o, small_data(o));
    EXPECT_TRUE(r.finished);
    EXPECT_GT(r.best.precision[0], 0.4) << layer;
    EXPECT_LT(r.rows.back().loss, 0.8 * r.rows.front().loss) << layer;
    const bool rewires = o.layer == "haste" || o.layer == "ffi";
    EXPECT_EQ(r.rows.front().rewired > 0, rewires) << layer;
    EXPECT_EQ(r.rows.back().rewired, 0) << "frozen after 0.66 E";
  }
}

TEST(HasteModel, auxiliary_loss_thresholds_and_transformer_run) {
  RunOptions o = small();
  o.layer = "ffi", o.aux_weight = 0.3, o.rewire_mode = "threshold", o.features = "proj";
  EXPECT_TRUE(train(o, small_data(o)).finished);
  o = small();
  o.encoder = "transformer", o.dtype = "bf16", o.rewire_score = "grad", o.rewire_init = "uniform";
  EXPECT_TRUE(train(o, small_data(o)).finished);
  o = small();
  o.head_ratio = 0, o.loss = "hinge", o.bias_init = "zero";
  EXPECT_TRUE(train(o, small_data(o)).finished);
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

TEST(HasteModel, a_stopped_run_ends_with_the_same_bytes) {
  const std::string folder =
      (fs::temp_directory_path() / fmt::format("cutaway_haste_{}", ::getpid())).string();
  fs::remove_all(folder);
  const RunOptions o = small();
  const Prepared& p = small_data(o);
  EXPECT_TRUE(train(o, p, {.folder = folder + "/whole"}).finished);
  for (const int64_t steps : {5, 1, 16, 9}) {  // within epochs, across one, across a rewiring
    EXPECT_FALSE(train(o, p, {.stop_after = steps, .folder = folder + "/parts"}).finished);
  }
  EXPECT_TRUE(train(o, p, {.folder = folder + "/parts"}).finished);
  for (const char* name : {"/last.safetensors", "/best.safetensors"}) {
    EXPECT_EQ(bytes_of(folder + "/whole" + name), bytes_of(folder + "/parts" + name)) << name;
  }
  // A run with another order of labels does not take it.
  Prepared other = p;
  std::swap(other.order.label[20], other.order.label[21]);
  EXPECT_THROW(train(o, other, {.folder = folder + "/parts"}), ValueError);
  RunOptions batch = o;
  batch.batch = 48;
  EXPECT_FALSE(train(o, p, {.stop_after = 3, .folder = folder + "/other"}).finished);
  EXPECT_THROW(train(batch, p, {.folder = folder + "/other"}), ValueError);
  fs::remove_all(folder);
}

TEST(HasteModel, schedules) {
  RunOptions o = small();
  o.warmup = 10;
  EXPECT_NEAR(rate_factor(o, 100, 0), 1.0 / 11, 1e-12);
  EXPECT_NEAR(rate_factor(o, 100, 10), 1, 1e-12);
  EXPECT_NEAR(rate_factor(o, 100, 55), 0.5, 1e-12);
  EXPECT_NEAR(rate_factor(o, 100, 100), 0, 1e-12);
  EXPECT_NEAR(aux_factor(100, 0), 1, 1e-12);
  EXPECT_NEAR(aux_factor(100, 20), 0.5, 1e-12);
  EXPECT_EQ(aux_factor(100, 40), 0);
}

TEST(HasteModel, sizes_of_head_and_branches) {
  RunOptions o;
  const Branches split = branches_of(o);
  EXPECT_EQ(split.tail_width, 128);
  EXPECT_EQ(split.head_begin, 128);
  o.features = "shared";
  EXPECT_EQ(branches_of(o).tail_width, 256);
  o.features = "split", o.layer = "dense";
  EXPECT_EQ(branches_of(o).tail_width, 256);
  EXPECT_EQ(grouping_of(o).head_ratio, 0);
}

TEST(HasteModel, options_that_do_not_fit) {
  const auto refused = [](auto change) {
    RunOptions o;
    change(o);
    try {
      check_options(o);
    } catch (const ValueError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refused([](RunOptions& o) { o.fan_in = 20; }).find("take 32"), std::string::npos);
  EXPECT_NE(refused([](RunOptions& o) { o.fan_in = 160; }).find("--hidden"), std::string::npos);
  EXPECT_NE(refused([](RunOptions& o) { o.head_ratio = 1; }).find("[0, 1)"), std::string::npos);
  EXPECT_NE(refused([](RunOptions& o) { o.group = 0; }).find("--group"), std::string::npos);
  EXPECT_NE(refused([](RunOptions& o) { o.rewire_score = "grad", o.momentum = 0; }).find("0.9"),
            std::string::npos);
  EXPECT_NE(refused([](RunOptions& o) { o.layer = "thick"; }).find("one of"), std::string::npos);
  EXPECT_EQ(refused([](RunOptions&) {}), "");
}

}  // namespace
}  // namespace cutaway::haste
