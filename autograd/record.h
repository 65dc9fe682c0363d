#pragma once
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cutaway/core/tensor.h>

namespace cutaway {

struct RecordOptions {
  bool fuse = true;     // run chains of elementwise kernels tile by tile
  bool enabled = true;  // false: every call runs the function itself
  int64_t most = 4;     // recordings kept, one for each combination of input sizes and types
};

// What recordings of a step cost and save.
struct RecordStats {
  int64_t eager = 0, recorded = 0, replayed = 0;  // calls so far
  int64_t calls = 0;                              // entries of the newest recording
  int64_t arena_bytes = 0;                        // its static memory
  int64_t result_bytes = 0;                       // memory of what it hands out
  int64_t eager_bytes = 0;  // most that the step's tensors needed at once without a plan
};

// A function of tensors that is run once while its kernel calls are noted and then replayed as a
// flat list of kernel calls on a static memory plan: no allocation, no tape, no checks but guards.
//
//   auto step = record([&](const Tensors& in) {
//     const Tensor loss = cross_entropy(model(in[0]), in[1]);
//     loss.backward();
//     optimizer.step_and_zero();
//     return loss;
//   });
//   for (…) sum += step({x, y})[0].item();
//
// The first call runs the function, so that state made at first use is there; the second one with
// inputs of the same sizes and types records it; later ones replay. Results have the same bits in
// every case, so calls may be mixed with eager steps on the same parameters.
//
// Note: what a replay does. It repeats kernel calls. Parameters, states and other tensors that were
// there before are used in place; inputs are read where they lie. Draws from the default generator,
// the scalars of optimisers, gradient clipping and range checks of indices are renewed each time.
// Everything else that the function computes on the host is taken as it was when it was recorded:
// numbers given to ops, Python-like control flow, captured counters. Change learning rates between
// steps, not in them. A function that reads values on the host (item()), keeps tensors of the step,
// has hooks or works on a GPU is not recorded: it runs eagerly and why_eager() says why.
class RecordedStep {
 public:
  using Fn = std::function<Tensors(const Tensors&)>;
  explicit RecordedStep(Fn fn, RecordOptions options = {});
  ~RecordedStep();
  RecordedStep(RecordedStep&&) noexcept;
  RecordedStep& operator=(RecordedStep&&) noexcept;

  // Runs or replays the step. Results carry no history. Memory of results that nobody holds any
  // more is used again by the next call.
  Tensors operator()(const Tensors& inputs);

  // Whether the last call was a replay.
  bool replayed() const;
  // Why the last call was no replay: a reason that stays ("item: reads values on the host"), one
  // that passes ("first call"), or empty.
  const std::string& why_eager() const;
  // The newest recording, a line for each call: kernel, type, sizes, and where results and operands
  // lie: +offset in the arena, input, result, or given before the step. Empty before there is one.
  std::string describe() const;
  RecordStats stats() const;
  // Forgets all recordings.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The recorded form of `fn`, which takes `const Tensors&` and returns Tensors, a Tensor or nothing.
template <class F>
RecordedStep record(F fn, RecordOptions options = {}) {
  using Result = std::invoke_result_t<F&, const Tensors&>;
  return RecordedStep(
      [fn = std::move(fn)](const Tensors& inputs) mutable -> Tensors {
        if constexpr (std::is_void_v<Result>) {
          fn(inputs);
          return {};
        } else if constexpr (std::is_same_v<Result, Tensor>) {
          return {fn(inputs)};
        } else {
          return fn(inputs);
        }
      },
      options);
}

}  // namespace cutaway
