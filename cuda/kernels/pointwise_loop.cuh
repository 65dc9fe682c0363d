#pragma once
#include <initializer_list>
#include <tuple>

#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/math/storage.h>
#include <cutaway/cuda/device/language.h>

// Elementwise kernels. Where all operands are dense or a single number, a thread moves 16 bytes of
// the widest operand at once; else it finds the place of its one element from the strides.

namespace cutaway::cuda::CUTAWAY_TARGET {

using math::Compute;

// Booleans are bytes.
template <class S>
using Stored = std::conditional_t<std::is_same_v<S, bool>, uint8_t, S>;

constexpr unsigned kPointwiseThreads = 256;

// Elements a thread moves, so that the widest operand takes 16 bytes.
template <class... S>
constexpr int pointwise_width() {
  size_t widest = 1;
  ((widest = sizeof(S) > widest ? sizeof(S) : widest), ...);
  return static_cast<int>(16 / widest);
}

// Elements i … i + V − 1 of an operand, of which the first `count` exist.
template <class S, int V>
DEVICE void read_elements(const void* base, bool repeat, int64_t i, int count,
                          Compute<S> (&to)[V]) {
  const auto p = global<const Stored<S>>(base);
  if (repeat) {
    const Stored<S> value = p[0];
    for (int k = 0; k < V; ++k) to[k] = static_cast<Compute<S>>(value);
  } else if (count == V) {
    const Vec<Stored<S>, V> values = load<V>(p, i);
    for (int k = 0; k < V; ++k) to[k] = static_cast<Compute<S>>(values[k]);
  } else {
    for (int k = 0; k < V; ++k) {
      to[k] = Compute<S>(0);
      if (k < count) {
        const Stored<S> value = p[i + k];
        to[k] = static_cast<Compute<S>>(value);
      }
    }
  }
}
template <class S, int V>
DEVICE void write_elements(void* base, int64_t i, int count, const Compute<S> (&from)[V]) {
  const auto p = global<Stored<S>>(base);
  if (count == V) {
    Vec<Stored<S>, V> values;
    for (int k = 0; k < V; ++k) values[k] = static_cast<Stored<S>>(from[k]);
    store(p, i, values);
  } else {
    for (int k = 0; k < count; ++k) p[i + k] = static_cast<Stored<S>>(from[k]);
  }
}

// The first of this thread's elements, and how many of V there are.
DEVICE int64_t first_element(int v) {
  return (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * v;
}
template <int V>
DEVICE int elements_from(int64_t i, int64_t n) {
  return n - i < V ? static_cast<int>(n - i) : V;
}

template <class Fn, class Out, class A>
KERNEL dense1(PointwiseArgs args) {
  constexpr int V = pointwise_width<Out, A>();
  const int64_t i = first_element(V);
  if (i >= args.numel) return;
  const int count = elements_from<V>(i, args.numel);
  const Fn f = math::make_functor<Fn>(args);
  Compute<A> a[V];
  Compute<Out> y[V];
  read_elements<A, V>(args.in[0], args.strides[1][0] == 0, i, count, a);
  for (int k = 0; k < V; ++k) y[k] = f(a[k]);
  write_elements<Out, V>(args.out, i, count, y);
}
template <class Fn, class Out, class A, class B>
KERNEL dense2(PointwiseArgs args) {
  constexpr int V = pointwise_width<Out, A, B>();
  const int64_t i = first_element(V);
  if (i >= args.numel) return;
  const int count = elements_from<V>(i, args.numel);
  const Fn f = math::make_functor<Fn>(args);
  Compute<A> a[V];
  Compute<B> b[V];
  Compute<Out> y[V];
  read_elements<A, V>(args.in[0], args.strides[1][0] == 0, i, count, a);
  read_elements<B, V>(args.in[1], args.strides[2][0] == 0, i, count, b);
  for (int k = 0; k < V; ++k) y[k] = f(a[k], b[k]);
  write_elements<Out, V>(args.out, i, count, y);
}
template <class Fn, class Out, class A, class B, class C>
KERNEL dense3(PointwiseArgs args) {
  constexpr int V = pointwise_width<Out, A, B, C>();
  const int64_t i = first_element(V);
  if (i >= args.numel) return;
  const int count = elements_from<V>(i, args.numel);
  const Fn f = math::make_functor<Fn>(args);
  Compute<A> a[V];
  Compute<B> b[V];
  Compute<C> c[V];
  Compute<Out> y[V];
  read_elements<A, V>(args.in[0], args.strides[1][0] == 0, i, count, a);
  read_elements<B, V>(args.in[1], args.strides[2][0] == 0, i, count, b);
  read_elements<C, V>(args.in[2], args.strides[3][0] == 0, i, count, c);
  for (int k = 0; k < V; ++k) y[k] = f(a[k], b[k], c[k]);
  write_elements<Out, V>(args.out, i, count, y);
}

// Offsets of element i in out and the inputs; divisions are of 32 bits where they can be.
template <int kInputs>
DEVICE void element_offsets(const PointwiseArgs& args, int64_t i, int64_t (&offset)[4]) {
  for (int k = 0; k <= kInputs; ++k) offset[k] = 0;
  const bool narrow = args.numel <= 0x7fffffff;
  for (int d = args.rank - 1; d >= 0; --d) {
    int64_t at;
    if (narrow) {
      const unsigned size = static_cast<unsigned>(args.sizes[d]), rest = static_cast<unsigned>(i);
      at = rest % size;
      i = rest / size;
    } else {
      at = i % args.sizes[d];
      i = i / args.sizes[d];
    }
    for (int k = 0; k <= kInputs; ++k) offset[k] += at * args.strides[k][d];
  }
}
template <class S>
DEVICE Compute<S> element(const void* base, int64_t at) {
  const Stored<S> value = global<const Stored<S>>(base)[at];
  return static_cast<Compute<S>>(value);
}
template <class S>
DEVICE void set_element(void* base, int64_t at, Compute<S> value) {
  global<Stored<S>>(base)[at] = static_cast<Stored<S>>(value);
}

template <class Fn, class Out, class A>
KERNEL strided1(PointwiseArgs args) {
  const int64_t i = first_element(1);
  if (i >= args.numel) return;
  int64_t at[4];
  element_offsets<1>(args, i, at);
  const Fn f = math::make_functor<Fn>(args);
  set_element<Out>(args.out, at[0], f(element<A>(args.in[0], at[1])));
}
template <class Fn, class Out, class A, class B>
KERNEL strided2(PointwiseArgs args) {
  const int64_t i = first_element(1);
  if (i >= args.numel) return;
  int64_t at[4];
  element_offsets<2>(args, i, at);
  const Fn f = math::make_functor<Fn>(args);
  set_element<Out>(args.out, at[0],
                   f(element<A>(args.in[0], at[1]), element<B>(args.in[1], at[2])));
}
template <class Fn, class Out, class A, class B, class C>
KERNEL strided3(PointwiseArgs args) {
  const int64_t i = first_element(1);
  if (i >= args.numel) return;
  int64_t at[4];
  element_offsets<3>(args, i, at);
  const Fn f = math::make_functor<Fn>(args);
  set_element<Out>(args.out, at[0],
                   f(element<A>(args.in[0], at[1]), element<B>(args.in[1], at[2]),
                     element<C>(args.in[2], at[3])));
}

// ---- on the host

// True if every operand is dense or one number, and its address fits accesses of v elements.
template <class... S>
bool is_dense(const PointwiseArgs& a, int v) {
  if (a.rank > 1) return false;
  if (a.rank == 0) return false;
  constexpr size_t kBytes[] = {sizeof(S)...};
  for (size_t k = 0; k < sizeof...(S); ++k) {
    const void* p = k == 0 ? a.out : a.in[k - 1];
    const int64_t stride = a.strides[k][0];
    if (stride != 1 && (stride != 0 || k == 0)) return false;
    if (stride == 1 && reinterpret_cast<uintptr_t>(p) % (kBytes[k] * static_cast<size_t>(v)) != 0)
      return false;
  }
  return true;
}

DEVICE_HOST Launch pointwise_launch(const char* name, int64_t threads) {
  Launch l;
  l.name = name;
  l.grid.x = static_cast<unsigned>(blocks_for(threads, kPointwiseThreads));
  l.block.x = kPointwiseThreads;
  l.sync = Sync::none;
  return l;
}

// The kernel of functor template F: Out and In are storage types; F<T> is made for the arithmetic
// type T of the last input.
template <template <class> class F, class Out, class... In>
void pointwise(const PointwiseArgs& a) {
  if (a.numel == 0) return;
  constexpr size_t kInputs = sizeof...(In);
  constexpr int kWidth = pointwise_width<Out, In...>();
  using Last = std::tuple_element_t<kInputs - 1, std::tuple<In...>>;
  using Fn = F<Compute<Last>>;
  if (is_dense<Out, In...>(a, kWidth)) {
    const Launch l = pointwise_launch("pointwise_dense", blocks_for(a.numel, kWidth));
    if constexpr (kInputs == 1)
      launch(l, &dense1<Fn, Out, In...>, a);
    else if constexpr (kInputs == 2)
      launch(l, &dense2<Fn, Out, In...>, a);
    else
      launch(l, &dense3<Fn, Out, In...>, a);
  } else {
    const Launch l = pointwise_launch("pointwise_strided", a.numel);
    if constexpr (kInputs == 1)
      launch(l, &strided1<Fn, Out, In...>, a);
    else if constexpr (kInputs == 2)
      launch(l, &strided2<Fn, Out, In...>, a);
    else
      launch(l, &strided3<Fn, Out, In...>, a);
  }
}

// ---- filling rows of the kernel table, from core/math/pointwise_table.h
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
  (k.set(kDevice, *t++,
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
#define CUTAWAY_SET(types, F, inputs, kernel) set_##types<F, inputs>(kernels::kernel);

}  // namespace cutaway::cuda::CUTAWAY_TARGET
