#pragma once
#include <cstddef>

// Threads of execution that hand over the processor themselves: each CUDA thread of an emulated
// block is one. A switch is a dozen instructions (x86-64 and AArch64; ucontext elsewhere).
namespace cutaway::cuda::emu {

// A stack with a guard page below, and the place where its owner stopped.
class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(Fiber&& other) noexcept;
  Fiber& operator=(Fiber&&) = delete;

  // Makes resume() call entry(argument) on a fresh stack; what ran there before is forgotten.
  // Raises MemoryError when there is no memory for a stack.
  void prepare(void (*entry)(void*), void* argument);
  // Runs the fiber until it calls suspend() or its entry returns. Exceptions must not leave entry.
  void resume();
  // Inside the running fiber: back to resume(). An entry that returns has done so for the last
  // time.
  void suspend();

 private:
  static void main(Fiber* self);

  char* mapping_ = nullptr;
  size_t bytes_ = 0;
  void* inside_ = nullptr;   // stack pointer (or context) of the fiber while it is suspended
  void* outside_ = nullptr;  // that of resume() while the fiber runs
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  // AddressSanitizer follows switches when it is told of them.
  void* fake_stack_ = nullptr;
  const void* outer_stack_ = nullptr;
  size_t outer_bytes_ = 0;
  bool done_ = false;
};

}  // namespace cutaway::cuda::emu
