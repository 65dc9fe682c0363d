#pragma once
#include <cutaway/core/device.h>
#include <cutaway/core/dtype.h>
#include <cutaway/core/record/hook.h>

namespace cutaway {

namespace detail {
// Fills the tables of the device kinds that are present, each once.
void initialize_kernels();
[[noreturn]] void throw_no_kernel(const char* kernel, DeviceKind kind, DType dtype);
}  // namespace detail

// Note: pointers in kernel arguments. A pointer in Args is memory of the device the kernel runs on;
// results, statistics and scratch that a kernel writes are tensors of that device. The exceptions
// are small tables and counters whose declaration says `host`: they are host memory on every
// device, a device kernel takes a copy of them before it starts or writes them when it is done.
// visit_args() beside each struct names all of them, for recorded steps.

// One kernel: a row of the kernel table, indexed by device kind and dtype. Args is a plain struct
// of pointers, sizes and strides. Declared in core/kernels/*.h, filled by register functions.
template <class Args>
struct Kernel {
  using Fn = void (*)(const Args&);
  const char* name;
  Fn table[kNumDeviceKinds][kNumDTypes] = {};

  Fn find(DeviceKind kind, DType dtype) {
    // Another thread may be filling the table right now.
    Fn& entry = table[static_cast<int>(kind)][static_cast<int>(dtype)];
    Fn fn = __atomic_load_n(&entry, __ATOMIC_ACQUIRE);
    if (!fn) [[unlikely]] {
      detail::initialize_kernels();
      fn = __atomic_load_n(&entry, __ATOMIC_ACQUIRE);
      if (!fn) detail::throw_no_kernel(name, kind, dtype);
    }
    return fn;
  }
  // Runs the kernel; raises DTypeError or DeviceError when there is none.
  void operator()(Device device, DType dtype, const Args& args) {
    const Fn fn = find(device.kind, dtype);
    if (recording_somewhere()) [[unlikely]] {
      detail::record_kernel(name, device, dtype, reinterpret_cast<AnyKernel>(fn), &args,
                            detail::kArgsInfo<Args>);
    } else {
      fn(args);
    }
  }
  void set(DeviceKind kind, DType dtype, Fn fn) {
    __atomic_store_n(&table[static_cast<int>(kind)][static_cast<int>(dtype)], fn, __ATOMIC_RELEASE);
  }
};

}  // namespace cutaway
