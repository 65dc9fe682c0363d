#pragma once
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cutaway/core/cpu/vector_math.h>
#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/math/storage.h>
#include <cutaway/core/parallel.h>

// Note: elementwise kernels. A functor is compiled once per arithmetic type into a plain loop over
// contiguous arrays. Everything else — strides, broadcasting, 16-bit types, threads — is done by
// one driver that is not a template: it hands the loop blocks of at most kBlock elements, copied
// and converted where an operand is not a contiguous array of the loop's type already.

namespace cutaway::cpu::CUTAWAY_VARIANT {

// n elements, contiguous; operands in the loop's own types. `out` may equal an input.
using Loop = void (*)(int64_t n, void* out, const void* const* in, const PointwiseArgs& a);

// How an operand is stored: as the loop sees it, or as a 16-bit type that the loop sees as f32.
enum class Storage16 : uint8_t { none, bf16, f16 };
struct Operand {
  uint8_t bytes;
  Storage16 half = Storage16::none;
};

struct Plan {
  Loop loop;
  int inputs;
  Operand operand[4];  // [0] out, [1..3] inputs
};

// Runs the plan over all elements: the general way.
void run_plan(const PointwiseArgs& a, const Plan& plan);

using math::Compute;

template <class S>
constexpr Operand operand_of() {
  if (std::is_same_v<S, BFloat16>) return {2, Storage16::bf16};
  if (std::is_same_v<S, Float16>) return {2, Storage16::f16};
  return {sizeof(S)};
}

template <class F, class Out, class A>
void loop1(int64_t n, void* out, const void* const* in, const PointwiseArgs& args) {
  const F f = math::make_functor<F>(args);
  Out* y = static_cast<Out*>(out);
  const A* a = static_cast<const A*>(in[0]);
  if constexpr (requires { F::row(a, y, n); }) {
    F::row(a, y, n);
  } else if constexpr (std::is_same_v<A, float> && requires(Vector<float> v) { F::lanes(v); }) {
    map_vectors([](auto v) { return F::lanes(v); }, n, y, a);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i]);
  }
}
template <class F, class Out, class A, class B>
void loop2(int64_t n, void* out, const void* const* in, const PointwiseArgs& args) {
  const F f = math::make_functor<F>(args);
  Out* y = static_cast<Out*>(out);
  const A* a = static_cast<const A*>(in[0]);
  const B* b = static_cast<const B*>(in[1]);
  if constexpr (std::is_same_v<A, float> && requires(Vector<float> v) { F::lanes(v, v); }) {
    map_vectors([](auto u, auto v) { return F::lanes(u, v); }, n, y, a, b);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  }
}
template <class F, class Out, class A, class B, class C>
void loop3(int64_t n, void* out, const void* const* in, const PointwiseArgs& args) {
  const F f = math::make_functor<F>(args);
  Out* y = static_cast<Out*>(out);
  const A* a = static_cast<const A*>(in[0]);
  const B* b = static_cast<const B*>(in[1]);
  const C* c = static_cast<const C*>(in[2]);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i], c[i]);
}

// The kernel of functor template F: Out and In are storage types; F<T> is made for the arithmetic
// type T of the last input.
template <template <class> class F, class Out, class... In>
void pointwise(const PointwiseArgs& a) {
  constexpr size_t kInputs = sizeof...(In);
  using Last = std::tuple_element_t<kInputs - 1, std::tuple<In...>>;
  using Fn = F<Compute<Last>>;
  constexpr Loop loop = [] {
    if constexpr (kInputs == 1)
      return &loop1<Fn, Compute<Out>, Compute<In>...>;
    else if constexpr (kInputs == 2)
      return &loop2<Fn, Compute<Out>, Compute<In>...>;
    else
      return &loop3<Fn, Compute<Out>, Compute<In>...>;
  }();
  static constexpr Plan plan{loop, int(kInputs), {operand_of<Out>(), operand_of<In>()...}};
  constexpr bool plain = ((operand_of<In>().half == Storage16::none) && ...) &&
                         operand_of<Out>().half == Storage16::none;
  if constexpr (plain) {
    bool flat = a.rank == 1 && a.numel <= kGrain;
    for (size_t k = 0; k <= kInputs; ++k) flat = flat && a.strides[k][0] == 1;
    if (flat) return loop(a.numel, a.out, a.in, a);
  }
  run_plan(a, plan);
}

// ---- filling rows of the kernel table
template <template <class> class F, int kInputs, class Out, class In>
constexpr PointwiseKernel::Fn kernel_of() {
  if constexpr (kInputs == 1)
    return &pointwise<F, Out, In>;
  else if constexpr (kInputs == 2)
    return &pointwise<F, Out, In, In>;
  else
    return &pointwise<F, Out, In, In, In>;
}
// Out = void: the result has the type of the inputs.
template <template <class> class F, int kInputs, class Out, class... In>
void set_types(PointwiseKernel& k, std::initializer_list<DType> types) {
  const DType* t = types.begin();
  (k.set(DeviceKind::cpu, *t++,
         kernel_of<F, kInputs, std::conditional_t<std::is_void_v<Out>, In, Out>, In>()),
   ...);
}
template <template <class> class F, int kInputs, class Out = void>
void set_floats(PointwiseKernel& k) {
  set_types<F, kInputs, Out, double, float, BFloat16, Float16>(
      k, {DType::f64, DType::f32, DType::bf16, DType::f16});
}
template <template <class> class F, int kInputs, class Out = void>
void set_integers(PointwiseKernel& k) {
  set_types<F, kInputs, Out, int64_t, int32_t, uint8_t, int8_t>(
      k, {DType::i64, DType::i32, DType::u8, DType::i8});
}
template <template <class> class F, int kInputs, class Out = void>
void set_booleans(PointwiseKernel& k) {
  set_types<F, kInputs, Out, bool>(k, {DType::boolean});
}
template <template <class> class F, int kInputs, class Out = void>
void set_numbers(PointwiseKernel& k) {
  set_floats<F, kInputs, Out>(k);
  set_integers<F, kInputs, Out>(k);
}
template <template <class> class F, int kInputs>
void set_predicates(PointwiseKernel& k) {
  set_numbers<F, kInputs, bool>(k);
  set_booleans<F, kInputs, bool>(k);
}
template <template <class> class F, int kInputs>
void set_float_tests(PointwiseKernel& k) {
  set_floats<F, kInputs, bool>(k);
}
// One line of core/math/pointwise_table.h.
#define CUTAWAY_SET(types, F, inputs, kernel) set_##types<F, inputs>(kernels::kernel);

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
