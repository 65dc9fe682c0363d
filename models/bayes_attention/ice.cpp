#include <cutaway/models/bayes_attention/ice.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/datasets/readers.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::bayes {
namespace {

constexpr Opts kF64{.dtype = DType::f64};

// Means of one prompt, [K·d].
std::vector<double> draw_means(const IceTask& task, Draws& draws) {
  std::vector<double> mu;
  if (task.name == "qpsk") {
    const double re = draws.normal() * std::sqrt(0.5), im = draws.normal() * std::sqrt(0.5);
    for (int k = 0; k < 4; ++k) {
      const double a = (k & 1 ? -1 : 1) * std::sqrt(0.5), b = (k & 2 ? -1 : 1) * std::sqrt(0.5);
      mu.insert(mu.end(), {re * a - im * b, re * b + im * a});
    }
    return mu;
  }
  for (int64_t i = 0; i < task.keys * task.dim; ++i) {
    const double z = draws.normal();
    mu.push_back(task.name == "gauss"  ? 1.5 * z
                 : task.name == "bern" ? std::clamp(1 / (1 + std::exp(-2 * z)), 0.02, 0.98)
                                       : std::clamp(std::exp(0.8 + 0.9 * z), 0.1, 20.0));
  }
  return mu;
}

// Fills mean, log_count and missing.
void pool(Prompts& p, int64_t keys) {
  const int64_t b = p.t.size(0), n = p.t.size(1), d = p.t.size(2);
  const Tensor prompt = arange(0, b, 1, {.dtype = DType::i64}).unsqueeze(1);
  const Tensor ids = (prompt * keys + p.labels).reshape({b * n});
  const Tensor sums = segment_sum(p.t.reshape({b * n, d}), ids, b * keys).reshape({b, keys, d});
  const Tensor counts = segment_sum(ones({b * n, 1}), ids, b * keys).reshape({b, keys, 1});
  p.mean = (sums + mean(p.t, 1, {.keepdim = true})) / (counts + 1);
  p.log_count = log(counts.squeeze(2) + 1);
  p.missing = int64_t(sum(amin(counts.squeeze(2), 1) < 0.5).item());
}

Tensor quadratic(const Tensor& x, const Tensor& m) { return sum(matmul(x, m) * x, -1); }

// Log posterior of queries [B,d] under means [B,K,d].
Tensor oracle_of(const IceTask& task, const Tensor& mu, const Tensor& query) {
  const Tensor scores =
      sum(task.family.link(mu) * query.unsqueeze(1), 2) - task.family.log_partition(mu);
  return log_softmax(scores, 1).to(DType::f32);
}

double mean_excess(const Prompts& p, const Tensor& log_q) {
  if (!p.oracle.defined()) return nll_loss(log_q, p.answer).item();
  return mean_kl(exp(p.oracle.to(DType::f64)), log_q.to(DType::f64));
}

}  // namespace

IceTask ice_task(const std::string& name) {
  IceTask task{name, {}, 2, 4};
  if (name == "gauss") {
    task.family = Family::gaussian(tensor({1, 0.6, 0.6, 0.5}, {2, 2}, kF64));
  } else if (name == "qpsk") {
    task.family = Family::gaussian(eye(2, kF64) * 0.05);
  } else if (name == "bern" || name == "pois") {
    task.family = Family::named(name, 2);
  } else {
    throw ValueError("ice",
                     "there is no family \"" + name + "\"; known are gauss, bern, pois, qpsk");
  }
  return task;
}

Prompts draw_prompts(const IceTask& task, int64_t prompts, int64_t n, uint64_t seed) {
  const int64_t d = task.dim, k = task.keys;
  Draws draws(seed, 3);
  Prompts p;
  const Tensor t = empty({prompts, n, d}, kF64), query = empty({prompts, d}, kF64),
               mu = empty({prompts, k, d}, kF64);
  p.labels = empty({prompts, n}, {.dtype = DType::i64});
  p.answer = empty({prompts}, {.dtype = DType::i64});
  for (int64_t b = 0; b < prompts; ++b) {
    const std::vector<double> means = draw_means(task, draws);
    std::copy(means.begin(), means.end(), mu.data<double>() + b * k * d);
    for (int64_t i = 0; i <= n; ++i) {
      const int64_t s = draws.below(k);
      (i < n ? p.labels.data<int64_t>()[b * n + i] : p.answer.data<int64_t>()[b]) = s;
      task.family.observe(
          means.data() + s * d, d, 1, draws,
          i < n ? t.data<double>() + (b * n + i) * d : query.data<double>() + b * d);
    }
  }
  p.mu = mu;
  p.oracle = oracle_of(task, mu, query);
  p.t = t.to(DType::f32);
  p.query = query.to(DType::f32);
  pool(p, k);
  return p;
}

