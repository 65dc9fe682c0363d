#pragma once
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include <cutaway/core/device.h>
#include <cutaway/core/dtype.h>

// What kernel slots, storages and random draws tell a recording (core/record/recorder.h). While
// nobody records, each of them costs the one branch on recording_somewhere().
namespace cutaway {

class Tensor;
struct Generator;
struct Storage;

// A kernel function of any argument type.
using AnyKernel = void (*)();

// One entry of a recorded list: run(*this) does it.
struct RecordedCall {
  void (*run)(const RecordedCall& call) = nullptr;
  AnyKernel fn = nullptr;
  void* args = nullptr;
};

// Goes through the arguments of a kernel: `visit_args(ArgumentVisitor&, Args&)` beside each Args
// struct names every pointer in it. Null pointers are left out.
class ArgumentVisitor {
 public:
  virtual ~ArgumentVisitor() = default;
  enum class Access : uint8_t { read, write, both };

  template <class T>
  void reads(T*& p) {
    if (p) pointer(&p, Access::read);
  }
  // Written without being read.
  template <class T>
  void writes(T*& p) {
    if (p) pointer(&p, Access::write);
  }
  template <class T>
  void changes(T*& p) {
    if (p) pointer(&p, Access::both);
  }
  // A list of `count` entries in host memory; a copy takes its place.
  template <class T>
  void host(const T*& list, int64_t count) {
    if (list) list = static_cast<const T*>(host_copy(list, size_t(count) * sizeof(T)));
  }
  // `count` numbers in host memory that the kernel writes.
  template <class T>
  void host_result(T*& p, int64_t count) {
    if (p) p = static_cast<T*>(host_place(p, size_t(count) * sizeof(T)));
  }
  // The state of a generator that the kernel reads.
  virtual void random(uint64_t& /*seed*/, uint64_t& /*stream*/, uint64_t& /*offset*/) {}
  // Sizes, for people.
  using Number = std::pair<const char*, int64_t>;
  virtual void numbers(std::initializer_list<Number>) {}
  virtual void sizes(const int64_t* /*sizes*/, int /*rank*/) {}

 protected:
  // `place` is where the pointer stands in the arguments.
  virtual void pointer(void* place, Access access) = 0;
  virtual const void* host_copy(const void* list, size_t bytes) = 0;
  virtual void* host_place(void* result, size_t bytes) = 0;
};

namespace detail {

inline constinit std::atomic<int> recordings{0};  // threads that record now

// Grows when parameters get other memory, modules other modes: recordings are stale then.
inline constinit std::atomic<uint64_t> state_change_count{0};
inline uint64_t state_changes() { return state_change_count.load(std::memory_order_relaxed); }
inline void note_state_change() { state_change_count.fetch_add(1, std::memory_order_relaxed); }

// What a recording has to know about an argument struct.
struct ArgsInfo {
  size_t bytes;
  void (*run)(const RecordedCall& call);
  void (*visit)(ArgumentVisitor&, void* args);  // null: the struct has no visit_args()
};
template <class Args>
void run_recorded(const RecordedCall& call) {
  reinterpret_cast<void (*)(const Args&)>(call.fn)(*static_cast<const Args*>(call.args));
}
template <class Args>
constexpr auto visitor_of() -> void (*)(ArgumentVisitor&, void*) {
  if constexpr (requires(ArgumentVisitor & v, Args & a) { visit_args(v, a); }) {
    return [](ArgumentVisitor& v, void* a) { visit_args(v, *static_cast<Args*>(a)); };
  } else {
    return nullptr;
  }
}
template <class Args>
inline constexpr ArgsInfo kArgsInfo{sizeof(Args), &run_recorded<Args>, visitor_of<Args>()};

// Runs the kernel; on a thread that records also notes the call.
void record_kernel(const char* name, Device device, DType dtype, AnyKernel fn, const void* args,
                   const ArgsInfo& info);
// A storage was made, is about to be freed, or its address is being taken.
void record_made(Storage* storage);
void record_freed(Storage* storage) noexcept;
void record_used(Storage* storage);
// Numbers of the default generator were set aside; `at` is where they start.
void record_draw(const Generator& at, int64_t n);

}  // namespace detail

// Whether any thread of the process records; where not, nothing below has an effect.
inline bool recording_somewhere() {
  return detail::recordings.load(std::memory_order_relaxed) != 0;
}

namespace recording {

// Whether the calling thread records.
bool active() noexcept;
// Ends the recording of the calling thread, if any: `op` does something that a replay cannot.
void refuse(const char* op, const char* why);
// The values of `t` were written by host code and are the same in every replay.
void constant(const Tensor& t);
// The next kernel call's arguments are renewed by `fn(args)` before each replay of it; where it
// returns false, the call is left out.
void renew_next(std::function<bool(void* args)> fn);
// Calls fn(values) now, and, while the calling thread records, again at this place of each replay;
// values[i] is the memory of reads[i]. What it raises ends the step.
void each_time(const char* name, const std::vector<const Tensor*>& reads,
               std::function<void(const void* const* values)> fn);

}  // namespace recording
}  // namespace cutaway
