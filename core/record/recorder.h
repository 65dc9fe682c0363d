#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cutaway/core/record/hook.h>
#include <cutaway/core/rng.h>
#include <cutaway/core/storage.h>

namespace cutaway::recording {

// Memory for argument structs and host lists: given out in order, so that a replay reads it
// forwards, and freed as a whole.
class ArgumentMemory {
 public:
  void* take(size_t bytes);
  size_t bytes() const { return bytes_; }

 private:
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
  size_t bytes_ = 0;
};

// A storage that recorded calls use.
struct Block {
  enum class Kind : uint8_t {
    temporary,  // made by the step and gone at its end: gets a place in the arena
    constant,   // filled by host code, never written by a kernel
    result,     // made by the step and alive at its end
    input,      // of a tensor given to the step: its address may change with every call
    outside,    // there before: parameters, states
  };
  Kind kind = Kind::temporary;
  int64_t bytes = 0;
  const char* made_by = nullptr;
  int first = -1, last = -1;   // indices of the calls that use it
  bool filled = false;         // by a kernel, or as a constant
  bool changed = false;        // by a kernel
  int64_t place = -1;          // in the arena
  int input = -1;              // index of the input
  Storage* storage = nullptr;  // constant, result, outside; retained
  char* base = nullptr;        // where it lay while recording
};

// A pointer in the arguments of a call.
struct Operand {
  char* at = nullptr;  // where the pointer stands
  int block = 0;
  int64_t offset = 0;  // bytes into the block
  ArgumentVisitor::Access access = ArgumentVisitor::Access::read;
};

struct Call {
  enum class Kind : uint8_t { kernel, host, draw, fused };
  Kind kind = Kind::kernel;
  const char* name = "";
  DType dtype = DType::f32;
  RecordedCall call;
  const detail::ArgsInfo* info = nullptr;
  std::vector<Operand> operands;
  std::function<bool(void*)> renew;              // kernel
  std::function<void(const void* const*)> host;  // host
  int64_t draw_elements = 0;                     // draw
  std::vector<uint64_t*> states;                 // draw: seed, stream, offset of the readers
  struct Result {
    std::byte* place;
    std::vector<std::byte> before, after;
  };
  std::vector<Result> results;  // kernel: host numbers, which must come out as recorded
};

// Everything noted while a step ran.
struct Tape {
  ArgumentMemory memory;
  std::vector<Block> blocks;
  std::vector<Call> calls;
  int64_t eager_peak = 0;  // bytes of the storages made by the step that were alive at once
  std::string refused;     // why it cannot be replayed, or empty

  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape();
};

// Records what the calling thread does, from construction to stop().
class Recorder {
 public:
  // `inputs` of the step: storages of their own, of which [begin, begin + bytes) may be used.
  struct Input {
    Storage* storage;
    char* begin;
    int64_t bytes;
  };
  explicit Recorder(const std::vector<Input>& inputs);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  // Ends the recording. `results` are storages that the step hands out; each is given a block of
  // kind result. Any other storage of the step that is still alive refuses the recording.
  std::unique_ptr<Tape> stop(const std::vector<Storage*>& results);

  static Recorder* current() noexcept;
  void refuse(const char* op, const std::string& why);
  // The reason is one that goes away: state that is made at first use.
  bool refused_for_escape() const { return escaped_; }

  // ---- called by the hooks
  void kernel(const char* name, Device device, DType dtype, AnyKernel fn, const void* args,
              const detail::ArgsInfo& info);
  void made(Storage* s);
  void freed(Storage* s) noexcept;
  void used(Storage* s);
  void constant(Storage* s);
  void draw(const Generator& at, int64_t n);
  void host(const char* name, const std::vector<const void*>& reads,
            std::function<void(const void* const*)> fn);
  void renew_next(std::function<bool(void*)> fn) { renew_ = std::move(fn); }

 private:
  friend class Copier;
  struct Draw {
    Generator at;
    int call;
    bool read = false;
  };
  bool recording() const { return tape_ && tape_->refused.empty(); }
  // Block and offset of an address; −1 when it belongs to no storage that was seen.
  int find(const void* p, int64_t* offset) const;
  void add_operand(Call& call, void* place, ArgumentVisitor::Access access);
  void check_draws();

  std::unique_ptr<Tape> tape_;
  std::map<uintptr_t, int> alive_;  // start of each storage in use → block
  std::vector<const Storage*> input_storages_;
  std::vector<Draw> draws_;
  Generator generator_;  // where the default generator should stand
  std::function<bool(void*)> renew_;
  int64_t live_bytes_ = 0;
  bool escaped_ = false;
};

}  // namespace cutaway::recording