Prompts read_prompts(const std::string& path, IceTask& task) {
  const data::CsvTable table = data::load_csv(path, {.header = data::CsvOptions::Header::yes});
  if (table.columns.size() < 3 || table.columns[0] != "prompt" || table.columns[1] != "label") {
    throw ValueError("ice", path + ": columns must be prompt,label,T1,…,Td");
  }
  const int64_t rows = table.values.size(0), d = int64_t(table.columns.size()) - 2;
  const std::vector<double> v = table.values.to_vector();
  const auto at = [&](int64_t row, int64_t column) { return v[size_t(row * (d + 2) + column)]; };
  int64_t length = 0;
  while (length < rows && at(length, 0) == at(0, 0)) ++length;
  task.dim = d;
  task.keys = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t from = r - r % std::max<int64_t>(length, 1);
    const bool next = r == from && r > 0 && at(r, 0) == at(r - 1, 0);
    if (length < 2 || at(r, 0) != at(from, 0) || next || rows % length != 0) {
      throw ValueError("ice", fmt::format("{}:{}: every prompt needs the same number of rows, two "
                                          "at least; the first has {}",
                                          path, r + 2, length));
    }
    if (at(r, 1) < 0 || at(r, 1) != std::floor(at(r, 1)) || at(r, 1) > 1e6) {
      throw ValueError("ice", fmt::format("{}:{}: label must be a whole number from 0; got {:g}",
                                          path, r + 2, at(r, 1)));
    }
    task.keys = std::max(task.keys, int64_t(at(r, 1)) + 1);
  }
  if (task.keys < 2) throw ValueError("ice", path + ": needs two labels at least");
  const Tensor x = table.values.reshape({rows / length, length, d + 2});
  const auto labels = [&](int64_t begin, int64_t end) {
    return x.slice(1, begin, end).select(2, 1).to(DType::i64).contiguous();
  };
  Prompts p;
  const Tensor t = x.slice(2, 2, d + 2).to(DType::f32);
  p.t = t.slice(1, 0, length - 1).contiguous();
  p.query = t.select(1, length - 1).contiguous();
  p.labels = labels(0, length - 1);
  p.answer = labels(length - 1, length).squeeze(1);
  pool(p, task.keys);
  return p;
}

Prompts fresh_queries(const IceTask& task, const Prompts& p, Draws& draws) {
  Prompts q = p;
  const int64_t b = p.mu.size(0), k = p.mu.size(1), d = p.mu.size(2);
  const Tensor query = empty({b, d}, kF64);
  q.answer = empty({b}, {.dtype = DType::i64});
  for (int64_t i = 0; i < b; ++i) {
    const int64_t s = q.answer.data<int64_t>()[i] = draws.below(k);
    task.family.observe(p.mu.data<double>() + (i * k + s) * d, d, 1, draws,
                        query.data<double>() + i * d);
  }
  q.query = query.to(DType::f32);
  q.oracle = {};
  return q;
}

Prompts slice_prompts(const Prompts& p, int64_t begin, int64_t end) {
  const auto part = [&](const Tensor& x) {
    return x.defined() ? x.slice(0, begin, end).contiguous() : x;
  };
  return {part(p.t),  part(p.labels), part(p.query),     part(p.answer), part(p.oracle),
          part(p.mu), part(p.mean),   part(p.log_count), p.missing};
}

Tensor plug_in(const IceTask& task, const Prompts& p) {
  const Tensor mu = task.family.clip(p.mean.to(DType::f64));
  const Tensor scores = sum(task.family.link(mu) * p.query.to(DType::f64).unsqueeze(1), 2) -
                        task.family.log_partition(mu);
  return log_softmax(scores + p.log_count.to(DType::f64), 1);
}

Tensor gaussian_head(const Prompts& p, const Tensor& metric) {
  const Tensor difference = p.query.unsqueeze(1) - p.mean;
  return log_softmax(p.log_count - quadratic(difference, metric) * 0.5, 1);
}

Tensor token_head(const Prompts& p, const Tensor& c, const Tensor& bias) {
  const Tensor values = one_hot(p.labels, p.log_count.size(1), DType::f32);
  const Tensor q = matmul(p.query, c).unsqueeze(1);
  AttentionOptions options{.scale = 1};
  if (bias.defined()) options.mask = bias.unsqueeze(1);
  const Tensor out = scaled_dot_product_attention(q, p.t, values, options).squeeze(1);
  return log(clamp_min(out, 1e-6));
}

