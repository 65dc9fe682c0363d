#pragma once
#include <cutaway/core/kernel.h>

namespace cutaway {

// Random numbers for n contiguous elements. Element i takes word i mod 4 of Philox block
// offset + i / 4 (core/math/philox.h), whatever the thread count.
struct RandomArgs {
  int64_t n = 0;
  void* out = nullptr;
  const void* in = nullptr;  // n elements of the same type, where the kernel reads any
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint64_t offset = 0;
  double a = 0;  // kernel's own constants
  double b = 0;
  int64_t low = 0;
  uint64_t range = 0;
};

inline void visit_args(ArgumentVisitor& v, RandomArgs& a) {
  v.numbers({{"n", a.n}});
  v.random(a.seed, a.stream, a.offset);
  v.reads(a.in);
  v.writes(a.out);
}

namespace kernels {
// Uniform in [a, b).
inline constinit Kernel<RandomArgs> random_uniform{"random_uniform"};
// Normal with mean a and standard deviation b.
inline constinit Kernel<RandomArgs> random_normal{"random_normal"};
// 1 with probability in[i], else 0.
inline constinit Kernel<RandomArgs> random_bernoulli{"random_bernoulli"};
// in[i] · b with probability a, else 0.
inline constinit Kernel<RandomArgs> random_dropout{"random_dropout"};
// Whole numbers in [low, low + range), i64.
inline constinit Kernel<RandomArgs> random_integers{"random_integers"};
}  // namespace kernels

}  // namespace cutaway
