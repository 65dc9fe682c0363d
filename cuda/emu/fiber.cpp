#include <cutaway/cuda/emu/fiber.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include <cutaway/core/error.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace cutaway::cuda::emu {
namespace {

// Sanitizers and code without optimisation need more room.
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
constexpr size_t kStackBytes = 256 * 1024;
#else
constexpr size_t kStackBytes = 32 * 1024;
#endif

}  // namespace

// Pushes what a callee must keep, stores the stack pointer at *save, and continues at `load`.
extern "C" void cutaway_switch_stack(void** save, void* load);
extern "C" void cutaway_enter_fiber();

#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.type cutaway_switch_stack,@function
cutaway_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cutaway_switch_stack,.-cutaway_switch_stack
.type cutaway_enter_fiber,@function
cutaway_enter_fiber:
  movq %r12, %rdi
  call *%r13
  ud2
.size cutaway_enter_fiber,.-cutaway_enter_fiber
)");
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.type cutaway_switch_stack,%function
cutaway_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size cutaway_switch_stack,.-cutaway_switch_stack
.type cutaway_enter_fiber,%function
cutaway_enter_fiber:
  mov x0, x19
  blr x20
  brk #1
.size cutaway_enter_fiber,.-cutaway_enter_fiber
)");
#else
namespace {
struct Context {
  ucontext_t place;
  Fiber* fiber;
};
}  // namespace
#endif

void Fiber::main(Fiber* self) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->outer_stack_, &self->outer_bytes_);
#endif
  self->entry_(self->argument_);
  self->done_ = true;
  self->suspend();
}

Fiber::Fiber(Fiber&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)), bytes_(other.bytes_) {}

Fiber::~Fiber() {
  if (mapping_) munmap(mapping_, bytes_);
}

void Fiber::prepare(void (*entry)(void*), void* argument) {
  if (!mapping_) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = kStackBytes + page;
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (p == MAP_FAILED || mprotect(p, page, PROT_NONE) != 0) {
      throw MemoryError("emu", "no memory for the stack of an emulated thread",
                        "use smaller blocks, or give the process more memory");
    }
    mapping_ = static_cast<char*>(p);
  }
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(mapping_ + bytes_ - kStackBytes, kStackBytes);
#endif
  entry_ = entry;
  argument_ = argument;
  fake_stack_ = nullptr;
  done_ = false;
  void** top = reinterpret_cast<void**>(mapping_ + bytes_);
#if defined(__x86_64__)
  top -= 2;  // a return address that is never used, and alignment
  *--top = reinterpret_cast<void*>(&cutaway_enter_fiber);
  *--top = nullptr;                                // rbp
  *--top = nullptr;                                // rbx
  *--top = this;                                   // r12
  *--top = reinterpret_cast<void*>(&Fiber::main);  // r13
  *--top = nullptr;                                // r14
  *--top = nullptr;                                // r15
  inside_ = top;
#elif defined(__aarch64__)
  top -= 20;
  for (int i = 0; i < 20; ++i) top[i] = nullptr;
  top[0] = this;                                            // x19
  top[1] = reinterpret_cast<void*>(&Fiber::main);           // x20
  top[11] = reinterpret_cast<void*>(&cutaway_enter_fiber);  // x30
  inside_ = top;
#else
  auto* context =
      reinterpret_cast<Context*>(reinterpret_cast<char*>(top) - (sizeof(Context) + 63) / 64 * 64);
  getcontext(&context->place);
  context->place.uc_stack.ss_sp = mapping_;
  context->place.uc_stack.ss_size = reinterpret_cast<char*>(context) - mapping_;
  context->place.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(this);
  makecontext(&context->place, reinterpret_cast<void (*)()>(+[](unsigned high, unsigned low) {
    Fiber::main(reinterpret_cast<Fiber*>((uint64_t{high} << 32) | low));
  }),
              2, unsigned(uint64_t{address} >> 32), unsigned(address));
  inside_ = context;
#endif
}

void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  void* mine = nullptr;
  __sanitizer_start_switch_fiber(&mine, mapping_ + bytes_ - kStackBytes, kStackBytes);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
  cutaway_switch_stack(&outside_, inside_);
#else
  ucontext_t here;
  outside_ = &here;
  swapcontext(&here, &static_cast<Context*>(inside_)->place);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(done_ ? nullptr : &fake_stack_, outer_stack_, outer_bytes_);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
  cutaway_switch_stack(&inside_, outside_);
#else
  swapcontext(&static_cast<Context*>(inside_)->place, static_cast<ucontext_t*>(outside_));
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &outer_stack_, &outer_bytes_);
#endif
}

}  // namespace cutaway::cuda::emu