Tensor within_class_precision(const Prompts& p) {
  const int64_t d = p.t.size(2), keys = p.log_count.size(1);
  const Tensor index = p.labels.unsqueeze(2).expand({p.t.size(0), p.t.size(1), d});
  const Tensor counts = exp(p.log_count).unsqueeze(2) - 1;
  // Plain class means: the smoothing of the pooled ones would widen the covariance.
  const Tensor sums = p.mean * (counts + 1) - mean(p.t, 1, {.keepdim = true});
  const Tensor r = (p.t - gather(sums / clamp_min(counts, 1), 1, index)).reshape({-1, d});
  const double freedom = double(p.t.size(0) * (p.t.size(1) - keys));
  const Tensor covariance = matmul(r, r, {.transpose_a = true}) / std::max(freedom, 1.0);
  // Few or equal examples have no spread in some direction: a pinch of the mean spread keeps it
  // regular.
  const Tensor wide = covariance.to(DType::f64);
  const double pinch = 1e-6 * (mean(diagonal(wide)).item() + 1);
  return linalg::inverse(wide + eye(d, {.dtype = DType::f64}) * pinch).to(DType::f32);
}

namespace {

struct Schedule {
  int64_t steps, batch;  // batch 0: all prompts
  double lr;
  bool fresh = false;  // other queries in every step: many parameters learn few answers by heart
};
Schedule schedule_of(const std::string& model) {
  if (model == "token") return {700, 256, 0.05};
  if (model == "transformer") return {700, 256, 3e-3, true};
  if (model == "link") return {1500, 500, 0.02, true};
  if (model == "mlp") return {1000, 500, 5e-3, true};
  return {700, 0, 0.05};
}

void train_ice(IceModel& model, const IceTask& task, const Prompts& train, const IceOptions& o) {
  Schedule s = schedule_of(o.model);
  if (o.steps > 0) s.steps = o.steps;
  optim::Adam adam(model.parameters(), {.lr = s.lr});
  Draws draws(o.seed, 11);
  const int64_t all = train.query.size(0);
  const int64_t batch = s.batch == 0 ? all : std::min(s.batch, all);
  for (int64_t step = 0; step < s.steps; ++step) {
    adam.set_lr(s.lr * (1 - 0.9 * double(step) / double(s.steps)));
    const int64_t from = step * batch % (all - batch + 1);
    Prompts part = batch == all ? train : slice_prompts(train, from, from + batch);
    if (s.fresh && part.mu.defined()) part = fresh_queries(task, part, draws);
    nll_loss(model.log_probabilities(part), part.answer).backward();
    adam.step_and_zero();
  }
}

}  // namespace

IceResult run_ice(const IceTask& task, const IceOptions& o) {
  const uint64_t base = 1000 * (o.seed + 1);
  return run_ice(task, o, draw_prompts(task, o.prompts, o.n, base),
                 draw_prompts(task, o.prompts, o.n, base + 1));
}

IceResult run_ice(const IceTask& task, const IceOptions& o, const Prompts& train,
                  const Prompts& test) {
  Generator& generator = default_generator();
  generator = {.seed = o.seed, .stream = 4};
  const std::unique_ptr<IceModel> model = make_ice_model(o.model, train, task, o.heads);
  train_ice(*model, task, train, o);
  NoGradGuard no_grad;
  IceResult r;
  r.missing = train.missing + test.missing;
  r.excess = mean_excess(test, model->log_probabilities(test));
  r.plug_in = mean_excess(test, plug_in(task, test));
  const Tensor precision = within_class_precision(train);
  const double root = std::sqrt(double(task.dim));
  r.baselines["gaussian head"] = mean_excess(test, gaussian_head(test, precision));
  r.baselines["naive attention"] = mean_excess(test, token_head(test, eye(task.dim) / root, {}));
  r.baselines["kernel attention"] =
      mean_excess(test, token_head(test, precision, quadratic(test.t, precision) * -0.5));
  r.metric = model->metric();
  if (r.metric.defined() && task.family.kind == Kind::gaussian) {
    const Tensor m = r.metric.to(DType::f64), p = linalg::inverse(task.family.sigma);
    const double m_norm = norm(m).item(), p_norm = norm(p).item();
    r.cosine = sum(m * p).item() / (m_norm * p_norm);
    r.norm_ratio = m_norm / p_norm;
  }
  return r;
}

}  // namespace cutaway::bayes
