#pragma once
#include <cstdint>
#include <string>

// Memory of the emulated device. It is host memory, but nothing outside of kernels and copies may
// touch it. Every block stands between red zones; new blocks hold bytes 0xFF (NaN in floating
// types, -1 in integers), and so do freed ones, of which the newest are kept apart for a while, so
// that reads and writes after the end of a block's life show up too. All functions may be called by
// any thread.
namespace cutaway::cuda::emu {

class Shadow;

inline constexpr int64_t kRedZone = 64;  // bytes before a block, and at least so many after it
inline constexpr int kAlignment = 64;

// A new block. Raises MemoryError when there is no room, also for negative sizes.
void* allocate(int64_t bytes);
// Takes back a block of allocate(). What is found wrong (overwritten red zone, no such block) is
// kept for raise_faults().
void release(void* data) noexcept;

// The block that `p` points into, or right behind: live, or freed and still in quarantine.
struct Block {
  char* begin = nullptr;  // null: p is not device memory
  int64_t bytes = 0;
  bool freed = false;
  Shadow* shadow = nullptr;  // what is known of its bytes; null when checks are off
};
Block find_block(const void* p);
// "block #12, 400 bytes, allocated by softmax", for messages.
std::string block_name(const void* p);
// Raises DeviceError in the name of `op` unless [p, p + bytes) lies in one live block.
void require_range(const char* op, const void* p, int64_t bytes);

// Copies between host and device, and on the device; require_range() first. What is copied from
// memory that nothing wrote stays marked as such.
void copy_in(void* to, const void* from, int64_t bytes);
void copy_out(void* to, const void* from, int64_t bytes);
void copy_within(void* to, const void* from, int64_t bytes);

// Looks at the red zones of all blocks, and at freed ones; raises DeviceError naming the first
// block with a fault.
void check_red_zones();
// Raises DeviceError with what release() found since the last call, if anything. Called at every
// launch and by synchronize().
void raise_faults();

struct Stats {
  int64_t live = 0;         // bytes asked for and not freed
  int64_t peak = 0;         // highest live
  int64_t blocks = 0;       // live blocks
  int64_t allocations = 0;  // so far
  int64_t capacity = 0;     // bytes the device has
};
Stats stats();

// Note: guard. With it on, device memory is inaccessible to the process except while an Access
// lives: what a GPU would answer with a fault, a host read of a device pointer, then faults here
// as well. Kernel launches and copies hold an Access. Off at the start unless the environment has
// CUTAWAY_EMU_GUARD=1: each outermost Access costs two system calls.
void set_guard(bool on);
bool guard();

class Access {
 public:
  Access();
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

}  // namespace cutaway::cuda::emu
