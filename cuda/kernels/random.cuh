#pragma once
#include <cutaway/core/kernels/random.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/math/random_normal.h>
#include <cutaway/cuda/device/walk.h>
#include <cutaway/cuda/recorded_draws.h>

// Random numbers, bit for bit those of the CPU: a thread draws one Philox block, the numbers of
// four neighbouring elements. Compiled without fused multiply-add.
namespace cutaway::cuda::CUTAWAY_TARGET {

// Type of arithmetic, and the random bits of four elements.
template <class T>
struct Random {
  using Compute = float;
  using Words = math::Philox4;
  CUTAWAY_HD static Words draw(const RandomArgs& a, uint64_t block) {
    return math::philox4(a.seed, a.stream, a.offset + block);
  }
};
template <>
struct Random<double> {
  using Compute = double;
  using Words = math::Philox4x64;
  CUTAWAY_HD static Words draw(const RandomArgs& a, uint64_t block) {
    return math::philox4x64(a.seed, a.stream, a.offset + block);
  }
};
// For kernels that take 32 bits whatever the type.
struct Random32 {
  using Words = math::Philox4;
  CUTAWAY_HD static Words draw(const RandomArgs& a, uint64_t block) {
    return math::philox4(a.seed, a.stream, a.offset + block);
  }
};

// Uniform in [0, 1) with as many bits as T holds there, so that rounding never gives 1.
template <class T>
CUTAWAY_HD float unit_of(uint32_t word) {
  constexpr int kBits = std::is_same_v<T, BFloat16> ? 8 : std::is_same_v<T, Float16> ? 11 : 24;
  return static_cast<float>(static_cast<int32_t>(word >> (32 - kBits))) *
         (1.0f / static_cast<float>(1 << kBits));
}
template <class T>
CUTAWAY_HD double unit_of(uint64_t word) {
  return math::uniform_f64(word);
}

template <class T>
struct Uniform : Random<T> {
  using C = typename Random<T>::Compute;
  using Element = T;
  static constexpr bool kReads = false;
  CUTAWAY_HD static void fill(const RandomArgs& a, uint64_t, const typename Random<T>::Words& w,
                              const T (&)[4], T (&y)[4]) {
    const C low = static_cast<C>(a.a), width = static_cast<C>(a.b - a.a);
    const C high = static_cast<C>(T(static_cast<C>(a.b)));
    for (int k = 0; k < 4; ++k) {
      const T v = T(low + width * unit_of<T>(w.word[k]));
      y[k] = static_cast<C>(v) < high ? v : T(low);  // a sum may round up to the end
    }
  }
};

template <class T>
struct Normal : Random<T> {
  using C = typename Random<T>::Compute;
  using Element = T;
  static constexpr bool kReads = false;
  CUTAWAY_HD static void fill(const RandomArgs& a, uint64_t, const typename Random<T>::Words& w,
                              const T (&)[4], T (&y)[4]) {
    const C mean = static_cast<C>(a.a), deviation = static_cast<C>(a.b);
    const auto z = math::normal4(w);
    for (int k = 0; k < 4; ++k) y[k] = T(mean + deviation * z.value[k]);
  }
};

template <class T>
struct Bernoulli : Random32 {
  using Element = T;
  static constexpr bool kReads = true;
  CUTAWAY_HD static void fill(const RandomArgs&, uint64_t, const Words& w, const T (&p)[4],
                              T (&y)[4]) {
    for (int k = 0; k < 4; ++k) {
      const double u = static_cast<double>(math::uniform_f32(w.word[k]));
      y[k] = T(u < static_cast<double>(p[k]) ? 1.0f : 0.0f);
    }
  }
};

template <class T>
struct Dropout : Random32 {
  using C = typename Random<T>::Compute;
  using Element = T;
  static constexpr bool kReads = true;
  CUTAWAY_HD static void fill(const RandomArgs& a, uint64_t, const Words& w, const T (&x)[4],
                              T (&y)[4]) {
    const float keep = static_cast<float>(a.a);
    const C scale = static_cast<C>(a.b);
    for (int k = 0; k < 4; ++k) {
      const C kept = static_cast<C>(x[k]) * scale;
      y[k] = T(math::bernoulli(w.word[k], keep) ? kept : C(0));
    }
  }
};

struct Integers : Random<double> {
  using Element = int64_t;
  static constexpr bool kReads = false;
  CUTAWAY_HD static void fill(const RandomArgs& a, uint64_t first, const Words& w,
                              const int64_t (&)[4], int64_t (&y)[4]) {
    for (int k = 0; k < 4; ++k) {
      // Nearly always the word is good as it is (see bounded_u64).
      const uint64_t v = w.word[k] * a.range < a.range
                             ? math::bounded_u64(a.seed, a.stream, a.offset,
                                                 first + static_cast<uint64_t>(k), a.range)
                             : math::detail::mul_high(w.word[k], a.range);
      y[k] = static_cast<int64_t>(static_cast<uint64_t>(a.low) + v);
    }
  }
};

// Vectors: both arrays are aligned for accesses of four elements. distance: of a recorded step, how
// far the generator has moved since; otherwise null.
template <class Draw, bool Vectors>
KERNEL draw_four(RandomArgs a, const uint64_t* distance) {
  using T = typename Draw::Element;
  const int64_t block = thread_number(), first = 4 * block;
  if (first >= a.n) return;
  if (distance) a.offset += uint64_t(global<const uint64_t>(distance)[0]);
  const auto y = global<T>(a.out);
  Vec<T, 4> x{}, out;
  const bool whole = Vectors && first + 4 <= a.n;
  if constexpr (Draw::kReads) {
    const auto in = global<const T>(a.in);
    if (whole) {
      x = load<4>(in, first);
    } else {
      for (int k = 0; k < 4 && first + k < a.n; ++k) x.v[k] = in[first + k];
    }
  }
  const auto words = Draw::draw(a, static_cast<uint64_t>(block));
  Draw::fill(a, static_cast<uint64_t>(first), words, x.v, out.v);
  if (whole) {
    store(y, first, out);
  } else {
    for (int k = 0; k < 4 && first + k < a.n; ++k) y[first + k] = out.v[k];
  }
}

template <class Draw>
void run_random(const RandomArgs& a) {
  if (a.n == 0) return;
  constexpr int64_t kBytes = 4 * sizeof(typename Draw::Element);
  const bool vectors = is_aligned(a.out, kBytes) && is_aligned(a.in, kBytes);
  launch(one_thread_each("random", blocks_for(a.n, 4)),
         vectors ? draw_four<Draw, true> : draw_four<Draw, false>, a, draw_distance(a));
}

template <class T>
void set_random(DType t) {
  kernels::random_uniform.set(kDevice, t, &run_random<Uniform<T>>);
  kernels::random_normal.set(kDevice, t, &run_random<Normal<T>>);
  kernels::random_bernoulli.set(kDevice, t, &run_random<Bernoulli<T>>);
  kernels::random_dropout.set(kDevice, t, &run_random<Dropout<T>>);
}

void register_random_kernels() {
  set_random<double>(DType::f64);
  set_random<float>(DType::f32);
  set_random<BFloat16>(DType::bf16);
  set_random<Float16>(DType::f16);
  kernels::random_integers.set(kDevice, DType::i64, &run_random<Integers>);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
