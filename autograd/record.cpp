#include <cutaway/autograd/record.h>

#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include <cutaway/autograd/autocast.h>
#include <cutaway/autograd/record_watch.h>
#include <cutaway/core/context.h>
#include <cutaway/core/record/program.h>
#include <cutaway/core/trace.h>

namespace cutaway {
namespace detail {
namespace {

constinit thread_local GradientWatch* watch = nullptr;

}  // namespace

GradientWatch::GradientWatch() : before_(watch) { watch = this; }
GradientWatch::~GradientWatch() { watch = before_; }

void GradientWatch::note(const std::shared_ptr<GradSlot>& slot, bool replaced) {
  for (const WatchedGradient& g : gradients) {
    if (g.slot == slot) return;
  }
  using Start = WatchedGradient::Start;
  const bool there = slot->grad.defined();
  gradients.push_back({slot,
                       replaced ? Start::any
                       : there  ? Start::same
                                : Start::undefined,
                       there ? slot->grad.storage() : nullptr});
}

void gradient_used(const std::shared_ptr<GradSlot>& slot) {
  if (watch) watch->note(slot, false);
}
void gradient_replaced(const std::shared_ptr<GradSlot>& slot) {
  if (watch) watch->note(slot, true);
}

}  // namespace detail

namespace {

using detail::GradientWatch;
using detail::WatchedGradient;
using recording::Program;
using recording::Recorder;

// What two calls must have in common to be replays of each other.
struct InputForm {
  bool defined = false, requires_grad = false;
  DType dtype = DType::f32;
  Device device;
  Shape sizes, strides;
  const TensorImpl* leaf = nullptr;  // one that requires grad is bound to its own record
  friend bool operator==(const InputForm&, const InputForm&) = default;
};
struct CallForm {
  std::vector<InputForm> inputs;
  bool grad_enabled = true, deterministic = true;
  uint8_t autocast = 0;
  friend bool operator==(const CallForm&, const CallForm&) = default;
};

bool matches(const InputForm& f, const Tensor& t) {
  if (!t.defined()) return !f.defined;
  const TensorImpl& i = *t.impl();
  const bool grad = i.meta && t.requires_grad();
  return f.defined && f.dtype == i.dtype && f.device == i.device && f.requires_grad == grad &&
         f.sizes == i.layout.sizes && f.strides == i.layout.strides &&
         (!grad || f.leaf == t.impl());
}

bool matches(const CallForm& f, const Tensors& inputs) {
  const Context& c = context();
  if (f.inputs.size() != inputs.size() || f.grad_enabled != c.grad_enabled ||
      f.autocast != c.autocast || f.deterministic != c.deterministic) {
    return false;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!matches(f.inputs[i], inputs[i])) return false;
  }
  return true;
}

CallForm form_of(const Tensors& inputs) {
  const Context& c = context();
  CallForm f{
      .grad_enabled = c.grad_enabled, .deterministic = c.deterministic, .autocast = c.autocast};
  for (const Tensor& t : inputs) {
    InputForm form;
    if (t.defined()) {
      form = {true, t.requires_grad(), t.dtype(), t.device(), t.sizes(), t.strides(), nullptr};
      if (form.requires_grad) form.leaf = t.impl();
    }
    f.inputs.push_back(form);
  }
  return f;
}

// Inputs that lie in one storage get memory of their own: a recording tells them apart by address.
Tensors apart(const Tensors& inputs) {
  Tensors out = inputs;
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = 0; k < i && out[i].defined(); ++k) {
      const bool shared = inputs[k].defined() && inputs[k].storage() == inputs[i].storage();
      if (!shared || inputs[i].requires_grad()) continue;
      out[i] = inputs[i].clone();
      break;
    }
  }
  return out;
}

// Bytes from the first to behind the last element.
int64_t extent_bytes(const Tensor& t) {
  if (t.numel() == 0) return 0;
  int64_t last = 0;
  for (int d = 0; d < t.dim(); ++d) last += (t.sizes()[d] - 1) * t.strides()[d];
  return (last + 1) * size_of(t.dtype());
}

// The same values without history.
Tensor plain(const Tensor& t) {
  if (!t.defined()) return t;
  Tensor out = t.detach();
  out.impl()->is_view = t.impl()->is_view;
  return out;
}

// A tensor that a recording hands out, as a result or a gradient.
struct Handed {
  int block = -1;  // result block it lies in; −1: memory that was there before, or undefined
  Tensor handle;
  std::shared_ptr<GradSlot> slot;  // of a gradient
};

struct Plan {
  CallForm form;
  std::unique_ptr<Program> program;
  uint64_t changes = 0;  // value of state_changes() it is good for
  std::vector<int> input_blocks;
  std::vector<Handed> results, gradients;
  std::vector<WatchedGradient> watched;
  std::vector<int> result_blocks;
};

