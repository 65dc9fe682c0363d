#include <cutaway/core/dispatch.h>

#include <cstdlib>
#include <mutex>

#include <cutaway/core/cpu/families.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernel.h>

namespace cutaway {

#define CUTAWAY_DECLARE(family) void register_##family##_kernels();
#ifdef CUTAWAY_HAVE_SCALAR
namespace cpu::scalar { CUTAWAY_CPU_FAMILIES(CUTAWAY_DECLARE) }
#endif
#ifdef CUTAWAY_HAVE_AVX2
namespace cpu::avx2 { CUTAWAY_CPU_FAMILIES(CUTAWAY_DECLARE) }
#endif
#ifdef CUTAWAY_HAVE_AVX512
namespace cpu::avx512 { CUTAWAY_CPU_FAMILIES(CUTAWAY_DECLARE) }
#endif
#undef CUTAWAY_DECLARE

namespace {

struct Variant {
  const char* name;
  bool offered;
  void (*register_kernels)();
};

// Worst first.
std::vector<Variant> variants() {
  std::vector<Variant> list;
#ifdef CUTAWAY_HAVE_SCALAR
  list.push_back({"scalar", true, [] {
#define CUTAWAY_CALL(family) cpu::scalar::register_##family##_kernels();
                    CUTAWAY_CPU_FAMILIES(CUTAWAY_CALL)
#undef CUTAWAY_CALL
                  }});
#endif
#ifdef CUTAWAY_HAVE_AVX2
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  list.push_back({"avx2", avx2, [] {
#define CUTAWAY_CALL(family) cpu::avx2::register_##family##_kernels();
                    CUTAWAY_CPU_FAMILIES(CUTAWAY_CALL)
#undef CUTAWAY_CALL
                  }});
#endif
#ifdef CUTAWAY_HAVE_AVX512
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx2") &&
                      __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  list.push_back({"avx512", avx512, [] {
#define CUTAWAY_CALL(family) cpu::avx512::register_##family##_kernels();
                    CUTAWAY_CPU_FAMILIES(CUTAWAY_CALL)
#undef CUTAWAY_CALL
                  }});
#endif
  return list;
}

Variant choose() {
  const char* forced = std::getenv("CUTAWAY_CPU_VARIANT");
  Variant best{nullptr, false, nullptr};
  std::string names;
  for (const Variant& v : variants()) {
    if (!v.offered) continue;
    names += std::string(names.empty() ? "" : ", ") + v.name;
    if (!forced || !*forced || std::string(forced) == v.name) best = v;
  }
  if (!best.name) {
    throw ValueError("cpu_variant", "CUTAWAY_CPU_VARIANT=" + std::string(forced ? forced : "") +
                                        " is not available here; need one of " + names);
  }
  return best;
}

const Variant& chosen() {
  static const Variant v = choose();
  return v;
}

}  // namespace

const char* cpu_variant() { return chosen().name; }

std::vector<std::string> available_cpu_variants() {
  std::vector<std::string> names;
  for (const Variant& v : variants()) {
    if (v.offered) names.push_back(v.name);
  }
  return names;
}

void detail::initialize_kernels() {
  static std::mutex mutex;
  static bool done[kNumDeviceKinds] = {};  // by kind: a back end may be plugged in later
  std::lock_guard lock(mutex);
  if (!done[int(DeviceKind::cpu)]) {
    chosen().register_kernels();
    done[int(DeviceKind::cpu)] = true;
  }
  for (DeviceKind kind : {DeviceKind::cuda, DeviceKind::emu}) {
    if (done[int(kind)] || !has_backend(kind)) continue;
    if (backend(kind).register_kernels) backend(kind).register_kernels();
    done[int(kind)] = true;
  }
}

void detail::throw_no_kernel(const char* kernel, DeviceKind kind, DType dtype) {
  if (kind == DeviceKind::meta) {
    throw DeviceError(kernel, "meta tensors have sizes only, no values to work on",
                      "the op needs values to know its result; move the operand to cpu");
  }
  if (!has_backend(kind)) {
    throw DeviceError(kernel, "this build has no part for " + to_string(Device{kind, 0}),
                      cuda::cuda_missing());
  }
  throw DTypeError(kernel,
                   std::string("there is no kernel for ") + name_of(dtype) + " on " +
                       to_string(Device{kind, 0}),
                   "convert with to(DType::f32)");
}

}  // namespace cutaway
