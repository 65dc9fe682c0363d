#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <cutaway/core/record/fused.h>
#include <cutaway/core/record/recorder.h>

namespace cutaway::recording {

// Raised inside a replay when a host result (such as the place of an index out of range) differs
// from the recorded one: the step has to run without the recording.
struct ReplayStopped {};

struct ProgramOptions {
  bool fuse = true;  // run chains of elementwise kernels tile by tile
};

// A tape made ready for replay: a flat list of calls on a static memory plan.
//
// Note: static memory plan. A block lives from the first to the last call that uses it. Blocks are
// placed largest first, each at the lowest offset where no block that lives at the same time is in
// the way (first fit by size, as in Pisarchyk & Lee 2020, "Efficient memory management for deep
// neural net inference", section 4.3). All offsets are multiples of 64 bytes.
class Program {
 public:
  Program(std::unique_ptr<Tape> tape, const ProgramOptions& options);
  ~Program();
  Program(const Program&) = delete;

  // Runs all calls. Raises ReplayStopped, or what a host call raises.
  void run() {
    for (const RecordedCall& call : list_) call.run(call);
  }
  // Makes all pointers into a block (input or result) point to `base` plus their offsets.
  void bind(int block, char* base);
  // Gives a result block another storage; the former one is dropped.
  void give_storage(int block, Storage* taken);
  // Marks what the calls write outside as changed in place.
  void bump_versions();

  int find_result(const Storage* storage) const;  // block, or −1
  const std::vector<Block>& blocks() const { return tape_->blocks; }
  size_t calls() const { return tape_->calls.size(); }
  int64_t arena_bytes() const { return arena_bytes_; }
  int64_t result_bytes() const;
  int64_t eager_peak() const { return tape_->eager_peak; }
  int64_t fused_calls() const { return fused_calls_; }
  // One line for each call: number, name, type, sizes, results and operands with their places.
  std::string describe() const;

 private:
  struct Checked {
    RecordedCall inner;
    const std::vector<Call::Result>* results;
  };
  struct Renewed {
    RecordedCall inner;
    const std::function<bool(void*)>* renew;
  };
  static void run_checked(const RecordedCall& call);
  static void run_renewed(const RecordedCall& call);
  static void run_host(const RecordedCall& call);
  static void run_draw(const RecordedCall& call);

  void move_checks_forward();
  void note_lifetimes();
  void fuse_chains();
  void place_blocks();
  void link();
  RecordedCall wrapped(Call& c);

  std::unique_ptr<Tape> tape_;
  std::vector<RecordedCall> list_;
  std::deque<Checked> checked_;
  std::deque<Renewed> renewed_;
  std::deque<FusedChain> fused_;
  std::vector<std::vector<const Operand*>> uses_;  // of inputs and results
  std::vector<Storage*> changed_outside_;
  char* arena_ = nullptr;
  int64_t arena_bytes_ = 0;
  int64_t fused_calls_ = 0;
};

}  // namespace cutaway::recording