bool is_held_elsewhere(const Plan& p, int block) {
  uint32_t handles = 1;  // the program's own
  for (const auto* list : {&p.results, &p.gradients}) {
    for (const Handed& h : *list) {
      if (h.block != block) continue;
      ++handles;
      const bool in_slot = h.slot && h.slot->grad.is_same(h.handle);
      if (h.handle.impl()->refs.load() != 1u + in_slot) return true;
    }
  }
  return p.program->blocks()[size_t(block)].storage->refs.load() != handles;
}

// Results that somebody still holds keep their values: this replay writes to new memory.
void renew_results(Plan& p) {
  for (const int block : p.result_blocks) {
    if (!is_held_elsewhere(p, block)) continue;
    Storage* fresh = make_storage(kCpu, p.program->blocks()[size_t(block)].bytes);
    for (auto* list : {&p.results, &p.gradients}) {
      for (Handed& h : *list) {
        if (h.block != block) continue;
        fresh->retain();
        TensorImpl* impl = detail::new_impl(h.handle.dtype(), kCpu, h.handle.layout(), fresh);
        impl->contiguous = h.handle.is_contiguous();
        impl->is_view = h.handle.impl()->is_view;
        h.handle = Tensor::take(impl);
      }
    }
    p.program->give_storage(block, fresh);
  }
}

// Are gradients as the recording found them?
bool gradients_match(const Plan& p) {
  for (const WatchedGradient& w : p.watched) {
    const Tensor& g = w.slot->grad;
    if (w.start == WatchedGradient::Start::any) continue;
    if (g.defined() != (w.start == WatchedGradient::Start::same)) return false;
    if (g.defined() && g.storage() != w.storage) return false;
  }
  return true;
}

}  // namespace

struct RecordedStep::State {
  Fn fn;
  RecordOptions options;
  std::vector<Plan> plans;
  std::vector<CallForm> seen;
  std::string why, refused;  // refused: for good
  bool replayed = false;
  int vain = 0;  // recordings since the last replay
  RecordStats stats;

  Tensors eager(const Tensors& inputs, std::string reason);
  Tensors record(const Tensors& inputs);
  std::optional<Tensors> replay(Plan& p, const Tensors& inputs);
  void keep(Plan plan);
  Plan* find(const Tensors& inputs);
  bool may_record(const Tensors& inputs);
};

Tensors RecordedStep::State::eager(const Tensors& inputs, std::string reason) {
  why = std::move(reason);
  ++stats.eager;
  Tensors out = fn(inputs);
  for (Tensor& t : out) t = plain(t);
  return out;
}

Plan* RecordedStep::State::find(const Tensors& inputs) {
  for (Plan& p : plans) {
    if (matches(p.form, inputs)) return &p;
  }
  return nullptr;
}

// Whether to record now; otherwise `why` says why not.
bool RecordedStep::State::may_record(const Tensors& inputs) {
  const Context& c = context();
  why = !options.enabled      ? "recording is switched off"
        : !refused.empty()    ? refused
        : c.anomaly           ? "anomaly mode is on"
        : trace::enabled()    ? "a trace is being taken"
        : recording::active() ? "another step is being recorded"
                              : "";
  if (!why.empty()) return false;
  for (const Tensor& t : inputs) {
    if (t.defined() && !t.is_leaf()) why = "an input has a history";
    if (t.defined() && t.device() != kCpu) why = "an input is not on the CPU";
  }
  if (!why.empty()) return false;
  const bool known =
      std::any_of(seen.begin(), seen.end(), [&](const CallForm& f) { return matches(f, inputs); });
  if (!known) {
    why = seen.empty() ? "first call" : "first call with inputs of these sizes and types";
    if (seen.size() >= 16) seen.erase(seen.begin());
    seen.push_back(form_of(inputs));
  }
  return known;
}

