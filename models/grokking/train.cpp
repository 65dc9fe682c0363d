// Full-batch training with a record of its stages (section 4 of the method).
#include <cutaway/models/grokking/train.h>

#include <algorithm>
#include <chrono>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/parallel.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::grokking {
namespace {

// Rows of inputs, each once, and where each stands.
class Batch {
 public:
  explicit Batch(const Task& task) : task_(task), place_(size_t(task.rows()), -1) {}
  void clear() {
    for (int64_t row : rows_) place_[size_t(row)] = -1;
    rows_.clear();
  }
  void add(const std::vector<int64_t>& rows) {
    for (int64_t row : rows) {
      if (place_[size_t(row)] >= 0) continue;
      place_[size_t(row)] = int64_t(rows_.size());
      rows_.push_back(row);
    }
  }
  Tensor places(const std::vector<int64_t>& rows) const {
    std::vector<int64_t> list(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) list[i] = place_[size_t(rows[i])];
    return index_tensor(list);
  }
  Tensor ids() const {
    std::vector<int64_t> list;
    list.reserve(rows_.size() * size_t(task_.length));
    for (int64_t row : rows_) {
      const int64_t* input = &task_.inputs[size_t(row * task_.length)];
      list.insert(list.end(), input, input + task_.length);
    }
    return index_tensor(list).reshape({int64_t(rows_.size()), task_.length});
  }

 private:
  const Task& task_;
  std::vector<int64_t> rows_, place_;
};

Tensor targets(const Task& task, const std::vector<int64_t>& rows) {
  std::vector<int64_t> list;
  for (int64_t row : rows) list.push_back(task.answers[size_t(row)]);
  return index_tensor(list);
}

// Scores of the instances of a law, [count, width, K].
Tensor scores_of(const Tensor& scores, const Batch& batch, const Tuples& t) {
  return index_select(scores, 0, batch.places(t.rows))
      .reshape({t.count(), t.width, scores.size(1)});
}

// GrokFast-EMA (Lee et al. 2024): m ← α m + (1 − α) g, g ← g + λ m.
class GrokFast {
 public:
  void filter(const nn::NamedTensors& parameters) {
    NoGradGuard off;
    constexpr double kAlpha = 0.98, kLambda = 2;
    for (size_t i = 0; i < parameters.size(); ++i) {
      Tensor g = parameters[i].value.grad();
      if (!g.defined()) continue;
      if (means_.size() <= i) means_.resize(i + 1);
      if (!means_[i].defined()) means_[i] = g.clone();
      means_[i].mul_(kAlpha).add_(g, 1 - kAlpha);
      g.add_(means_[i], kLambda);
    }
  }

 private:
  std::vector<Tensor> means_;
};

class Trainer {
 public:
  Trainer(const RunOptions& o, RunResult& result)
      : o_(o),
        task_(result.task),
        split_(result.split),
        net_(*result.network),
        step_batch_(task_),
        eval_batch_(task_),
        random_{.seed = o.seed, .stream = 41},
        adam_(net_.named_parameters(),
              optim::AdamWOptions{
                  .lr = o.lr, .beta1 = 0.9, .beta2 = 0.98, .weight_decay = o.weight_decay}) {
    for (Law law : {Law::commutativity, Law::associativity, Law::triangle, Law::transitivity}) {
      if (prompts(law)) prompted_.push_back(law);
    }
    train_rows_ = split_.train;
    if (o.prompt == "augment") {
      for (int64_t row : split_.train) {
        const int64_t other = task_.mirror[size_t(row)];
        if (!split_.in_train[size_t(other)]) train_rows_.push_back(other);
      }
    }
    targets_ = targets(task_, train_rows_);
    Generator fixed{.seed = o.seed, .stream = 43};
    for (Law law : task_.laws) {
      eval_tuples_.push_back(sample(task_, law, fixed, {.count = o.eval_tuples}));
    }
    eval_batch_.add(split_.train);
    eval_batch_.add(split_.test);
    for (const Tuples& t : eval_tuples_) eval_batch_.add(t.rows);
    eval_ids_ = eval_batch_.ids();
    step_batch_.add(train_rows_);
    plain_ids_ = step_batch_.ids();
  }

  void step(int64_t epoch) {
    adam_.set_lr(o_.lr * std::min(1.0, double(epoch) / 10));
    loss().backward();
    if (o_.optimizer == "grokfast") grokfast_.filter(adam_.parameters());
    adam_.step_and_zero();
  }

  LogRow evaluate(int64_t epoch) {
    NoGradGuard off;
    LogRow row{.epoch = epoch};
    const Tensor scores = net_(eval_ids_).to(DType::f64);
    const auto measure = [&](const std::vector<int64_t>& rows, double& loss, double& accuracy) {
      const Tensor part = index_select(scores, 0, eval_batch_.places(rows));
      const Tensor y = targets(task_, rows);
      loss = cross_entropy(part, y).item();
      const Tensor right = eq(argmax(part, 1), y);
      accuracy = count_nonzero(right).item() / double(rows.size());
    };
    measure(split_.train, row.train_loss, row.train_accuracy);
    measure(split_.test, row.test_loss, row.test_accuracy);
    for (const Tuples& t : eval_tuples_) {
      const Tensor v = violation(t.law, scores_of(scores, eval_batch_, t), task_.binary);
      row.mean.push_back(mean(v).item());
      row.max.push_back(amax(v).item());
    }
    const Tensor E = net_.entities();
    row.effective_dimension = effective_dimension(principal_components(E).share);
    row.norm = parameter_norm(net_);
    if (!task_.order.empty()) row.fourier = strongest(fourier_shares(E, task_.order));
    return row;
  }