Tensors RecordedStep::State::record(const Tensors& inputs) {
  ++stats.recorded;
  Plan plan{.form = form_of(inputs)};
  const Tensors own = apart(inputs);
  std::vector<Recorder::Input> storages;
  for (const Tensor& t : own) {
    plan.input_blocks.push_back(t.defined() ? int(storages.size()) : -1);
    if (t.defined()) {
      storages.push_back({t.storage(), static_cast<char*>(t.raw()), extent_bytes(t)});
    }
  }
  Recorder recorder(storages);
  GradientWatch watch;
  Tensors out;
  {
    const detail::ConvertedParameters of_this_step;  // those of a guard outside are no part of it
    out = fn(own);
  }
  for (Tensor& t : out) t = plain(t);
  std::vector<Storage*> handed;
  for (const Tensor& t : out) {
    if (t.defined()) handed.push_back(t.storage());
    for (const auto& in : storages) {
      if (t.defined() && t.storage() == in.storage) recorder.refuse("record", "returns an input");
    }
  }
  for (const WatchedGradient& w : watch.gradients) {
    if (!w.slot->grad.defined()) continue;
    handed.push_back(w.slot->grad.storage());
    if (w.slot->grad.requires_grad()) recorder.refuse("backward", "gradients have a history");
  }
  auto tape = recorder.stop(handed);
  if (!tape->refused.empty()) {
    why = tape->refused;
    // State that is made at first use is there next time.
    if (!recorder.refused_for_escape() || ++vain > 3) refused = why;
    return out;
  }
  why = "recorded";
  plan.program =
      std::make_unique<Program>(std::move(tape), recording::ProgramOptions{options.fuse});
  plan.watched = std::move(watch.gradients);
  for (const Tensor& t : out) {
    plan.results.push_back(
        {t.defined() ? plan.program->find_result(t.storage()) : -1, plain(t), {}});
  }
  for (const WatchedGradient& w : plan.watched) {
    const Tensor& g = w.slot->grad;
    plan.gradients.push_back(
        {g.defined() ? plan.program->find_result(g.storage()) : -1, g, w.slot});
  }
  plan.changes = detail::state_changes();
  keep(std::move(plan));
  return out;
}

void RecordedStep::State::keep(Plan plan) {
  for (size_t i = 0; i < plan.program->blocks().size(); ++i) {
    if (plan.program->blocks()[i].kind == recording::Block::Kind::result) {
      plan.result_blocks.push_back(int(i));
    }
  }
  stats.calls = int64_t(plan.program->calls());
  stats.arena_bytes = plan.program->arena_bytes();
  stats.result_bytes = plan.program->result_bytes();
  stats.eager_bytes = plan.program->eager_peak();
  if (++vain > 8) refused = "record: parameters or modes change between all steps";
  std::erase_if(plans, [&](const Plan& p) { return p.form == plan.form; });
  if (int64_t(plans.size()) >= options.most) plans.erase(plans.begin());
  plans.push_back(std::move(plan));
}

std::optional<Tensors> RecordedStep::State::replay(Plan& p, const Tensors& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int block = p.input_blocks[i];
    if (block < 0) continue;
    const TensorImpl& t = *inputs[i].impl();
    p.program->bind(block,
                    static_cast<char*>(t.storage->data) + t.layout.offset * size_of(t.dtype));
  }
  renew_results(p);
  const Generator before = default_generator();
  try {
    p.program->run();
  } catch (const recording::ReplayStopped&) {
    default_generator() = before;
    return std::nullopt;
  }
  p.program->bump_versions();
  for (const Handed& g : p.gradients) {
    if (!g.slot->grad.is_same(g.handle)) g.slot->grad = g.handle;
  }
  Tensors out;
  out.reserve(p.results.size());
  for (const Handed& r : p.results) out.push_back(r.handle);
  return out;
}

RecordedStep::RecordedStep(Fn fn, RecordOptions options) : state_(std::make_unique<State>()) {
  state_->fn = std::move(fn);
  state_->options = options;
}
RecordedStep::~RecordedStep() = default;
RecordedStep::RecordedStep(RecordedStep&&) noexcept = default;
RecordedStep& RecordedStep::operator=(RecordedStep&&) noexcept = default;

Tensors RecordedStep::operator()(const Tensors& inputs) {
  State& s = *state_;
  s.replayed = false;
  const Context& c = context();
  Plan* p = c.anomaly || trace::enabled() || recording_somewhere() ? nullptr : s.find(inputs);
  if (!p || p->changes != detail::state_changes()) {
    return s.may_record(inputs) ? s.record(inputs) : s.eager(inputs, s.why);
  }
  if (!gradients_match(*p)) return s.eager(inputs, "gradients are not as when it was recorded");
  const bool shared = inputs.size() > 1;
  if (auto out = s.replay(*p, shared ? apart(inputs) : inputs)) {
    s.replayed = true;
    s.vain = 0;
    s.why.clear();
    ++s.stats.replayed;
    return std::move(*out);
  }
  return s.eager(inputs, "an index or a number of results differs from the recorded one");
}

bool RecordedStep::replayed() const { return state_->replayed; }
const std::string& RecordedStep::why_eager() const { return state_->why; }
std::string RecordedStep::describe() const {
  return state_->plans.empty() ? "" : state_->plans.back().program->describe();
}
RecordStats RecordedStep::stats() const { return state_->stats; }
void RecordedStep::reset() {
  state_->plans.clear();
  state_->seen.clear();
  state_->refused.clear();
}

}  // namespace cutaway