 private:
  bool prompts(Law law) const {
    const std::string& p = o_.prompt;
    if (law == Law::commutativity) return p == "comm" || p == "both";
    if (law == Law::associativity) return p == "assoc" || p == "both";
    return law == Law::triangle ? p == "triangle" : p == "trans";
  }
  bool soft(Law law) const { return law == Law::associativity && o_.assoc == "soft"; }

  // Cross-entropy in f64 + λ · (mean violation of fresh instances, or a prior on E).
  Tensor loss() {
    const auto n = int64_t(train_rows_.size());
    if (prompted_.empty()) {
      const Tensor loss = cross_entropy(net_(plain_ids_).to(DType::f64), targets_);
      const Tensor prior = geometry_prior();
      return prior.defined() ? loss + prior.to(DType::f64) * o_.lambda : loss;
    }
    std::vector<Tuples> fresh;
    step_batch_.clear();
    step_batch_.add(train_rows_);
    for (Law law : prompted_) {
      if (soft(law)) {
        step_batch_.add(task_.pool);
        continue;
      }
      fresh.push_back(
          sample(task_, law, random_,
                 {.count = o_.tuples, .touch = o_.domain == "train" ? &split_ : nullptr}));
      step_batch_.add(fresh.back().rows);
    }
    const Tensor scores = net_(step_batch_.ids()).to(DType::f64);
    Tensor total = cross_entropy(scores.slice(0, 0, n), targets_);
    for (const Tuples& t : fresh) {
      const Tensor v = violation(t.law, scores_of(scores, step_batch_, t), task_.binary);
      total = total + mean(v) * o_.lambda;
    }
    for (Law law : prompted_) {
      if (soft(law)) total = total + mean(soft_violation(scores)) * o_.lambda;
    }
    return total;
  }

  Tensor soft_violation(const Tensor& scores) {
    const Tensor table = index_select(scores, 0, step_batch_.places(task_.pool));
    const int64_t n = task_.entities;
    std::vector<int64_t> xyz, yz;
    while (int64_t(yz.size()) < o_.tuples) {
      const int64_t x = draw_below(random_, n), y = draw_below(random_, n);
      const int64_t z = draw_below(random_, n), second = task_.row(y, task_.second(z));
      const bool touches =
          split_.in_train[size_t(task_.row(x, y))] || split_.in_train[size_t(second)];
      if (o_.domain == "train" && !touches) continue;
      xyz.insert(xyz.end(), {x, y, z});
      yz.push_back(second);
    }
    return soft_associativity(table, xyz, yz, n);
  }

  Tensor geometry_prior() {
    if (o_.prompt == "nuclear") return nuclear_prior(net_.entities());
    if (o_.prompt == "entropy") return entropy_prior(net_.entities());
    if (o_.prompt == "lipschitz") return lipschitz_prior(net_, plain_ids_, random_);
    return {};
  }

  const RunOptions& o_;
  const Task& task_;
  const Split& split_;
  Network& net_;
  Batch step_batch_, eval_batch_;
  Generator random_;
  optim::AdamW adam_;
  GrokFast grokfast_;
  std::vector<Law> prompted_;
  std::vector<int64_t> train_rows_;
  std::vector<Tuples> eval_tuples_;
  Tensor targets_, plain_ids_, eval_ids_;
};

}  // namespace

bool evaluates_at(int64_t epoch) { return epoch <= 1000 ? epoch % 10 == 0 : epoch % 50 == 0; }

RunResult train(const RunOptions& options, const RunHooks& hooks) {
  using Clock = std::chrono::steady_clock;
  RunResult r{.options = options, .task = task_of(options)};
  check_options(options, r.task);
  r.split = split(
      r.task,
      {.fraction = options.train_fraction, .seed = options.seed, .unordered = options.unordered});
  r.network = network_of(options, r.task);
  Trainer trainer(options, r);
  const auto begin = Clock::now();
  Clock::duration evaluating{};
  int64_t solved = -1, epoch = 1;
  for (;; ++epoch) {
    trainer.step(epoch);
    const bool last = epoch == options.epochs;
    if (last || evaluates_at(epoch)) {
      const auto start = Clock::now();
      r.rows.push_back(trainer.evaluate(epoch));
      if (hooks.on_row) hooks.on_row(r.rows.back());
      if (solved < 0 && r.rows.back().test_accuracy == 1) solved = epoch;
      evaluating += Clock::now() - start;
    }
    if (hooks.on_checkpoint && epoch % 500 == 0) hooks.on_checkpoint(epoch, *r.network);
    const bool done = solved >= 0 && epoch >= solved + options.after && evaluates_at(epoch);
    if (last || done || (evaluates_at(epoch) && hooks.stop && hooks.stop())) break;
  }
  const std::chrono::duration<double> whole = Clock::now() - begin;
  const std::chrono::duration<double> steps = whole - evaluating;
  r.seconds = whole.count();
  r.steps_per_second = double(epoch) / steps.count();
  r.stages = find_stages(r.rows, frozen_tau(r.task.laws));
  return r;
}

std::vector<RunResult> train_all(const std::vector<RunOptions>& options) {
  std::vector<RunResult> results(options.size());
  parallel_chunks(int64_t(options.size()),
                  [&](int64_t i) { results[size_t(i)] = train(options[size_t(i)]); });
  return results;
}

}  // namespace cutaway::grokking
